use serde_json::Value;

use super::Finding;
use crate::diagnostics::Severity;

/// The JSON in an output: some print an empty line or a word before it.
fn read(stdout: &str) -> Result<Value, String> {
    let start = stdout.find(['{', '[']).ok_or("it printed no result")?;
    serde_json::from_str(&stdout[start..]).map_err(|error| format!("its output cannot be read ({error})"))
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], String> {
    let list = value.get(field).and_then(Value::as_array).ok_or(format!("its output lacks `{field}`"))?;
    Ok(list)
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: &Value, pointer: &str) -> u32 {
    value.pointer(pointer).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

fn severity(word: Option<&str>) -> Severity {
    match word {
        Some("warning" | "warn" | "minor") => Severity::Warning,
        Some("information" | "info") => Severity::Information,
        _ => Severity::Error,
    }
}

/// `pyright --outputjson`, `basedpyright --outputjson`. Lines count from 0.
pub(super) fn pyright(stdout: &str) -> Result<Vec<Finding>, String> {
    let value = read(stdout)?;
    let findings = list(&value, "generalDiagnostics")?.iter().map(|one| Finding {
        path: text(one, "/file").unwrap_or_default(),
        line: number(one, "/range/start/line") + 1,
        column: number(one, "/range/start/character") + 1,
        severity: severity(one.get("severity").and_then(Value::as_str)),
        code: text(one, "/rule"),
        message: text(one, "/message").unwrap_or_default(),
        source: "pyright".into(),
    });
    Ok(findings.collect())
}

/// `ty check --output-format gitlab`.
pub(super) fn gitlab(stdout: &str) -> Result<Vec<Finding>, String> {
    let value = read(stdout)?;
    let list = value.as_array().ok_or("its output is not a list")?;
    let findings = list.iter().map(|one| {
        let code = text(one, "/check_name");
        let message = text(one, "/description").unwrap_or_default();
        let prefix = code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default();
        Finding {
            path: text(one, "/location/path").unwrap_or_default(),
            line: number(one, "/location/positions/begin/line").max(number(one, "/location/lines/begin")),
            column: number(one, "/location/positions/begin/column"),
            severity: severity(one.get("severity").and_then(Value::as_str)),
            message: message.strip_prefix(&prefix).map(str::to_owned).unwrap_or(message),
            code,
            source: "ty".into(),
        }
    });
    Ok(findings.collect())
}

/// `pyrefly check --output-format json`.
pub(super) fn pyrefly(stdout: &str) -> Result<Vec<Finding>, String> {
    let value = read(stdout)?;
    let findings = list(&value, "errors")?.iter().map(|one| Finding {
        path: text(one, "/path").unwrap_or_default(),
        line: number(one, "/line"),
        column: number(one, "/column"),
        severity: severity(one.get("severity").and_then(Value::as_str)),
        code: text(one, "/name"),
        message: text(one, "/description").or_else(|| text(one, "/concise_description")).unwrap_or_default(),
        source: "pyrefly".into(),
    });
    Ok(findings.collect())
}

/// `ruff check --output-format json`. Findings without a rule are syntax errors; the others are matters of style or likely mistakes.
pub(super) fn ruff(stdout: &str) -> Result<Vec<Finding>, String> {
    let value = read(stdout)?;
    let list = value.as_array().ok_or("its output is not a list")?;
    let findings = list.iter().map(|one| {
        let code = text(one, "/code").filter(|code| code != "invalid-syntax");
        Finding {
            path: text(one, "/filename").unwrap_or_default(),
            line: number(one, "/location/row"),
            column: number(one, "/location/column"),
            severity: if code.is_some() { Severity::Warning } else { Severity::Error },
            code,
            message: text(one, "/message").unwrap_or_default(),
            source: "ruff".into(),
        }
    });
    Ok(findings.collect())
}

/// `eslint -f json`.
pub(super) fn eslint(stdout: &str) -> Result<Vec<Finding>, String> {
    let value = read(stdout)?;
    let files = value.as_array().ok_or("its output is not a list")?;
    let mut findings = Vec::new();
    for file in files {
        for one in list(file, "messages")? {
            findings.push(Finding {
                path: text(file, "/filePath").unwrap_or_default(),
                line: number(one, "/line"),
                column: number(one, "/column"),
                severity: if number(one, "/severity") == 1 { Severity::Warning } else { Severity::Error },
                code: text(one, "/ruleId"),
                message: text(one, "/message").unwrap_or_default(),
                source: "eslint".into(),
            });
        }
    }
    Ok(findings)
}

/// The output of our own `PYTHON_SYNTAX` script.
pub(super) fn python_syntax(stdout: &str) -> Result<Vec<Finding>, String> {
    let value = read(stdout)?;
    let findings = list(&value, "errors")?.iter().map(|one| Finding {
        path: text(one, "/path").unwrap_or_default(),
        line: number(one, "/line"),
        column: number(one, "/column"),
        severity: Severity::Error,
        code: text(one, "/kind"),
        message: text(one, "/message").unwrap_or_default(),
        source: "python".into(),
    });
    Ok(findings.collect())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn finding(
        path: &str,
        line: u32,
        column: u32,
        severity: Severity,
        code: Option<&str>,
        message: &str,
        source: &str,
    ) -> Finding {
        Finding {
            path: path.into(),
            line,
            column,
            severity,
            code: code.map(Into::into),
            message: message.into(),
            source: source.into(),
        }
    }

    #[test]
    fn pyright_after_an_empty_line_as_basedpyright_prints_it() {
        let stdout = r#"
{"version": "1.1.414", "generalDiagnostics": [{"file": "/p/a.py", "severity": "error", "message": "Type \"Literal[1]\" is not assignable",
 "range": {"start": {"line": 2, "character": 11}, "end": {"line": 2, "character": 12}}, "rule": "reportReturnType"},
 {"file": "/p/a.py", "severity": "information", "message": "m", "range": {"start": {"line": 0, "character": 0}}}], "summary": {"errorCount": 1}}"#;
        let expected = vec![
            finding(
                "/p/a.py",
                3,
                12,
                Severity::Error,
                Some("reportReturnType"),
                "Type \"Literal[1]\" is not assignable",
                "pyright",
            ),
            finding("/p/a.py", 1, 1, Severity::Information, None, "m", "pyright"),
        ];
        assert_eq!(pyright(stdout), Ok(expected));
    }

    #[test]
    fn ty_ruff_eslint_and_our_own() {
        let stdout = r#"[{"check_name": "invalid-return", "description": "invalid-return: Return type does not match", "severity": "major",
            "location": {"path": "a.py", "positions": {"begin": {"line": 3, "column": 12}}}}]"#;
        let expected = vec![finding(
            "a.py",
            3,
            12,
            Severity::Error,
            Some("invalid-return"),
            "Return type does not match",
            "ty",
        )];
        assert_eq!(gitlab(stdout), Ok(expected));
        let stdout = r#"[{"code": "F401", "filename": "/p/a.py", "location": {"column": 8, "row": 1}, "message": "`os` imported but unused", "severity": "error"},
            {"code": null, "filename": "/p/b.py", "location": {"column": 1, "row": 2}, "message": "Expected an expression"}]"#;
        let expected = vec![
            finding("/p/a.py", 1, 8, Severity::Warning, Some("F401"), "`os` imported but unused", "ruff"),
            finding("/p/b.py", 2, 1, Severity::Error, None, "Expected an expression", "ruff"),
        ];
        assert_eq!(ruff(stdout), Ok(expected));
        let stdout = r#"[{"filePath": "/p/a.js", "messages": [{"ruleId": "no-undef", "severity": 2, "line": 4, "column": 2, "message": "'x' is not defined."}]}]"#;
        let expected = vec![finding(
            "/p/a.js",
            4,
            2,
            Severity::Error,
            Some("no-undef"),
            "'x' is not defined.",
            "eslint",
        )];
        assert_eq!(eslint(stdout), Ok(expected));
        let stdout = r#"{"files": 2, "errors": [{"path": "./a.py", "line": 1, "column": 5, "kind": "SyntaxError", "message": "invalid syntax"}]}"#;
        let expected =
            vec![finding("./a.py", 1, 5, Severity::Error, Some("SyntaxError"), "invalid syntax", "python")];
        assert_eq!(python_syntax(stdout), Ok(expected));
    }

    #[test]
    fn output_that_is_no_result_is_said_to_be_none() {
        assert_eq!(pyright("No configuration file found."), Err("it printed no result".into()));
        assert_eq!(pyright("{}"), Err("its output lacks `generalDiagnostics`".into()));
        assert!(ruff("[{\"code\":").is_err());
    }
}
