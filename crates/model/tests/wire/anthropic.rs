use haft_model::{Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason, ToolCall};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::*;

const NAME: &str = "anthropic/claude-sonnet-4-5";

fn opening() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "new_field": 1,
        "usage": {"input_tokens": 12, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 1}}})
}

fn closing(stop: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 42}}),
        json!({"type": "message_stop"}),
    ]
}

fn start(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn simple() -> String {
    let mut items = vec![opening(), start(0, json!({"type": "text", "text": ""}))];
    items.extend([delta(0, json!({"type": "text_delta", "text": "Hello"})), stop(0)]);
    items.extend(closing("end_turn"));
    sse(&items)
}

fn full() -> String {
    let mut items = vec![
        opening(),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
        stop(1),
        json!({"type": "something_new", "x": 1}),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I look. "})),
        delta(2, json!({"type": "text_delta", "text": "Grüße 🦀"})),
        delta(2, json!({"type": "citations_delta", "citation": {}})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "toolu_a", "name": "read", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"pa"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "th\": \"a\"}"})),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "toolu_b", "name": "status", "input": {}})),
        stop(4),
        start(5, json!({"type": "tool_use", "id": "toolu_c", "name": "read", "input": {}})),
        delta(5, json!({"type": "input_json_delta", "partial_json": "{\"path\": oops"})),
        stop(5),
    ];
    items.extend(closing("tool_use"));
    sse(&items)
}

#[tokio::test]
async fn thinking_text_and_several_calls_in_their_order() {
    let server = server([stream(full())]).await;
    let (events, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    let thinking = |text: &str, data: Value| AssistantPart::Thinking {
        text: text.to_owned(),
        proof: Some(Proof { provider: "anthropic".to_owned(), data }),
    };
    assert_eq!(
        answer,
        Answer {
            parts: vec![
                thinking(
                    "Let me see.",
                    json!({"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"})
                ),
                thinking("", json!({"type": "redacted_thinking", "data": "b3BhcXVl"})),
                text("I look. Grüße 🦀"),
                AssistantPart::Call(call("toolu_a", "read", json!({"path": "a"}))),
                AssistantPart::Call(call("toolu_b", "status", json!({}))),
                AssistantPart::Call(call("toolu_c", "read", json!("{\"path\": oops"))),
            ],
            stop: StopReason::ToolCalls,
            usage: usage(12, 2000, 100, 42),
        }
    );
    assert_eq!(
        events,
        [
            Event::Thinking("Let me ".to_owned()),
            Event::Thinking("see.".to_owned()),
            Event::Text("I look. ".to_owned()),
            Event::Text("Grüße 🦀".to_owned()),
            begun("toolu_a", "read"),
            begun("toolu_b", "status"),
            begun("toolu_c", "read"),
        ]
    );
}

#[tokio::test]
async fn the_request_with_everything_in_it() {
    let proof = json!({"type": "thinking", "thinking": "I look.", "signature": "c2ln"});
    let body = prefix_is_stable(NAME, conversation("anthropic", proof), &simple(), "text/event-stream").await;
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn the_key_goes_into_its_header_and_nowhere_else() {
    let server = server([stream(simple())]).await;
    ask(&*model(NAME, &format!("{}/v1/", server.uri())), &hello()).await;
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.url.path(), "/v1/messages");
    assert_eq!(request.headers["x-api-key"], KEY);
    assert_eq!(request.headers["anthropic-version"], "2023-06-01");
    assert!(request.headers.get("authorization").is_none());
    assert!(!String::from_utf8_lossy(&request.body).contains(KEY));
}

async fn thinking_fields(name: &str, request: Request) -> Value {
    let server = server([stream(simple())]).await;
    ask(&*model(name, &server.uri()), &request).await;
    let body = last_body(&server).await;
    json!([body["thinking"], body["output_config"], body["max_tokens"]])
}

#[tokio::test]
async fn effort_is_said_in_the_words_of_the_model() {
    let hard = || Request { effort: Some(Effort::High), ..hello() };
    assert_eq!(
        [
            thinking_fields("anthropic/claude-3-5-haiku-latest", hard()).await,
            thinking_fields("anthropic/claude-sonnet-4-5", hard()).await,
            thinking_fields("anthropic/claude-opus-4-7", hard()).await,
            thinking_fields("anthropic/claude-opus-4-7", hello()).await,
            thinking_fields(NAME, Request { max_output_tokens: Some(1_500), ..hard() }).await,
        ],
        [
            json!([null, null, 8192]),
            json!([{"type": "enabled", "budget_tokens": 24000}, null, 32000]),
            json!([{"type": "adaptive", "display": "summarized"}, {"effort": "high"}, 32000]),
            json!([null, null, 32000]),
            json!([null, null, 1500]),
        ]
    );
}

#[tokio::test]
async fn no_thinking_by_budget_in_a_tool_turn_that_began_without() {
    // The API refuses it: "Expected `thinking`, but found `tool_use`".
    let mut request = continued(conversation("another", json!("x")));
    request.effort = Some(Effort::Low);
    assert_eq!(thinking_fields(NAME, request.clone()).await, json!([null, null, 32000]));
    request.messages.push(said("new turn"));
    assert_eq!(
        thinking_fields(NAME, request).await,
        json!([{"type": "enabled", "budget_tokens": 4000}, null, 32000])
    );
}

#[tokio::test]
async fn what_the_model_thought_goes_back_unchanged() {
    let server = server([stream(full()), stream(simple())]).await;
    let model = model(NAME, &server.uri());
    let (_, answer) = ask(&*model, &hello()).await;
    let results = answer
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Call(ToolCall { id, tool, .. }) => Some(result(id, tool, false, vec![])),
            _ => None,
        })
        .collect();
    let mut request = hello();
    request.messages.extend([Message::Assistant { parts: answer.parts }, Message::Results { results }]);
    ask(&*model, &request).await;
    let body = last_body(&server).await;
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "text", "text": "I look. Grüße 🦀"},
            {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "toolu_b", "name": "status", "input": {}},
            {"type": "tool_use", "id": "toolu_c", "name": "read", "input": {"not_an_object": "{\"path\": oops"}},
        ])
    );
}

#[tokio::test]
async fn an_empty_answer_a_cut_one_and_a_refusal() {
    let answer = |reason: &str| {
        let mut items = vec![opening()];
        items.extend(closing(reason));
        stream(sse(&items))
    };
    let server = server([answer("end_turn"), answer("max_tokens"), answer("refusal")]).await;
    let model = model(NAME, &server.uri());
    for stop in [StopReason::EndTurn, StopReason::MaxTokens, StopReason::Refusal] {
        let expected = Answer { parts: vec![], stop, usage: usage(12, 2000, 100, 42) };
        assert_eq!(ask(&*model, &hello()).await, (vec![], expected));
    }
}

#[tokio::test]
async fn pictures_in_an_error_keep_their_place_and_the_error_is_said_in_words() {
    // The API refuses `is_error` beside a picture.
    let server = server([stream(simple())]).await;
    let mut request = hello();
    request.messages.extend([
        Message::Assistant { parts: vec![AssistantPart::Call(call("a", "read", json!({})))] },
        Message::Results {
            results: vec![result("a", "read", true, vec![haft_tool::Content::text("It failed:"), picture()])],
        },
    ]);
    ask(&*model(NAME, &server.uri()), &request).await;
    assert_eq!(
        last_body(&server).await["messages"][2]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "a", "cache_control": {"type": "ephemeral"}, "content": [
            {"type": "text", "text": "Error: It failed:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "UE5H"}},
        ]})
    );
}
