//! The wire formats, one file each.
//!
//! Why our own and not the crate `genai` (0.7.2, read in its source): its tool result is a string, so pictures in results are lost for OpenAI
//! and errors are not marked; reasoning items of the Responses format are moved in front of everything else of their message; its Gemini
//! stream turns a connection that was cut into a finished answer. Each of these is an answer that looks right and is not.
//!
//! A format is two pure things: a request made into bytes, and a decoder that is fed frames. Fields are read one by one from JSON values:
//! unknown fields and events are passed over, a missing one is an error only where the answer cannot be right without it.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use std::collections::HashSet;

use serde_json::Value;

pub(crate) use self::{
    anthropic::Anthropic, chat::Chat, gemini::Gemini, ollama::Ollama, responses::Responses,
};
use crate::{
    Answer, AssistantPart, Event, Message, Request, StopReason,
    content::{safe_id, short_hash},
    fault::Fault,
    frames::{Frame, Framing},
};

/// How one provider is spoken to.
pub(crate) trait Wire: Send + Sync {
    /// Below the base address, without the version.
    fn path(&self) -> String;

    /// The version part of the address.
    fn version(&self) -> &'static str {
        "/v1"
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Without the key.
    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let _ = request;
        Vec::new()
    }

    /// The body. What belongs to the whole conversation comes first and the messages last, so that the body of a longer conversation
    /// begins with that of the shorter one.
    fn body(&self, request: &Request) -> Value;

    fn decoder(&self, ids: Ids) -> Box<dyn Decoder>;
}

/// Takes the frames of one attempt.
pub(crate) trait Decoder: Send {
    /// Takes a frame and adds what it means to `events`.
    fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Step, Fault>;

    /// The whole answer, after [`Step::Finished`] or the end of the stream. A stream that ended too early is [`Fault::cut`].
    fn finish(&mut self) -> Result<Answer, Fault>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// The answer is whole; nothing after this matters.
    Finished,
}

/// Hands out call ids that are unique in the conversation. Some servers give none (Gemini, Ollama), or `call_0` in every turn.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    used: HashSet<String>,
    seed: String,
    made: u32,
}

/// Ids that Haft made up begin with this; they are not sent to providers that did not ask for one.
pub(crate) const MADE_UP: &str = "haft_call_";

impl Ids {
    /// The ids of the conversation so far, and a seed that is different in every turn and the same in every attempt at it.
    pub(crate) fn new(request: &Request, body: &[u8]) -> Self {
        let mut used = HashSet::new();
        for message in &request.messages {
            if let Message::Assistant { parts } = message {
                for part in parts {
                    if let AssistantPart::Call(call) = part {
                        used.insert(call.id.clone());
                    }
                }
            }
        }
        Ids { used, seed: short_hash(body), made: 0 }
    }

    /// The provider's id where it is good, else one that is made up.
    pub(crate) fn claim(&mut self, given: Option<&str>) -> String {
        if let Some(id) = given.filter(|id| !id.is_empty())
            && self.used.insert(id.to_owned())
        {
            return id.to_owned();
        }
        loop {
            let id = format!("{MADE_UP}{}_{}", self.seed, self.made);
            self.made += 1;
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// The id as it is sent.
pub(crate) fn wire_id(id: &str) -> String {
    safe_id(id)
}

/// Parses a frame's data.
pub(crate) fn parse(frame: &Frame) -> Result<Value, Fault> {
    serde_json::from_str(&frame.data)
        .map_err(|error| Fault::transient(format!("the stream held something that is not JSON: {error}")))
}

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// A count; providers leave counts out or send null.
pub(crate) fn count(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// Adds words to the last part if it is of words, else begins a new one.
pub(crate) fn push_text(parts: &mut Vec<AssistantPart>, piece: &str) {
    match parts.last_mut() {
        Some(AssistantPart::Text { text }) => text.push_str(piece),
        _ => parts.push(AssistantPart::Text { text: piece.to_owned() }),
    }
}

/// Servers disagree about the stop reason of an answer with calls; the calls are what counts.
pub(crate) fn settled(stop: StopReason, parts: &[AssistantPart]) -> StopReason {
    let calls = parts.iter().any(|part| matches!(part, AssistantPart::Call(_)));
    match stop {
        StopReason::EndTurn if calls => StopReason::ToolCalls,
        StopReason::ToolCalls if !calls => StopReason::EndTurn,
        other => other,
    }
}
