//! Answers in words for the model and in fields for programs (SPEC section 10).

use std::path::{Path, PathBuf};

use haft_system::Workdir;
use haft_tool::{Output, ToolError};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::{
    adapters::AdapterReport,
    limits::{CHILDREN, CONTEXT_LINES, FRAMES, LOCALS, SOURCE_BYTES, VALUE_CHARACTERS},
    session::{
        Frame, Listed, ProcessLine, Standing, Variable,
        breakpoints::{Asked, Placed},
        output::Look,
        state::End,
    },
};

/// An answer that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    text: String,
    fields: Map<String, Value>,
}

impl Answer {
    pub(crate) fn new(state: &str) -> Self {
        Answer { text: String::new(), fields: Map::from_iter([("state".to_owned(), json!(state))]) }
    }

    /// Adds a paragraph.
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref().trim_end();
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    pub(crate) fn field(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    pub(crate) fn output(self) -> Output {
        Output::text(self.text).structured(Value::Object(self.fields))
    }

    /// The same as an error.
    pub(crate) fn error(self) -> ToolError {
        ToolError::model(self.text).with_structured(Value::Object(self.fields))
    }
}

/// The stop: reason, place, the lines around, locals.
pub(crate) fn stop(answer: &mut Answer, standing: &Standing, workdir: &Workdir) {
    let thread = standing.thread.map_or_else(String::new, |thread| format!(" (thread {thread})"));
    let detail = standing
        .detail
        .as_ref()
        .map_or_else(String::new, |detail| format!(": {}", cut(detail, VALUE_CHARACTERS)));
    let place = match &standing.top {
        Some(top) => format!(" {}", at(top, workdir)),
        None => String::new(),
    };
    let process = standing.process.map_or_else(String::new, |pid| format!(" in process {pid}"));
    answer.say(format!("Stopped ({}{detail}){place}{thread}{process}.", standing.reason));
    let shown = standing.nearest.as_ref().or(standing.top.as_ref());
    if let Some(nearest) = &standing.nearest {
        answer.say(format!(
            "The nearest frame of this project is frame {} {}.",
            nearest.id,
            at(nearest, workdir)
        ));
    }
    if let Some(frame) = shown {
        if let (Some(file), Some(line)) = (&frame.file, frame.line) {
            answer.say(source(file, line, workdir));
            if changed_since(file, standing.begun) {
                answer.say(format!(
                    "{} was changed after the session had begun: the lines shown may not be those that run.",
                    workdir.show(file)
                ));
            }
        }
        let locals = &standing.locals;
        if locals.items.is_empty() {
            answer.say(format!("Frame {}: {}. No locals.", frame.id, frame.name));
        } else {
            answer.say(format!("Frame {}: {}. Locals:", frame.id, frame.name));
            answer.say(lines_of(&locals.items));
            answer.say(rest(locals, LOCALS, "`scopes` and `variables` show the rest"));
        }
        answer.field("frames", frames_field(std::slice::from_ref(frame), workdir));
        answer.field("variables", variables_field(&locals.items));
    }
    if let Some(unknown) = &standing.unknown {
        answer.say(format!("More about this stop is not known: {unknown}"));
    }
    let frame = standing.top.as_ref();
    // What a person calls the place of a panic is where their own code is, not where the runtime raises it.
    let named = if matches!(standing.reason.as_str(), "panic" | "exception") { shown } else { frame };
    let mut field = json!({
        "reason": standing.reason,
        "detail": standing.detail,
        "file": named.and_then(|frame| frame.file.as_ref()).map(|file| workdir.show(file)),
        "line": named.and_then(|frame| frame.line),
        "thread_id": standing.thread,
        "frame_id": shown.map(|frame| frame.id),
    });
    if let Some(pid) = standing.process {
        field["process_id"] = pid.into();
    }
    answer.field("stopped", field);
}

/// The processes of a session, where there is or was more than one; and what else is to be said about them.
pub(crate) fn processes(answer: &mut Answer, processes: &[ProcessLine], notices: &[String]) {
    for notice in notices {
        answer.say(notice);
    }
    if let [_, _, ..] = processes {
        let lines: Vec<String> = processes
            .iter()
            .map(|process| {
                let pid = process.pid.map_or_else(|| "number not known".to_owned(), |pid| pid.to_string());
                let reason =
                    process.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
                format!("- {pid}: {} {}{reason}", process.title, process.state)
            })
            .collect();
        answer.say(format!("Processes (process_id chooses one):\n{}", lines.join("\n")));
    }
    if !processes.is_empty() {
        let field: Vec<Value> = processes
            .iter()
            .map(|process| {
                json!({"id": process.pid, "name": process.title, "state": process.state, "reason": process.reason})
            })
            .collect();
        answer.field("processes", json!(field));
    }
}

fn at(frame: &Frame, workdir: &Workdir) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("at {}:{line} in {}", workdir.show(file), frame.name),
        (Some(file), None) => format!("in {} ({})", frame.name, workdir.show(file)),
        (None, _) => format!("in {} (no source)", frame.name),
    }
}

/// The lines around a line, as they are on disk now; empty where the file cannot be read.
fn source(file: &Path, line: u32, workdir: &Workdir) -> String {
    let readable = file.metadata().is_ok_and(|data| data.is_file() && data.len() <= SOURCE_BYTES);
    if !readable || workdir.withholds(file) {
        return String::new();
    }
    let Ok(bytes) = std::fs::read(file) else { return String::new() };
    let text = String::from_utf8_lossy(&bytes);
    let line = line as usize;
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let shown: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(at, text)| (at + 1, text))
        .skip(first - 1)
        .take(line + CONTEXT_LINES + 1 - first)
        .collect();
    let width = shown.last().map_or(1, |(number, _)| number.to_string().len());
    let mut lines = String::new();
    for (number, text) in shown {
        let mark = if number == line { '>' } else { ' ' };
        lines.push_str(&format!("{mark} {number:width$} | {}\n", cut(text, 200)));
    }
    lines
}

fn changed_since(file: &Path, begun: Instant) -> bool {
    let age = file.metadata().and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age < begun.elapsed())
}

/// How a program ended.
pub(crate) fn end(answer: &mut Answer, ended: &End, signal: Option<&str>) {
    let text = match ended {
        End::Exited { code: Some(code) } if signal.is_some_and(|name| SIGNALS.contains(&(name, *code))) => format!(
            "The program was ended by {}, at which it had stopped (the debug adapter reports the signal's number, {code}, as its exit code).",
            signal.unwrap_or_default()
        ),
        End::Exited { code: Some(code) } => format!("The program has ended with exit code {code}{}.", odd(*code)),
        End::Exited { code: None } => {
            "The program has ended; the debug adapter has not told its exit code.".to_owned()
        }
        End::Vanished => {
            "The program is gone, and the debug adapter has not said how it ended: it was killed from outside, or something that it had \
             started kept its output open."
                .to_owned()
        }
        End::AdapterDied { how } => {
            format!("The debug adapter has died ({how}). The program was ended with it; how far it came is not known.")
        }
        End::Disconnected { why } => format!(
            "The connection to the debugger is lost ({why}). Whether the program that it was attached to still runs is not known."
        ),
        End::Terminated { why } => format!("The session is over: {why}."),
    };
    answer.say(text);
    if let End::Exited { code: Some(code) } = ended {
        answer.field("exit_code", json!(code));
    }
}

/// The signals that end a program by themselves (signal(7); these are the same on every Linux and macOS but for SIGBUS).
const SIGNALS: &[(&str, i64)] = &[
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", if cfg!(target_os = "macos") { 10 } else { 7 }),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGSEGV", 11),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
];

/// How a signal is told as an exit code: debugpy has it below 256, others below zero, shells above 128.
fn odd(code: i64) -> String {
    if code == -1 {
        return " (what lldb reports when a program is killed)".to_owned();
    }
    // Programs themselves end with -1 to -3.
    let ended_by = SIGNALS
        .iter()
        .find(|(_, number)| *number > 3 && [256 - number, -number, 128 + number].contains(&code));
    ended_by.map_or_else(String::new, |(name, _)| {
        format!(" (what is reported when a program is killed by {name})")
    })
}

/// The word for `state`.
pub(crate) fn end_state(ended: &End) -> &'static str {
    match ended {
        End::Disconnected { .. } => "unknown",
        _ => "exited",
    }
}

/// New output, if there is any.
pub(crate) fn output(answer: &mut Answer, look: &Look, what: &str) {
    if look.text.is_empty() && look.left_out == 0 {
        return;
    }
    let left_out = match (look.left_out, look.lost) {
        (0, _) => String::new(),
        (left_out, 0) => {
            format!(" ({left_out} bytes before it are not shown; `output` with all: true shows more)")
        }
        (left_out, lost) => {
            format!(" ({left_out} bytes before it are not shown, {lost} of them are not kept)")
        }
    };
    answer.say(format!("{what}{left_out}:\n{}", look.text));
    answer.field("output", json!(look.text));
}

/// Breakpoints with what became of them.
pub(crate) fn breakpoints(answer: &mut Answer, placed: &[Placed], workdir: &Workdir) {
    if placed.is_empty() {
        answer.say("No breakpoints are set.");
    }
    for breakpoint in placed {
        answer.say(format!("- {}", breakpoint_line(breakpoint, workdir)));
    }
    answer.field("breakpoints", breakpoints_field(placed, workdir));
}

fn breakpoint_line(placed: &Placed, workdir: &Workdir) -> String {
    let (name, extras) = match &placed.asked {
        Asked::Line(file, line) => {
            let mut extras = String::new();
            for (what, text) in
                [("if", &line.condition), ("hits", &line.hit_condition), ("logs", &line.log_message)]
            {
                if let Some(text) = text {
                    extras.push_str(&format!(" [{what} {text}]"));
                }
            }
            (format!("{}:{}", workdir.show(file), line.line), extras)
        }
        Asked::Function(name) => (format!("function {name}"), String::new()),
    };
    let moved = match (&placed.asked, placed.line) {
        (Asked::Line(_, asked), Some(line)) if line != asked.line => {
            format!(", moved to line {line}, which has code")
        }
        _ => String::new(),
    };
    let state = match placed.verified {
        None => "set for the next launch".to_owned(),
        Some(true) => format!("verified{moved}"),
        Some(false) => "NOT verified".to_owned(),
    };
    let message = match (&placed.message, placed.verified) {
        (Some(message), Some(false)) => format!(": {}", cut(message.trim(), VALUE_CHARACTERS)),
        (None, Some(false)) => {
            ": the debugger has found no code there (yet): the line holds none, its file is not part of the program or not loaded \
             yet, or the program was built without debug information"
                .to_owned()
        }
        _ => String::new(),
    };
    format!("{name}{extras}: {state}{message}")
}

pub(crate) fn breakpoints_field(placed: &[Placed], workdir: &Workdir) -> Value {
    placed
        .iter()
        .map(|placed| {
            let mut field = match &placed.asked {
                Asked::Line(file, line) => json!({
                    "file": workdir.show(file), "line": placed.line.unwrap_or(line.line), "asked_line": line.line,
                    "condition": line.condition, "hit_condition": line.hit_condition, "log_message": line.log_message,
                }),
                Asked::Function(name) => json!({"function": name, "file": null, "line": placed.line}),
            };
            field["verified"] = json!(placed.verified.unwrap_or(false));
            field["message"] = match placed.verified {
                None => json!("set for the next launch"),
                Some(_) => json!(placed.message),
            };
            if let Value::Object(map) = &mut field {
                map.retain(|name, value| !value.is_null() || matches!(name.as_str(), "file" | "line" | "message"));
            }
            field
        })
        .collect()
}

/// What to say about breakpoints at which a program that has ended could not have stopped.
pub(crate) fn never_verified(answer: &mut Answer, placed: &[Placed], workdir: &Workdir) {
    let never: Vec<&Placed> = placed.iter().filter(|placed| placed.verified == Some(false)).collect();
    if never.is_empty() {
        return;
    }
    answer.say("It could not stop at these breakpoints:");
    for placed in &never {
        answer.say(format!("- {}", breakpoint_line(placed, workdir)));
    }
    answer.field("breakpoints", breakpoints_field(placed, workdir));
}

/// A stack.
pub(crate) fn stack(
    answer: &mut Answer,
    thread: i64,
    frames: &Listed<Frame>,
    start: usize,
    workdir: &Workdir,
) {
    answer.say(format!(
        "Stack of thread {thread}{}:",
        if start > 0 { format!(" from {start}") } else { String::new() }
    ));
    for (at, frame) in frames.items.iter().enumerate() {
        let place = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{}:{line}", workdir.show(file)),
            (Some(file), None) => workdir.show(file),
            (None, _) => "no source".to_owned(),
        };
        answer.say(format!("#{} {} at {place} [frame {}]", start + at, frame.name, frame.id));
    }
    if frames.items.is_empty() {
        answer.say("no frames");
    }
    answer.say(rest(
        frames,
        FRAMES,
        &format!("`stack` with start: {} shows the next", start + frames.items.len()),
    ));
    answer.field("frames", frames_field(&frames.items, workdir));
}

fn frames_field(frames: &[Frame], workdir: &Workdir) -> Value {
    frames
        .iter()
        .map(|frame| {
            json!({
                "id": frame.id, "name": frame.name,
                "file": frame.file.as_ref().map(|file| workdir.show(file)), "line": frame.line,
            })
        })
        .collect()
}

/// The children of a variable or a scope.
pub(crate) fn variables(answer: &mut Answer, listed: &Listed<Variable>, start: usize) {
    answer.say(lines_of(&listed.items));
    if listed.items.is_empty() {
        answer.say(if start > 0 { "No more variables." } else { "No variables." });
    }
    answer.say(rest(listed, CHILDREN, &format!("start: {} shows the next", start + listed.items.len())));
    answer.field("variables", variables_field(&listed.items));
}

/// One line a variable, with its type where the value does not say it.
fn lines_of(variables: &[Variable]) -> String {
    let mut lines = String::new();
    for variable in variables {
        lines.push_str(&format!(
            "  {}
",
            line_of(variable)
        ));
    }
    lines
}

pub(crate) fn line_of(variable: &Variable) -> String {
    let kind = match &variable.kind {
        Some(kind) if !variable.value.starts_with(kind.as_str()) => format!(": {}", cut(kind, 120)),
        _ => String::new(),
    };
    let reference = variable.reference.map_or_else(String::new, |number| format!("  [reference {number}]"));
    format!("{}{kind} = {}{reference}", variable.name, cut(&variable.value, VALUE_CHARACTERS))
}

pub(crate) fn variables_field(variables: &[Variable]) -> Value {
    variables
        .iter()
        .map(|variable| {
            json!({
                "name": variable.name, "value": cut(&variable.value, VALUE_CHARACTERS), "type": variable.kind,
                "reference": variable.reference,
            })
        })
        .collect()
}

fn rest<T>(listed: &Listed<T>, most: usize, how: &str) -> String {
    match listed.more {
        Some(0) => String::new(),
        Some(more) => format!("{more} more are not shown ({most} at a time); {how}."),
        None => format!("There are more ({most} are shown at a time); {how}."),
    }
}

/// The adapters and what each lacks.
pub(crate) fn adapters(answer: &mut Answer, reports: &[AdapterReport], workdir: &Workdir) {
    let show = |path: &PathBuf| workdir.show(path);
    for report in reports {
        let state = if report.why_not.is_empty() {
            "usable".to_owned()
        } else {
            format!("not usable here: {}", report.why_not.join("; "))
        };
        let parts: Vec<String> = [
            report.marker.as_ref().map(|marker| format!("marker {}", show(marker))),
            report.binary.as_ref().map(|binary| format!("binary {}", binary.display())),
            report.probe.clone(),
            report.install.as_ref().map(|how| format!("to install: {how}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let tail = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        answer.say(format!("- {}: {state}{tail}", report.id));
    }
    let field: Vec<Value> = reports
        .iter()
        .map(|report| {
            json!({
                "id": report.id,
                "marker": report.marker.as_ref().map(show),
                "binary": report.binary.as_ref().map(|binary| binary.display().to_string()),
                "usable": report.why_not.is_empty(),
                "why_not": if report.why_not.is_empty() { Value::Null } else { json!(report.why_not.join("; ")) },
                "probe": report.probe,
                "install": report.install,
            })
        })
        .collect();
    answer.field("adapters", json!(field));
}

/// Cut at so many characters, with how long it was.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… [cut, {} characters]", &text[..end], text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_long_value_says_that_it_was_cut() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("äöüß", 2), "äö… [cut, 4 characters]");
    }

    #[test]
    fn a_line_beyond_the_end_of_a_changed_file_shows_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.txt");
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        let workdir = Workdir::new(directory.path()).unwrap();
        assert_eq!(source(&file, 2, &workdir), "  1 | one\n> 2 | two\n  3 | three\n");
        assert_eq!(source(&file, 9, &workdir), "");
        assert_eq!(source(&directory.path().join("none"), 1, &workdir), "");
    }
}
