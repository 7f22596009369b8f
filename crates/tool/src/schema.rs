use std::{fmt, sync::OnceLock};

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Characters of an offending value that an argument error quotes.
const QUOTED_VALUE: usize = 120;
/// Problems that one argument error lists; a model mends what it reads first.
const LISTED_PROBLEMS: usize = 5;

/// The JSON schema of a tool's arguments, and its validator, which is built when first needed so that a start pays for none.
///
/// Models are shown a shorter schema than the one that is checked: that an optional field may also be `null` is accepted and not
/// advertised.
pub struct Schema {
    shown: Value,
    checked: Value,
    validator: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// The schema of an argument struct: self-contained, and without what tells a model nothing.
    pub fn of<T: JsonSchema>() -> Self {
        let generator = SchemaSettings::draft2020_12()
            .with(|settings| {
                settings.inline_subschemas = true;
                settings.meta_schema = None;
            })
            .into_generator();
        let checked = generator.into_root_schema_for::<T>().to_value();
        let mut shown = checked.clone();
        tidy(&mut shown, true);
        if let Value::Object(root) = &mut shown {
            // What the tool does stands in the tool's own description.
            root.remove("description");
        }
        Schema { shown, checked, validator: OnceLock::new() }
    }

    /// A schema that came from outside (an MCP server).
    pub fn from_json(json: Value) -> Self {
        Schema { shown: json.clone(), checked: json, validator: OnceLock::new() }
    }

    /// The schema as models are shown it.
    pub fn json(&self) -> &Value {
        &self.shown
    }

    /// Validates `arguments`.
    pub fn check(&self, arguments: &Value) -> Result<(), ArgumentError> {
        let validator = self
            .validator
            .get_or_init(|| jsonschema::validator_for(&self.checked).map_err(|error| error.to_string()));
        let validator = match validator {
            Ok(validator) => validator,
            Err(error) => {
                return Err(ArgumentError {
                    problems: vec![format!("the tool's schema is not usable: {error}")],
                });
            }
        };
        let problems: Vec<String> = validator.iter_errors(arguments).map(|error| describe(&error)).collect();
        if problems.is_empty() { Ok(()) } else { Err(ArgumentError { problems }) }
    }
}

/// What is wrong with a call's arguments, a problem a line: the field, what was expected and what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    problems: Vec<String>,
}

impl ArgumentError {
    pub(crate) fn from_serde(error: &serde_json::Error) -> Self {
        ArgumentError { problems: vec![error.to_string()] }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The arguments do not fit:")?;
        for problem in self.problems.iter().take(LISTED_PROBLEMS) {
            write!(f, "\n- {problem}")?;
        }
        match self.problems.len().saturating_sub(LISTED_PROBLEMS) {
            0 => Ok(()),
            more => write!(f, "\n- and {more} more"),
        }
    }
}

impl std::error::Error for ArgumentError {}

fn describe(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    let field = if pointer.is_empty() {
        "arguments".to_owned()
    } else {
        format!("`{}`", pointer.trim_start_matches('/').replace('/', "."))
    };
    let came = quote(error.instance());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            let inside = if pointer.is_empty() { String::new() } else { format!("{field}: ") };
            format!("{inside}`{name}` is required and is missing")
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| format!("`{name}`")).collect();
            format!("{field}: no such field: {}", names.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                jsonschema::error::TypeKind::Single(kind) => kind.to_string(),
                jsonschema::error::TypeKind::Multiple(kinds) => {
                    let names: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
                    names.join(" or ")
                }
            };
            format!("{field}: expected {expected}, got {} {came}", type_name(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            let names: Vec<String> = options.as_array().into_iter().flatten().map(Value::to_string).collect();
            format!("{field}: expected one of {}, got {came}", names.join(", "))
        }
        _ => format!("{field}: {}, got {came}", error.masked_with("it")),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn quote(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= QUOTED_VALUE {
        return text;
    }
    let mut cut: String = text.chars().take(QUOTED_VALUE).collect();
    cut.push('…');
    cut
}

/// Takes out what schemars adds for programs (titles, integer formats, `null` for what is optional) and keeps what a model reads.
fn tidy(schema: &mut Value, is_schema: bool) {
    match schema {
        Value::Object(map) => {
            if is_schema {
                map.remove("title");
                map.remove("$schema");
                if map
                    .get("format")
                    .and_then(Value::as_str)
                    .is_some_and(|format| format.starts_with(['u', 'i', 'f', 'd']))
                {
                    map.remove("format");
                }
                if map.get("default").is_some_and(Value::is_null) {
                    map.remove("default");
                }
                without_null(map);
                if let Some(Value::String(text)) = map.get_mut("description") {
                    *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                }
            }
            for (key, value) in map.iter_mut() {
                // Below `properties` the keys are field names: a field called `title` must stay.
                let below_is_schema =
                    !(is_schema && matches!(key.as_str(), "properties" | "$defs" | "patternProperties"));
                if matches!(key.as_str(), "enum" | "const" | "default" | "examples" | "required") && is_schema
                {
                    continue;
                }
                tidy(value, below_is_schema);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, true)),
        _ => {}
    }
}

/// `["string", "null"]` is shown as `"string"`, `anyOf: [X, null]` as X, and an enumeration loses its `null`.
fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(options)) = map.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            for (key, value) in only {
                // The field's own description says more than its type's.
                map.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Sample {
        /// A path,
        /// relative to the working directory.
        path: String,
        /// From which line.
        #[serde(default)]
        offset: Option<u32>,
        #[serde(default)]
        title: Option<String>,
        mode: Mode,
        #[serde(default)]
        lines: Vec<Line>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Good,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Line {
        number: u8,
    }

    #[test]
    fn schema_is_self_contained_and_free_of_noise() {
        insta::assert_json_snapshot!(Schema::of::<Sample>().json());
    }

    #[test]
    fn errors_name_the_field_what_was_expected_and_what_came() {
        let schema = Schema::of::<Sample>();
        let check =
            |value: Value| schema.check(&value).map_err(|error| error.to_string()).err().unwrap_or_default();
        insta::assert_snapshot!(
            [
                check(json!({"mode": "fast"})),
                check(json!({"path": 7, "mode": "fast"})),
                check(json!({"path": "a", "mode": "quick"})),
                check(json!({"path": "a", "mode": "fast", "ofset": 3})),
                check(json!({"path": "a", "mode": "fast", "lines": [{"number": 1}, {"number": "two"}]})),
                check(json!({"path": "a", "mode": "fast", "lines": [{"number": 300}]})),
                check(json!("just text")),
            ]
            .join("\n\n")
        );
        assert_eq!(schema.check(&json!({"path": "a", "mode": "good", "offset": null})), Ok(()));
    }
}
