use haft_model::{Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason, ToolCall};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::*;

const NAME: &str = "openai-chat/qwen3-coder";

fn chunk(delta: Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": null})
}

fn counted() -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 30}}})
}

fn done() -> Value {
    json!("[DONE]")
}

fn piece(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let Some(id) = id {
        call["id"] = json!(id);
        call["type"] = json!("function");
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    chunk(json!({"tool_calls": [call]}))
}

fn simple() -> String {
    sse(&[chunk(json!({"role": "assistant", "content": "Hello"})), finish("stop"), counted(), done()])
}

fn full() -> String {
    sse(&[
        chunk(json!({"role": "assistant", "content": null, "reasoning_content": "Let me "})),
        chunk(json!({"reasoning_content": "see."})),
        chunk(json!({"content": "I "})),
        chunk(json!({"content": "look."})),
        piece(0, Some("call_a"), Some("read"), ""),
        piece(0, None, None, "{\"path\""),
        piece(0, None, None, ": \"a\"}"),
        piece(1, Some("call_b"), Some("read"), "{\"path\": \"b\"}"),
        piece(2, Some("call_c"), Some("status"), ""),
        finish("tool_calls"),
        counted(),
        done(),
    ])
}

fn thought() -> AssistantPart {
    AssistantPart::Thinking {
        text: "Let me see.".to_owned(),
        proof: Some(Proof {
            provider: "openai-chat".to_owned(),
            data: json!({"reasoning_content": "Let me see."}),
        }),
    }
}

#[tokio::test]
async fn thinking_text_and_several_calls_in_pieces() {
    let server = server([stream(full())]).await;
    let (events, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    assert_eq!(
        answer,
        Answer {
            parts: vec![
                thought(),
                text("I look."),
                AssistantPart::Call(call("call_a", "read", json!({"path": "a"}))),
                AssistantPart::Call(call("call_b", "read", json!({"path": "b"}))),
                AssistantPart::Call(call("call_c", "status", json!({}))),
            ],
            stop: StopReason::ToolCalls,
            usage: usage(70, 30, 0, 10),
        }
    );
    assert_eq!(
        events,
        [
            Event::Thinking("Let me ".to_owned()),
            Event::Thinking("see.".to_owned()),
            Event::Text("I ".to_owned()),
            Event::Text("look.".to_owned()),
            begun("call_a", "read"),
            begun("call_b", "read"),
            begun("call_c", "status"),
        ]
    );
}

#[tokio::test]
async fn the_request_with_everything_in_it() {
    let request = conversation("openai-chat", json!({"reasoning_content": "I look."}));
    let body = prefix_is_stable(NAME, request, &simple(), "text/event-stream").await;
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn bounds_and_effort() {
    let server = server([stream(simple())]).await;
    let request = Request { max_output_tokens: Some(99), effort: Some(Effort::Medium), ..hello() };
    ask(&*model(NAME, &server.uri()), &request).await;
    let body = last_body(&server).await;
    assert_eq!(json!([body["max_tokens"], body["reasoning_effort"]]), json!([99, "medium"]));
    let sent = &server.received_requests().await.unwrap()[0];
    assert_eq!(sent.url.path(), "/v1/chat/completions");
    assert_eq!(sent.headers["authorization"], format!("Bearer {KEY}").as_str());
}

/// The calls of an answer made of these chunks.
async fn calls(items: &[Value]) -> Vec<ToolCall> {
    let server = server([stream(sse(items))]).await;
    let (_, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    assert_eq!(answer.stop, StopReason::ToolCalls);
    let calls = answer.parts.into_iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

#[tokio::test]
async fn calls_of_servers_that_give_every_call_the_index_0() {
    let calls = calls(&[
        piece(0, Some("a"), Some("read"), "{\"path\":\"a\"}"),
        piece(0, Some("b"), Some("read"), "{\"path\":\"b\"}"),
        finish("stop"),
    ])
    .await;
    assert_eq!(calls, [call("a", "read", json!({"path": "a"})), call("b", "read", json!({"path": "b"}))]);
}

#[tokio::test]
async fn calls_without_an_index_with_an_object_and_without_an_id() {
    let calls = calls(&[
        chunk(json!({"tool_calls": [{"id": "a", "function": {"name": "read", "arguments": {"path": "a"}}}]})),
        chunk(json!({"tool_calls": [{"id": "b", "function": {"name": "read", "arguments": "{\"path\":"}}]})),
        chunk(json!({"tool_calls": [{"function": {"arguments": "\"b\"}"}}]})),
        piece(7, Some(""), Some("shell"), "{}"),
        finish("tool_calls"),
        done(),
    ])
    .await;
    assert_eq!(
        calls[..2],
        [call("a", "read", json!({"path": "a"})), call("b", "read", json!({"path": "b"}))]
    );
    assert_eq!(calls[2].tool, "shell");
    assert!(calls[2].id.starts_with("haft_call_"), "{}", calls[2].id);
}

#[tokio::test]
async fn ids_that_come_again_in_every_turn_are_made_unique() {
    let turn = || stream(sse(&[piece(0, Some("call_0"), Some("read"), "{}"), finish("tool_calls"), done()]));
    let server = server([turn(), turn(), turn()]).await;
    let model = model(NAME, &server.uri());
    let mut request = hello();
    for _ in 0..3 {
        let (events, answer) = ask(&*model, &request).await;
        let [AssistantPart::Call(call)] = answer.parts.as_slice() else { panic!("{answer:?}") };
        assert_eq!(events, [begun(&call.id, "read")]);
        let results = vec![result(&call.id, "read", false, vec![])];
        request.messages.extend([Message::Assistant { parts: answer.parts }, Message::Results { results }]);
    }
    // `check_request` in `ask` and the check of the wire would have found a double.
    assert_eq!(bodies(&server).await.len(), 3);
}

#[tokio::test]
async fn reasoning_details_are_joined_and_given_back() {
    let detail = |text: &str| {
        chunk(json!({"reasoning": text, "reasoning_details": [
        {"type": "reasoning.text", "text": text, "index": 0, "format": "x"}]}))
    };
    let signed =
        chunk(json!({"reasoning_details": [{"type": "reasoning.text", "signature": "c2ln", "index": 0}]}));
    let first = sse(&[
        detail("Let "),
        detail("me."),
        signed,
        chunk(json!({"content": "ok"})),
        finish("stop"),
        done(),
    ]);
    let server = server([stream(first), stream(simple())]).await;
    let model = model(NAME, &server.uri());
    let (_, answer) = ask(&*model, &hello()).await;
    let mut request = hello();
    request.messages.extend([Message::Assistant { parts: answer.parts }, said("go on")]);
    ask(&*model, &request).await;
    assert_eq!(
        last_body(&server).await["messages"][2],
        json!({"role": "assistant", "content": "ok", "reasoning": "Let me.", "reasoning_details": [
            {"type": "reasoning.text", "text": "Let me.", "index": 0, "format": "x", "signature": "c2ln"}]})
    );
}

#[tokio::test]
async fn an_answer_that_was_not_streamed_and_one_without_done() {
    let whole = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello",
        "tool_calls": null}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let unmarked = sse(&[chunk(json!({"content": "Hello"})), finish("stop")]);
    let server = server([ResponseTemplate::new(200).set_body_json(&whole), stream(unmarked)]).await;
    let model = model(NAME, &server.uri());
    let expected = |usage| {
        let answer = Answer { parts: vec![text("Hello")], stop: StopReason::EndTurn, usage };
        (vec![Event::Text("Hello".to_owned())], answer)
    };
    assert_eq!(ask(&*model, &hello()).await, expected(usage(3, 0, 0, 1)));
    assert_eq!(ask(&*model, &hello()).await, expected(usage(0, 0, 0, 0)));
}

#[tokio::test]
async fn an_empty_answer() {
    let server = server([stream(sse(&[chunk(json!({"content": ""})), finish("stop"), done()]))]).await;
    let expected = Answer { parts: vec![], stop: StopReason::EndTurn, usage: usage(0, 0, 0, 0) };
    assert_eq!(ask(&*model(NAME, &server.uri()), &hello()).await, (vec![], expected));
}
