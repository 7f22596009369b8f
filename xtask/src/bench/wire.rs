//! What the mock model says, in three wire formats: OpenAI Responses, OpenAI Chat Completions and Anthropic Messages, streamed.
//!
//! It calls a shell as often as it was told to and then ends with a text. The command's output cannot be guessed from the command, so
//! the final text can say how many of the calls were really carried out: `result 5 of 5`.

use std::fmt::Write;

use anyhow::{Result, bail};
use serde_json::{Value, json};

/// What is to happen in a conversation; it is part of the address, so that the server keeps nothing in mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scene {
    /// Tool calls before the final text.
    pub(crate) tools: u32,
    /// Pieces of final text.
    pub(crate) chunks: u32,
    /// Milliseconds before the first byte of an answer.
    pub(crate) delay_ms: u32,
}

impl Scene {
    pub(crate) fn path(self) -> String {
        format!("/{}-{}-{}", self.tools, self.chunks, self.delay_ms)
    }

    /// The scene and the rest of the path.
    pub(crate) fn parse(path: &str) -> Option<(Scene, &str)> {
        let (scene, rest) = path.strip_prefix('/')?.split_at_checked(path[1..].find('/')?)?;
        let mut numbers = scene.split('-').map(str::parse);
        let scene = Scene {
            tools: numbers.next()?.ok()?,
            chunks: numbers.next()?.ok()?,
            delay_ms: numbers.next()?.ok()?,
        };
        numbers.next().is_none().then_some((scene, rest))
    }
}

/// What every call runs, and what only a shell makes of it.
pub(crate) const COMMAND: &str = "echo mock-$((6*7))";
const PROOF: &str = "mock-42";

/// What the final text begins with when every call was carried out.
pub(crate) fn ending(scene: Scene) -> String {
    format!("result {0} of {0}", scene.tools)
}

/// Names of shell tools, the preferred first.
const SHELLS: [&str; 4] = ["exec_command", "shell_command", "shell", "bash"];

/// The events to be sent as the answer to a request.
pub(crate) fn answer(endpoint: &str, body: &Value, scene: Scene) -> Result<String> {
    if body["stream"] != json!(true) {
        bail!("the mock answers streamed requests only");
    }
    match endpoint {
        "/v1/responses" => responses(body, scene),
        "/v1/chat/completions" => chat(body, scene),
        "/v1/messages" => messages(body, scene),
        other => bail!("no such path: {other}"),
    }
}

/// What the history holds: results of tool calls, and how many of them prove that a shell ran.
struct History {
    results: u32,
    proven: u32,
}

impl History {
    fn of<'a>(results: impl Iterator<Item = &'a Value>) -> History {
        let mut history = History { results: 0, proven: 0 };
        for result in results {
            history.results += 1;
            history.proven += u32::from(result.to_string().contains(PROOF));
        }
        history
    }

    fn text(&self, scene: Scene) -> Vec<String> {
        let first = format!("result {} of {} ", self.proven, scene.tools);
        std::iter::once(first).chain((1..scene.chunks).map(|number| format!("word{number:03} "))).collect()
    }
}

struct Shell {
    name: String,
    arguments: Value,
}

/// The shell among the offered tools, with arguments that fit its schema.
fn shell<'a>(tools: impl Iterator<Item = (&'a Value, &'a Value)> + Clone) -> Result<Shell> {
    let offered = |wanted: &str| tools.clone().find(|(name, _)| *name == wanted);
    let Some((name, schema)) = SHELLS.iter().find_map(|wanted| offered(wanted)) else {
        let names: Vec<_> = tools.map(|(name, _)| name.to_string()).collect();
        bail!("none of the tools is a shell: {}", names.join(", "));
    };
    let properties = &schema["properties"];
    let Some(field) = ["cmd", "command"].into_iter().find(|field| properties[field].is_object()) else {
        bail!("{name} takes no command that the mock knows");
    };
    let command =
        if properties[field]["type"] == "array" { json!(["bash", "-c", COMMAND]) } else { json!(COMMAND) };
    Ok(Shell { name: name.as_str().unwrap_or_default().to_owned(), arguments: json!({ field: command }) })
}

fn list<'a>(body: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + Clone {
    body[field].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

struct Events(String);

impl Events {
    fn named(&mut self, data: Value) {
        let name = data["type"].as_str().unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(self.0, "event: {name}\ndata: {data}\n\n");
    }

    fn plain(&mut self, data: impl std::fmt::Display) {
        let _ = write!(self.0, "data: {data}\n\n");
    }
}

fn responses(body: &Value, scene: Scene) -> Result<String> {
    let is_result = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
    let history = History::of(list(body, "input").filter(is_result).map(|item| &item["output"]));
    let mut events = Events(String::new());
    let id = format!("resp_{}", history.results);
    events.named(
        json!({"type": "response.created", "response": {"id": id, "status": "in_progress", "output": []}}),
    );
    let item = if history.results < scene.tools {
        let shell = shell(list(body, "tools").map(|tool| (&tool["name"], &tool["parameters"])))?;
        let (id, call) = (format!("fc_{}", history.results), format!("call_{}", history.results));
        let arguments = shell.arguments.to_string();
        let item = |arguments: &str, status: &str| json!({"type": "function_call", "id": id, "call_id": call, "name": shell.name, "arguments": arguments, "status": status});
        events.named(
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("", "in_progress")}),
        );
        events.named(json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": 0, "delta": arguments}));
        events.named(json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": 0, "arguments": arguments}));
        item(&arguments, "completed")
    } else {
        let message = |content: Value, status: &str| json!({"type": "message", "id": "msg_0", "role": "assistant", "status": status, "content": content});
        let at = |mut event: Value| {
            event["item_id"] = json!("msg_0");
            event["output_index"] = json!(0);
            event["content_index"] = json!(0);
            event
        };
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        events.named(json!({"type": "response.output_item.added", "output_index": 0, "item": message(json!([]), "in_progress")}));
        events.named(at(json!({"type": "response.content_part.added", "part": part("")})));
        let pieces = history.text(scene);
        for piece in &pieces {
            events.named(at(json!({"type": "response.output_text.delta", "delta": piece})));
        }
        let text = pieces.concat();
        events.named(at(json!({"type": "response.output_text.done", "text": text})));
        events.named(at(json!({"type": "response.content_part.done", "part": part(&text)})));
        message(json!([part(&text)]), "completed")
    };
    events.named(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.named(json!({"type": "response.completed", "response": {"id": id, "status": "completed", "output": [item], "usage": {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 50}, "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110}}}));
    Ok(events.0)
}

fn chat(body: &Value, scene: Scene) -> Result<String> {
    let history = History::of(list(body, "messages").filter(|message| message["role"] == "tool"));
    let mut events = Events(String::new());
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": body["model"],
               "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    if history.results < scene.tools {
        let shell = shell(
            list(body, "tools").map(|tool| (&tool["function"]["name"], &tool["function"]["parameters"])),
        )?;
        let call = json!({"index": 0, "id": format!("call_{}", history.results), "type": "function",
                          "function": {"name": shell.name, "arguments": shell.arguments.to_string()}});
        events.plain(chunk(json!({"role": "assistant", "content": null, "tool_calls": [call]}), Value::Null));
        events.plain(chunk(json!({}), json!("tool_calls")));
    } else {
        events.plain(chunk(json!({"role": "assistant", "content": ""}), Value::Null));
        for piece in history.text(scene) {
            events.plain(chunk(json!({"content": piece}), Value::Null));
        }
        events.plain(chunk(json!({}), json!("stop")));
    }
    let mut usage = chunk(json!({}), Value::Null);
    usage["choices"] = json!([]);
    usage["usage"] = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    events.plain(usage);
    events.plain("[DONE]");
    Ok(events.0)
}

fn messages(body: &Value, scene: Scene) -> Result<String> {
    let blocks = list(body, "messages").flat_map(|message| list(message, "content"));
    let history = History::of(blocks.filter(|block| block["type"] == "tool_result"));
    let mut events = Events(String::new());
    events.named(json!({"type": "message_start", "message": {"id": "msg_0", "type": "message", "role": "assistant",
        "model": body["model"], "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 50,
        "output_tokens": 1, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 0}}}));
    let stop = if history.results < scene.tools {
        let shell = shell(list(body, "tools").map(|tool| (&tool["name"], &tool["input_schema"])))?;
        let block = json!({"type": "tool_use", "id": format!("toolu_{}", history.results), "name": shell.name, "input": {}});
        events.named(json!({"type": "content_block_start", "index": 0, "content_block": block}));
        let delta = json!({"type": "input_json_delta", "partial_json": shell.arguments.to_string()});
        events.named(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        "tool_use"
    } else {
        events.named(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        );
        for piece in history.text(scene) {
            let delta = json!({"type": "text_delta", "text": piece});
            events.named(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        "end_turn"
    };
    events.named(json!({"type": "content_block_stop", "index": 0}));
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.named(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}));
    events.named(json!({"type": "message_stop"}));
    Ok(events.0)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const ONE: Scene = Scene { tools: 1, chunks: 2, delay_ms: 0 };

    #[test]
    fn a_scene_is_part_of_the_address() {
        let scene = Scene { tools: 5, chunks: 4, delay_ms: 1500 };
        let path = format!("{}/v1/responses", scene.path());
        assert_eq!(Scene::parse(&path), Some((scene, "/v1/responses")));
        for wrong in ["", "/", "/v1/responses", "/1-2/v1", "/1-2-3-4/v1", "/1-2-x/v1", "1-2-3"] {
            assert_eq!(Scene::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_result_that_no_shell_made_is_not_counted() {
        let body = |output: &str| {
            json!({"stream": true, "input": [
                {"type": "function_call", "arguments": COMMAND}, {"type": "function_call_output", "output": output}]})
        };
        let ran = answer("/v1/responses", &body("mock-42\n"), ONE).unwrap();
        assert!(ran.contains(&ending(ONE)), "{ran}");
        let refused = answer("/v1/responses", &body(&format!("refused: {COMMAND}")), ONE).unwrap();
        assert!(refused.contains("result 0 of 1"), "{refused}");
    }

    #[test]
    fn three_formats_call_and_end() {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let list = json!({"type": "object", "properties": {"command": {"type": "array"}}});
        let said = [
            answer(
                "/v1/responses",
                &json!({"stream": true, "tools": [{"name": "read"}, {"name": "shell", "parameters": list}]}),
                ONE,
            ),
            answer(
                "/v1/responses",
                &json!({"stream": true, "input": [{"type": "function_call_output", "output": "mock-42"}]}),
                ONE,
            ),
            answer(
                "/v1/chat/completions",
                &json!({"stream": true, "model": "m", "tools": [{"function": {"name": "shell", "parameters": schema}}]}),
                ONE,
            ),
            answer(
                "/v1/chat/completions",
                &json!({"stream": true, "model": "m", "messages": [{"role": "tool", "content": "mock-42"}]}),
                ONE,
            ),
            answer(
                "/v1/messages",
                &json!({"stream": true, "model": "m", "tools": [{"name": "shell", "input_schema": schema}]}),
                ONE,
            ),
            answer(
                "/v1/messages",
                &json!({"stream": true, "model": "m", "messages": [{"content": "hi"},
                {"content": [{"type": "tool_result", "content": [{"type": "text", "text": "mock-42"}]}]}]}),
                ONE,
            ),
        ];
        let said: Vec<String> = said.into_iter().map(Result::unwrap).collect();
        insta::assert_snapshot!(said.join("----\n"));
    }

    #[test]
    fn what_the_mock_cannot_do_is_said() {
        let said = |endpoint: &str, body: Value| answer(endpoint, &body, ONE).unwrap_err().to_string();
        assert_eq!(
            [
                said("/v1/responses", json!({})),
                said("/v1/embeddings", json!({"stream": true})),
                said("/v1/messages", json!({"stream": true, "tools": [{"name": "read"}]})),
                said(
                    "/v1/messages",
                    json!({"stream": true, "tools": [{"name": "bash", "input_schema": {}}]})
                ),
            ],
            [
                "the mock answers streamed requests only",
                "no such path: /v1/embeddings",
                "none of the tools is a shell: \"read\"",
                "\"bash\" takes no command that the mock knows",
            ]
        );
    }
}
