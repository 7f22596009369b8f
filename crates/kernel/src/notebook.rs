//! A conversation's cells as a notebook (SPEC E8; nbformat 4.5).

use base64::{Engine, engine::general_purpose::STANDARD};
use haft_tool::{Content, Outcome};
use serde_json::{Map, Value, json};

/// A cell that was run: its call's arguments and outcome.
pub struct NotebookCell {
    /// Arguments of the `eval` call.
    pub arguments: Value,
    /// Its outcome.
    pub outcome: Outcome,
    /// The whole of its stdout, where the outcome has only the ends of it.
    pub stdout: Option<Vec<u8>>,
    /// The same of stderr.
    pub stderr: Option<Vec<u8>>,
}

/// The notebook as JSON. Calls that ran no cell (refused, not understood) are left out.
pub fn notebook(title: &str, cells: &[NotebookCell]) -> Value {
    let ran: Vec<&NotebookCell> =
        cells.iter().filter(|cell| cell.outcome.structured.get("cell").is_some_and(Value::is_u64)).collect();
    let is_javascript = |cell: &NotebookCell| cell.arguments["language"] == "javascript";
    let javascript = !ran.is_empty() && ran.iter().all(|cell| is_javascript(cell));
    let mut out = vec![json!({
        "cell_type": "markdown", "id": "title", "metadata": {}, "source": lines(&format!("# {title}")),
    })];
    for (number, cell) in ran.into_iter().enumerate() {
        let mut source = cell.arguments["code"].as_str().unwrap_or_default().to_owned();
        if !javascript && is_javascript(cell) {
            // In a notebook of another language.
            source = format!("%%script node\n{source}");
        }
        out.push(json!({
            "cell_type": "code",
            "id": format!("cell-{}", number + 1),
            "metadata": {"description": cell.arguments["description"]},
            "execution_count": cell.outcome.structured["cell"],
            "source": lines(&source),
            "outputs": outputs(cell),
        }));
    }
    let (kernel, language) = if javascript {
        (
            json!({"display_name": "JavaScript", "language": "javascript", "name": "javascript"}),
            json!({"name": "javascript"}),
        )
    } else {
        (
            json!({"display_name": "Python 3", "language": "python", "name": "python3"}),
            json!({"name": "python"}),
        )
    };
    json!({
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": language},
        "cells": out,
    })
}

fn outputs(cell: &NotebookCell) -> Vec<Value> {
    let outcome = &cell.outcome;
    let fields = &outcome.structured;
    let text = |name: &str, whole: &Option<Vec<u8>>| match whole {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let mut outputs = Vec::new();
    let stdout = text("stdout", &cell.stdout);
    let whole = fields.get("stdout_bytes").and_then(Value::as_u64) == Some(stdout.len() as u64);
    let mut position = 0;
    let empty = Vec::new();
    for display in fields.get("displays").and_then(Value::as_array).unwrap_or(&empty) {
        let at = display["at"].as_u64().unwrap_or(0) as usize;
        if whole && at > position && stdout.is_char_boundary(at) {
            stream(&mut outputs, "stdout", &stdout[position..at]);
            position = at;
        }
        let mut data = Map::new();
        if let Some(Content::Image { mime, data: bytes }) =
            display["content"].as_u64().and_then(|index| outcome.content.get(index as usize))
        {
            data.insert(mime.clone(), STANDARD.encode(bytes).into());
        }
        for (name, mime) in [
            ("html", "text/html"),
            ("svg", "image/svg+xml"),
            ("markdown", "text/markdown"),
            ("latex", "text/latex"),
        ] {
            if let Some(text) = display[name].as_str() {
                data.insert(mime.into(), lines(text));
            }
        }
        if let Some(value) = display.get("json") {
            data.insert("application/json".into(), value.clone());
        }
        data.insert("text/plain".into(), lines(display["text"].as_str().unwrap_or_default()));
        outputs.push(if display["result"] == true {
            json!({"output_type": "execute_result", "execution_count": fields["cell"], "data": data, "metadata": {}})
        } else {
            json!({"output_type": "display_data", "data": data, "metadata": {}})
        });
    }
    stream(&mut outputs, "stdout", &stdout[position..]);
    stream(&mut outputs, "stderr", &text("stderr", &cell.stderr));
    match fields.get("error") {
        Some(error) if error.is_object() => outputs.push(json!({
            "output_type": "error",
            "ename": error["name"],
            "evalue": error["message"],
            "traceback": error["traceback"].as_str().unwrap_or_default().lines().collect::<Vec<_>>(),
        })),
        _ if outcome.is_error => outputs.push(json!({
            "output_type": "error",
            "ename": "Interrupted",
            "evalue": outcome.first_text().unwrap_or_default(),
            "traceback": [outcome.first_text().unwrap_or_default()],
        })),
        _ => {}
    }
    outputs
}

fn stream(outputs: &mut Vec<Value>, name: &str, text: &str) {
    if !text.is_empty() {
        outputs.push(json!({"output_type": "stream", "name": name, "text": lines(text)}));
    }
}

/// As notebooks keep text: a list of lines with their ends.
fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect::<Vec<_>>().into()
}
