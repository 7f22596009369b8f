//! What tools and people say, in the form that providers take.

use base64::{Engine, engine::general_purpose::STANDARD};
use haft_tool::Content;
use serde_json::Value;

use crate::{ToolResult, UserPart, limits::TOOL_NAME_CHARS};

/// Which pictures a model takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageRule {
    /// Media types; none at all for a model without eyes.
    pub(crate) types: &'static [&'static str],
    /// Of the base64 text.
    pub(crate) bytes: usize,
}

impl ImageRule {
    pub(crate) const NONE: ImageRule = ImageRule { types: &[], bytes: 0 };
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Image {
        mime: String,
        /// Base64.
        data: String,
    },
}

pub(crate) fn user_pieces(parts: &[UserPart], rule: ImageRule) -> Vec<Piece> {
    let pieces: Vec<Piece> = parts
        .iter()
        .map(|part| match part {
            UserPart::Text { text } => Piece::Text(text.clone()),
            UserPart::Image { mime, data } => image(mime, data.clone(), rule),
        })
        .collect();
    filled(pieces, "(an empty message)")
}

/// An error is marked in words: most wire formats have no field for it, and where there is one (Anthropic) the caller uses it and asks
/// with `mark: false`.
pub(crate) fn result_pieces(result: &ToolResult, rule: ImageRule, mark: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = result
        .content
        .iter()
        .map(|content| match content {
            Content::Text { text } => Piece::Text(text.clone()),
            Content::Image { mime, data } => image(mime, STANDARD.encode(data), rule),
            Content::Table { columns, rows } => Piece::Text(markdown_table(columns, rows)),
        })
        .collect();
    if mark && result.is_error {
        match pieces.first_mut() {
            Some(Piece::Text(text)) => text.insert_str(0, "Error: "),
            _ => pieces.insert(0, Piece::Text("Error.".to_owned())),
        }
    }
    filled(pieces, "(no output)")
}

/// Leaves out blank texts, which providers refuse, and says so when nothing is left.
fn filled(mut pieces: Vec<Piece>, otherwise: &str) -> Vec<Piece> {
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.trim().is_empty()));
    if pieces.is_empty() {
        pieces.push(Piece::Text(otherwise.to_owned()));
    }
    pieces
}

/// The texts of some pieces as one, and the pictures apart from them, for formats whose results are text only.
pub(crate) fn split(pieces: Vec<Piece>) -> (String, Vec<(String, String)>) {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => texts.push(text),
            Piece::Image { mime, data } => images.push((mime, data)),
        }
    }
    (texts.join("\n"), images)
}

/// What stands in a text-only result for pictures that follow after all results.
pub(crate) fn pictures_follow(text: String, count: usize) -> String {
    let note = match count {
        0 => return text,
        1 => "[The picture of this result follows below.]".to_owned(),
        more => format!("[The {more} pictures of this result follow below.]"),
    };
    if text.is_empty() { note } else { format!("{text}\n{note}") }
}

fn image(mime: &str, data: String, rule: ImageRule) -> Piece {
    let kilobytes = data.len() * 3 / 4 / 1024;
    let why = if rule.types.is_empty() {
        "this model takes no pictures".to_owned()
    } else if !rule.types.contains(&mime) {
        format!("this model takes {} only", rule.types.join(", "))
    } else if data.len() > rule.bytes {
        format!("this model takes at most {} KB", rule.bytes * 3 / 4 / 1024)
    } else {
        return Piece::Image { mime: mime.to_owned(), data };
    };
    Piece::Text(format!("[A picture ({mime}, {kilobytes} KB) was left out: {why}.]"))
}

fn markdown_table(columns: &[String], rows: &[Vec<Value>]) -> String {
    let cell = |text: &str| {
        text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
    };
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![
        line(columns.iter().map(|column| cell(column)).collect()),
        line(columns.iter().map(|_| "---".to_owned()).collect()),
    ];
    for row in rows {
        let cells = row.iter().map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => cell(text),
            other => cell(&other.to_string()),
        });
        lines.push(line(cells.collect()));
    }
    lines.join("\n")
}

/// A tool name that providers take back. A model may have called something by a name that no provider accepts (`foo.bar`, nothing);
/// the call stays in the conversation, and every later request would be refused for it.
pub(crate) fn safe_name(name: &str) -> String {
    let mut safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .take(TOOL_NAME_CHARS)
        .collect();
    if safe.is_empty() {
        safe.push_str("unnamed");
    }
    safe
}

/// A call id that every provider takes: the id itself where it fits, else one derived from it.
pub(crate) fn safe_id(id: &str) -> String {
    let fits = !id.is_empty()
        && id.len() <= crate::limits::CALL_ID_CHARS
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if fits { id.to_owned() } else { format!("call_{}", short_hash(id.as_bytes())) }
}

/// Sixteen hexadecimal digits.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(16).collect()
}

/// Arguments as a model wrote them: JSON where it is JSON, else the raw text. A JSON string stays raw too, so that what is sent back is
/// what the model wrote. Nothing at all is what models write for a tool without arguments.
pub(crate) fn arguments(raw: &str) -> Value {
    if raw.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(raw) {
        Ok(Value::String(_)) | Err(_) => Value::String(raw.to_owned()),
        Ok(value) => value,
    }
}

/// The reverse of [`arguments`], for formats that send arguments as text.
pub(crate) fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    }
}

/// For formats whose arguments are an object.
pub(crate) fn arguments_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        other => serde_json::json!({ "not_an_object": other }),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn results_in_words() {
        const RULE: ImageRule = ImageRule { types: &["image/png"], bytes: 8 };
        let result = |is_error, content| ToolResult {
            id: "a".to_owned(),
            tool: "read".to_owned(),
            is_error,
            content,
            structured: Map::new(),
        };
        let table = Content::Table {
            columns: vec!["a|b".to_owned(), "n".to_owned()],
            rows: vec![vec![json!("x\ny"), json!(1.5)], vec![Value::Null, json!({"k": [1]})]],
        };
        let picture = |mime: &str, size| Content::Image { mime: mime.to_owned(), data: vec![0; size] };
        assert_eq!(
            [
                result_pieces(&result(false, vec![Content::text("  "), table]), RULE, true),
                result_pieces(&result(false, vec![]), RULE, true),
                result_pieces(&result(true, vec![Content::text("no such file")]), RULE, true),
                result_pieces(&result(true, vec![picture("image/png", 6)]), RULE, true),
                result_pieces(
                    &result(false, vec![picture("image/bmp", 3), picture("image/png", 4096)]),
                    RULE,
                    true
                ),
                result_pieces(&result(false, vec![picture("image/png", 3)]), ImageRule::NONE, true),
            ]
            .concat(),
            [
                Piece::Text("| a\\|b | n |\n| --- | --- |\n| x<br>y | 1.5 |\n|  | {\"k\":[1]} |".to_owned()),
                Piece::Text("(no output)".to_owned()),
                Piece::Text("Error: no such file".to_owned()),
                Piece::Text("Error.".to_owned()),
                Piece::Image { mime: "image/png".to_owned(), data: "AAAAAAAA".to_owned() },
                Piece::Text(
                    "[A picture (image/bmp, 0 KB) was left out: this model takes image/png only.]".to_owned()
                ),
                Piece::Text(
                    "[A picture (image/png, 4 KB) was left out: this model takes at most 0 KB.]".to_owned()
                ),
                Piece::Text(
                    "[A picture (image/png, 0 KB) was left out: this model takes no pictures.]".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn arguments_are_never_dropped() {
        for (raw, value) in [
            ("", json!({})),
            ("{\"a\": 1}", json!({"a": 1})),
            ("[1]", json!([1])),
            ("{\"a\": 1", json!("{\"a\": 1")),
            ("\"quoted\"", json!("\"quoted\"")),
            ("not json", json!("not json")),
        ] {
            assert_eq!(arguments(raw), value, "{raw}");
        }
        assert_eq!(arguments_text(&json!("{\"a\": 1")), "{\"a\": 1");
        assert_eq!(arguments_object(&json!("oops")), json!({"not_an_object": "oops"}));
    }

    #[test]
    fn names_and_ids_that_no_provider_takes_are_replaced() {
        assert_eq!(safe_name("foo.bar baz"), "foo_bar_baz");
        assert_eq!(safe_name(""), "unnamed");
        assert_eq!(safe_id("toolu_01-a"), "toolu_01-a");
        let replaced = safe_id("functions.read:0");
        assert!(replaced.starts_with("call_") && replaced.len() == 21, "{replaced}");
        assert_ne!(replaced, safe_id("functions.read:1"));
    }
}
