use haft_tool::Content;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

const QUICK: RetryPolicy =
    RetryPolicy { attempts: 3, first: Duration::from_secs(1), longest: Duration::from_secs(2) };

fn script(text: &str) -> ScriptModel {
    ScriptModel::parse("script:test", text, QUICK).unwrap()
}

fn said(text: &str) -> Message {
    Message::User { parts: vec![UserPart::Text { text: text.to_owned() }] }
}

/// A conversation whose last call had this result.
fn after(text: &str, structured: Value) -> Request {
    let call =
        ToolCall { id: "script_4".to_owned(), tool: "read".to_owned(), arguments: json!({}), proof: None };
    let result = ToolResult {
        id: "script_4".to_owned(),
        tool: "read".to_owned(),
        is_error: false,
        content: vec![Content::text(text)],
        structured: structured.as_object().cloned().unwrap_or_default(),
    };
    Request {
        messages: vec![
            said("go"),
            Message::Assistant { parts: vec![AssistantPart::Call(call)] },
            Message::Results { results: vec![result] },
        ],
        ..Request::default()
    }
}

fn start() -> Request {
    Request { messages: vec![said("go on, please")], ..Request::default() }
}

async fn play(model: &ScriptModel, request: &Request) -> Vec<Result<Event, String>> {
    let stream = model.ask(request, CancellationToken::new()).await.unwrap();
    stream.map(|item| item.map_err(|error| error.to_string())).collect().await
}

fn answer(parts: Vec<AssistantPart>, stop: StopReason) -> Event {
    Event::Done(Answer { parts, stop, usage: Usage::default() })
}

fn words(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.to_owned() }
}

#[tokio::test]
async fn turns_are_played_in_order_with_templates_and_fresh_ids() {
    let model = script(
        r#"{"thinking": "hm", "text": "I look", "calls": [{"tool": "read", "arguments": {"path": "{{last.structured.file}}"}}, {"tool": "glob"}]}

        {"text": "It says {{last.text}}", "usage": {"input_tokens": 5, "output_tokens": 2}}"#,
    );
    let request = after("hello", json!({"file": "a.rs"}));
    let call = |id: &str, tool: &str, arguments| ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments,
        proof: None,
    };
    let begun = |id: &str, tool: &str| Ok(Event::CallBegun { id: id.to_owned(), tool: tool.to_owned() });
    assert_eq!(
        play(&model, &request).await,
        [
            Ok(Event::Thinking("hm".to_owned())),
            Ok(Event::Text("I look".to_owned())),
            begun("script_5", "read"),
            begun("script_6", "glob"),
            Ok(answer(
                vec![
                    AssistantPart::Thinking { text: "hm".to_owned(), proof: None },
                    words("I look"),
                    AssistantPart::Call(call("script_5", "read", json!({"path": "a.rs"}))),
                    AssistantPart::Call(call("script_6", "glob", json!({}))),
                ],
                StopReason::ToolCalls
            )),
        ]
    );
    assert_eq!(
        play(&model, &request).await,
        [
            Ok(Event::Text("It says hello".to_owned())),
            Ok(Event::Done(Answer {
                parts: vec![words("It says hello")],
                stop: StopReason::EndTurn,
                usage: Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() },
            })),
        ]
    );
    insta::assert_snapshot!(play(&model, &request).await[0].clone().unwrap_err());
}

#[tokio::test]
async fn when_skips_a_line_unless_the_last_message_holds_the_text() {
    let text = r#"
        {"when": "FAILED", "text": "I fix it"}
        {"when": "please", "text": "with pleasure"}
        {"text": "done"}"#;
    assert_eq!(
        play(&script(text), &after("3 FAILED", json!({}))).await[0],
        Ok(Event::Text("I fix it".to_owned()))
    );
    assert_eq!(play(&script(text), &start()).await[0], Ok(Event::Text("with pleasure".to_owned())));
    assert_eq!(play(&script(text), &after("ok", json!({}))).await[0], Ok(Event::Text("done".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_error_line_is_an_attempt_and_the_next_line_the_repetition() {
    let model = script(
        r#"
        {"text": "half a sen", "error": {}}
        {"error": {"status": 529}, "delay_ms": 100}
        {"text": "whole"}
        {"error": {"status": 400, "message": "prompt is too long: 9 tokens > 8 maximum"}}
        {"error": {"status": 401, "message": "no such key"}}"#,
    );
    let begin = tokio::time::Instant::now();
    assert_eq!(
        play(&model, &start()).await,
        [
            Ok(Event::Text("half a sen".to_owned())),
            Ok(Event::Retry {
                why: "the stream broke off before the end of the answer".to_owned(),
                attempt: 2,
                after: Duration::from_secs(1)
            }),
            Ok(Event::Retry { why: "529 Overloaded".to_owned(), attempt: 3, after: Duration::from_secs(2) }),
            Ok(Event::Text("whole".to_owned())),
            Ok(answer(vec![words("whole")], StopReason::EndTurn)),
        ]
    );
    assert_eq!(begin.elapsed().as_millis(), 3_100);
    insta::assert_debug_snapshot!([play(&model, &start()).await, play(&model, &start()).await]);
}

#[tokio::test(start_paused = true)]
async fn retries_end() {
    let line = "{\"error\": {\"status\": 503}}\n";
    let events = play(&script(&line.repeat(5)), &start()).await;
    assert_eq!(
        events.last(),
        Some(&Err("script:test did not answer after 3 attempts: 503 Service Unavailable".to_owned()))
    );
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn a_wait_ends_at_once_when_cancelled() {
    let model = script(r#"{"delay_ms": 3600000, "text": "too late"}"#);
    let cancel = CancellationToken::new();
    let mut stream = model.ask(&start(), cancel.clone()).await.unwrap();
    let (event, ()) = tokio::join!(stream.next(), async { cancel.cancel() });
    assert!(matches!(event, Some(Err(ModelError::Cancelled))), "{event:?}");
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn mistakes_in_a_script_are_named_with_their_line() {
    let parse = |text: &str| ScriptModel::parse("script:x", text, QUICK).map(drop).unwrap_err().to_string();
    let template = script("{\"text\": \"{{last.structured.edit_id}}\"}");
    insta::assert_snapshot!(
        [
            parse(""),
            parse("{\"text\": \"a\"}\n{\"txt\": \"b\"}"),
            parse("{\"text\": \"a\"}\n\n{\"text\": "),
            play(&template, &after("x", json!({"files": []}))).await[0].clone().unwrap_err(),
        ]
        .join("\n")
    );
}
