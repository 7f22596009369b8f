//! `replay:FILE`: a recording in place of a provider. The frames go through the same decoders as when they came over the wire.
//!
//! It is strict: a request is answered by the first recorded attempt that was not played yet and has the same body; if there is none, the
//! error shows where this request first differs from the one that would have been next.

use std::{
    fmt::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::Value;

use crate::{
    ModelError, Profile,
    content::short_hash,
    fault::{Fault, FaultKind},
    frames::Frame,
    limits::DIFFERENCE_CONTEXT,
    record::{Line, VERSION},
    transport::{HttpCall, Reply, ReplyBody, Transport},
};

#[derive(Debug)]
struct Exchange {
    number: u64,
    model: String,
    base: String,
    profile: Profile,
    hash: String,
    body: Value,
    status: Option<u16>,
    retry_after: Option<Duration>,
    frames: Vec<Frame>,
    error_body: Option<String>,
    fault: Option<String>,
    ended: bool,
    played: bool,
}

/// A recording that was read.
pub(crate) struct Recorded {
    exchanges: Mutex<Vec<Exchange>>,
    pub(crate) model: String,
    pub(crate) base: String,
    pub(crate) profile: Profile,
}

impl Recorded {
    pub(crate) fn read(path: &Path) -> Result<Self, ModelError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ModelError::Script(format!("the recording {shown} cannot be read: {error}")))?;
        let mut exchanges: Vec<Exchange> = Vec::new();
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let line: Line = match serde_json::from_str(line) {
                Ok(line) => line,
                // The writer may have been killed in the middle of its last line.
                Err(_) if index + 1 == lines.len() && index > 0 && !text.ends_with('\n') => break,
                Err(error) => {
                    let message = format!("{shown}, line {}: not a line of a recording: {error}", index + 1);
                    return Err(ModelError::Script(message));
                }
            };
            take(&mut exchanges, line)
                .map_err(|problem| ModelError::Script(format!("{shown}, line {}: {problem}", index + 1)))?;
        }
        let Some(first) = exchanges.first() else {
            return Err(ModelError::Script(format!("the recording {shown} holds no request")));
        };
        let (model, base, profile) = (first.model.clone(), first.base.clone(), first.profile);
        // A file that several models share is played for its first one.
        exchanges.retain(|exchange| exchange.model == model);
        Ok(Recorded { exchanges: Mutex::new(exchanges), model, base, profile })
    }
}

fn take(exchanges: &mut Vec<Exchange>, line: Line) -> Result<(), String> {
    let number = match &line {
        Line::Recording { version } if *version == VERSION => return Ok(()),
        Line::Recording { version } => {
            return Err(format!(
                "this is version {version} of the format; this Haft reads version {VERSION}"
            ));
        }
        Line::Request { .. } => 0,
        Line::Response { exchange, .. }
        | Line::Frame { exchange, .. }
        | Line::ErrorBody { exchange, .. }
        | Line::End { exchange, .. } => *exchange,
    };
    if let Line::Request { exchange, model, base, profile, hash, body } = line {
        exchanges.push(Exchange {
            number: exchange,
            model,
            base,
            profile,
            hash,
            body,
            status: None,
            retry_after: None,
            frames: Vec::new(),
            error_body: None,
            fault: None,
            ended: false,
            played: false,
        });
        return Ok(());
    }
    let exchange = exchanges
        .iter_mut()
        .rev()
        .find(|known| known.number == number)
        .ok_or_else(|| format!("there is no request number {number} before it"))?;
    match line {
        Line::Response { status, retry_after_ms, .. } => {
            exchange.status = Some(status);
            exchange.retry_after = retry_after_ms.map(Duration::from_millis);
        }
        Line::Frame { event, data, .. } => exchange.frames.push(Frame { event, data }),
        Line::ErrorBody { text, .. } => exchange.error_body = Some(text),
        Line::End { fault, .. } => {
            exchange.fault = fault;
            exchange.ended = true;
        }
        Line::Recording { .. } | Line::Request { .. } => {}
    }
    Ok(())
}

#[async_trait]
impl Transport for Recorded {
    async fn send(&self, call: &HttpCall) -> Result<Reply, Fault> {
        let hash = short_hash(&call.body);
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = exchanges.iter_mut().find(|exchange| !exchange.played && exchange.hash == hash)
        else {
            let message = match exchanges.iter().find(|exchange| !exchange.played) {
                Some(next) => {
                    let now: Value = serde_json::from_slice(&call.body).unwrap_or(Value::Null);
                    format!(
                        "the recording has no such request; request {} of it is the nearest.\n{}",
                        next.number,
                        difference(&next.body, &now)
                    )
                }
                None => "the recording is used up: the run asks for more than was recorded".to_owned(),
            };
            return Err(Fault { kind: FaultKind::Replay, message, retry_after: None });
        };
        found.played = true;
        let Some(status) = found.status else {
            let why =
                found.fault.clone().unwrap_or_else(|| "the recording stops before the response".to_owned());
            return Err(Fault::transient(why));
        };
        let retry_after = found.retry_after;
        if let Some(text) = found.error_body.clone() {
            return Ok(Reply { status, retry_after, body: ReplyBody::Text(text) });
        }
        let mut items: Vec<Result<Frame, Fault>> = found.frames.iter().cloned().map(Ok).collect();
        if let Some(fault) = &found.fault {
            items.push(Err(Fault::transient(fault.clone())));
        }
        Ok(Reply { status, retry_after, body: ReplyBody::Frames(futures::stream::iter(items).boxed()) })
    }
}

/// Where two requests first differ, in words.
fn difference(recorded: &Value, now: &Value) -> String {
    fn walk(path: &mut String, old: Option<&Value>, new: Option<&Value>) -> Option<(String, String)> {
        let before = path.len();
        let steps: Vec<String> = match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).cloned().collect()
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                (0..old.len().max(new.len())).map(|index| index.to_string()).collect()
            }
            _ => {
                let show = |value: Option<&Value>| match value {
                    None => "(nothing)".to_owned(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                return (old != new).then(|| (show(old), show(new)));
            }
        };
        let below = |value: Option<&'_ Value>, step: &str| match value {
            Some(Value::Array(items)) => {
                step.parse::<usize>().ok().and_then(|index| items.get(index)).cloned()
            }
            Some(other) => other.get(step).cloned(),
            None => None,
        };
        for step in steps {
            let _ = write!(path, "/{step}");
            let found = walk(path, below(old, &step).as_ref(), below(new, &step).as_ref());
            if found.is_some() {
                return found;
            }
            path.truncate(before);
        }
        None
    }
    let mut path = String::new();
    match walk(&mut path, Some(recorded), Some(now)) {
        None => "They differ in the order of fields only.".to_owned(),
        Some((old, new)) => {
            let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
            let excerpt = |text: &str| {
                let from = same.saturating_sub(DIFFERENCE_CONTEXT);
                let cut: String = text.chars().skip(from).take(2 * DIFFERENCE_CONTEXT).collect();
                let left = if from > 0 { "…" } else { "" };
                let right = if text.chars().count() > from + 2 * DIFFERENCE_CONTEXT { "…" } else { "" };
                format!("{left}{cut}{right}")
            };
            format!("First difference at {path}:\nrecorded: {}\nnow:      {}", excerpt(&old), excerpt(&new))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        let long = "x".repeat(300);
        insta::assert_snapshot!(
            [
                difference(
                    &json!({"a": 1, "b": [1, {"c": "same"}]}),
                    &json!({"a": 1, "b": [1, {"c": "some"}]})
                ),
                difference(&json!({"a": 1}), &json!({"a": 1, "b": 2})),
                difference(&json!({"a": [1]}), &json!({"a": [1, "more"]})),
                difference(
                    &json!({"a": format!("{long}old{long}")}),
                    &json!({"a": format!("{long}new{long}")})
                ),
                difference(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1})),
            ]
            .join("\n\n")
        );
    }
}
