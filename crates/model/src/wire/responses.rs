//! OpenAI Responses (`POST /v1/responses`, server-sent events), without anything stored at the provider: reasoning comes encrypted and is
//! given back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Decoder, Ids, Step, Wire, count, parse, settled, text, wire_id};
use crate::{
    Answer, AssistantPart, Event, Message, Proof, Request, StopReason, ToolCall, Usage,
    content::{
        ImageRule, Piece, arguments, arguments_text, result_pieces, safe_name, short_hash, split, user_pieces,
    },
    fault::Fault,
    frames::Frame,
};

const PROVIDER: &str = "openai";

/// Documented for vision input; the whole request may be 50 MB.
pub(super) const IMAGES: ImageRule =
    ImageRule { types: &["image/png", "image/jpeg", "image/gif", "image/webp"], bytes: 20 * 1024 * 1024 };

pub(crate) struct Responses {
    model: String,
    images: ImageRule,
}

impl Responses {
    pub(crate) fn new(model: &str, images: bool) -> Self {
        Responses { model: model.to_owned(), images: if images { IMAGES } else { ImageRule::NONE } }
    }

    /// Models that do not reason refuse to be asked for encrypted reasoning.
    fn reasons(&self) -> bool {
        let silent = ["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|prefix| self.model.starts_with(prefix));
        !silent && !self.model.contains("-chat")
    }

    fn items(&self, request: &Request) -> Vec<Value> {
        let mut items = Vec::new();
        for message in &request.messages {
            match message {
                Message::User { parts } => {
                    let content: Vec<Value> =
                        user_pieces(parts, self.images).into_iter().map(input).collect();
                    items.push(json!({"type": "message", "role": "user", "content": content}));
                }
                Message::Assistant { parts } => assistant_items(parts, &mut items),
                Message::Results { results } => {
                    for result in results {
                        let pieces = result_pieces(result, self.images, true);
                        let has_image = pieces.iter().any(|piece| matches!(piece, Piece::Image { .. }));
                        let output = if has_image {
                            Value::Array(pieces.into_iter().map(input).collect())
                        } else {
                            Value::String(split(pieces).0)
                        };
                        items.push(json!({
                            "type": "function_call_output", "call_id": wire_id(&result.id), "output": output
                        }));
                    }
                }
            }
        }
        items
    }
}

fn input(piece: Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "input_text", "text": text}),
        Piece::Image { mime, data } => {
            json!({"type": "input_image", "detail": "auto", "image_url": format!("data:{mime};base64,{data}")})
        }
    }
}

fn assistant_items(parts: &[AssistantPart], items: &mut Vec<Value>) {
    let start = items.len();
    let mut phase = None;
    for part in parts {
        match part {
            AssistantPart::Thinking { proof: Some(proof), .. } if proof.provider == PROVIDER => {
                if let Some(label) = proof.data.get("phase") {
                    phase = Some(label.clone());
                } else if proof.data.get("encrypted_content").is_some_and(Value::is_string) {
                    // The item's id is not sent: nothing is stored under it.
                    let summary = proof.data.get("summary").cloned().unwrap_or_else(|| json!([]));
                    items.push(json!({
                        "type": "reasoning", "summary": summary,
                        "encrypted_content": proof.data["encrypted_content"],
                    }));
                }
            }
            AssistantPart::Thinking { .. } => {}
            AssistantPart::Text { text } if text.trim().is_empty() => {}
            AssistantPart::Text { text } => {
                let mut item = json!({
                    "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]
                });
                if let Some(phase) = phase.take() {
                    item["phase"] = phase;
                }
                items.push(item);
            }
            AssistantPart::Call(call) => items.push(json!({
                "type": "function_call", "call_id": wire_id(&call.id), "name": safe_name(&call.tool),
                "arguments": arguments_text(&call.arguments),
            })),
        }
    }
    // A reasoning item must be followed by what it led to; an answer that was cut while thinking led to nothing.
    while items.len() > start && items.last().and_then(|item| text(item, "/type")) == Some("reasoning") {
        items.pop();
    }
}

impl Wire for Responses {
    fn path(&self) -> String {
        "/responses".to_owned()
    }

    fn body(&self, request: &Request) -> Value {
        let mut body = json!({"model": self.model, "stream": true, "store": false});
        if self.reasons() {
            body["include"] = json!(["reasoning.encrypted_content"]);
            if let Some(effort) = request.effort {
                // A summary is asked for only together with an effort: organisations that are not verified are refused one.
                body["reasoning"] = json!({"effort": effort, "summary": "auto"});
            }
        }
        if let Some(most) = request.max_output_tokens {
            body["max_output_tokens"] = json!(most);
        }
        // The same for all turns of a conversation, so that they reach the machine that holds its cache.
        let first =
            request.messages.first().and_then(|message| serde_json::to_vec(message).ok()).unwrap_or_default();
        body["prompt_cache_key"] = json!(short_hash(&[request.system.as_bytes(), &first].concat()));
        if !request.system.trim().is_empty() {
            body["instructions"] = json!(request.system);
        }
        if !request.tools.is_empty() {
            body["parallel_tool_calls"] = json!(true);
            let tools = request.tools.iter().map(|tool| {
                // Not strict: strict schemas must list every field as required.
                json!({
                    "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.schema, "strict": false,
                })
            });
            body["tools"] = tools.collect();
        }
        body["input"] = Value::Array(self.items(request));
        body
    }

    fn decoder(&self, ids: Ids) -> Box<dyn Decoder> {
        Box::new(Reader { ids, slots: BTreeMap::new(), end: None, thought: false })
    }
}

/// An item of the answer.
#[derive(Default)]
struct Slot {
    item: Value,
    /// The call's id, claimed when the call began.
    id: Option<String>,
    /// Text or arguments as far as they came in pieces.
    pieces: String,
    done: bool,
}

struct Reader {
    ids: Ids,
    slots: BTreeMap<u64, Slot>,
    /// The closing `response` object.
    end: Option<Value>,
    thought: bool,
}

impl Reader {
    fn item(&mut self, index: u64, item: &Value, done: bool, events: &mut Vec<Event>) {
        let slot = self.slots.entry(index).or_default();
        slot.item = item.clone();
        slot.done = done;
        match text(item, "/type") {
            Some("function_call") if slot.id.is_none() => {
                let id = self.ids.claim(text(item, "/call_id"));
                let tool = text(item, "/name").unwrap_or_default().to_owned();
                events.push(Event::CallBegun { id: id.clone(), tool });
                slot.id = Some(id);
            }
            // A server that sends no deltas.
            Some("message") if done && slot.pieces.is_empty() => {
                let said = message_text(item);
                if !said.is_empty() {
                    events.push(Event::Text(said));
                }
            }
            _ => {}
        }
    }
}

fn message_text(item: &Value) -> String {
    let content = item.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    content
        .iter()
        .filter_map(|part| text(part, "/text").or_else(|| text(part, "/refusal")))
        .collect::<Vec<_>>()
        .join("")
}

fn reasoning_text(item: &Value) -> String {
    let texts = |key: &str| -> Vec<&str> {
        item.get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|part| text(part, "/text"))
            .collect()
    };
    let summary = texts("summary");
    if summary.is_empty() { texts("content").join("") } else { summary.join("\n\n") }
}

impl Decoder for Reader {
    fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Step, Fault> {
        let value = parse(frame)?;
        let kind = text(&value, "/type").or(frame.event.as_deref()).unwrap_or_default();
        let index = count(&value, "/output_index");
        let delta = text(&value, "/delta").unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(item) = value.get("item") {
                    self.item(index, item, kind.ends_with("done"), events);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.slots.entry(index).or_default().pieces.push_str(delta);
                events.push(Event::Text(delta.to_owned()));
            }
            "response.function_call_arguments.delta" => {
                self.slots.entry(index).or_default().pieces.push_str(delta);
            }
            "response.reasoning_summary_part.added" if self.thought => {
                events.push(Event::Thinking("\n\n".to_owned()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.thought = true;
                events.push(Event::Thinking(delta.to_owned()));
            }
            "response.completed" | "response.incomplete" => {
                let response = value.get("response").cloned().unwrap_or_default();
                if self.slots.is_empty() {
                    let output =
                        response.get("output").and_then(Value::as_array).cloned().unwrap_or_default();
                    for (index, item) in output.iter().enumerate() {
                        self.item(index as u64, item, true, events);
                    }
                }
                self.end = Some(response);
                return Ok(Step::Finished);
            }
            "response.failed" => {
                return Err(Fault::from_event(value.get("response").unwrap_or(&value)));
            }
            "error" => return Err(Fault::from_event(&value)),
            _ if value.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(Fault::from_event(&value));
            }
            _ => {}
        }
        Ok(Step::More)
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        let Some(end) = self.end.take() else { return Err(Fault::cut()) };
        let mut parts = Vec::new();
        let mut refused = false;
        for slot in std::mem::take(&mut self.slots).into_values() {
            match text(&slot.item, "/type") {
                Some("message") => {
                    if let Some(phase) = slot.item.get("phase").filter(|phase| phase.is_string()) {
                        parts.push(AssistantPart::Thinking {
                            text: String::new(),
                            proof: Some(Proof {
                                provider: PROVIDER.to_owned(),
                                data: json!({"phase": phase}),
                            }),
                        });
                    }
                    refused |= slot.item.pointer("/content/0/type").is_some_and(|kind| kind == "refusal");
                    let said = if slot.done { message_text(&slot.item) } else { slot.pieces };
                    if !said.is_empty() {
                        parts.push(AssistantPart::Text { text: said });
                    }
                }
                Some("function_call") => {
                    let raw = match text(&slot.item, "/arguments") {
                        Some(raw) if slot.done || !raw.is_empty() => raw.to_owned(),
                        _ => slot.pieces,
                    };
                    let id = slot.id.unwrap_or_else(|| self.ids.claim(text(&slot.item, "/call_id")));
                    let tool = text(&slot.item, "/name").unwrap_or_default().to_owned();
                    parts.push(AssistantPart::Call(ToolCall {
                        id,
                        tool,
                        arguments: arguments(&raw),
                        proof: None,
                    }));
                }
                Some("reasoning") => {
                    let text = reasoning_text(&slot.item);
                    let sealed = slot.item.get("encrypted_content").is_some_and(Value::is_string);
                    if sealed || !text.is_empty() {
                        let proof =
                            sealed.then(|| Proof { provider: PROVIDER.to_owned(), data: slot.item.clone() });
                        parts.push(AssistantPart::Thinking { text, proof });
                    }
                }
                // Text of an item that was never announced; better kept than lost.
                None if !slot.pieces.is_empty() => parts.push(AssistantPart::Text { text: slot.pieces }),
                _ => {}
            }
        }
        let stop = match text(&end, "/incomplete_details/reason") {
            Some("content_filter") => StopReason::Refusal,
            Some(_) => StopReason::MaxTokens,
            None if refused => StopReason::Refusal,
            None => StopReason::EndTurn,
        };
        let cached = count(&end, "/usage/input_tokens_details/cached_tokens");
        let usage = Usage {
            input_tokens: count(&end, "/usage/input_tokens").saturating_sub(cached),
            cache_read_tokens: cached,
            cache_write_tokens: 0,
            output_tokens: count(&end, "/usage/output_tokens"),
        };
        let stop = settled(stop, &parts);
        Ok(Answer { parts, stop, usage })
    }
}
