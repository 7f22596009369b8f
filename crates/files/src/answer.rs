//! What the three tools that change files answer (SPEC section 10): `files[] {file, change}`, `new_diagnostics[]`, `verified`.

use haft_system::{Committed, FileChange};
use haft_tool::{Output, ToolError};
use serde_json::{Map, Value, json};

/// Folds what was committed, and what the observers of the change had to say, into an answer. `verified` stays false unless an observer says that it is true.
pub(crate) fn changed(text: String, committed: Committed) -> Result<Output, ToolError> {
    let Committed { files, notes, warnings, .. } = committed;
    let mut structured = Map::new();
    structured.insert("files".into(), files_json(&files)?);
    structured.insert("new_diagnostics".into(), json!([]));
    structured.insert("verified".into(), json!(false));
    structured.insert("unverified_because".into(), json!("no language server has checked this change"));
    let mut text = text.trim_end().to_owned();
    for warning in warnings {
        text.push_str("\nWarning: ");
        text.push_str(&warning);
    }
    for note in notes {
        if note.structured.get("verified") == Some(&Value::Bool(true)) {
            structured.remove("unverified_because");
        }
        structured.extend(note.structured);
        if let Some(said) = note.text {
            text.push_str("\n\n");
            text.push_str(said.trim_end());
        }
    }
    Ok(Output { structured, ..Output::text(text) })
}

/// The answer to a change that turned out to change nothing.
pub(crate) fn unchanged(text: String) -> Output {
    Output::text(text).structured(json!({
        "files": [],
        "new_diagnostics": [],
        "verified": false,
        "unverified_because": "nothing was written",
    }))
}

fn files_json(files: &[FileChange]) -> Result<Value, ToolError> {
    serde_json::to_value(files)
        .map_err(|error| ToolError::Bug(format!("file changes do not serialise: {error}")))
}
