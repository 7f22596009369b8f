use haft_model::{Answer, AssistantPart, Effort, Event, Message, Proof, Request, StopReason};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::*;

const NAME: &str = "openai/gpt-5.1";

fn added(index: u32, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u32, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "error": null,
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 20,
                  "output_tokens_details": {"reasoning_tokens": 8}}}})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "c2VhbGVk",
           "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]})
}

fn function(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "read", "arguments": arguments})
}

fn simple() -> String {
    let mut item = message("Hello");
    item.as_object_mut().unwrap().remove("phase");
    sse(&[added(0, message("")), done(0, item), completed()])
}

fn full() -> String {
    let thought = |text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": text});
    let part = || json!({"type": "response.reasoning_summary_part.added", "output_index": 0});
    sse(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "error": null}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        part(),
        thought("One."),
        part(),
        thought("Two."),
        done(0, reasoning()),
        json!({"type": "response.something_new"}),
        added(1, json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []})),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "I "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "look."}),
        done(1, message("I look.")),
        added(2, function("call_a", "")),
        added(3, function("call_b", "")),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"path\""}),
        done(2, function("call_a", "{\"path\":\"a\"}")),
        done(3, function("call_b", "not json")),
        completed(),
    ])
}

#[tokio::test]
async fn reasoning_text_and_several_calls_in_their_order() {
    let server = server([stream(full())]).await;
    let (events, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    let proof = |data: Value| Some(Proof { provider: "openai".to_owned(), data });
    assert_eq!(
        answer,
        Answer {
            parts: vec![
                AssistantPart::Thinking { text: "One.\n\nTwo.".to_owned(), proof: proof(reasoning()) },
                AssistantPart::Thinking { text: String::new(), proof: proof(json!({"phase": "commentary"})) },
                text("I look."),
                AssistantPart::Call(call("call_a", "read", json!({"path": "a"}))),
                AssistantPart::Call(call("call_b", "read", json!("not json"))),
            ],
            stop: StopReason::ToolCalls,
            usage: usage(40, 60, 0, 20),
        }
    );
    assert_eq!(
        events,
        [
            Event::Thinking("One.".to_owned()),
            Event::Thinking("\n\n".to_owned()),
            Event::Thinking("Two.".to_owned()),
            Event::Text("I ".to_owned()),
            Event::Text("look.".to_owned()),
            begun("call_a", "read"),
            begun("call_b", "read"),
        ]
    );
}

#[tokio::test]
async fn the_request_with_everything_in_it() {
    let body =
        prefix_is_stable(NAME, conversation("openai", reasoning()), &simple(), "text/event-stream").await;
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn what_the_model_thought_goes_back_without_its_id_and_never_last() {
    let server = server([stream(full()), stream(simple()), stream(simple())]).await;
    let model = model(NAME, &server.uri());
    let (_, answer) = ask(&*model, &hello()).await;
    let mut request = hello();
    request.messages.extend([
        Message::Assistant { parts: answer.parts.clone() },
        Message::Results {
            results: vec![result("call_a", "read", false, vec![]), result("call_b", "read", true, vec![])],
        },
    ]);
    ask(&*model, &request).await;
    assert_eq!(
        last_body(&server).await["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "encrypted_content": "c2VhbGVk",
             "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]},
            {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_a", "name": "read", "arguments": "{\"path\":\"a\"}"},
            {"type": "function_call", "call_id": "call_b", "name": "read", "arguments": "not json"},
            {"type": "function_call_output", "call_id": "call_a", "output": "(no output)"},
            {"type": "function_call_output", "call_id": "call_b", "output": "Error."},
        ])
    );
    // An answer that was cut while thinking: the API refuses a reasoning item that leads to nothing.
    let mut request = hello();
    request.messages.extend([Message::Assistant { parts: answer.parts[..1].to_vec() }, said("go on")]);
    ask(&*model, &request).await;
    assert_eq!(
        last_body(&server).await["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
        ])
    );
}

#[tokio::test]
async fn only_models_that_reason_are_asked_for_reasoning() {
    let fields = async |name: &str, effort| {
        let server = server([stream(simple())]).await;
        ask(&*model(name, &server.uri()), &Request { effort, max_output_tokens: Some(99), ..hello() }).await;
        let body = last_body(&server).await;
        json!([body["include"], body["reasoning"], body["max_output_tokens"], body["store"]])
    };
    assert_eq!(
        [
            fields("openai/gpt-4.1", Some(Effort::Low)).await,
            fields("openai/gpt-5.1", None).await,
            fields("openai/gpt-5.1", Some(Effort::Low)).await,
        ],
        [
            json!([null, null, 99, false]),
            json!([["reasoning.encrypted_content"], null, 99, false]),
            json!([["reasoning.encrypted_content"], {"effort": "low", "summary": "auto"}, 99, false]),
        ]
    );
}

#[tokio::test]
async fn an_answer_cut_at_the_bound_keeps_what_came() {
    let body = sse(&[
        added(0, json!({"type": "message", "id": "msg_1", "content": []})),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Half"}),
        added(1, function("call_a", "")),
        json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"path\": \"a"}),
        json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}, "usage": null}}),
    ]);
    let server = server([stream(body)]).await;
    let (_, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    assert_eq!(
        answer,
        Answer {
            parts: vec![text("Half"), AssistantPart::Call(call("call_a", "read", json!("{\"path\": \"a")))],
            stop: StopReason::MaxTokens,
            usage: usage(0, 0, 0, 0),
        }
    );
}

#[tokio::test]
async fn an_answer_that_comes_in_one_piece() {
    let mut end = completed();
    end["response"]["output"] = json!([message("Hello"), function("call_a", "{}")]);
    let server = server([stream(sse(&[end]))]).await;
    let (events, answer) = ask(&*model(NAME, &server.uri()), &hello()).await;
    assert_eq!(events, [Event::Text("Hello".to_owned()), begun("call_a", "read")]);
    assert_eq!(answer.stop, StopReason::ToolCalls);
}

#[tokio::test]
async fn an_empty_answer() {
    let server = server([stream(sse(&[completed()]))]).await;
    let expected = Answer { parts: vec![], stop: StopReason::EndTurn, usage: usage(40, 60, 0, 20) };
    assert_eq!(ask(&*model(NAME, &server.uri()), &hello()).await, (vec![], expected));
}
