//! What goes wrong on the way, and what is done about it.

use std::time::Duration;

use futures::StreamExt;
use haft_model::{Event, ModelError, Shared, StopReason, open};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use wiremock::ResponseTemplate;

use crate::support::*;

/// Each provider with a short good answer of its own.
fn providers() -> [(&'static str, String, &'static str); 5] {
    let anthropic = sse(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]);
    let responses = sse(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}),
        json!({"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ]);
    let chat = sse(&[
        json!({"choices": [{"delta": {"content": "Hello"}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!("[DONE]"),
    ]);
    let gemini = sse(&[
        json!({"candidates": [{"content": {"parts": [{"text": "Hello"}]}}]}),
        json!({"candidates": [{"finishReason": "STOP"}]}),
    ]);
    let ollama = format!(
        "{}\n{}\n",
        json!({"message": {"content": "Hello"}, "done": false}),
        json!({"done": true, "done_reason": "stop"})
    );
    [
        ("anthropic/claude-sonnet-4-5", anthropic, "text/event-stream"),
        ("openai/gpt-5", responses, "text/event-stream"),
        ("openai-chat/local", chat, "text/event-stream"),
        ("gemini/gemini-2.5-flash", gemini, "text/event-stream"),
        ("ollama/qwen3", ollama, "application/x-ndjson"),
    ]
}

/// The first half of a stream: the words, and not what says that they are all.
fn half(body: &str) -> String {
    let end = body.find("Hello").unwrap() + body[body.find("Hello").unwrap()..].find('\n').unwrap();
    format!("{}\n\n", &body[..end])
}

fn good(body: &str, kind: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body.to_owned(), kind)
}

fn hello_event() -> Event {
    Event::Text("Hello".to_owned())
}

fn whys(events: &[Event]) -> Vec<String> {
    let whys = events.iter().filter_map(|event| match event {
        Event::Retry { why, attempt, after } => Some(format!("{attempt} {after:?} {why}")),
        _ => None,
    });
    whys.collect()
}

#[tokio::test]
async fn overload_is_tried_again_and_the_same_is_sent() {
    for (name, body, kind) in providers() {
        let limited = ResponseTemplate::new(429)
            .insert_header("retry-after", "0")
            .set_body_json(json!({"error": {"type": "rate_limit_error", "message": "slow down"}}));
        let overloaded = ResponseTemplate::new(529).set_body_json(
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        );
        let server = server([limited, overloaded, good(&body, kind)]).await;
        let (events, answer) = ask(&*model(name, &server.uri()), &hello()).await;
        assert_eq!(whys(&events), ["2 0ns 429 slow down", "3 0ns 529 Overloaded"], "{name}");
        assert_eq!((answer.parts, answer.stop), (vec![text("Hello")], StopReason::EndTurn), "{name}");
        let bodies = bodies(&server).await;
        assert_eq!(bodies.len(), 3, "{name}");
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_void_and_comes_again() {
    for (name, body, kind) in providers() {
        let server = server([good(&half(&body), kind), good(&body, kind)]).await;
        let (events, answer) = ask(&*model(name, &server.uri()), &hello()).await;
        let retry = Event::Retry {
            why: "the stream broke off before the end of the answer".to_owned(),
            attempt: 2,
            after: Duration::ZERO,
        };
        assert_eq!(events, [hello_event(), retry, hello_event()], "{name}");
        assert_eq!(answer.parts, [text("Hello")], "{name}");
    }
}

#[tokio::test]
async fn a_stream_with_something_malformed_comes_again() {
    for (name, body, kind) in providers() {
        let broken = if kind == "application/x-ndjson" { "{\"mess\n" } else { "data: {\"mess\n\n" };
        let server = server([good(&format!("{}{broken}", half(&body)), kind), good(&body, kind)]).await;
        let (events, answer) = ask(&*model(name, &server.uri()), &hello()).await;
        assert_eq!(events.len(), 3, "{name}: {events:?}");
        assert!(whys(&events)[0].contains("not JSON"), "{name}: {events:?}");
        assert_eq!(answer.parts, [text("Hello")], "{name}");
    }
}

#[tokio::test]
async fn an_error_inside_the_stream_is_read() {
    let errors = [
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Overloaded"}}}),
        json!({"error": {"message": "Overloaded", "code": 502}}),
        json!({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}),
        json!({"error": "Overloaded"}),
    ];
    for ((name, body, kind), error) in providers().into_iter().zip(errors) {
        let error = if kind == "application/x-ndjson" { format!("{error}\n") } else { sse(&[error]) };
        let server = server([good(&format!("{}{error}", half(&body)), kind), good(&body, kind)]).await;
        let (events, _) = ask(&*model(name, &server.uri()), &hello()).await;
        assert_eq!(whys(&events), ["2 0ns Overloaded"], "{name}");
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_said_to_be() {
    let errors = [
        (
            400,
            json!({"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}}),
        ),
        (
            400,
            json!({"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}}),
        ),
        (
            400,
            json!({"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 8 tokens."}}),
        ),
        (
            400,
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
            "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}),
        ),
        (400, json!({"error": "the input length exceeds the context length"})),
    ];
    for ((name, ..), (status, body)) in providers().into_iter().zip(errors) {
        let server = server([ResponseTemplate::new(status).set_body_json(body)]).await;
        let error = error(&*model(name, &server.uri()), &hello()).await;
        assert!(matches!(error, ModelError::ContextTooLong { .. }), "{name}: {error:?}");
        assert_eq!(bodies(&server).await.len(), 1, "{name}");
    }
    // In the stream, as the Responses format does it.
    let failed = json!({"type": "response.failed", "response": {"error":
        {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}}});
    let server = server([stream(sse(&[failed]))]).await;
    let error = error(&*model("openai/gpt-5", &server.uri()), &hello()).await;
    assert!(matches!(error, ModelError::ContextTooLong { .. }), "{error:?}");
}

#[tokio::test]
async fn what_cannot_heal_is_not_tried_again() {
    let answer = |status, body: serde_json::Value| ResponseTemplate::new(status).set_body_json(body);
    let cases = [
        answer(401, json!({"error": {"type": "authentication_error", "message": "invalid x-api-key"}})),
        answer(404, json!({"error": {"type": "not_found_error", "message": "model: nope"}})),
        answer(400, json!({"error": {"message": "tools.0: bad schema"}})),
        answer(
            429,
            json!({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}),
        ),
        ResponseTemplate::new(302).insert_header("location", "http://elsewhere.invalid/"),
        ResponseTemplate::new(200).set_body_raw("<html>Log in</html>", "text/html; charset=utf-8"),
    ];
    let mut errors = Vec::new();
    for case in cases {
        let server = server([case]).await;
        let said = error(&*model("openai-chat/local", &server.uri()), &hello()).await.to_string();
        errors.push(
            said.replace(&server.uri(), "ADDRESS")
                .replace(server.uri().trim_start_matches("http://"), "HOST"),
        );
        assert_eq!(bodies(&server).await.len(), 1);
    }
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn attempts_end() {
    let server = server((0..9).map(|_| ResponseTemplate::new(503))).await;
    let said = error(&*model("openai-chat/local", &server.uri()), &hello()).await.to_string();
    assert_eq!(said, "openai-chat/local did not answer after 4 attempts: 503 Service Unavailable");
    assert_eq!(bodies(&server).await.len(), 4);
}

#[tokio::test]
async fn nobody_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let said = error(&*model("ollama/qwen3", &format!("http://{address}")), &hello()).await.to_string();
    insta::assert_snapshot!(said.replace(&address.to_string(), "HOST"));
}

/// Reads a request up to its end.
async fn take_request(connection: &mut TcpStream) {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece).await.unwrap();
        assert_ne!(read, 0, "the client left in the middle of its request");
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")
                .map(|value| value.trim().parse::<usize>().unwrap())
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            return;
        }
    }
}

fn chunked(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
        body.len()
    )
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_of_a_stream() {
    for (name, body, kind) in providers().into_iter().filter(|(_, _, kind)| *kind == "text/event-stream") {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serve = async {
            let (mut first, _) = listener.accept().await.unwrap();
            take_request(&mut first).await;
            // The chunked body is never finished: the connection just ends.
            first.write_all(chunked(&half(&body)).as_bytes()).await.unwrap();
            drop(first);
            let (mut second, _) = listener.accept().await.unwrap();
            take_request(&mut second).await;
            second.write_all(format!("{}0\r\n\r\n", chunked(&body)).as_bytes()).await.unwrap();
        };
        let model = model(name, &address);
        let request = hello();
        let ((events, answer), ()) = tokio::join!(ask(&*model, &request), serve);
        assert_eq!(answer.parts, [text("Hello")], "{name} {kind}");
        assert_eq!(events.len(), 3, "{name}: {events:?}");
        assert!(whys(&events)[0].starts_with("2 0ns the stream broke off: "), "{name}: {events:?}");
    }
}

#[tokio::test]
async fn cancelling_and_dropping_close_the_connection() {
    for drop_it in [false, true] {
        let (name, body, _) = providers()[0].clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let cancel = CancellationToken::new();
        let serve = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            take_request(&mut connection).await;
            connection.write_all(chunked(&half(&body)).as_bytes()).await.unwrap();
            // Nothing more is sent; the client's leaving is the only thing that ends this.
            connection.read(&mut [0; 16]).await.unwrap_or(0)
        };
        let client = async {
            let mut stream = model(name, &address).ask(&hello(), cancel.clone()).await.unwrap();
            assert_eq!(stream.next().await.unwrap().unwrap(), hello_event());
            if drop_it {
                return;
            }
            cancel.cancel();
            let last = stream.next().await.unwrap();
            assert!(matches!(last, Err(ModelError::Cancelled)), "{last:?}");
            assert!(stream.next().await.is_none());
        };
        let (left, ()) = tokio::join!(serve, client);
        assert_eq!(left, 0);
    }
}

#[tokio::test]
async fn cancelling_ends_a_wait_between_attempts() {
    let server = server([ResponseTemplate::new(429).insert_header("retry-after", "100")]).await;
    let cancel = CancellationToken::new();
    let model = open("openai-chat/local", &settings(&server.uri()), &Shared::default()).unwrap();
    let mut stream = model.ask(&hello(), cancel.clone()).await.unwrap();
    let retry = stream.next().await.unwrap().unwrap();
    assert_eq!(
        retry,
        Event::Retry { why: "429 Too Many Requests".to_owned(), attempt: 2, after: Duration::from_secs(100) }
    );
    let (last, ()) = tokio::join!(stream.next(), async { cancel.cancel() });
    assert!(matches!(last, Some(Err(ModelError::Cancelled))), "{last:?}");
}

#[tokio::test]
async fn turns_share_a_connection() {
    for (name, body, _) in providers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serve = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            for _ in 0..2 {
                take_request(&mut connection).await;
                connection.write_all(format!("{}0\r\n\r\n", chunked(&body)).as_bytes()).await.unwrap();
            }
        };
        let model = model(name, &address);
        let client = async {
            ask(&*model, &hello()).await;
            // As in a run, where tools work between two turns: the rest of the body is read meanwhile.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            ask(&*model, &hello()).await;
        };
        tokio::join!(client, serve);
    }
}

/// A model that tries once.
fn once(name: &str, address: &str) -> std::sync::Arc<dyn haft_model::Model> {
    let mut settings = settings(address);
    settings.retry.attempts = 1;
    open(name, &settings, &Shared::default()).unwrap()
}

#[tokio::test]
async fn silence_in_the_middle_of_a_stream_ends() {
    let (name, body, _) = providers()[2].clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let model = once(name, &format!("http://{}", listener.local_addr().unwrap()));
    let request = hello();
    let mut stream = model.ask(&request, CancellationToken::new()).await.unwrap();
    let serve = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        take_request(&mut connection).await;
        connection.write_all(chunked(&half(&body)).as_bytes()).await.unwrap();
        connection
    };
    let (first, _connection) = tokio::join!(stream.next(), serve);
    assert_eq!(first.unwrap().unwrap(), hello_event());
    // From here on nothing happens any more: the clock runs as fast as it likes.
    tokio::time::pause();
    let error = stream.next().await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "openai-chat/local did not answer after 1 attempt: the stream was silent for 300 s");
}

#[tokio::test]
async fn silence_before_the_response_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let model = once("openai-chat/local", &format!("http://{address}"));
    let request = hello();
    let serve = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        take_request(&mut connection).await;
        tokio::time::pause();
        connection
    };
    let (error, _connection) = tokio::join!(error(&*model, &request), serve);
    let error = error.to_string().replace(&address.to_string(), "HOST");
    assert_eq!(error, "openai-chat/local did not answer after 1 attempt: HOST said nothing for 600 s");
}

#[tokio::test]
async fn a_proxy_is_asked_for_https_elsewhere_and_never_gets_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = settings("https://models.example.invalid/v1");
    settings.retry.attempts = 1;
    settings.proxy =
        Some(haft_model::Setting::new(format!("http://{}", listener.local_addr().unwrap()), "the test"));
    settings.no_proxy = Some("other.invalid".to_owned());
    let model = open("openai-chat/local", &settings, &Shared::default()).unwrap();
    let request = hello();
    let serve = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 4096];
        let read = connection.read(&mut bytes).await.unwrap();
        connection.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    };
    let (asked, error) = tokio::join!(serve, error(&*model, &request));
    assert!(asked.starts_with("CONNECT models.example.invalid:443 HTTP/1.1\r\n"), "{asked}");
    assert!(!asked.contains(KEY), "{asked}");
    assert!(matches!(error, ModelError::Unavailable { attempts: 1, .. }), "{error}");
}
