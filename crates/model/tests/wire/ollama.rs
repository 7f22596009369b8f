use haft_model::{Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason, ToolCall};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::*;

const NAME: &str = "ollama/qwen3:8b";
const KIND: &str = "application/x-ndjson";

fn lines(items: &[Value]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

fn message(message: Value) -> Value {
    json!({"model": "qwen3:8b", "message": message, "done": false})
}

fn done(reason: &str) -> Value {
    json!({"model": "qwen3:8b", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
           "prompt_eval_count": 50, "eval_count": 9, "total_duration": 1})
}

fn simple() -> String {
    lines(&[message(json!({"role": "assistant", "content": "Hello"})), done("stop")])
}

fn respond(body: String) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, KIND)
}

#[tokio::test]
async fn thinking_text_and_calls() {
    let body = lines(&[
        message(json!({"role": "assistant", "content": "", "thinking": "Let me see."})),
        message(json!({"role": "assistant", "content": "I look."})),
        message(json!({"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "read", "arguments": {"path": "a"}}},
            {"id": "given", "function": {"name": "read", "arguments": {"path": "b"}}}]})),
        done("stop"),
    ]);
    let server = server([respond(body), respond(simple())]).await;
    let model = model(NAME, &server.uri());
    let (events, answer) = ask(&*model, &hello()).await;
    let AssistantPart::Call(ToolCall { id, .. }) = &answer.parts[2] else { panic!("{answer:?}") };
    let id = id.clone();
    assert!(id.starts_with("haft_call_"), "{id}");
    assert_eq!(
        answer,
        Answer {
            parts: vec![
                AssistantPart::Thinking {
                    text: "Let me see.".to_owned(),
                    proof: Some(Proof { provider: "ollama".to_owned(), data: Value::Null }),
                },
                text("I look."),
                AssistantPart::Call(call(&id, "read", json!({"path": "a"}))),
                AssistantPart::Call(call("given", "read", json!({"path": "b"}))),
            ],
            stop: StopReason::ToolCalls,
            usage: usage(50, 0, 0, 9),
        }
    );
    assert_eq!(
        events,
        [
            Event::Thinking("Let me see.".to_owned()),
            Event::Text("I look.".to_owned()),
            begun(&id, "read"),
            begun("given", "read"),
        ]
    );
    let mut request = hello();
    request.messages.extend([
        Message::Assistant { parts: answer.parts },
        Message::Results {
            results: vec![result(&id, "read", false, vec![]), result("given", "read", true, vec![])],
        },
    ]);
    ask(&*model, &request).await;
    assert_eq!(
        last_body(&server).await["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "I look.", "thinking": "Let me see.", "tool_calls": [
                {"function": {"name": "read", "arguments": {"path": "a"}}},
                {"function": {"name": "read", "arguments": {"path": "b"}}, "id": "given"}]},
            {"role": "tool", "tool_name": "read", "content": "(no output)"},
            {"role": "tool", "tool_name": "read", "content": "Error.", "tool_call_id": "given"},
        ])
    );
}

#[tokio::test]
async fn the_request_with_everything_in_it() {
    let body = prefix_is_stable(NAME, conversation("ollama", Value::Null), &simple(), KIND).await;
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn bounds_effort_and_the_size_of_the_context() {
    let fields = async |name: &str| {
        let server = server([respond(simple())]).await;
        let request = Request { effort: Some(Effort::Low), max_output_tokens: Some(99), ..hello() };
        ask(&*model(name, &format!("{}/v1", server.uri())), &request).await;
        assert_eq!(server.received_requests().await.unwrap()[0].url.path(), "/api/chat");
        let body = last_body(&server).await;
        json!([body["options"], body["think"]])
    };
    assert_eq!(
        [fields("ollama/qwen3").await, fields("ollama/gpt-oss:20b").await],
        [
            json!([{"num_ctx": 32768, "num_predict": 99}, true]),
            json!([{"num_ctx": 32768, "num_predict": 99}, "low"]),
        ]
    );
}

#[tokio::test]
async fn an_empty_answer_and_one_cut_at_the_bound() {
    let server = server([respond(lines(&[done("stop")])), respond(lines(&[done("length")]))]).await;
    let model = model(NAME, &server.uri());
    for stop in [StopReason::EndTurn, StopReason::MaxTokens] {
        assert_eq!(
            ask(&*model, &hello()).await,
            (vec![], Answer { parts: vec![], stop, usage: usage(50, 0, 0, 9) })
        );
    }
}
