//! Places in answers: every shape that servers send them in, with the line of code.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use haft_system::{TextFile, Workdir};
use serde::Serialize;
use serde_json::Value;

use super::target::quote;
use crate::{
    limits::DOCUMENT_BYTES,
    position::{Lines, Range},
    supervisor::Server,
};

/// A place as `structured` has it (SPEC section 10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Location {
    /// As shown; a URI where the place is in no file.
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: u32,
    /// From 1, inclusive: the end of what is defined there, where the server says.
    pub(crate) end_line: u32,
    /// The line of code.
    pub(crate) text: String,
}

/// A place as a server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawPlace {
    pub(crate) uri: String,
    /// What to point at.
    pub(crate) range: Range,
    /// All of what is there.
    pub(crate) whole: Range,
}

/// Reads `Location`, `Location[]`, `LocationLink[]` and `null`.
pub(crate) fn read(answer: &Value) -> Vec<RawPlace> {
    match answer {
        Value::Array(list) => list.iter().filter_map(read_one).collect(),
        one => read_one(one).into_iter().collect(),
    }
}

pub(crate) fn read_one(value: &Value) -> Option<RawPlace> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let range = |field: &str| range_of(value.get(field)?);
    if let Some(uri) = text("targetUri") {
        let whole = range("targetRange");
        let selection = range("targetSelectionRange").or(whole)?;
        return Some(RawPlace { uri, range: selection, whole: whole.unwrap_or(selection) });
    }
    let found = range("range")?;
    Some(RawPlace { uri: text("uri")?, range: found, whole: found })
}

pub(crate) fn range_of(value: &Value) -> Option<Range> {
    serde_json::from_value(value.clone()).ok()
}

/// Shows places; reads each file once.
pub(crate) struct Shower<'a> {
    server: &'a Server,
    workdir: &'a Workdir,
    texts: HashMap<PathBuf, Option<Lines>>,
}

impl<'a> Shower<'a> {
    pub(crate) fn new(server: &'a Server, workdir: &'a Workdir) -> Self {
        Shower { server, workdir, texts: HashMap::new() }
    }

    pub(crate) fn show(&mut self, place: &RawPlace) -> Location {
        let line = place.range.start.line;
        // An end at the beginning of a line is the end of the line before.
        let ends_before = place.whole.end.character == 0 && place.whole.end.line > line;
        let end = place.whole.end.line.saturating_sub(u32::from(ends_before)).max(line);
        let (file, text) = match self.server.path_of(&place.uri) {
            Some(path) => {
                let text = self.lines(&path).and_then(|lines| lines.line(line as usize)).map(quote);
                (self.workdir.show(&path), text.unwrap_or_default())
            }
            None => (place.uri.clone(), String::new()),
        };
        Location { file, line: line + 1, end_line: end + 1, text }
    }

    pub(crate) fn lines(&mut self, path: &Path) -> Option<&Lines> {
        let server = self.server;
        self.texts
            .entry(path.to_owned())
            .or_insert_with(|| match server.document(path) {
                Some(document) => Some(document.lines),
                None => read_lines(path),
            })
            .as_ref()
    }
}

/// A file that a server points at. It may lie outside the working directory (a standard library): one line of it is shown.
fn read_lines(path: &Path) -> Option<Lines> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > DOCUMENT_BYTES {
        return None;
    }
    let text = TextFile::parse(&std::fs::read(path).ok()?).ok()?;
    Some(Lines::new(text.text))
}

/// Lists places as lines; equal ones next to each other are one with a count.
pub(crate) fn listed(locations: &[Location]) -> String {
    let mut text = String::new();
    let mut rest = locations;
    while let Some(first) = rest.first() {
        let same =
            rest.iter().take_while(|other| other.file == first.file && other.line == first.line).count();
        text.push_str(&format!("\n{}:{}: {}", first.file, first.line, first.text));
        if same > 1 {
            text.push_str(&format!("  (×{same})"));
        }
        rest = &rest[same..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn every_shape_of_an_answer_is_read() {
        let range = |from: u32, to: u32| json!({ "start": { "line": from, "character": 0 }, "end": { "line": to, "character": 3 } });
        let location = json!({ "uri": "file:///a", "range": range(1, 1) });
        let link = json!({ "targetUri": "file:///b", "targetRange": range(1, 9), "targetSelectionRange": range(2, 2) });
        let at = |line| Position { line, character: 0 };
        let end = |line| Position { line, character: 3 };
        let one = RawPlace {
            uri: "file:///a".into(),
            range: Range { start: at(1), end: end(1) },
            whole: Range { start: at(1), end: end(1) },
        };
        let other = RawPlace {
            uri: "file:///b".into(),
            range: Range { start: at(2), end: end(2) },
            whole: Range { start: at(1), end: end(9) },
        };
        assert_eq!(read(&location), std::slice::from_ref(&one));
        assert_eq!(read(&json!([location, link, null, {}])), [one, other]);
        assert_eq!(read(&Value::Null), []);
        assert_eq!(read(&json!([])), []);
    }
}
