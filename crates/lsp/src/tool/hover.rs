//! hover: signature and documentation.

use haft_tool::{Output, ToolError};
use serde_json::{Value, json};

use super::{
    Lsp, LspArguments,
    ask::{Reach, with_notes},
};
use crate::limits::{HOVER_CHARS, REQUEST};

impl Lsp {
    pub(super) async fn hover(&self, arguments: &LspArguments) -> Result<Output, ToolError> {
        let opened = self.open(arguments).await?;
        let target = opened.target(arguments)?;
        let method = "textDocument/hover";
        opened.needs(method, "hover").await?;
        let answer = opened.ask(method, opened.at(&target, Value::Null), Reach::File, REQUEST).await?;
        // Pyright indents a docstring's text with these; a model and a terminal would see them as they are.
        let words = contents(answer.value.get("contents").unwrap_or(&Value::Null)).replace("&nbsp;", " ");
        let id = opened.server.id();
        let shown = if words.is_empty() {
            format!("{id} knows nothing about `{}` ({}:{}).", target.name, opened.shown, target.line)
        } else {
            cut(&words)
        };
        let text = with_notes(shown, [target.note.as_deref(), answer.caveat.as_deref()]);
        Ok(Output::text(text).structured(json!({ "text": words, "server": id })))
    }
}

/// Reads `MarkupContent`, a string, a `MarkedString` and a list of those.
fn contents(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(list) => {
            let parts: Vec<String> = list.iter().map(contents).filter(|part| !part.is_empty()).collect();
            parts.join("\n\n")
        }
        Value::Object(fields) => {
            let text = fields.get("value").and_then(Value::as_str).unwrap_or_default().trim();
            match fields.get("language").and_then(Value::as_str) {
                Some(language) if !text.is_empty() => format!("```{language}\n{text}\n```"),
                _ => text.to_owned(),
            }
        }
        _ => String::new(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(HOVER_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\n… (cut; {} characters in all)", &text[..at], text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn all_shapes_of_contents_are_read() {
        let marked = json!({ "language": "css", "value": "a { }" });
        assert_eq!(contents(&json!({ "kind": "markdown", "value": " **x**\n" })), "**x**");
        assert_eq!(contents(&json!("plain")), "plain");
        assert_eq!(contents(&json!([marked, "", "more"])), "```css\na { }\n```\n\nmore");
        assert_eq!(contents(&Value::Null), "");
    }
}
