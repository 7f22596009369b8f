//! Anthropic Messages (`POST /v1/messages`, server-sent events).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Decoder, Ids, Step, Wire, count, parse, settled, text, wire_id};
use crate::{
    Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason, ToolCall, Usage,
    content::{ImageRule, Piece, arguments, arguments_object, result_pieces, safe_name, user_pieces},
    fault::Fault,
    frames::Frame,
};

const PROVIDER: &str = "anthropic";

/// Media types and the size per picture that the Messages API documents.
const IMAGES: ImageRule =
    ImageRule { types: &["image/png", "image/jpeg", "image/gif", "image/webp"], bytes: 5 * 1024 * 1024 };

/// The smallest thinking budget that the API takes.
const LEAST_BUDGET: u32 = 1_024;

pub(crate) struct Anthropic {
    model: String,
    images: ImageRule,
}

/// How a model is told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    /// Models that do not think at all (Claude 3 and 3.5).
    None,
    /// A budget in tokens (3.7 to 4.5); later models refuse it.
    Budget,
    /// `adaptive` with an effort (4.6 and later).
    Adaptive,
}

impl Anthropic {
    pub(crate) fn new(model: &str, images: bool) -> Self {
        Anthropic { model: model.to_owned(), images: if images { IMAGES } else { ImageRule::NONE } }
    }

    fn thinking(&self) -> Thinking {
        match version(&self.model) {
            Some(version) if version < (3, 7) => Thinking::None,
            Some(version) if version < (4, 6) => Thinking::Budget,
            // A model without a number that this table knows is newer than this table.
            _ => Thinking::Adaptive,
        }
    }

    /// The API wants an upper bound; this is the largest that the model is documented to take, or 32,000.
    fn most_output(&self) -> u32 {
        match version(&self.model) {
            Some(version) if version < (3, 5) => 4_096,
            Some((3, 5)) => 8_192,
            _ => 32_000,
        }
    }

    /// The tokens to think with, if this request may think by budget: the API refuses a tool turn whose assistant message does not begin
    /// with thinking (the conversation comes from another model, or thinking was switched on in the middle).
    fn budget(&self, request: &Request, max_tokens: u32) -> Option<u32> {
        let effort = request.effort?;
        if self.thinking() != Thinking::Budget || !tool_turn_began_with_thinking(&request.messages) {
            return None;
        }
        let wanted = match effort {
            Effort::Low => 4_000,
            Effort::Medium => 12_000,
            Effort::High => 24_000,
        };
        Some(wanted.min(max_tokens.saturating_sub(LEAST_BUDGET))).filter(|budget| *budget >= LEAST_BUDGET)
    }

    fn message(&self, message: &Message) -> Option<Value> {
        let (role, content): (&str, Vec<Value>) = match message {
            Message::User { parts } => {
                ("user", user_pieces(parts, self.images).into_iter().map(block).collect())
            }
            Message::Results { results } => {
                let blocks = results.iter().map(|result| {
                    // The API refuses pictures in a result that is marked as an error; words mark it then.
                    let mut pieces = result_pieces(result, self.images, false);
                    let marked =
                        result.is_error && pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
                    if result.is_error && !marked {
                        pieces = result_pieces(result, self.images, true);
                    }
                    let content: Vec<Value> = pieces.into_iter().map(block).collect();
                    let mut value = json!({
                        "type": "tool_result", "tool_use_id": wire_id(&result.id), "content": content
                    });
                    if marked {
                        value["is_error"] = json!(true);
                    }
                    value
                });
                ("user", blocks.collect())
            }
            Message::Assistant { parts } => ("assistant", parts.iter().filter_map(assistant_block).collect()),
        };
        (!content.is_empty()).then(|| json!({"role": role, "content": content}))
    }
}

/// `claude-sonnet-4-5-20250929` is 4.5, `claude-3-7-sonnet-latest` 3.7, `claude-opus-4-20250514` 4.0.
fn version(model: &str) -> Option<(u32, u32)> {
    let mut numbers = model.split('-').filter(|part| part.len() <= 2).map(str::parse::<u32>);
    let mut first = None;
    for number in numbers.by_ref() {
        match (number, first) {
            (Ok(number), None) => first = Some(number),
            (Ok(number), Some(major)) => return Some((major, number)),
            (Err(_), Some(_)) => break,
            (Err(_), None) => {}
        }
    }
    first.map(|major| (major, 0))
}

fn tool_turn_began_with_thinking(messages: &[Message]) -> bool {
    if !matches!(messages.last(), Some(Message::Results { .. })) {
        return true;
    }
    let last_said = messages.iter().rev().find_map(|message| match message {
        Message::Assistant { parts } => Some(parts),
        _ => None,
    });
    last_said.is_none_or(|parts| {
        parts
            .iter()
            .find_map(assistant_block)
            .is_some_and(|block| matches!(text(&block, "/type"), Some("thinking" | "redacted_thinking")))
    })
}

fn block(piece: Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Image { mime, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
        }
    }
}

fn assistant_block(part: &AssistantPart) -> Option<Value> {
    match part {
        // Without this provider's proof it would be refused.
        AssistantPart::Thinking { proof, .. } => {
            proof.as_ref().filter(|proof| proof.provider == PROVIDER).map(|proof| proof.data.clone())
        }
        AssistantPart::Text { text } => {
            (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
        }
        AssistantPart::Call(call) => Some(json!({
            "type": "tool_use", "id": wire_id(&call.id), "name": safe_name(&call.tool),
            "input": arguments_object(&call.arguments),
        })),
    }
}

impl Wire for Anthropic {
    fn path(&self) -> String {
        "/messages".to_owned()
    }

    fn headers(&self, request: &Request) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", "2023-06-01".to_owned())];
        let max_tokens = request.max_output_tokens.unwrap_or_else(|| self.most_output());
        if self.budget(request, max_tokens).is_some()
            && version(&self.model).is_some_and(|version| version >= (4, 0))
        {
            // Thinking between tool calls; models with adaptive thinking do it unasked.
            headers.push(("anthropic-beta", "interleaved-thinking-2025-05-14".to_owned()));
        }
        headers
    }

    fn body(&self, request: &Request) -> Value {
        let max_tokens = request.max_output_tokens.unwrap_or_else(|| self.most_output());
        let mut body = json!({"model": self.model, "max_tokens": max_tokens, "stream": true});
        if let Some(budget) = self.budget(request, max_tokens) {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        } else if let (Thinking::Adaptive, Some(effort)) = (self.thinking(), request.effort) {
            // Since 4.7 the words of thinking are left out unless asked for.
            body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
            body["output_config"] = json!({"effort": effort});
        }
        // At most four breakpoints: tools, system, and the last two messages that are not the model's. The one before the last is where
        // the request before this one ended: it is found even if this turn added more blocks than the cache looks back (20).
        let marker = json!({"type": "ephemeral"});
        if !request.tools.is_empty() {
            let mut tools: Vec<Value> = request
                .tools
                .iter()
                .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}))
                .collect();
            if let Some(last) = tools.last_mut() {
                last["cache_control"] = marker.clone();
            }
            body["tools"] = Value::Array(tools);
        }
        if !request.system.trim().is_empty() {
            body["system"] = json!([{"type": "text", "text": request.system, "cache_control": marker}]);
        }
        let mut messages: Vec<Value> =
            request.messages.iter().filter_map(|message| self.message(message)).collect();
        let theirs = messages.iter_mut().rev().filter(|message| text(message, "/role") == Some("user"));
        for message in theirs.take(2) {
            if let Some(last) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
                last["cache_control"] = marker.clone();
            }
        }
        body["messages"] = Value::Array(messages);
        body
    }

    fn decoder(&self, ids: Ids) -> Box<dyn Decoder> {
        Box::new(Reader {
            ids,
            blocks: BTreeMap::new(),
            stop: None,
            usage: Usage::default(),
            finished: false,
        })
    }
}

enum Block {
    Text(String),
    Thinking { text: String, signature: String },
    Redacted(Value),
    Call { id: String, tool: String, given: Value, raw: String },
}

struct Reader {
    ids: Ids,
    blocks: BTreeMap<u64, Block>,
    stop: Option<StopReason>,
    usage: Usage,
    finished: bool,
}

impl Reader {
    /// Counts are cumulative; a later one replaces an earlier one, and one that is left out changes nothing.
    fn count_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let take = |key: &str, slot: &mut u64| {
            if let Some(number) = usage.get(key).and_then(Value::as_u64) {
                *slot = number;
            }
        };
        take("input_tokens", &mut self.usage.input_tokens);
        take("cache_read_input_tokens", &mut self.usage.cache_read_tokens);
        take("cache_creation_input_tokens", &mut self.usage.cache_write_tokens);
        take("output_tokens", &mut self.usage.output_tokens);
    }

    fn begin(&mut self, index: u64, start: &Value, events: &mut Vec<Event>) {
        let field = |key: &str| start.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let block = match start.get("type").and_then(Value::as_str) {
            Some("text") => {
                let text = field("text");
                if !text.is_empty() {
                    events.push(Event::Text(text.clone()));
                }
                Block::Text(text)
            }
            Some("thinking") => {
                let text = field("thinking");
                if !text.is_empty() {
                    events.push(Event::Thinking(text.clone()));
                }
                Block::Thinking { text, signature: field("signature") }
            }
            Some("redacted_thinking") => Block::Redacted(start.clone()),
            Some("tool_use") => {
                let id = self.ids.claim(start.get("id").and_then(Value::as_str));
                let tool = field("name");
                events.push(Event::CallBegun { id: id.clone(), tool: tool.clone() });
                Block::Call {
                    id,
                    tool,
                    given: start.get("input").cloned().unwrap_or(Value::Null),
                    raw: String::new(),
                }
            }
            // Blocks of the provider's own tools; Haft asks for none.
            _ => return,
        };
        self.blocks.insert(index, block);
    }

    fn more(&mut self, index: u64, delta: &Value, events: &mut Vec<Event>) {
        let field = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match self.blocks.get_mut(&index) {
            Some(Block::Text(text)) => {
                let piece = field("text");
                text.push_str(piece);
                if !piece.is_empty() {
                    events.push(Event::Text(piece.to_owned()));
                }
            }
            Some(Block::Thinking { text, signature }) => {
                let piece = field("thinking");
                text.push_str(piece);
                signature.push_str(field("signature"));
                if !piece.is_empty() {
                    events.push(Event::Thinking(piece.to_owned()));
                }
            }
            Some(Block::Call { raw, .. }) => raw.push_str(field("partial_json")),
            Some(Block::Redacted(_)) | None => {}
        }
    }
}

impl Decoder for Reader {
    fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Step, Fault> {
        let value = parse(frame)?;
        let kind = text(&value, "/type").or(frame.event.as_deref()).unwrap_or_default();
        let index = count(&value, "/index");
        match kind {
            "message_start" => self.count_usage(value.pointer("/message/usage")),
            "content_block_start" => {
                if let Some(start) = value.get("content_block") {
                    self.begin(index, start, events);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = value.get("delta") {
                    self.more(index, delta, events);
                }
            }
            "message_delta" => {
                self.count_usage(value.get("usage"));
                if let Some(stop) = text(&value, "/delta/stop_reason") {
                    self.stop = Some(match stop {
                        "tool_use" => StopReason::ToolCalls,
                        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
                        "refusal" => StopReason::Refusal,
                        _ => StopReason::EndTurn,
                    });
                }
            }
            "message_stop" => {
                self.finished = true;
                return Ok(Step::Finished);
            }
            "error" => return Err(Fault::from_event(&value)),
            _ if value.get("error").is_some() => return Err(Fault::from_event(&value)),
            _ => {}
        }
        Ok(Step::More)
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        if !self.finished {
            return Err(Fault::cut());
        }
        let mut parts = Vec::new();
        for block in std::mem::take(&mut self.blocks).into_values() {
            match block {
                Block::Text(text) if text.is_empty() => {}
                Block::Text(text) => parts.push(AssistantPart::Text { text }),
                Block::Thinking { text, signature } => {
                    let proof = (!signature.is_empty()).then(|| Proof {
                        provider: PROVIDER.to_owned(),
                        data: json!({"type": "thinking", "thinking": text, "signature": signature}),
                    });
                    if proof.is_some() || !text.is_empty() {
                        parts.push(AssistantPart::Thinking { text, proof });
                    }
                }
                Block::Redacted(data) => parts.push(AssistantPart::Thinking {
                    text: String::new(),
                    proof: Some(Proof { provider: PROVIDER.to_owned(), data }),
                }),
                Block::Call { id, tool, given, raw } => {
                    // Some compatible servers send the whole input at the start and no deltas.
                    let whole = raw.is_empty() && given.as_object().is_some_and(|given| !given.is_empty());
                    let arguments = if whole { given } else { arguments(&raw) };
                    parts.push(AssistantPart::Call(ToolCall { id, tool, arguments, proof: None }));
                }
            }
        }
        let stop = settled(self.stop.unwrap_or(StopReason::EndTurn), &parts);
        Ok(Answer { parts, stop, usage: self.usage })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn versions_in_names() {
        let cases = [
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-3-5-sonnet-latest", Some((3, 5))),
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-opus-4-20250514", Some((4, 0))),
            ("claude-opus-4-1-20250805", Some((4, 1))),
            ("claude-haiku-4-5", Some((4, 5))),
            ("claude-sonnet-5-5", Some((5, 5))),
            ("claude-fable-5", Some((5, 0))),
            ("mock", None),
        ];
        for (name, expected) in cases {
            assert_eq!(version(name), expected, "{name}");
        }
    }
}
