use std::{fmt::Write, sync::Arc, time::Duration};

use futures::StreamExt;
use haft_model::{
    Answer, AssistantPart, Event, Message, Model, ModelError, Proof, ProviderSettings, Request, RetryPolicy,
    Setting, Settings, Shared, ToolCall, ToolDefinition, ToolResult, Usage, UserPart, check_request, open,
};
use haft_tool::Content;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::method};

/// A retry policy that does not wait.
pub(crate) const AT_ONCE: RetryPolicy =
    RetryPolicy { attempts: 4, first: Duration::ZERO, longest: Duration::ZERO };

pub(crate) const KEY: &str = "sk-test-0123456789";

/// All providers at one address.
pub(crate) fn settings(address: &str) -> Settings {
    let provider = ProviderSettings {
        api_key: Some(Setting::new(KEY, "the test")),
        base_url: Some(Setting::new(address, "the test")),
        images: Some(true),
        ..ProviderSettings::default()
    };
    Settings {
        anthropic: provider.clone(),
        openai: provider.clone(),
        openai_chat: provider.clone(),
        gemini: provider.clone(),
        ollama: provider,
        retry: AT_ONCE,
        ..Settings::default()
    }
}

pub(crate) fn model(name: &str, address: &str) -> Arc<dyn Model> {
    open(name, &settings(address), &Shared::default()).unwrap()
}

pub(crate) async fn events(model: &dyn Model, request: &Request) -> Vec<Result<Event, ModelError>> {
    assert_eq!(check_request(request), Ok(()));
    model.ask(request, CancellationToken::new()).await.unwrap().collect().await
}

/// The events as they are shown, and the answer.
pub(crate) async fn ask(model: &dyn Model, request: &Request) -> (Vec<Event>, Answer) {
    let mut events: Vec<Event> = events(model, request).await.into_iter().map(Result::unwrap).collect();
    match events.pop() {
        Some(Event::Done(answer)) => (events, answer),
        other => panic!("no answer, but {other:?}"),
    }
}

pub(crate) async fn error(model: &dyn Model, request: &Request) -> ModelError {
    events(model, request).await.pop().unwrap().unwrap_err()
}

/// Server-sent events; a text is sent as it is.
pub(crate) fn sse(items: &[Value]) -> String {
    let mut body = String::new();
    for item in items {
        if let Some(kind) = item.get("type").and_then(Value::as_str) {
            writeln!(body, "event: {kind}").unwrap();
        }
        let data = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
        writeln!(body, "data: {data}\n").unwrap();
    }
    body
}

pub(crate) fn stream(body: impl Into<String>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body.into(), "text/event-stream")
}

/// Answers once with each of the responses, in order.
pub(crate) async fn server(responses: impl IntoIterator<Item = ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    for (index, response) in responses.into_iter().enumerate() {
        Mock::given(method("POST"))
            .respond_with(response)
            .up_to_n_times(1)
            .with_priority(u8::try_from(index + 1).unwrap())
            .mount(&server)
            .await;
    }
    server
}

/// The bodies that the server got. Each is checked: every call has its result, and the reverse.
pub(crate) async fn bodies(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.unwrap();
    requests
        .into_iter()
        .map(|request| {
            let body = String::from_utf8(request.body).unwrap();
            check_wire(&serde_json::from_str(&body).unwrap());
            body
        })
        .collect()
}

/// The request that was sent last.
pub(crate) async fn last_body(server: &MockServer) -> Value {
    serde_json::from_str(bodies(server).await.last().unwrap()).unwrap()
}

/// The calls and results of a request in any of the formats, as they stand there: `call X`, `result X`.
fn traffic(body: &Value) -> Vec<(&'static str, String)> {
    let mut traffic = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for item in list(&body["input"]) {
        match item["type"].as_str().unwrap() {
            "function_call" => traffic.push(("call", name(&item["call_id"]))),
            "function_call_output" => traffic.push(("result", name(&item["call_id"]))),
            _ => traffic.push(("other", String::new())),
        }
    }
    for content in list(&body["contents"]) {
        for part in list(&content["parts"]) {
            if part.get("functionCall").is_some() {
                traffic.push(("call", name(&part["functionCall"]["name"])));
            } else if part.get("functionResponse").is_some() {
                traffic.push(("result", name(&part["functionResponse"]["name"])));
            } else {
                traffic.push(("other", String::new()));
            }
        }
    }
    for message in list(&body["messages"]) {
        if message["role"] == "tool" {
            let id = message.get("tool_call_id").unwrap_or(&message["tool_name"]);
            traffic.push(("result", name(id)));
            continue;
        }
        for block in list(&message["content"]) {
            match block["type"].as_str().unwrap() {
                "tool_use" => traffic.push(("call", name(&block["id"]))),
                "tool_result" => traffic.push(("result", name(&block["tool_use_id"]))),
                _ => traffic.push(("other", String::new())),
            }
        }
        for call in list(&message["tool_calls"]) {
            let id = call.get("id").unwrap_or(&call["function"]["name"]);
            traffic.push(("call", name(id)));
        }
        if message["content"].is_string() {
            traffic.push(("other", String::new()));
        }
    }
    traffic
}

/// Calls, then at once their results in the same order, then something else; nothing is open at the end. What an assistant says beside
/// its calls may stand anywhere before the results.
pub(crate) fn check_wire(body: &Value) {
    let mut open: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    let mut answering = false;
    for (kind, id) in traffic(body) {
        match kind {
            "call" => {
                assert!(!answering || open.is_empty(), "call {id} amid results in {body:#}");
                answering = false;
                open.push_back(id);
            }
            "result" => {
                answering = true;
                assert_eq!(
                    open.pop_front(),
                    Some(id),
                    "a result without its call, or out of order, in {body:#}"
                );
            }
            _ => assert!(!answering || open.is_empty(), "something stands between results in {body:#}"),
        }
    }
    assert!(open.is_empty(), "calls without results {open:?} in {body:#}");
}

pub(crate) fn said(text: &str) -> Message {
    Message::User { parts: vec![UserPart::Text { text: text.to_owned() }] }
}

pub(crate) fn hello() -> Request {
    Request {
        system: "Be brief.".to_owned(),
        tools: tools(),
        messages: vec![said("hi")],
        ..Request::default()
    }
}

pub(crate) fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        schema: schema.clone(),
    };
    vec![tool("read"), tool("shell")]
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), arguments, proof: None }
}

pub(crate) fn result(id: &str, tool: &str, is_error: bool, content: Vec<Content>) -> ToolResult {
    let structured = json!({"secret": "for programs"}).as_object().cloned().unwrap_or_else(Map::new);
    ToolResult { id: id.to_owned(), tool: tool.to_owned(), is_error, content, structured }
}

pub(crate) fn picture() -> Content {
    Content::Image { mime: "image/png".to_owned(), data: b"PNG".to_vec() }
}

/// A conversation with everything in it: pictures both ways, a table, an error, thinking of this provider and of another, several calls in
/// a turn, arguments that are not JSON, a tool name that no provider takes, and an empty answer.
pub(crate) fn conversation(provider: &str, proof: Value) -> Request {
    let thought = |text: &str, provider: &str, data: Value| AssistantPart::Thinking {
        text: text.to_owned(),
        proof: Some(Proof { provider: provider.to_owned(), data }),
    };
    let table =
        Content::Table { columns: vec!["n".to_owned()], rows: vec![vec![json!(1)], vec![json!("a|b")]] };
    Request {
        system: "Be brief.".to_owned(),
        tools: tools(),
        messages: vec![
            Message::User {
                parts: vec![
                    UserPart::Text { text: "What is this?".to_owned() },
                    UserPart::Image { mime: "image/png".to_owned(), data: "UE5H".to_owned() },
                    UserPart::Image { mime: "image/bmp".to_owned(), data: "Qk0=".to_owned() },
                ],
            },
            Message::Assistant {
                parts: vec![
                    thought("I look.", provider, proof),
                    thought("Elsewhere.", "another", json!("sealed")),
                    AssistantPart::Text { text: "Looking.".to_owned() },
                    AssistantPart::Call(call("c1", "read", json!({"path": "a.png"}))),
                    AssistantPart::Call(call("functions.shell:0", "sh.ell", json!("{\"path\": "))),
                ],
            },
            Message::Results {
                results: vec![
                    result("c1", "read", false, vec![Content::text("a.png:"), picture(), table]),
                    result("functions.shell:0", "sh.ell", true, vec![Content::text("unknown tool: sh.ell")]),
                ],
            },
            Message::Assistant { parts: vec![] },
            said("And now?"),
        ],
        ..Request::default()
    }
}

/// The same conversation some turns later.
pub(crate) fn continued(mut request: Request) -> Request {
    request.messages.extend([
        Message::Assistant {
            parts: vec![
                AssistantPart::Text { text: "Again.".to_owned() },
                AssistantPart::Call(call("c3", "read", json!({"path": "b"}))),
            ],
        },
        Message::Results { results: vec![result("c3", "read", false, vec![])] },
    ]);
    request
}

/// Sends a conversation and then the same one some turns later: what is sent first must be the beginning of what is sent second, byte for byte,
/// but for the closing brackets and Anthropic's markers, which are not part of what is cached. Gives the first body.
pub(crate) async fn prefix_is_stable(name: &str, request: Request, body: &str, kind: &str) -> Value {
    let respond = || ResponseTemplate::new(200).set_body_raw(body.to_owned(), kind);
    let server = server([respond(), respond()]).await;
    let model = model(name, &server.uri());
    ask(&*model, &request).await;
    ask(&*model, &continued(request)).await;
    let bodies = bodies(&server).await;
    let plain: Vec<String> =
        bodies.iter().map(|body| body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")).collect();
    let beginning = plain[0].strip_suffix("]}").unwrap();
    assert!(plain[1].starts_with(beginning), "{}\n\n{}", plain[0], plain[1]);
    serde_json::from_str(&bodies[0]).unwrap()
}

pub(crate) fn usage(
    input_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    output_tokens: u64,
) -> Usage {
    Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens }
}

pub(crate) fn text(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.to_owned() }
}

pub(crate) fn begun(id: &str, tool: &str) -> Event {
    Event::CallBegun { id: id.to_owned(), tool: tool.to_owned() }
}
