//! The messages of the Debug Adapter Protocol, as far as they are used. Every field may be missing and unknown ones are fine: no two
//! adapters agree on what is required, and a session must not end over a field that nobody reads.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// A message of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Incoming {
    pub(crate) seq: i64,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Of an event.
    pub(crate) event: Option<String>,
    /// Of an event or a response.
    pub(crate) body: Value,
    /// Of a response.
    pub(crate) request_seq: Option<i64>,
    /// Of a response.
    pub(crate) success: Option<bool>,
    /// Of a response that failed.
    pub(crate) message: Option<String>,
    /// Of a request by the adapter.
    pub(crate) command: Option<String>,
    /// Of a request by the adapter.
    pub(crate) arguments: Value,
}

/// The message in a body.
pub(crate) fn parse(body: &[u8]) -> serde_json::Result<Incoming> {
    // What an exception says goes into the event that tells of it, halves of characters too.
    serde_json::from_slice(body)
        .or_else(|error| serde_json::from_slice(&haft_system::without_halves(body)).map_err(|_| error))
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Source {
    pub(crate) name: Option<String>,
    pub(crate) path: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StackFrame {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) source: Option<Source>,
    /// 1-based; 0 where there is none.
    pub(crate) line: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Scope {
    pub(crate) name: String,
    pub(crate) presentation_hint: Option<String>,
    pub(crate) variables_reference: i64,
    pub(crate) expensive: bool,
    pub(crate) named_variables: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) variables_reference: i64,
    pub(crate) indexed_variables: Option<i64>,
    pub(crate) named_variables: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Thread {
    pub(crate) id: i64,
    pub(crate) name: String,
}

/// The answer to a breakpoint, and the body of a `breakpoint` event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct BreakpointAnswer {
    pub(crate) id: Option<i64>,
    pub(crate) verified: bool,
    pub(crate) message: Option<String>,
    pub(crate) line: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Stopped {
    pub(crate) reason: String,
    pub(crate) description: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) thread_id: Option<i64>,
    pub(crate) hit_breakpoint_ids: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Evaluated {
    pub(crate) result: String,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) variables_reference: i64,
    pub(crate) indexed_variables: Option<i64>,
    pub(crate) named_variables: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ExceptionInfo {
    pub(crate) exception_id: String,
    pub(crate) description: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ExceptionFilter {
    pub(crate) filter: String,
    pub(crate) label: String,
    pub(crate) default: bool,
}

/// What an adapter can do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Capabilities {
    pub(crate) supports_configuration_done_request: bool,
    pub(crate) supports_function_breakpoints: bool,
    pub(crate) supports_conditional_breakpoints: bool,
    pub(crate) supports_hit_conditional_breakpoints: bool,
    pub(crate) supports_log_points: bool,
    pub(crate) supports_exception_info_request: bool,
    pub(crate) exception_breakpoint_filters: Vec<ExceptionFilter>,
}

/// One value; its defaults where it does not have the expected form.
pub(crate) fn one<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

/// The list under `key`, without the elements that do not have the expected form.
pub(crate) fn list<T: DeserializeOwned>(body: &Value, key: &str) -> Vec<T> {
    body.get(key)
        .and_then(Value::as_array)
        .map(|items| items.iter().filter_map(|item| T::deserialize(item).ok()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn halves_of_characters_are_mended() {
        assert_eq!(parse(br#"{"event":"half \ud83d"}"#).unwrap().event.unwrap(), "half \u{fffd}");
        assert!(parse(br#"{"event":"half \ud83d"#).is_err());
    }
}
