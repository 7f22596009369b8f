//! A run is recorded and played again.

use haft_model::{Event, ModelError, Recorder, Shared, open};
use pretty_assertions::assert_eq;
use serde_json::json;
use wiremock::ResponseTemplate;

use crate::support::*;

fn turn(words: &str) -> String {
    sse(&[
        json!({"choices": [{"delta": {"content": words, "echo": KEY}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!("[DONE]"),
    ])
}

#[tokio::test]
async fn a_recording_plays_the_same_events_errors_included() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    let cut = sse(&[json!({"choices": [{"delta": {"content": "Hel"}}]})]);
    let server =
        server([ResponseTemplate::new(529), stream(cut), stream(turn("Hello")), stream(turn("Bye"))]).await;
    let shared = Shared { recorder: Some(Recorder::create(&file).unwrap()), ..Shared::default() };
    let live = open("openai-chat/local", &settings(&server.uri()), &shared).unwrap();
    let later = continued(conversation("openai-chat", json!({})));
    let recorded = [ask(&*live, &hello()).await, ask(&*live, &later).await];
    assert_eq!(shared.recorder.unwrap().problem(), None);

    let written = std::fs::read_to_string(&file).unwrap();
    assert!(!written.contains(KEY), "the key is in the recording");
    assert!(written.contains("[key]"));

    let name = format!("replay:{}", file.display());
    let replay = open(&name, &settings("http://nobody.invalid"), &Shared::default()).unwrap();
    assert_eq!((replay.name(), replay.profile()), (name.as_str(), live.profile()));
    assert_eq!([ask(&*replay, &hello()).await, ask(&*replay, &later).await], recorded);
    assert_eq!(recorded[0].0.iter().filter(|event| matches!(event, Event::Retry { .. })).count(), 2);

    let used_up = error(&*replay, &hello()).await;
    assert!(matches!(&used_up, ModelError::Script(text) if text.contains("used up")), "{used_up}");
}

#[tokio::test]
async fn a_request_that_differs_is_an_error_that_shows_where() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    let server = server([stream(turn("Hello"))]).await;
    let shared = Shared { recorder: Some(Recorder::create(&file).unwrap()), ..Shared::default() };
    ask(&*open("openai-chat/local", &settings(&server.uri()), &shared).unwrap(), &hello()).await;
    let replay = open(&format!("replay:{}", file.display()), &settings(""), &Shared::default()).unwrap();
    let mut request = hello();
    request.messages = vec![said("hello")];
    insta::assert_snapshot!(error(&*replay, &request).await);
    // The recorded request can still be played.
    assert_eq!(ask(&*replay, &hello()).await.1.parts, [text("Hello")]);
}

#[tokio::test]
async fn a_recording_that_stops_in_the_middle_is_a_broken_stream() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    let server = server([stream(turn("Hello"))]).await;
    let shared = Shared { recorder: Some(Recorder::create(&file).unwrap()), ..Shared::default() };
    ask(&*open("openai-chat/local", &settings(&server.uri()), &shared).unwrap(), &hello()).await;
    // As a kill would leave it: the last line is cut, and what followed the words is gone.
    let written = std::fs::read_to_string(&file).unwrap();
    let end = written.find("finish_reason").unwrap();
    std::fs::write(&file, &written[..end]).unwrap();
    let replay = open(&format!("replay:{}", file.display()), &settings(""), &Shared::default()).unwrap();
    let events = events(&*replay, &hello()).await;
    assert!(matches!(events.get(1), Some(Ok(Event::Retry { .. }))), "{events:?}");
    assert!(
        matches!(events.last(), Some(Err(ModelError::Script(text))) if text.contains("used up")),
        "{events:?}"
    );
}

#[tokio::test]
async fn files_that_are_no_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let open_text = |text: &str| {
        let file = folder.path().join("x.jsonl");
        std::fs::write(&file, text).unwrap();
        let opened = open(&format!("replay:{}", file.display()), &settings(""), &Shared::default());
        opened.err().unwrap().to_string().replace(&file.display().to_string(), "FILE")
    };
    insta::assert_snapshot!(
        [
            open_text(""),
            open_text("{\"text\": \"a script\"}\n"),
            open_text("{\"kind\": \"recording\", \"version\": 99}\n"),
            open_text("{\"kind\": \"frame\", \"exchange\": 1, \"event\": null, \"data\": \"x\"}\n"),
        ]
        .join("\n")
    );
}
