//! Diagnostics: what servers say about files, when it can be believed, and what of it is new (SPEC L6, W1–W5).
//!
//! Pure parts: [`ledger`] (what is new), `settle` (when a server has said all it has to say about one version of one file), `merge` (one list from
//! several answers). `check` drives them over a live server.

mod answer;
pub(crate) mod check;
pub mod ledger;
mod merge;
pub(crate) mod pull;
pub mod rules;
mod settle;
mod words;

use serde::Serialize;
use serde_json::Value;

pub(crate) use answer::of_file;
pub use merge::merge;
pub(crate) use merge::sort;
pub use words::{counted, listed};

/// How bad it is. The order is the order of lists: errors first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The code is wrong.
    Error,
    /// The code is doubtful.
    Warning,
    /// A remark.
    Information,
    /// A hint for editors, such as "unused" greyed out.
    Hint,
}

impl Severity {
    /// From LSP's number. A diagnostic without one is taken as an error: LSP leaves it to the client, and hiding an error is worse.
    pub fn from_lsp(number: Option<u64>) -> Self {
        match number {
            Some(2) => Severity::Warning,
            Some(3) => Severity::Information,
            Some(4) => Severity::Hint,
            _ => Severity::Error,
        }
    }

    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information => "information",
            Severity::Hint => "hint",
        }
    }

    /// Whether it is shown to a model: hints and remarks are for the margins of an editor.
    pub fn matters(self) -> bool {
        self <= Severity::Warning
    }
}

/// One problem, as `structured` shows it (SPEC section 10).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Diagnostic {
    /// As shown: relative to the working directory.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// How bad.
    pub severity: Severity,
    /// The rule or error number, where there is one.
    pub code: Option<String>,
    /// What is wrong.
    pub message: String,
    /// Who says so: `Pyright`, `rustc`.
    pub source: Option<String>,
    /// Start and end as the server counts them (0-based line and column), to tell equal ones at different places apart. Never shown.
    #[serde(skip)]
    pub span: [u32; 4],
}

impl Diagnostic {
    /// Reads a diagnostic of the protocol. Servers differ: numbers or strings as codes, messages as markup, ranges that are missing.
    pub fn from_lsp(file: &str, value: &Value) -> Option<Diagnostic> {
        let message = match value.get("message")? {
            Value::String(text) => text.clone(),
            // 3.18: MarkupContent.
            Value::Object(markup) => markup.get("value")?.as_str()?.to_owned(),
            _ => return None,
        };
        let code = match value.get("code") {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            // Before 3.16 some servers sent {value, target}.
            Some(Value::Object(object)) => match object.get("value") {
                Some(Value::String(text)) => Some(text.clone()),
                Some(Value::Number(number)) => Some(number.to_string()),
                _ => None,
            },
            _ => None,
        };
        let number = |path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_u64)
                .map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX))
        };
        let span = [
            number("/range/start/line"),
            number("/range/start/character"),
            number("/range/end/line"),
            number("/range/end/character"),
        ];
        Some(Diagnostic {
            file: file.to_owned(),
            line: span[0].saturating_add(1),
            severity: Severity::from_lsp(value.get("severity").and_then(Value::as_u64)),
            code,
            message: message.trim().to_owned(),
            source: value.get("source").and_then(Value::as_str).map(str::to_owned),
            span,
        })
    }

    /// Reads a list, leaving out what is no diagnostic at all.
    pub fn list_from_lsp(file: &str, values: &[Value]) -> Vec<Diagnostic> {
        values.iter().filter_map(|value| Diagnostic::from_lsp(file, value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_shapes_of_diagnostics_are_read() {
        let range = json!({"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 9}});
        let values = [
            json!({"range": range, "severity": 2, "code": 6133, "source": "typescript", "message": "'a' is declared but never used. "}),
            json!({"range": range, "code": {"value": "E0308", "target": "https://example.org"}, "message": {"kind": "markdown", "value": "mismatched types"}}),
            json!({"message": "no range", "code": ""}),
            json!({"range": range, "severity": 4}),
        ];
        let read = Diagnostic::list_from_lsp("a.ts", &values);
        let one =
            |line, severity, code: Option<&str>, message: &str, source: Option<&str>, span| Diagnostic {
                file: "a.ts".into(),
                line,
                severity,
                code: code.map(Into::into),
                message: message.into(),
                source: source.map(Into::into),
                span,
            };
        let expected = vec![
            one(
                3,
                Severity::Warning,
                Some("6133"),
                "'a' is declared but never used.",
                Some("typescript"),
                [2, 4, 2, 9],
            ),
            one(3, Severity::Error, Some("E0308"), "mismatched types", None, [2, 4, 2, 9]),
            one(1, Severity::Error, None, "no range", None, [0; 4]),
        ];
        assert_eq!(read, expected);
    }
}
