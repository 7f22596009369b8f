//! OpenAI Chat Completions (`POST /v1/chat/completions`, server-sent events), as spoken by OpenAI, vLLM, llama.cpp, LM Studio, OpenRouter,
//! DeepSeek and many others. They differ in small things; each tolerance below names its case.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Decoder, Ids, Step, Wire, count, parse, push_text, responses::IMAGES, settled, text, wire_id};
use crate::{
    Answer, AssistantPart, Event, Message, Proof, Request, StopReason, ToolCall, Usage,
    content::{
        ImageRule, Piece, arguments, arguments_text, pictures_follow, result_pieces, safe_name, split,
        user_pieces,
    },
    fault::Fault,
    frames::Frame,
};

const PROVIDER: &str = "openai-chat";

pub(crate) struct Chat {
    model: String,
    images: ImageRule,
    /// Whether this is OpenAI itself, which wants `max_completion_tokens`; most others know `max_tokens` only.
    official: bool,
}

impl Chat {
    pub(crate) fn new(model: &str, images: bool, official: bool) -> Self {
        Chat { model: model.to_owned(), images: if images { IMAGES } else { ImageRule::NONE }, official }
    }

    fn messages(&self, request: &Request) -> Vec<Value> {
        let mut messages = Vec::new();
        if !request.system.trim().is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        for message in &request.messages {
            match message {
                Message::User { parts } => messages.push(user(user_pieces(parts, self.images))),
                Message::Assistant { parts } => messages.extend(assistant(parts)),
                Message::Results { results } => {
                    // A tool message holds text only; pictures follow in a message of their own after all results.
                    let mut pictures = Vec::new();
                    for result in results {
                        let (words, images) = split(result_pieces(result, self.images, true));
                        messages.push(json!({
                            "role": "tool", "tool_call_id": wire_id(&result.id),
                            "content": pictures_follow(words, images.len()),
                        }));
                        for (mime, data) in images {
                            pictures
                                .push(Piece::Text(format!("[Picture from the result of {}]", result.tool)));
                            pictures.push(Piece::Image { mime, data });
                        }
                    }
                    if !pictures.is_empty() {
                        messages.push(user(pictures));
                    }
                }
            }
        }
        messages
    }
}

/// Plain text as a string: some servers know nothing else.
fn user(pieces: Vec<Piece>) -> Value {
    if let [Piece::Text(text)] = pieces.as_slice() {
        return json!({"role": "user", "content": text});
    }
    let content: Vec<Value> = pieces
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => json!({"type": "text", "text": text}),
            Piece::Image { mime, data } => {
                json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}})
            }
        })
        .collect();
    json!({"role": "user", "content": content})
}

fn assistant(parts: &[AssistantPart]) -> Option<Value> {
    let mut said = String::new();
    let mut calls = Vec::new();
    let mut thought = Map::new();
    for part in parts {
        match part {
            AssistantPart::Text { text } => said.push_str(text),
            AssistantPart::Call(call) => calls.push(json!({
                "id": wire_id(&call.id), "type": "function",
                "function": {"name": safe_name(&call.tool), "arguments": arguments_text(&call.arguments)},
            })),
            AssistantPart::Thinking { proof: Some(proof), .. } if proof.provider == PROVIDER => {
                if let Some(fields) = proof.data.as_object() {
                    thought.extend(fields.clone());
                }
            }
            AssistantPart::Thinking { .. } => {}
        }
    }
    if said.trim().is_empty() && calls.is_empty() {
        return None;
    }
    let mut message =
        json!({"role": "assistant", "content": if said.is_empty() { Value::Null } else { json!(said) }});
    // Under the name under which the server sent it (`reasoning_content`, `reasoning`, `reasoning_details`).
    for (key, value) in thought {
        message[key] = value;
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

impl Wire for Chat {
    fn path(&self) -> String {
        "/chat/completions".to_owned()
    }

    fn body(&self, request: &Request) -> Value {
        let mut body =
            json!({"model": self.model, "stream": true, "stream_options": {"include_usage": true}});
        if let Some(most) = request.max_output_tokens {
            body[if self.official { "max_completion_tokens" } else { "max_tokens" }] = json!(most);
        }
        if let Some(effort) = request.effort {
            body["reasoning_effort"] = json!(effort);
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
            parts: Vec::new(),
            calls: BTreeMap::new(),
            last_call: 0,
            thought: BTreeMap::new(),
            details: Vec::new(),
            stop: None,
            usage: Usage::default(),
        })
    }
}

#[derive(Default)]
struct Call {
    id: String,
    given_id: String,
    tool: String,
    raw: String,
    begun: bool,
}

struct Reader {
    ids: Ids,
    /// Text only; thinking goes before it and calls after it, which is the order in which these servers speak.
    parts: Vec<AssistantPart>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    /// By the name of the field that it came in.
    thought: BTreeMap<&'static str, String>,
    details: Vec<Value>,
    stop: Option<StopReason>,
    usage: Usage,
}

impl Reader {
    fn delta(&mut self, delta: &Value, events: &mut Vec<Event>) {
        let mut shown = false;
        for field in ["reasoning_content", "reasoning"] {
            if let Some(piece) = delta.get(field).and_then(Value::as_str).filter(|piece| !piece.is_empty()) {
                self.thought.entry(field).or_default().push_str(piece);
                // Some servers send the same words under both names.
                if !std::mem::replace(&mut shown, true) {
                    events.push(Event::Thinking(piece.to_owned()));
                }
            }
        }
        for detail in delta.get("reasoning_details").and_then(Value::as_array).into_iter().flatten() {
            merge_detail(&mut self.details, detail);
        }
        match delta.get("content") {
            Some(Value::String(piece)) if !piece.is_empty() => {
                push_text(&mut self.parts, piece);
                events.push(Event::Text(piece.clone()));
            }
            // Mistral sends a list of parts.
            Some(Value::Array(pieces)) => {
                for piece in pieces.iter().filter_map(|piece| text(piece, "/text")) {
                    push_text(&mut self.parts, piece);
                    events.push(Event::Text(piece.to_owned()));
                }
            }
            _ => {}
        }
        if let Some(piece) = delta.get("refusal").and_then(Value::as_str).filter(|piece| !piece.is_empty()) {
            push_text(&mut self.parts, piece);
            events.push(Event::Text(piece.to_owned()));
            self.stop = Some(StopReason::Refusal);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, events);
        }
    }

    fn call(&mut self, piece: &Value, events: &mut Vec<Event>) {
        let given = text(piece, "/id").unwrap_or_default();
        let index = match piece.get("index").and_then(Value::as_u64) {
            // Some servers (Gemini's compatible endpoint among them) give every call the index 0 and tell calls apart by their ids.
            Some(index) => match self.calls.get(&index) {
                Some(call) if !given.is_empty() && !call.given_id.is_empty() && call.given_id != given => {
                    self.index_of(given)
                }
                _ => index,
            },
            None if !given.is_empty() => self.index_of(given),
            None => self.last_call,
        };
        self.last_call = index;
        let call = self.calls.entry(index).or_default();
        if !given.is_empty() {
            given.clone_into(&mut call.given_id);
        }
        if let Some(name) = text(piece, "/function/name")
            && call.tool.is_empty()
        {
            name.clone_into(&mut call.tool);
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(raw)) => call.raw.push_str(raw),
            // Servers that send the arguments as an object exist.
            Some(value @ Value::Object(_)) => call.raw.push_str(&value.to_string()),
            _ => {}
        }
        if !call.begun && !call.tool.is_empty() {
            call.begun = true;
            call.id = self.ids.claim(Some(call.given_id.as_str()));
            events.push(Event::CallBegun { id: call.id.clone(), tool: call.tool.clone() });
        }
    }

    fn index_of(&self, given: &str) -> u64 {
        let known = self.calls.iter().find(|(_, call)| call.given_id == given).map(|(index, _)| *index);
        known.unwrap_or_else(|| self.calls.keys().last().map_or(0, |last| last + 1))
    }
}

/// OpenRouter's pieces of one reasoning block share an index; their texts are joined and everything else is kept.
fn merge_detail(details: &mut Vec<Value>, piece: &Value) {
    let same =
        |known: &Value| known.get("index") == piece.get("index") && known.get("type") == piece.get("type");
    let Some(known) = details.last_mut().filter(|known| piece.get("index").is_some() && same(known)) else {
        details.push(piece.clone());
        return;
    };
    for (key, value) in piece.as_object().into_iter().flatten() {
        match (known.get_mut(key), value) {
            (Some(Value::String(known)), Value::String(more))
                if matches!(key.as_str(), "text" | "summary" | "data") =>
            {
                known.push_str(more);
            }
            (_, Value::Null) => {}
            _ => known[key] = value.clone(),
        }
    }
}

impl Decoder for Reader {
    fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Step, Fault> {
        if frame.data.trim() == "[DONE]" {
            return Ok(Step::Finished);
        }
        let value = parse(frame)?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::from_event(&value));
        }
        if let Some(usage) = value.get("usage").filter(|usage| usage.is_object()) {
            let cached = count(usage, "/prompt_tokens_details/cached_tokens")
                .max(count(usage, "/prompt_cache_hit_tokens"));
            self.usage = Usage {
                input_tokens: count(usage, "/prompt_tokens").saturating_sub(cached),
                cache_read_tokens: cached,
                cache_write_tokens: 0,
                output_tokens: count(usage, "/completion_tokens"),
            };
        }
        // `message` is the name in an answer that was not streamed.
        let delta = value.pointer("/choices/0/delta").or_else(|| value.pointer("/choices/0/message"));
        if let Some(delta) = delta {
            self.delta(delta, events);
        }
        if let Some(reason) = text(&value, "/choices/0/finish_reason").filter(|reason| !reason.is_empty()) {
            let stop = match reason {
                "length" => StopReason::MaxTokens,
                "content_filter" => StopReason::Refusal,
                "tool_calls" | "function_call" => StopReason::ToolCalls,
                // OpenRouter, when the provider behind it broke off.
                "error" => return Err(Fault::transient("the server broke the answer off with an error")),
                _ => StopReason::EndTurn,
            };
            if self.stop != Some(StopReason::Refusal) {
                self.stop = Some(stop);
            }
        }
        Ok(Step::More)
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        // Not every server sends `[DONE]`; the reason is what says that the answer is whole.
        let Some(stop) = self.stop else { return Err(Fault::cut()) };
        let mut parts = Vec::new();
        let mut proof = Map::new();
        for (field, words) in &self.thought {
            proof.insert((*field).to_owned(), json!(words));
        }
        if !self.details.is_empty() {
            proof.insert("reasoning_details".to_owned(), Value::Array(std::mem::take(&mut self.details)));
        }
        if !proof.is_empty() {
            let text = self.thought.values().next().cloned().unwrap_or_default();
            let proof = Some(Proof { provider: PROVIDER.to_owned(), data: Value::Object(proof) });
            parts.push(AssistantPart::Thinking { text, proof });
        }
        parts.append(&mut self.parts);
        for call in std::mem::take(&mut self.calls).into_values() {
            let id = if call.begun { call.id } else { self.ids.claim(Some(call.given_id.as_str())) };
            parts.push(AssistantPart::Call(ToolCall {
                id,
                tool: call.tool,
                arguments: arguments(&call.raw),
                proof: None,
            }));
        }
        let stop = settled(stop, &parts);
        Ok(Answer { parts, stop, usage: self.usage })
    }
}
