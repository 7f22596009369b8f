use haft_model::{Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason, ToolCall};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::*;

const NAME: &str = "gemini/gemini-2.5-flash";

fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "x"})
}

fn last(parts: Value, reason: &str) -> Value {
    let mut value = chunk(parts);
    value["candidates"][0]["finishReason"] = json!(reason);
    value["usageMetadata"] = json!({"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 7,
        "thoughtsTokenCount": 3, "totalTokenCount": 110});
    value
}

fn simple() -> String {
    sse(&[last(json!([{"text": "Hello"}]), "STOP")])
}

fn full() -> String {
    sse(&[
        chunk(json!([{"text": "Let me ", "thought": true}])),
        chunk(json!([{"text": "see.", "thought": true}])),
        chunk(json!([{"text": "I "}])),
        chunk(json!([{"text": "look."}])),
        chunk(json!([{"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
                     {"functionCall": {"id": "given", "name": "status"}}])),
        chunk(json!([{"text": "", "thoughtSignature": "dGV4dA=="}])),
        last(json!([]), "STOP"),
    ])
}

fn proof(data: Value) -> Proof {
    Proof { provider: "gemini".to_owned(), data }
}

#[tokio::test]
async fn thoughts_text_and_signed_calls() {
    let server = server([stream(full())]).await;
    let (events, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    let AssistantPart::Call(ToolCall { id, .. }) = &answer.parts[2] else { panic!("{answer:?}") };
    assert!(id.starts_with("haft_call_"), "{id}");
    assert_eq!(
        answer,
        Answer {
            parts: vec![
                AssistantPart::Thinking { text: "Let me see.".to_owned(), proof: None },
                text("I look."),
                AssistantPart::Call(ToolCall {
                    proof: Some(proof(json!("c2ln"))),
                    ..call(id, "read", json!({"path": "a"}))
                }),
                AssistantPart::Call(call("given", "status", json!({}))),
                AssistantPart::Thinking {
                    text: String::new(),
                    proof: Some(proof(json!({"text_signature": "dGV4dA=="})))
                },
                text(""),
            ],
            stop: StopReason::ToolCalls,
            usage: usage(60, 40, 0, 10),
        }
    );
    assert_eq!(
        events,
        [
            Event::Thinking("Let me ".to_owned()),
            Event::Thinking("see.".to_owned()),
            Event::Text("I ".to_owned()),
            Event::Text("look.".to_owned()),
            begun(id, "read"),
            begun("given", "status"),
        ]
    );
}

#[tokio::test]
async fn signatures_go_back_where_they_came() {
    let server = server([stream(full()), stream(simple())]).await;
    let model = model(NAME, &server.uri());
    let (_, answer) = ask(&*model, &hello()).await;
    let results = answer
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Call(call) => Some(result(&call.id, &call.tool, call.tool == "status", vec![])),
            _ => None,
        })
        .collect();
    let mut request = hello();
    request.messages.extend([Message::Assistant { parts: answer.parts }, Message::Results { results }]);
    ask(&*model, &request).await;
    assert_eq!(
        last_body(&server).await["contents"],
        json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "status", "args": {}, "id": "given"}},
                {"text": "", "thoughtSignature": "dGV4dA=="},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "(no output)"}}},
                {"functionResponse": {"name": "status", "id": "given", "response": {"error": "(no output)"}}},
            ]},
        ])
    );
}

#[tokio::test]
async fn the_request_with_everything_in_it() {
    let request = conversation("gemini", json!({"text_signature": "c2ln"}));
    let body = prefix_is_stable(NAME, request, &simple(), "text/event-stream").await;
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn address_key_and_effort() {
    let fields = async |name: &str| {
        let server = server([stream(simple())]).await;
        let request = Request { effort: Some(Effort::Low), max_output_tokens: Some(99), ..hello() };
        ask(&*model(name, &server.uri()), &request).await;
        let sent = &server.received_requests().await.unwrap()[0];
        assert_eq!(sent.headers["x-goog-api-key"], KEY);
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        json!([format!("{}?{}", sent.url.path(), sent.url.query().unwrap()), body["generationConfig"]])
    };
    assert_eq!(
        [fields("gemini/gemini-2.5-pro").await, fields("gemini/gemini-3-pro-preview").await],
        [
            json!(["/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
                {"maxOutputTokens": 99, "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 2048}}]),
            json!(["/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse",
                {"maxOutputTokens": 99, "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "low"}}]),
        ]
    );
}

#[tokio::test]
async fn refusals_bounds_and_empty_answers() {
    let blocked = sse(&[
        json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}),
    ]);
    let server = server([
        stream(blocked),
        stream(sse(&[last(json!([{"text": "Half"}]), "SAFETY")])),
        stream(sse(&[last(json!([{"text": "Half"}]), "MAX_TOKENS")])),
        stream(sse(&[last(json!([]), "STOP")])),
    ])
    .await;
    let model = model(NAME, &server.uri());
    let mut ends = Vec::new();
    for _ in 0..4 {
        let (_, answer) = ask(&*model, &hello()).await;
        ends.push((answer.parts.len(), answer.stop));
    }
    assert_eq!(
        ends,
        [
            (0, StopReason::Refusal),
            (1, StopReason::Refusal),
            (1, StopReason::MaxTokens),
            (0, StopReason::EndTurn)
        ]
    );
}
