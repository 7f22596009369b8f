use serde_json::Value;

use super::Finding;
use crate::diagnostics::Severity;

/// `cargo check --message-format=json`: a message a line, among them what build scripts print. The same message comes once per target.
pub(super) fn parse(stdout: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in stdout.lines() {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        if value.get("reason").and_then(Value::as_str) != Some("compiler-message") {
            continue;
        }
        let Some(message) = value.get("message") else { continue };
        let severity = match message.get("level").and_then(Value::as_str) {
            Some("error" | "error: internal compiler error") => Severity::Error,
            Some("warning") => Severity::Warning,
            _ => continue,
        };
        let spans = message.get("spans").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // "aborting due to 2 previous errors" and "1 warning emitted" have no place and say nothing of their own.
        let Some(span) =
            spans.iter().find(|span| span.get("is_primary") == Some(&Value::Bool(true))).or(spans.first())
        else {
            continue;
        };
        let span = outermost(span);
        let number = |field: &str| span.get(field).and_then(Value::as_u64).unwrap_or(1) as u32;
        let mut text = message.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(label) = span.get("label").and_then(Value::as_str).filter(|label| !text.contains(label)) {
            text.push('\n');
            text.push_str(label);
        }
        let finding = Finding {
            path: span.get("file_name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            line: number("line_start"),
            column: number("column_start"),
            severity,
            code: message.pointer("/code/code").and_then(Value::as_str).map(str::to_owned),
            message: text,
            source: "rustc".into(),
        };
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
    found
}

/// The place in the project's own code: a macro of another crate points to where it was called.
fn outermost(span: &Value) -> &Value {
    let mut span = span;
    // A bound, for the input is not ours.
    for _ in 0..64 {
        let is_foreign =
            span.get("file_name").and_then(Value::as_str).is_some_and(|name| name.starts_with(['/', '<']));
        match span.pointer("/expansion/span") {
            Some(outer) if is_foreign => span = outer,
            _ => break,
        }
    }
    span
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_among_other_lines_each_once_and_at_the_call_of_a_foreign_macro() {
        let span = |file: &str, line: u32, expansion: Value| json!({"file_name": file, "line_start": line, "column_start": 5, "is_primary": true, "label": "expected `u32`, found `&str`", "expansion": expansion});
        let message = |level: &str, code: Value, spans: Value| {
            json!({"reason": "compiler-message", "message": {"level": level, "message": "mismatched types", "code": code, "spans": spans}}).to_string()
        };
        let one = message("error", json!({"code": "E0308"}), json!([span("src/main.rs", 3, Value::Null)]));
        let called = json!({"span": span("src/lib.rs", 9, Value::Null)});
        let stdout = [
            "warning: build script said something".to_owned(),
            json!({"reason": "compiler-artifact"}).to_string(),
            one.clone(),
            one,
            message("warning", Value::Null, json!([span("/rustc/lib/core/macros.rs", 70, called)])),
            message("error", Value::Null, json!([])),
            message("note", Value::Null, json!([span("src/main.rs", 3, Value::Null)])),
        ]
        .join("\n");
        let finding = |path: &str, line, severity, code: Option<&str>| Finding {
            path: path.into(),
            line,
            column: 5,
            severity,
            code: code.map(Into::into),
            message: "mismatched types\nexpected `u32`, found `&str`".into(),
            source: "rustc".into(),
        };
        let expected = vec![
            finding("src/main.rs", 3, Severity::Error, Some("E0308")),
            finding("src/lib.rs", 9, Severity::Warning, None),
        ];
        assert_eq!(parse(&stdout), expected);
    }
}
