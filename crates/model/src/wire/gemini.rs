//! Gemini (`POST /v1beta/models/NAME:streamGenerateContent?alt=sse`).

use serde_json::{Value, json};

use super::{Decoder, Ids, MADE_UP, Step, Wire, count, parse, push_text, settled, text, wire_id};
use crate::{
    Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason, ToolCall, Usage,
    content::{
        ImageRule, Piece, arguments_object, pictures_follow, result_pieces, safe_name, split, user_pieces,
    },
    fault::{Fault, FaultKind},
    frames::Frame,
};

const PROVIDER: &str = "gemini";

/// Documented types; inline data counts towards the 20 MB of a request.
const IMAGES: ImageRule = ImageRule {
    types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    bytes: 14 * 1024 * 1024,
};

pub(crate) struct Gemini {
    model: String,
    images: ImageRule,
}

impl Gemini {
    pub(crate) fn new(model: &str, images: bool) -> Self {
        Gemini { model: model.to_owned(), images: if images { IMAGES } else { ImageRule::NONE } }
    }

    fn content(&self, message: &Message) -> Option<Value> {
        let (role, parts): (&str, Vec<Value>) = match message {
            Message::User { parts } => {
                ("user", user_pieces(parts, self.images).into_iter().map(part).collect())
            }
            Message::Assistant { parts } => ("model", model_parts(parts)),
            Message::Results { results } => {
                // Pictures stand beside the responses, after all of them: inside a response only some models take them.
                let mut responses = Vec::new();
                let mut pictures = Vec::new();
                for result in results {
                    let (words, images) = split(result_pieces(result, self.images, false));
                    let key = if result.is_error { "error" } else { "output" };
                    let mut response = json!({"name": safe_name(&result.tool)});
                    if !result.id.starts_with(MADE_UP) {
                        response["id"] = json!(wire_id(&result.id));
                    }
                    response["response"] = json!({ key: pictures_follow(words, images.len()) });
                    responses.push(json!({ "functionResponse": response }));
                    for (mime, data) in images {
                        pictures
                            .push(part(Piece::Text(format!("[Picture from the result of {}]", result.tool))));
                        pictures.push(part(Piece::Image { mime, data }));
                    }
                }
                responses.append(&mut pictures);
                ("user", responses)
            }
        };
        (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
    }
}

fn part(piece: Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Image { mime, data } => json!({"inlineData": {"mimeType": mime, "data": data}}),
    }
}

/// A signature goes back on the part on which it came. Those of calls are kept with the call; those of texts are kept as a thought
/// without words right before the text.
fn model_parts(parts: &[AssistantPart]) -> Vec<Value> {
    let mut values = Vec::new();
    let mut for_text = None;
    for part in parts {
        match part {
            AssistantPart::Thinking { proof: Some(proof), .. } if proof.provider == PROVIDER => {
                for_text = proof.data.get("text_signature").cloned();
            }
            AssistantPart::Thinking { .. } => {}
            AssistantPart::Text { text } if text.is_empty() && for_text.is_none() => {}
            AssistantPart::Text { text } => {
                let mut value = json!({"text": text});
                if let Some(signature) = for_text.take() {
                    value["thoughtSignature"] = signature;
                }
                values.push(value);
            }
            AssistantPart::Call(call) => {
                let mut function =
                    json!({"name": safe_name(&call.tool), "args": arguments_object(&call.arguments)});
                if !call.id.starts_with(MADE_UP) {
                    function["id"] = json!(wire_id(&call.id));
                }
                let mut value = json!({"functionCall": function});
                if let Some(proof) = call.proof.as_ref().filter(|proof| proof.provider == PROVIDER) {
                    value["thoughtSignature"] = proof.data.clone();
                }
                values.push(value);
            }
        }
    }
    values
}

impl Wire for Gemini {
    fn path(&self) -> String {
        format!("/models/{}:streamGenerateContent?alt=sse", self.model)
    }

    fn version(&self) -> &'static str {
        "/v1beta"
    }

    fn body(&self, request: &Request) -> Value {
        let mut generation = json!({});
        if let Some(most) = request.max_output_tokens {
            generation["maxOutputTokens"] = json!(most);
        }
        if let Some(effort) = request.effort {
            // 2.5 takes a budget in tokens, later models a level.
            generation["thinkingConfig"] = if self.model.starts_with("gemini-2") {
                let budget = match effort {
                    Effort::Low => 2_048,
                    Effort::Medium => 8_192,
                    Effort::High => 24_576,
                };
                json!({"includeThoughts": true, "thinkingBudget": budget})
            } else {
                json!({"includeThoughts": true, "thinkingLevel": effort})
            };
        }
        let mut body = json!({});
        if generation.as_object().is_some_and(|fields| !fields.is_empty()) {
            body["generationConfig"] = generation;
        }
        if !request.system.trim().is_empty() {
            body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
        }
        if !request.tools.is_empty() {
            let declarations: Vec<Value> = request
                .tools
                .iter()
                .map(|tool| {
                    json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema})
                })
                .collect();
            body["tools"] = json!([{"functionDeclarations": declarations}]);
        }
        body["contents"] = request.messages.iter().filter_map(|message| self.content(message)).collect();
        body
    }

    fn decoder(&self, ids: Ids) -> Box<dyn Decoder> {
        Box::new(Reader { ids, parts: Vec::new(), stop: None, usage: Usage::default() })
    }
}

struct Reader {
    ids: Ids,
    parts: Vec<AssistantPart>,
    stop: Option<StopReason>,
    usage: Usage,
}

impl Reader {
    fn part(&mut self, part: &Value, events: &mut Vec<Event>) {
        let signature = part.get("thoughtSignature").filter(|signature| signature.is_string());
        let proof = |data: Value| Some(Proof { provider: PROVIDER.to_owned(), data });
        if let Some(function) = part.get("functionCall") {
            let id = self.ids.claim(text(function, "/id"));
            let tool = text(function, "/name").unwrap_or_default().to_owned();
            events.push(Event::CallBegun { id: id.clone(), tool: tool.clone() });
            let arguments =
                function.get("args").filter(|args| !args.is_null()).cloned().unwrap_or_else(|| json!({}));
            let proof = signature.and_then(|signature| proof(signature.clone()));
            self.parts.push(AssistantPart::Call(ToolCall { id, tool, arguments, proof }));
            return;
        }
        let words = text(part, "/text").unwrap_or_default();
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            if !words.is_empty() {
                events.push(Event::Thinking(words.to_owned()));
            }
            match self.parts.last_mut() {
                Some(AssistantPart::Thinking { text, proof: None }) => text.push_str(words),
                _ => self.parts.push(AssistantPart::Thinking { text: words.to_owned(), proof: None }),
            }
            return;
        }
        if let Some(signature) = signature {
            // The text with a signature stays a part of its own: it must go back as it came.
            self.parts.push(AssistantPart::Thinking {
                text: String::new(),
                proof: proof(json!({ "text_signature": signature })),
            });
            self.parts.push(AssistantPart::Text { text: words.to_owned() });
        } else if !words.is_empty() {
            let signed = self.parts.len().checked_sub(2).is_some_and(|before| {
                matches!(&self.parts[before], AssistantPart::Thinking { proof: Some(_), .. })
            });
            if signed {
                self.parts.push(AssistantPart::Text { text: words.to_owned() });
            } else {
                push_text(&mut self.parts, words);
            }
        }
        if !words.is_empty() {
            events.push(Event::Text(words.to_owned()));
        }
    }
}

impl Decoder for Reader {
    fn frame(&mut self, frame: &Frame, events: &mut Vec<Event>) -> Result<Step, Fault> {
        let value = parse(frame)?;
        if value.get("error").is_some() {
            return Err(Fault::from_event(&value));
        }
        if let Some(usage) = value.get("usageMetadata") {
            let cached = count(usage, "/cachedContentTokenCount");
            self.usage = Usage {
                input_tokens: (count(usage, "/promptTokenCount") + count(usage, "/toolUsePromptTokenCount"))
                    .saturating_sub(cached),
                cache_read_tokens: cached,
                cache_write_tokens: 0,
                output_tokens: count(usage, "/candidatesTokenCount") + count(usage, "/thoughtsTokenCount"),
            };
        }
        if text(&value, "/promptFeedback/blockReason").is_some() {
            self.stop = Some(StopReason::Refusal);
        }
        for part in
            value.pointer("/candidates/0/content/parts").and_then(Value::as_array).into_iter().flatten()
        {
            self.part(part, events);
        }
        if let Some(reason) = text(&value, "/candidates/0/finishReason") {
            self.stop = Some(match reason {
                "STOP" | "FINISH_REASON_UNSPECIFIED" => StopReason::EndTurn,
                "MAX_TOKENS" => StopReason::MaxTokens,
                // The model wrote a call that the provider could not read; the next attempt often can.
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "OTHER" => {
                    let said = text(&value, "/candidates/0/finishMessage").unwrap_or_default();
                    return Err(Fault::new(
                        FaultKind::Transient,
                        format!("the answer ended with {reason} {said}"),
                    ));
                }
                // SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, LANGUAGE, IMAGE_SAFETY …
                _ => StopReason::Refusal,
            });
        }
        Ok(Step::More)
    }

    fn finish(&mut self) -> Result<Answer, Fault> {
        // There is no closing event; the reason is what says that the answer is whole.
        let Some(stop) = self.stop else { return Err(Fault::cut()) };
        let parts = std::mem::take(&mut self.parts);
        let stop = settled(stop, &parts);
        Ok(Answer { parts, stop, usage: self.usage })
    }
}
