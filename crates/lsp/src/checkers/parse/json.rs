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

/// Where a checker's JSON has what.
struct Fields {
    source: &'static str,
    path: &'static str,
    line: &'static str,
    column: &'static str,
    message: &'static str,
    code: &'static str,
}

impl Fields {
    fn read(&self, one: &Value) -> Finding {
        let at = (number(one, self.line), number(one, self.column));
        let message = text(one, self.message).unwrap_or_default();
        let severity = severity(one.get("severity").and_then(Value::as_str));
        let path = text(one, self.path).unwrap_or_default();
        Finding { code: text(one, self.code), severity, ..Finding::at(self.source, path, at, message) }
    }
}

/// `pyright --outputjson`, `basedpyright --outputjson`. Lines count from 0.
pub(super) fn pyright(stdout: &str) -> Result<Vec<Finding>, String> {
    const FIELDS: Fields = Fields {
        source: "pyright",
        path: "/file",
        line: "/range/start/line",
        column: "/range/start/character",
        message: "/message",
        code: "/rule",
    };
    let value = read(stdout)?;
    let findings = list(&value, "generalDiagnostics")?.iter().map(|one| {
        let found = FIELDS.read(one);
        Finding { line: found.line + 1, column: found.column + 1, ..found }
    });
    Ok(findings.collect())
}

/// How many files pyright looked at.
pub(super) fn pyright_files(stdout: &str) -> Option<u64> {
    read(stdout).ok()?.pointer("/summary/filesAnalyzed")?.as_u64()
}

/// `ty check --output-format gitlab`.
pub(super) fn gitlab(stdout: &str) -> Result<Vec<Finding>, String> {
    const FIELDS: Fields = Fields {
        source: "ty",
        path: "/location/path",
        line: "/location/positions/begin/line",
        column: "/location/positions/begin/column",
        message: "/description",
        code: "/check_name",
    };
    let value = read(stdout)?;
    let list = value.as_array().ok_or("its output is not a list")?;
    let findings = list.iter().map(|one| {
        let found = FIELDS.read(one);
        let prefix = found.code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default();
        Finding {
            line: found.line.max(number(one, "/location/lines/begin")),
            message: found.message.strip_prefix(&prefix).unwrap_or(&found.message).to_owned(),
            ..found
        }
    });
    Ok(findings.collect())
}

/// `pyrefly check --output-format json`.
pub(super) fn pyrefly(stdout: &str) -> Result<Vec<Finding>, String> {
    const FIELDS: Fields = Fields {
        source: "pyrefly",
        path: "/path",
        line: "/line",
        column: "/column",
        message: "/description",
        code: "/name",
    };
    let value = read(stdout)?;
    let findings = list(&value, "errors")?.iter().map(|one| {
        let found = FIELDS.read(one);
        let brief = || text(one, "/concise_description").unwrap_or_default();
        Finding { message: if found.message.is_empty() { brief() } else { found.message }, ..found }
    });
    Ok(findings.collect())
}

/// `ruff check --output-format json`. Findings without a rule are syntax errors; the others are matters of style or likely mistakes.
pub(super) fn ruff(stdout: &str) -> Result<Vec<Finding>, String> {
    const FIELDS: Fields = Fields {
        source: "ruff",
        path: "/filename",
        line: "/location/row",
        column: "/location/column",
        message: "/message",
        code: "/code",
    };
    let value = read(stdout)?;
    let list = value.as_array().ok_or("its output is not a list")?;
    let findings = list.iter().map(|one| {
        let found = FIELDS.read(one);
        let code = found.code.filter(|code| code != "invalid-syntax");
        let severity = if code.is_some() { Severity::Warning } else { Severity::Error };
        Finding { severity, code, ..found }
    });
    Ok(findings.collect())
}

/// `eslint -f json`.
pub(super) fn eslint(stdout: &str) -> Result<Vec<Finding>, String> {
    const FIELDS: Fields = Fields {
        source: "eslint",
        path: "",
        line: "/line",
        column: "/column",
        message: "/message",
        code: "/ruleId",
    };
    let value = read(stdout)?;
    let files = value.as_array().ok_or("its output is not a list")?;
    let mut findings = Vec::new();
    for file in files {
        for one in list(file, "messages")? {
            findings.push(Finding {
                path: text(file, "/filePath").unwrap_or_default(),
                severity: if number(one, "/severity") == 1 { Severity::Warning } else { Severity::Error },
                ..FIELDS.read(one)
            });
        }
    }
    Ok(findings)
}

/// The output of our own `PYTHON_SYNTAX` script.
pub(super) fn python_syntax(stdout: &str) -> Result<Vec<Finding>, String> {
    const FIELDS: Fields = Fields {
        source: "python",
        path: "/path",
        line: "/line",
        column: "/column",
        message: "/message",
        code: "/kind",
    };
    let value = read(stdout)?;
    Ok(list(&value, "errors")?.iter().map(|one| FIELDS.read(one)).collect())
}

/// How many files our own script looked at.
pub(super) fn python_files(stdout: &str) -> Option<u64> {
    read(stdout).ok()?.get("files")?.as_u64()
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
