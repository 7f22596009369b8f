//! The operation `breakpoints`.

use haft_tool::{Access, Output, ToolError};

use super::{Debug, DebugArguments, Line};
use crate::{
    render::{self, Answer},
    session::breakpoints::LineBreak,
};

impl Debug {
    pub(super) async fn breakpoints(&self, arguments: DebugArguments) -> Result<Output, ToolError> {
        let workdir = &self.debugger.workdir;
        let mut notes = Vec::new();
        match (arguments.file, arguments.lines) {
            (Some(file), Some(lines)) => {
                let resolved = workdir.resolve(&file, Access::Read)?;
                if resolved.state != haft_system::PathState::File && !lines.is_empty() {
                    return Err(ToolError::model(format!(
                        "There is no file `{file}`, so no breakpoint was set."
                    )));
                }
                let mut wanted: Vec<LineBreak> = Vec::new();
                for line in lines {
                    let line = match line {
                        Line::Number(line) => LineBreak { line, ..LineBreak::default() },
                        Line::Conditional(line) => LineBreak {
                            line: line.line,
                            condition: line.condition,
                            hit_condition: line.hit_condition,
                            log_message: line.log_message,
                        },
                    };
                    if line.line == 0 {
                        return Err(ToolError::model("Lines are counted from 1. No breakpoint was changed."));
                    }
                    // The last word about a line counts; adapters differ on what two would mean.
                    wanted.retain(|known| known.line != line.line);
                    wanted.push(line);
                }
                wanted.sort_by_key(|line| line.line);
                let text = std::fs::read_to_string(&resolved.real).unwrap_or_default();
                for line in &wanted {
                    let on_line = text.lines().nth(line.line as usize - 1);
                    match on_line {
                        None if !text.is_empty() => notes.push(format!(
                            "Line {} is behind the end of {}, which has {} lines.",
                            line.line,
                            resolved.shown,
                            text.lines().count()
                        )),
                        Some(blank) if blank.trim().is_empty() => {
                            notes.push(format!("Line {} of {} is blank.", line.line, resolved.shown));
                        }
                        _ => {}
                    }
                }
                self.debugger.break_at(&resolved.real, wanted).await;
            }
            (Some(_), None) => {
                return Err(ToolError::model(
                    "`breakpoints` with a file needs `lines`; an empty list clears the file.",
                ));
            }
            (None, Some(_)) => return Err(ToolError::model("`breakpoints` with lines needs a `file`.")),
            (None, None) => {}
        }
        if let Some(functions) = arguments.functions {
            self.debugger.break_in(functions).await;
        }
        if let Some(exceptions) = arguments.exceptions {
            let unknown = self.debugger.break_on(exceptions).await;
            if !unknown.is_empty() {
                let known: Vec<String> = self
                    .debugger
                    .session()
                    .map(|session| session.capabilities().exception_breakpoint_filters)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|filter| filter.filter)
                    .collect();
                notes.push(format!(
                    "This adapter has no exception filter {}; it has: {}.",
                    unknown.join(", "),
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                ));
            }
        }
        let mut answer = Answer::new(self.state_word());
        let placed = self.debugger.placed();
        render::breakpoints(&mut answer, &placed, workdir);
        for note in notes {
            answer.say(note);
        }
        Ok(answer.output())
    }
}
