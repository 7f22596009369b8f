use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::{EditError, Step, TextEdit};
use crate::{position::Range, uri};

/// A server's edit, read: steps in the order in which they are to be carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceEdit {
    pub(crate) steps: Vec<Step>,
}

impl WorkspaceEdit {
    /// Reads a `WorkspaceEdit`. `documentChanges` wins over `changes` where both are there, as the protocol says. `null` is an empty edit.
    pub fn parse(value: &Value) -> Result<WorkspaceEdit, EditError> {
        let mut steps = Vec::new();
        match (value.get("documentChanges").and_then(Value::as_array), value.get("changes")) {
            (Some(list), _) if !list.is_empty() || value.get("changes").is_none_or(Value::is_null) => {
                for one in list {
                    steps.push(step(one)?);
                }
            }
            (_, Some(Value::Object(changes))) => {
                for (uri, edits) in changes {
                    steps.push(Step::Edit { path: path(uri)?, version: None, edits: text_edits(edits)? });
                }
            }
            _ => {}
        }
        // A file that is mentioned without a single edit is not touched.
        steps.retain(|step| !matches!(step, Step::Edit { edits, .. } if edits.is_empty()));
        Ok(WorkspaceEdit { steps })
    }

    /// Whether it does nothing at all.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many text edits there are.
    pub fn edits(&self) -> usize {
        self.steps.iter().map(|step| if let Step::Edit { edits, .. } = step { edits.len() } else { 0 }).sum()
    }

    /// The files that it names, as the server names them.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for step in &self.steps {
            match step {
                Step::Edit { path, .. } | Step::Create { path, .. } | Step::Delete { path, .. } => {
                    paths.push(path.clone())
                }
                Step::Rename { from, to, .. } => paths.extend([from.clone(), to.clone()]),
            }
        }
        paths
    }
}

fn malformed(why: impl Into<String>) -> EditError {
    EditError::Malformed(why.into())
}

fn path(uri: &str) -> Result<PathBuf, EditError> {
    uri::to_path(uri).ok_or_else(|| malformed(format!("it changes `{uri}`, which is not a file")))
}

fn text_of(value: &Value, field: &str) -> Result<PathBuf, EditError> {
    path(
        value
            .get(field)
            .and_then(Value::as_str)
            .ok_or_else(|| malformed(format!("a step of it lacks `{field}`")))?,
    )
}

fn step(value: &Value) -> Result<Step, EditError> {
    let option =
        |name: &str| value.pointer(&format!("/options/{name}")).and_then(Value::as_bool).unwrap_or(false);
    match value.get("kind").and_then(Value::as_str) {
        None => {
            let document =
                value.get("textDocument").ok_or_else(|| malformed("a step of it lacks `textDocument`"))?;
            let version = document.get("version").and_then(Value::as_i64);
            let edits = value.get("edits").unwrap_or(&Value::Null);
            Ok(Step::Edit { path: text_of(document, "uri")?, version, edits: text_edits(edits)? })
        }
        Some("create") => Ok(Step::Create {
            path: text_of(value, "uri")?,
            overwrite: option("overwrite"),
            ignore_if_exists: option("ignoreIfExists"),
        }),
        Some("rename") => Ok(Step::Rename {
            from: text_of(value, "oldUri")?,
            to: text_of(value, "newUri")?,
            overwrite: option("overwrite"),
            ignore_if_exists: option("ignoreIfExists"),
        }),
        Some("delete") => {
            Ok(Step::Delete { path: text_of(value, "uri")?, ignore_if_missing: option("ignoreIfNotExists") })
        }
        Some(other) => Err(malformed(format!("it has a step of the unknown kind `{other}`"))),
    }
}

fn text_edits(value: &Value) -> Result<Vec<TextEdit>, EditError> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        Value::Null => &[],
        _ => return Err(malformed("its text edits are not a list")),
    };
    list.iter().map(text_edit).collect()
}

fn text_edit(value: &Value) -> Result<TextEdit, EditError> {
    let range = value.get("range").ok_or_else(|| malformed("a text edit lacks `range`"))?;
    let range = Range::deserialize(range)
        .map_err(|error| malformed(format!("a text edit's range cannot be read ({error})")))?;
    let is_snippet =
        value.get("snippet").is_some() || value.get("insertTextFormat").and_then(Value::as_u64) == Some(2);
    if is_snippet {
        return Err(malformed("it contains a snippet with placeholders, which only an editor can fill in"));
    }
    let text = value
        .get("newText")
        .and_then(Value::as_str)
        .ok_or_else(|| malformed("a text edit lacks `newText`"))?;
    Ok(TextEdit { range, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::position::Position;

    fn range(line: u32, from: u32, to: u32) -> Value {
        json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}})
    }

    fn edit(line: u32, from: u32, to: u32, text: &str) -> TextEdit {
        let at = |character| Position { line, character };
        TextEdit { range: Range { start: at(from), end: at(to) }, text: text.into() }
    }

    #[test]
    fn document_changes_win_over_changes_and_keep_their_order() {
        let value = json!({
            "changes": {"file:///p/a.rs": [{"range": range(0, 0, 1), "newText": "old"}]},
            "documentChanges": [
                {"textDocument": {"uri": "file:///p/a.rs", "version": 3}, "edits": [{"range": range(1, 2, 3), "newText": "x", "annotationId": "n"}]},
                {"kind": "rename", "oldUri": "file:///p/a.rs", "newUri": "file:///p/[b].rs", "options": {"overwrite": true}},
                {"kind": "create", "uri": "file:///p/c%20d.rs", "options": {"ignoreIfExists": true}},
                {"kind": "delete", "uri": "file:///p/e.rs"},
                {"textDocument": {"uri": "file:///p/z.rs", "version": null}, "edits": []},
            ],
        });
        let expected = vec![
            Step::Edit { path: "/p/a.rs".into(), version: Some(3), edits: vec![edit(1, 2, 3, "x")] },
            Step::Rename {
                from: "/p/a.rs".into(),
                to: "/p/[b].rs".into(),
                overwrite: true,
                ignore_if_exists: false,
            },
            Step::Create { path: "/p/c d.rs".into(), overwrite: false, ignore_if_exists: true },
            Step::Delete { path: "/p/e.rs".into(), ignore_if_missing: false },
        ];
        assert_eq!(WorkspaceEdit::parse(&value), Ok(WorkspaceEdit { steps: expected }));
    }

    #[test]
    fn changes_alone_null_and_what_cannot_be_carried_out() {
        let value = json!({"changes": {"file:///p/a.rs": [{"range": range(0, 0, 1), "newText": "x"}]}, "documentChanges": []});
        let expected =
            vec![Step::Edit { path: "/p/a.rs".into(), version: None, edits: vec![edit(0, 0, 1, "x")] }];
        assert_eq!(WorkspaceEdit::parse(&value), Ok(WorkspaceEdit { steps: expected }));
        assert_eq!(WorkspaceEdit::parse(&Value::Null), Ok(WorkspaceEdit::default()));
        let why = |value: Value| WorkspaceEdit::parse(&value).unwrap_err().to_string();
        insta::assert_snapshot!([
            why(json!({"changes": {"jdt://contents/a.class": [{"range": range(0, 0, 1), "newText": "x"}]}})),
            why(json!({"documentChanges": [{"kind": "link"}]})),
            why(json!({"changes": {"file:///a": [{"range": range(0, 0, 0), "newText": "$0", "insertTextFormat": 2}]}})),
            why(json!({"changes": {"file:///a": [{"newText": "x"}]}})),
        ].join("\n"));
    }
}
