//! Ollama's own format (`POST /api/chat`, one JSON text a line).
//!
//! Not its OpenAI-compatible endpoint: only here can the size of the context be set, and without that Ollama cuts a long conversation's
//! beginning off and says nothing.

use serde_json::{Value, json};

use super::{Decoder, Ids, MADE_UP, Step, Wire, count, parse, push_text, settled, text, wire_id};
use crate::{
    Answer, AssistantPart, Event, Message, Proof, Request, StopReason, ToolCall, Usage,
    content::{
        ImageRule, arguments, arguments_object, pictures_follow, result_pieces, safe_name, split, user_pieces,
    },
    fault::Fault,
    frames::{Frame, Framing},
};

const PROVIDER: &str = "ollama";

const IMAGES: ImageRule =
    ImageRule { types: &["image/png", "image/jpeg", "image/webp"], bytes: 20 * 1024 * 1024 };

pub(crate) struct Ollama {
    model: String,
    images: ImageRule,
    context_tokens: u32,
}

impl Ollama {
    pub(crate) fn new(model: &str, images: bool, context_tokens: u32) -> Self {
        Ollama {
            model: model.to_owned(),
            images: if images { IMAGES } else { ImageRule::NONE },
            context_tokens,
        }
    }

    fn messages(&self, request: &Request) -> Vec<Value> {
        let mut messages = Vec::new();
        if !request.system.trim().is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        for message in &request.messages {
            match message {
                Message::User { parts } => {
                    let (words, images) = split(user_pieces(parts, self.images));
                    messages.push(user(words, images));
                }
                Message::Assistant { parts } => messages.extend(assistant(parts)),
                Message::Results { results } => {
                    let mut pictures = Vec::new();
                    for result in results {
                        let (words, mut images) = split(result_pieces(result, self.images, true));
                        let mut value = json!({
                            "role": "tool", "tool_name": safe_name(&result.tool),
                            "content": pictures_follow(words, images.len()),
                        });
                        if !result.id.starts_with(MADE_UP) {
                            value["tool_call_id"] = json!(wire_id(&result.id));
                        }
                        messages.push(value);
                        pictures.append(&mut images);
                    }
                    if !pictures.is_empty() {
                        messages.push(user("[Pictures from the results above]".to_owned(), pictures));
                    }
                }
            }
        }
        messages
    }
}

fn user(words: String, images: Vec<(String, String)>) -> Value {
    let mut message = json!({"role": "user", "content": words});
    if !images.is_empty() {
        message["images"] = images.into_iter().map(|(_, data)| Value::String(data)).collect();
    }
    message
}

fn assistant(parts: &[AssistantPart]) -> Option<Value> {
    let mut said = String::new();
    let mut thought = String::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text { text } => said.push_str(text),
            AssistantPart::Thinking { text, proof } => {
                if proof.as_ref().is_some_and(|proof| proof.provider == PROVIDER) {
                    thought.push_str(text);
                }
            }
            AssistantPart::Call(call) => {
                let mut value = json!({"function": {
                    "name": safe_name(&call.tool), "arguments": arguments_object(&call.arguments)
                }});
                if !call.id.starts_with(MADE_UP) {
                    value["id"] = json!(wire_id(&call.id));
                }
                calls.push(value);
            }
        }
    }
    if said.trim().is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": said});
    if !thought.is_empty() {
        message["thinking"] = json!(thought);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

impl Wire for Ollama {
    fn path(&self) -> String {
        "/api/chat".to_owned()
    }

    fn version(&self) -> &'static str {
        ""
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn body(&self, request: &Request) -> Value {
        // `truncate: false` asks for an error where older servers would silently forget the beginning; they ignore the field.
        let mut body = json!({
            "model": self.model, "stream": true, "truncate": false, "options": {"num_ctx": self.context_tokens}
        });
        if let Some(most) = request.max_output_tokens {
            body["options"]["num_predict"] = json!(most);
        }
        if let Some(effort) = request.effort {
            // Only gpt-oss knows levels; the others can be told to think, and those that cannot think answer with an error.
            body["think"] = if self.model.starts_with("gpt-oss") { json!(effort) } else { json!(true) };
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.schema
                }})
            });
            body["tools"] = tools.collect();
        }
        body["messages"] = Value::Array(self.messages(request));
        body
    }

    fn decoder(&self, ids: Ids) -> Box<dyn Decoder> {
        Box::new(Reader {
            ids,
            thought: String::new(),
            parts: Vec::new(),
            stop: None,
            usage: Usage::default(),
        })
    }
}

struct Reader {
    ids: Ids,
    thought: String,
    parts: Vec<AssistantPart>,
    stop: Option<StopReason>,
    usage: Usage,
}

impl Decoder for Reader {
    fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Step, Fault> {
        let value = parse(frame)?;
        if value.get("error").is_some() {
            return Err(Fault::from_event(&value));
        }
        if let Some(piece) = text(&value, "/message/thinking").filter(|piece| !piece.is_empty()) {
            self.thought.push_str(piece);
            events.push(Event::Thinking(piece.to_owned()));
        }
        if let Some(piece) = text(&value, "/message/content").filter(|piece| !piece.is_empty()) {
            push_text(&mut self.parts, piece);
            events.push(Event::Text(piece.to_owned()));
        }
        for call in value.pointer("/message/tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let id = self.ids.claim(text(call, "/id"));
            let tool = text(call, "/function/name").unwrap_or_default().to_owned();
            events.push(Event::CallBegun { id: id.clone(), tool: tool.clone() });
            let arguments = match call.pointer("/function/arguments") {
                Some(Value::String(raw)) => arguments(raw),
                Some(Value::Null) | None => json!({}),
                Some(value) => value.clone(),
            };
            self.parts.push(AssistantPart::Call(ToolCall { id, tool, arguments, proof: None }));
        }
        if value.get("done").and_then(Value::as_bool) == Some(true) {
            self.stop = Some(match text(&value, "/done_reason") {
                Some("length") => StopReason::MaxTokens,
                _ => StopReason::EndTurn,
            });
            self.usage = Usage {
                input_tokens: count(&value, "/prompt_eval_count"),
                cache_read_tokens: 0,
                cache_write_tokens: 0,
                output_tokens: count(&value, "/eval_count"),
            };
            return Ok(Step::Finished);
        }
        Ok(Step::More)
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        let Some(stop) = self.stop else { return Err(Fault::cut()) };
        let mut parts = Vec::new();
        if !self.thought.is_empty() {
            parts.push(AssistantPart::Thinking {
                text: std::mem::take(&mut self.thought),
                proof: Some(Proof { provider: PROVIDER.to_owned(), data: Value::Null }),
            });
        }
        parts.append(&mut self.parts);
        let stop = settled(stop, &parts);
        Ok(Answer { parts, stop, usage: self.usage })
    }
}
