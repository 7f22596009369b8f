//! What went wrong in one attempt, and whether another one makes sense.

use std::time::Duration;

use serde_json::Value;

use crate::limits::MESSAGE_CHARS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Overload, rate limit, a failure on the other side, a stream that broke off: worth another attempt.
    Transient,
    /// Nobody could be reached: worth a few attempts.
    Unreachable,
    /// The conversation does not fit into the model.
    Context,
    /// The key was not accepted.
    Auth,
    /// The request is wrong.
    Refused,
    /// A replayed recording has no such request.
    Replay,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) message: String,
    /// What the provider asked to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Fault { kind, message: clip(&message.into()), retry_after: None }
    }

    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Fault::new(FaultKind::Transient, message)
    }

    /// The stream ended before the event that says the answer is whole.
    pub(crate) fn cut() -> Self {
        Fault::transient("the stream broke off before the end of the answer")
    }

    /// A response with an error status.
    pub(crate) fn from_response(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let parsed = parsed.as_ref();
        let error = parsed.map(|value| value.get(0).unwrap_or(value));
        let mut fault = match error.and_then(words) {
            Some((code, message)) => Fault {
                kind: classify(Some(status), &code, &message),
                message: clip(&format!("{status} {message}")),
                retry_after: None,
            },
            None => {
                let text = plain(body);
                let kind = classify(Some(status), "", &text);
                let text = if text.is_empty() { reason(status).to_owned() } else { text };
                Fault { kind, message: clip(&format!("{status} {text}")), retry_after: None }
            }
        };
        fault.retry_after = retry_after.or_else(|| error.and_then(retry_info));
        fault
    }

    /// An error inside a stream that began well, or in a body with status 200. `value` is the object around `error`, or the error
    /// itself.
    pub(crate) fn from_event(value: &Value) -> Self {
        let (code, message) = words(value).unwrap_or_else(|| (String::new(), value.to_string()));
        let status = value.pointer("/error/code").and_then(Value::as_u64).map(|code| code as u16);
        Fault {
            kind: classify(status, &code, &message),
            message: clip(&message),
            retry_after: retry_info(value),
        }
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.message.push_str(hint);
        self
    }
}

/// The code and the message of an error in any of the shapes seen: `{"error": {"type"|"code"|"status", "message"}}`,
/// `{"error": "…"}`, `{"message": "…"}`, `{"detail": "…"}`.
fn words(value: &Value) -> Option<(String, String)> {
    let error = value.get("error").unwrap_or(value);
    if let Some(message) = error.as_str() {
        return Some((String::new(), message.to_owned()));
    }
    let message = error.get("message").or_else(|| error.get("detail"))?;
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    let codes: Vec<&str> =
        ["code", "type", "status"].iter().filter_map(|key| error.get(*key).and_then(Value::as_str)).collect();
    Some((codes.join(" "), message))
}

/// Google's `RetryInfo`, the only place where Gemini says how long to wait.
fn retry_info(value: &Value) -> Option<Duration> {
    let details = value.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    delay.strip_suffix('s')?.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn classify(status: Option<u16>, code: &str, message: &str) -> FaultKind {
    let code = code.to_ascii_lowercase();
    let text = message.to_ascii_lowercase();
    let has = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    let coded = |needles: &[&str]| needles.iter().any(|needle| code.contains(needle));
    // A used-up budget comes as 429 and never heals by waiting.
    if coded(&["insufficient_quota", "billing"]) || has(&["credit balance is too low"]) {
        return FaultKind::Refused;
    }
    let about_length = coded(&["context_length", "exceed_context_size", "request_too_large"])
        || has(&[
            "prompt is too long",                   // Anthropic
            "exceed context limit",                 // Anthropic, input and max_tokens together
            "maximum context length",               // OpenAI Chat, vLLM, OpenRouter
            "exceeds the context window",           // OpenAI Responses
            "exceeds the maximum number of tokens", // Gemini
            "exceeds the available context size",   // llama.cpp
            "exceeds the context length",           // Ollama
            "exceeds maximum context",              // Ollama, older
            "greater than the context length",      // LM Studio
            "context length exceeded",
            "context window",
        ]);
    match status {
        Some(413) => return FaultKind::Context,
        Some(401 | 403) => return FaultKind::Auth,
        Some(400 | 422 | 500) if about_length => return FaultKind::Context,
        Some(408 | 409 | 425 | 429) => return FaultKind::Transient,
        Some(501 | 505) => return FaultKind::Refused,
        Some(status) if status >= 500 => return FaultKind::Transient,
        // Gemini answers a wrong key with 400.
        Some(400) if has(&["api key not valid"]) => return FaultKind::Auth,
        Some(status) if (300..500).contains(&status) => return FaultKind::Refused,
        _ => {}
    }
    if about_length {
        FaultKind::Context
    } else if coded(&["authentication", "permission", "invalid_api_key", "unauthenticated"]) {
        FaultKind::Auth
    } else if coded(&["invalid", "not_found", "failed_precondition", "policy"]) {
        FaultKind::Refused
    } else {
        // overloaded_error, rate_limit_exceeded, server_error, api_error, UNAVAILABLE, INTERNAL … and whatever nobody has heard of:
        // a stream that had begun well is worth another attempt.
        FaultKind::Transient
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        300..=399 => "a redirect, which is not followed: set the address that it leads to",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "with an empty body",
    }
}

/// The text of a body that is not JSON; of an HTML page only that it is one.
fn plain(body: &str) -> String {
    let text = body.trim();
    if text.starts_with('<') {
        return "(an HTML page; is the base address right?)".to_owned();
    }
    text.to_owned()
}

fn clip(text: &str) -> String {
    if text.chars().count() <= MESSAGE_CHARS {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(MESSAGE_CHARS).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn context_length_errors_of_every_provider_are_recognised() {
        let cases = [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 214321 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}}"#,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            ),
            (400, r#"{"error":"the input length exceeds the context length"}"#),
        ];
        for (status, body) in cases {
            assert_eq!(Fault::from_response(status, None, body).kind, FaultKind::Context, "{body}");
        }
    }

    #[test]
    fn what_heals_is_told_from_what_does_not() {
        let cases = [
            (429, r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#, FaultKind::Transient),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                FaultKind::Transient,
            ),
            (503, "<html>upstream</html>", FaultKind::Transient),
            (500, "", FaultKind::Transient),
            (
                429,
                r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
                FaultKind::Refused,
            ),
            (401, r#"{"error":{"message":"bad key"}}"#, FaultKind::Auth),
            (
                400,
                r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
                FaultKind::Auth,
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: nope"}}"#,
                FaultKind::Refused,
            ),
            (400, r#"{"error":{"message":"tools.0: bad schema"}}"#, FaultKind::Refused),
        ];
        for (status, body, kind) in cases {
            assert_eq!(Fault::from_response(status, None, body).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn geminis_retry_info_is_read() {
        let body = r#"{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[
            {"@type":"type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.5s"}]}}"#;
        assert_eq!(
            Fault::from_response(429, None, body),
            Fault {
                kind: FaultKind::Transient,
                message: "429 Quota".to_owned(),
                retry_after: Some(Duration::from_millis(37_500))
            }
        );
    }
}
