//! `{{last.text}}` and `{{last.structured.PATH}}` in a script.

use haft_tool::Content;
use serde_json::Value;

use crate::ToolResult;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// Fills the templates of a text: strings as they are, everything else as compact JSON. `{{` that does not begin `{{last.` is ordinary
/// text, for scripts write code, too.
pub(crate) fn text(template: &str, last: Option<&ToolResult>) -> Result<String, String> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find(OPEN) {
        let inner = &rest[start + OPEN.len()..];
        if !inner.trim_start().starts_with("last.") {
            // One brace only: in `{{{last.text}}` the template begins at the second.
            filled.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        }
        let end = inner.find(CLOSE).ok_or_else(|| format!("`{}` has no end `}}}}`", cut(&rest[start..])))?;
        filled.push_str(&rest[..start]);
        match find(inner[..end].trim(), last)? {
            Value::String(text) => filled.push_str(&text),
            other => filled.push_str(&other.to_string()),
        }
        rest = &inner[end + CLOSE.len()..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Fills every string of a value. A string that is one template and nothing else becomes the value it stands for, with its type: a tool
/// that wants a number gets one.
pub(crate) fn value(template: &Value, last: Option<&ToolResult>) -> Result<Value, String> {
    Ok(match template {
        Value::String(whole) => {
            let inner = whole.strip_prefix(OPEN).and_then(|inner| inner.strip_suffix(CLOSE)).map(str::trim);
            match inner.filter(|inner| inner.starts_with("last.") && !inner.contains(['{', '}'])) {
                Some(inner) => find(inner, last)?,
                None => Value::String(text(whole, last)?),
            }
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| value(item, last)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, field)| Ok((key.clone(), value(field, last)?)))
                .collect::<Result<_, String>>()?,
        ),
        other => other.clone(),
    })
}

fn find(path: &str, last: Option<&ToolResult>) -> Result<Value, String> {
    let last =
        last.ok_or_else(|| format!("`{{{{{path}}}}}` stands for a tool result, and there is none yet"))?;
    if path == "last.text" {
        let texts: Vec<&str> = last
            .content
            .iter()
            .filter_map(|content| match content {
                Content::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        return Ok(Value::String(texts.join("\n")));
    }
    let Some(steps) = path.strip_prefix("last.structured.") else {
        return Err(format!("`{{{{{path}}}}}` is not known: it is `last.text` or `last.structured.PATH`"));
    };
    let mut steps =
        steps.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty());
    let missing = |step: &str| {
        let fields: Vec<&str> = last.structured.keys().map(String::as_str).collect();
        format!(
            "`{{{{{path}}}}}`: the last result (of `{}`) has no `{step}` there; its fields are: {}",
            last.tool,
            if fields.is_empty() { "none".to_owned() } else { fields.join(", ") }
        )
    };
    let first = steps.next().ok_or_else(|| format!("`{{{{{path}}}}}` names no field"))?;
    let mut found = last.structured.get(first).ok_or_else(|| missing(first))?;
    for step in steps {
        let next = match found {
            Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            other => other.get(step),
        };
        found = next.ok_or_else(|| missing(step))?;
    }
    Ok(found.clone())
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn result() -> ToolResult {
        let structured = json!({
            "edit_id": "edit_1", "total": 3, "files": [{"file": "a.rs"}, {"file": "b.rs"}], "grid": [[1, 2]]
        });
        ToolResult {
            id: "c".to_owned(),
            tool: "ast_edit".to_owned(),
            is_error: false,
            content: vec![Content::text("one"), Content::text("two")],
            structured: structured.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn strings_are_filled_and_whole_templates_keep_their_type() {
        let last = result();
        let filled = value(
            &json!({
                "edit_id": "{{last.structured.edit_id}}",
                "count": "{{ last.structured.total }}",
                "number": "{{last.structured.total}}",
                "words": "got {{last.structured.total}} in {{last.structured.files[1].file}}: {{last.text}}",
                "deep": [{"x": "{{last.structured.files.0}}"}, 7, null],
                "cell": "{{last.structured.grid[0][1]}}",
                "inline": "={{last.structured.files}}",
                "code": "format!(\"{{}} {{x}}\") {{{last.structured.total}}}",
            }),
            Some(&last),
        );
        assert_eq!(
            filled,
            Ok(json!({
                "edit_id": "edit_1",
                "count": 3,
                "number": 3,
                "words": "got 3 in b.rs: one\ntwo",
                "deep": [{"x": {"file": "a.rs"}}, 7, null],
                "cell": 2,
                "inline": "=[{\"file\":\"a.rs\"},{\"file\":\"b.rs\"}]",
                "code": "format!(\"{{}} {{x}}\") {3}",
            }))
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let last = result();
        insta::assert_snapshot!(
            [
                text("{{last.text}}", None),
                text("{{last.structured.nope}}", Some(&last)),
                text("{{last.structured.files.7.file}}", Some(&last)),
                text("{{last.other}}", Some(&last)),
                text("a {{last.structured.edit_id", Some(&last)),
            ]
            .map(|result| result.unwrap_err())
            .join("\n")
        );
    }
}
