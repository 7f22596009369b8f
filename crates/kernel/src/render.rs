//! A cell's end as the model and programs get it.

use std::fmt::Write;

use haft_system::Exit;
use haft_tool::{Content, Output, ToolError};
use serde_json::{Map, Value, json};

use crate::{
    cell::{End, Language, Ran, Why},
    display::{Display, fit},
    frames::Table,
    kernels::Evaluated,
    limits::{HTML, SHOWN_ERR, SHOWN_OUT, SHOWN_TEXT, SHOWN_TRACEBACK},
    output::Stored,
};

/// The answer to a cell. Decodes pictures, which takes a while.
pub(crate) fn answer(evaluated: Evaluated, language: Language) -> Result<Output, ToolError> {
    let Evaluated { cell, ran, mut notices, earlier_cells, interpreter } = evaluated;
    let Some(ran) = ran else {
        let text = if notices.is_empty() {
            "There was no kernel to reset, and there is no code to run.".into()
        } else {
            notices.join("\n")
        };
        let fields = json!({
            "result": null, "stdout": "", "stderr": "", "error": null, "displays": [], "state_kept": false, "cell": cell,
        });
        return Ok(Output::text(text).structured(fields));
    };
    let mut pieces = Pieces::default();
    let verdict = verdict(&ran, language, earlier_cells);
    let headline = match (&verdict, &ran.error) {
        (Some(verdict), _) => Some(verdict.clone()),
        (None, Some(error)) if error.message.is_empty() => Some(format!("The cell raised {}.", error.name)),
        (None, Some(error)) => {
            let first = error.message.lines().next().unwrap_or_default();
            Some(format!("The cell raised {}: {}", error.name, ends(first, 400)))
        }
        (None, None) => None,
    };
    if let Some((out, err)) = &ran.background {
        let mut text =
            String::from("Output since the last cell, from threads or processes that it left running:\n");
        for (stored, what) in [(out, "output"), (err, "stderr")] {
            text.push_str(&stretch(stored, 0, stored.total, SHOWN_ERR));
            if let Some(note) = whole(stored, what, SHOWN_ERR) {
                let _ = write!(text, "\n{note}\n");
            }
        }
        notices.push(text.trim_end().to_owned());
    }
    if let Some(headline) = &headline {
        pieces.text(headline.clone());
    }
    for notice in &notices {
        pieces.text(format!("[{notice}]"));
    }
    let mut shows = Vec::new();
    let mut position = 0;
    let mut result = Value::Null;
    let budget = SHOWN_OUT;
    for display in &ran.displays {
        pieces.text(stretch(&ran.out, position, display.at.max(position), budget));
        position = position.max(display.at);
        let fields = pieces.display(display);
        if display.result {
            result = display.text("text/plain").map_or(Value::Null, |text| json!(text));
        }
        shows.push(fields);
    }
    pieces.text(stretch(&ran.out, position, ran.out.total, budget));
    if ran.displays_dropped > 0 {
        pieces.text(format!(
            "[{} more displays were left out: {} is the most that one cell shows]",
            ran.displays_dropped,
            crate::limits::DISPLAYS
        ));
    }
    if let Some(note) = whole(&ran.out, "output", SHOWN_OUT) {
        pieces.text(note);
    }
    if ran.err.total > 0 {
        pieces.text(format!("[stderr]\n{}", stretch(&ran.err, 0, ran.err.total, SHOWN_ERR)));
        if let Some(note) = whole(&ran.err, "stderr", SHOWN_ERR) {
            pieces.text(note);
        }
    }
    if let Some(error) = &ran.error {
        pieces.text(ends(&error.traceback, SHOWN_TRACEBACK));
    }
    if !ran.leftovers.is_empty() {
        pieces.text(format!("[ended with the kernel: {}]", ran.leftovers.join("; ")));
    }
    if pieces.content.is_empty() {
        pieces.text("(no output)".into());
    }
    let fields = json!({
        "result": result,
        "stdout": ran.out.text(),
        "stderr": ran.err.text(),
        "error": ran.error.as_ref().map(|error| json!({
            "name": error.name, "message": error.message, "traceback": error.traceback,
        })),
        "displays": shows,
        "state_kept": ran.end.state_kept(),
        "cell": cell,
        "language": match language { Language::Python => "python", Language::JavaScript => "javascript" },
        "interpreter": interpreter.map(|(program, version)| json!({"program": program, "version": version})),
        "stdout_bytes": ran.out.total,
        "stderr_bytes": ran.err.total,
        "stdout_file": ran.out.file.as_ref().map(|path| path.display().to_string()),
        "stdout_artifact": ran.out.artifact,
        "stderr_artifact": ran.err.artifact,
        "stderr_file": ran.err.file.as_ref().map(|path| path.display().to_string()),
        "cwd": ran.cwd,
        "tool_calls": ran.calls,
        "cell_ms": (ran.elapsed.as_secs_f64() * 1e5).round() / 100.0,
        "notices": notices,
    });
    let output = Output { content: pieces.content, structured: Map::new() }.structured(fields);
    if headline.is_some() { Err(ToolError::Failed(Box::new(output))) } else { Ok(output) }
}

/// What happened to a cell that did not come to its own end, and to the variables.
fn verdict(ran: &Ran, language: Language, earlier: u32) -> Option<String> {
    let lost = match earlier {
        0 => "All variables of this cell are lost; the next call starts a fresh kernel.".to_owned(),
        1 => "All variables are lost, those of the cell before too; the next call starts a fresh kernel."
            .to_owned(),
        n => format!(
            "All variables are lost, those of the {n} cells before too; the next call starts a fresh kernel."
        ),
    };
    let reason = |why: &Why| match why {
        Why::Inactive(budget) => format!("The cell gave no sign of life for {} s", seconds(*budget)),
        Why::Cancelled => "The call was cancelled".to_owned(),
    };
    Some(match &ran.end {
        End::Finished => return None,
        End::Interrupted(why) => format!(
            "{}: it was interrupted. The kernel goes on and its variables are kept; what the cell had done by then stays done.{}",
            reason(why),
            match why {
                Why::Inactive(_) =>
                    " Give a larger `timeout_seconds`, print progress, or do the work in smaller steps.",
                Why::Cancelled => "",
            }
        ),
        End::FinishedLate(why) if ran.error.is_some() => {
            format!(
                "{}: it was interrupted and ended with an error. The kernel's variables are kept.",
                reason(why)
            )
        }
        End::FinishedLate(why) => {
            format!(
                "{}: it was interrupted, and came to its end all the same. The kernel's variables are kept.",
                reason(why)
            )
        }
        End::Killed(why) => format!(
            "{}, and it did not heed interrupts: the {} kernel was killed. {lost}",
            reason(why),
            language.name()
        ),
        End::Died(exit) => {
            let hint = match exit {
                Exit::Signal(libc::SIGKILL) => " (often the system, when memory runs out)",
                Exit::Signal(libc::SIGABRT) if out_of_memory(&ran.err) => {
                    " (the engine's memory ran out: hold less at a time)"
                }
                Exit::Signal(libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT) => " (a crash in compiled code)",
                _ => "",
            };
            format!(
                "The {} kernel died while the cell ran: {exit}{hint}. {lost} The cell was not run again.",
                language.name()
            )
        }
        End::Broken(why) => format!("The {} kernel had to be ended: {why}. {lost}", language.name()),
    })
}

/// What V8 says last when its heap is full.
fn out_of_memory(err: &Stored) -> bool {
    [&err.head, &err.tail].iter().any(|text| memchr::memmem::find(text, b"out of memory").is_some())
}

fn seconds(duration: std::time::Duration) -> String {
    let value = duration.as_secs_f64();
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[derive(Default)]
struct Pieces {
    content: Vec<Content>,
}

impl Pieces {
    /// Adds text; neighbours become one piece.
    fn text(&mut self, text: String) {
        let text = text.trim_end_matches('\n');
        if text.is_empty() {
            return;
        }
        match self.content.last_mut() {
            Some(Content::Text { text: before }) => {
                before.push('\n');
                before.push_str(text);
            }
            _ => self.content.push(Content::text(text)),
        }
    }

    /// Adds a display, and answers its fields for programs.
    fn display(&mut self, display: &Display) -> Value {
        let plain = display.text("text/plain").unwrap_or_default();
        let mut fields = json!({"type": "text", "result": display.result, "at": display.at});
        if let Some(id) = &display.id {
            fields["id"] = json!(id);
        }
        fields["text"] = json!(plain);
        for (mime, name) in [
            ("text/html", "html"),
            ("image/svg+xml", "svg"),
            ("text/markdown", "markdown"),
            ("text/latex", "latex"),
        ] {
            if let Some(text) = display.text(mime).filter(|text| text.len() <= HTML) {
                fields[name] = json!(text);
            }
        }
        if let Some(value) = display.data.get("application/json") {
            fields["json"] = value.clone();
        }
        if let Some(table) = &display.table {
            fields["type"] = json!("table");
            fields["columns"] = json!(table.columns);
            fields["rows"] = json!(table.rows);
            fields["shape"] = json!(table.shape);
            self.text(about(table));
            self.content.push(Content::Table { columns: table.columns.clone(), rows: table.rows.clone() });
            return fields;
        }
        if let Some((mime, data)) = display.picture() {
            match fit(mime, data) {
                Ok(fitted) => {
                    fields["type"] = json!("image");
                    fields["mime"] = json!(fitted.mime);
                    fields["width"] = json!(fitted.size.0);
                    fields["height"] = json!(fitted.size.1);
                    fields["content"] = json!(self.content.len());
                    if let Some((width, height)) = display.original.or(fitted.original) {
                        self.text(format!(
                            "[a picture of {width} × {height} pixels, shown at {} × {}]",
                            fitted.size.0, fitted.size.1
                        ));
                        fields["content"] = json!(self.content.len());
                    }
                    self.content.push(Content::Image { mime: fitted.mime, data: fitted.data });
                    return fields;
                }
                Err(why) => self.text(format!("[a picture that cannot be shown: {why}]")),
            }
        }
        let words = display.text("text/markdown").or(display.text("text/latex")).unwrap_or(plain);
        if fields.get("html").is_some() && display.text("text/markdown").is_none() {
            fields["type"] = json!("html");
        }
        self.text(ends(words, SHOWN_TEXT));
        fields
    }
}

/// What a table is a picture of.
fn about(table: &Table) -> String {
    let [rows, columns] = table.shape;
    let mut text = format!("{}: {rows} rows × {columns} columns", table.kind);
    if table.tail > 0 {
        let _ = write!(text, "; the first {} and the last {} rows", table.head, table.tail);
    }
    if table.columns_cut {
        text.push_str("; the middle columns are left out");
    }
    let index = table.columns.len().saturating_sub(table.dtypes.len());
    let types: Vec<String> = table
        .columns
        .iter()
        .skip(index)
        .zip(&table.dtypes)
        .map(|(name, dtype)| format!("{name} {dtype}"))
        .collect();
    if !types.is_empty() {
        let _ = write!(text, " ({})", types.join(", "));
    }
    text
}

/// A stretch of stdout between displays.
fn stretch(out: &Stored, from: u64, to: u64, limit: usize) -> String {
    let (bytes, missing) = out.range(from, to);
    let text = |bytes: &[u8]| tidy(&String::from_utf8_lossy(bytes));
    if missing {
        let head = (out.head.len() as u64).saturating_sub(from).min(bytes.len() as u64) as usize;
        let (head, tail) = bytes.split_at(head);
        return format!(
            "{}\n[… {} bytes left out …]\n{}",
            ends(&text(head), limit / 2),
            (to - from) - bytes.len() as u64,
            last(&text(tail), limit / 2)
        );
    }
    ends(&text(&bytes), limit)
}

/// Text without what only a terminal understands: colours and other control sequences go, and of a line that was drawn over and over
/// (a progress bar) the last state stays.
fn tidy(text: &str) -> String {
    if !text.contains(['\u{1b}', '\r', '\u{8}']) {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' => match characters.next() {
                Some('[') => while characters.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                Some(']') => {
                    while let Some(c) = characters.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\u{8}' => {
                if !plain.ends_with('\n') {
                    plain.pop();
                }
            }
            c => plain.push(c),
        }
    }
    let mut out = String::with_capacity(plain.len());
    for line in plain.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let line = line.trim_end_matches('\r');
        out.push_str(line.rsplit('\r').next().unwrap_or(line));
        out.push_str(end);
    }
    out
}

/// Where the whole of a long stream is.
fn whole(stored: &Stored, what: &str, shown: usize) -> Option<String> {
    match (&stored.file, &stored.trouble) {
        (Some(file), Some(trouble)) => Some(format!(
            "[{} bytes of {what}; the whole is in {} for now, and could not be kept in the transcript: {trouble}]",
            stored.total,
            file.display()
        )),
        (Some(file), _) if stored.file_bytes == stored.total => Some(format!(
            "[the whole {what}, {} bytes, is in {}: use `read` with offset, or `search`, on that path]",
            stored.total,
            file.display()
        )),
        (Some(file), _) => Some(format!(
            "[there were {} bytes of {what}; the first {} are in {}: use `read` with offset, or `search`, on that path]",
            stored.total,
            stored.file_bytes,
            file.display()
        )),
        (None, Some(trouble)) => {
            Some(format!("[{} bytes of {what}; the rest could not be kept: {trouble}]", stored.total))
        }
        (None, None) if stored.total > shown as u64 => {
            Some(format!("[{} bytes of {what} in all; print less at a time]", stored.total))
        }
        (None, None) => None,
    }
}

/// The beginning and the end of a text, with a line between them that says what is missing.
fn ends(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 2);
    let tail = text.ceil_char_boundary(text.len() - limit / 2);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

/// The end of a text.
fn last(text: &str, limit: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(limit))..]
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_only_a_terminal_understands_is_taken_out() {
        for (text, expected) in [
            ("plain\n", "plain\n"),
            ("\u{1b}[31mred\u{1b}[0m \u{1b}[1;4mbold", "red bold"),
            ("\r 10%\r 20%\r100%\ndone\r\n", "100%\ndone\n"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;u\u{1b}\\y", "xy"),
            ("ab\u{8}c\n\u{8}d", "ac\nd"),
            ("cut \u{1b}[3", "cut "),
        ] {
            assert_eq!((text, tidy(text).as_str()), (text, expected));
        }
    }
}
