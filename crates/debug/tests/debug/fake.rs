//! A scripted adapter on a port of this test, attached to as debugpy's is: every odd order, missing field, junk and death that real
//! adapters were seen with, without the real adapters.

use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use crate::bench::{Bench, Said, op};

/// What the adapter does when it is asked something.
#[derive(Clone, Debug)]
enum Act {
    Answer(Value),
    Fail(&'static str),
    Event(&'static str, Value),
    /// Bytes outside all rules.
    Raw(Vec<u8>),
    /// A request of its own.
    Ask(&'static str, Value),
    Close,
    /// The answer comes when the test says so.
    Later(Value),
}

use Act::{Answer, Ask, Close, Event, Fail, Later, Raw};

type Script = dyn Fn(&str, &Value) -> Option<Vec<Act>> + Send + Sync;

struct Fake {
    port: u16,
    /// Requests as they came, and answers to its own.
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    /// Lets the answers go that were to come later, or sends an event.
    push: mpsc::Sender<Option<(&'static str, Value)>>,
}

/// A well-behaved adapter whose program stops at once.
fn usual(command: &str) -> Vec<Act> {
    match command {
        "initialize" => vec![Answer(json!({
            "supportsConfigurationDoneRequest": true, "supportsConditionalBreakpoints": true,
            "supportsFunctionBreakpoints": true,
            "exceptionBreakpointFilters": [{"filter": "raised", "label": "", "default": false}, {"filter": "uncaught", "label": "", "default": true}],
        }))],
        "attach" => vec![Answer(json!({})), Event("initialized", json!({}))],
        "setBreakpoints" => vec![Answer(json!({"breakpoints": [{"id": 1, "verified": true, "line": 2}]}))],
        "configurationDone" => vec![Answer(json!({})), stopped("breakpoint")],
        "threads" => vec![Answer(json!({"threads": [{"id": 1, "name": "main"}]}))],
        "stackTrace" => vec![Answer(
            json!({"stackFrames": [{"id": 1000, "name": "f", "line": 2, "source": {"path": "@/a.py"}}], "totalFrames": 1}),
        )],
        "scopes" => vec![Answer(json!({"scopes": [{"name": "Locals", "variablesReference": 1}]}))],
        "variables" => vec![Answer(
            json!({"variables": [{"name": "x", "value": "1", "type": "int", "variablesReference": 0}]}),
        )],
        "evaluate" => vec![Answer(json!({"result": "2", "variablesReference": 0}))],
        "continue" | "next" => vec![Answer(json!({})), stopped("step")],
        "disconnect" => vec![Answer(json!({})), Close],
        _ => vec![Answer(json!({}))],
    }
}

fn stopped(reason: &str) -> Act {
    Event("stopped", json!({"reason": reason, "threadId": 1, "allThreadsStopped": true}))
}

impl Fake {
    /// `script` says what is different from the usual.
    async fn start(
        root: &std::path::Path,
        script: impl Fn(&str, &Value) -> Option<Vec<Act>> + Send + Sync + 'static,
    ) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::default();
        let (push, pushed) = mpsc::channel(8);
        let root = root.display().to_string();
        let script: Arc<Script> = Arc::new(script);
        let hearing = Arc::clone(&heard);
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            // An error is a peer that is gone, which many tests are about.
            let _ = serve(stream, &*script, &root, &hearing, pushed).await;
        });
        Fake { port, heard, push }
    }

    fn heard(&self, command: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|(name, _)| name == command).map(|(_, body)| body.clone()).collect()
    }

    fn commands(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

async fn serve(
    stream: TcpStream,
    script: &Script,
    root: &str,
    heard: &Mutex<Vec<(String, Value)>>,
    mut pushed: mpsc::Receiver<Option<(&'static str, Value)>>,
) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let (sender, mut requests) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut reader = BufReader::new(reader);
        while let Some(request) = read(&mut reader).await {
            if sender.send(request).await.is_err() {
                return;
            }
        }
    });
    let mut sequence = 0;
    let mut later: Vec<Value> = Vec::new();
    let mut open = true;
    loop {
        let request = tokio::select! {
            request = requests.recv() => match request {
                Some(request) => request,
                None => return Ok(()),
            },
            push = pushed.recv(), if open => {
                match push {
                    Some(Some((name, body))) => {
                        write(&mut writer, &json!({"seq": 0, "type": "event", "event": name, "body": body})).await?;
                    }
                    Some(None) => {
                        for response in later.drain(..) {
                            write(&mut writer, &response).await?;
                        }
                    }
                    // The test needs no more of it.
                    None => open = false,
                }
                continue;
            }
        };
        if request["type"] == "response" {
            heard
                .lock()
                .unwrap()
                .push((format!("answer to {}", request["command"].as_str().unwrap()), request));
            continue;
        }
        let command = request["command"].as_str().unwrap().to_owned();
        let arguments = request["arguments"].clone();
        heard.lock().unwrap().push((command.clone(), arguments.clone()));
        for act in script(&command, &arguments).unwrap_or_else(|| usual(&command)) {
            sequence += 1;
            let head = json!({"seq": sequence, "type": "response", "request_seq": request["seq"], "command": command});
            let with = |success: bool, name: &str, value: Value| {
                let mut message = head.clone();
                message["success"] = success.into();
                message[name] = value;
                message
            };
            let message = match act {
                Answer(body) => with(true, "body", body),
                Fail(why) => with(false, "message", why.into()),
                Event(name, body) => json!({"seq": sequence, "type": "event", "event": name, "body": body}),
                Ask(name, arguments) => {
                    json!({"seq": sequence, "type": "request", "command": name, "arguments": arguments})
                }
                Raw(bytes) => {
                    writer.write_all(&bytes).await?;
                    continue;
                }
                Close => return Ok(()),
                Later(body) => {
                    later.push(with(true, "body", body));
                    continue;
                }
            };
            // `@` stands for the working directory.
            let text = message.to_string().replace('@', root);
            write(&mut writer, &serde_json::from_str(&text).unwrap()).await?;
        }
    }
}

async fn write(writer: &mut (impl AsyncWriteExt + Unpin), message: &Value) -> std::io::Result<()> {
    let body = message.to_string();
    writer.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await
}

async fn read(reader: &mut BufReader<tokio::net::tcp::OwnedReadHalf>) -> Option<Value> {
    let mut header = String::new();
    reader.read_line(&mut header).await.ok()?;
    let length: usize = header.strip_prefix("Content-Length: ")?.trim().parse().ok()?;
    reader.read_line(&mut String::new()).await.ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}

fn bench() -> Bench {
    let bench = Bench::with_path(&[]);
    bench.put("requirements.txt", "").put("a.py", "one\ntwo\nthree\n\nfive\n");
    bench
}

async fn attach(bench: &Bench, fake: &Fake) -> Said {
    bench.ok(json!({"op": "attach", "adapter": "debugpy", "port": fake.port})).await
}

/// Attaches to an adapter that is different from the usual in this.
async fn attached(
    script: impl Fn(&str, &Value) -> Option<Vec<Act>> + Send + Sync + 'static,
) -> (Bench, Fake, Said) {
    let bench = bench();
    bench.ok(json!({"op": "breakpoints", "file": "a.py", "lines": [2]})).await;
    let fake = Fake::start(&bench.root, script).await;
    let said = attach(&bench, &fake).await;
    (bench, fake, said)
}

fn only(command: &'static str, acts: Vec<Act>) -> impl Fn(&str, &Value) -> Option<Vec<Act>> + Send + Sync {
    move |asked, _| (asked == command).then(|| acts.clone())
}

#[tokio::test]
async fn the_handshake_sets_everything_before_the_program_is_let_go() {
    let (bench, fake, said) = attached(|_, _| None).await;
    assert_eq!(said.stop(), ("breakpoint".into(), "a.py".into(), 2));
    assert_eq!(
        fake.commands(),
        [
            "initialize",
            "attach",
            "setBreakpoints",
            "setExceptionBreakpoints",
            "configurationDone",
            "stackTrace",
            "scopes",
            "variables"
        ]
    );
    assert_eq!(fake.heard("setExceptionBreakpoints"), [json!({"filters": ["uncaught"]})]);
    let said = bench.ok(op("terminate")).await;
    assert!(said.text.starts_with("Detached."), "{}", said.text);
    assert_eq!(fake.heard("disconnect"), [json!({"restart": false, "terminateDebuggee": false})]);
    bench.end().await;
}

#[tokio::test]
async fn initialized_may_come_early_late_or_twice_and_the_launch_may_be_answered_last() {
    // gdb: before the launch.
    let (bench, _, said) = attached(|command, _| match command {
        "initialize" => Some(vec![usual("initialize").remove(0), Event("initialized", Value::Null)]),
        "attach" => Some(vec![Answer(json!({}))]),
        _ => None,
    })
    .await;
    assert_eq!(said.state(), "stopped");
    bench.end().await;
    // debugpy: the launch is answered after configurationDone; js-debug: initialized twice.
    let (bench, fake, said) = attached(|command, _| match command {
        "attach" => {
            Some(vec![Later(json!({})), Event("initialized", json!({})), Event("initialized", json!({}))])
        }
        "configurationDone" => {
            Some(vec![Answer(json!({})), Ask("releaseLaunch", json!({})), stopped("entry")])
        }
        _ => None,
    })
    .await;
    assert_eq!(said.stop().0, "entry");
    assert_eq!(fake.heard("setBreakpoints").len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_stop_may_come_before_the_answer_to_the_step_and_a_continued_after_it() {
    let (bench, _, _) = attached(|command, _| match command {
        "next" => Some(vec![
            stopped("step"),
            Answer(json!({})),
            Event("continued", json!({"threadId": 1, "allThreadsContinued": true})),
        ]),
        _ => None,
    })
    .await;
    for _ in 0..3 {
        assert_eq!(bench.ok(op("step_over")).await.stop().0, "step");
        assert_eq!(bench.ok(op("status")).await.state(), "stopped");
    }
    bench.end().await;
}

#[tokio::test]
async fn fields_may_be_missing_everywhere() {
    let (bench, _, said) = attached(|command, _| match command {
        "initialize" => Some(vec![Answer(Value::Null)]),
        "setBreakpoints" => Some(vec![Answer(json!({"breakpoints": []}))]),
        "attach" => {
            Some(vec![Answer(Value::Null), Event("initialized", Value::Null), Event("stopped", Value::Null)])
        }
        "threads" => Some(vec![Answer(json!({"threads": [{"id": 7}, {"name": "no id"}, 3, null]}))]),
        "stackTrace" => Some(vec![Answer(json!({"stackFrames": [{"id": 5}, {"id": "text"}]}))]),
        "scopes" => Some(vec![Answer(json!({}))]),
        "evaluate" => Some(vec![Answer(Value::Null)]),
        _ => None,
    })
    .await;
    assert_eq!((said.state(), said.fields["stopped"]["reason"].as_str()), ("stopped", Some("unknown")));
    assert_eq!(said.fields["stopped"]["thread_id"], 7);
    assert_eq!(bench.ok(op("stack")).await.fields["frames"][0]["line"], Value::Null);
    assert_eq!(bench.ok(json!({"op": "evaluate", "expression": "x"})).await.fields["result"], "(no value)");
    let status = bench.ok(op("status")).await;
    assert!(status.text.contains("did not answer for this breakpoint"), "{}", status.text);
    bench.end().await;
}

#[tokio::test]
async fn junk_and_unknown_messages_are_passed_over() {
    let junk = b"Listening on port 5\nContent-Length: 8\r\n\r\nnot jsonContent-Length: 16\r\n\r\n{\"type\":\"other\"}".to_vec();
    let (bench, fake, said) = attached(move |command, _| match command {
        "attach" => Some(vec![
            Raw(junk.clone()),
            Event("debugpySockets", json!({"sockets": []})),
            Event("output", json!({"category": "telemetry", "output": "ptvsd"})),
            Raw(b"Content-Length: 56\r\n\r\n{\"type\":\"response\",\"request_seq\":99999,\"success\":true   }".to_vec()),
            Ask("fancyRequest", json!({})),
            Answer(json!({})),
            Event("initialized", json!({})),
        ]),
        _ => None,
    })
    .await;
    assert_eq!(said.state(), "stopped");
    let answers = fake.heard("answer to fancyRequest");
    assert_eq!((answers.len(), &answers[0]["success"]), (1, &json!(false)));
    bench.end().await;
}

#[tokio::test]
async fn a_connection_that_closes_at_any_step_is_an_error_and_not_a_hang() {
    for command in ["initialize", "attach", "setBreakpoints", "setExceptionBreakpoints", "configurationDone"]
    {
        let bench = bench();
        bench.ok(json!({"op": "breakpoints", "file": "a.py", "lines": [2]})).await;
        let fake = Fake::start(&bench.root, only(command, vec![Close])).await;
        let said = bench.call(json!({"op": "attach", "adapter": "debugpy", "port": fake.port})).await;
        assert!(said.is_error, "{command}: {}", said.all_text());
        assert!(said.all_text().contains("clos"), "{command}: {}", said.all_text());
        assert_eq!(bench.ok(op("status")).await.state(), "none", "{command}");
        bench.end().await;
    }
    for command in ["stackTrace", "next", "evaluate", "variables", "scopes", "threads"] {
        let bench = bench();
        let fake = Fake::start(&bench.root, move |asked, arguments| {
            // The first look, at the stop itself, is answered.
            let first = asked == "stackTrace" && arguments["levels"] == 1;
            (asked == command && !first && asked != "variables" && asked != "scopes").then(|| vec![Close])
        })
        .await;
        attach(&bench, &fake).await;
        let call = match command {
            "stackTrace" => op("stack"),
            "next" => op("step_over"),
            "evaluate" => json!({"op": "evaluate", "expression": "x"}),
            "threads" => op("threads"),
            _ => continue,
        };
        let said = bench.call(call).await;
        assert_eq!(said.structured["state"], "unknown", "{command}: {}", said.all_text());
        assert!(said.all_text().contains("not known"), "{command}: {}", said.all_text());
        bench.end().await;
    }
}

#[tokio::test]
async fn an_adapter_that_never_speaks_is_given_up_at_the_deadline() {
    let bench = bench();
    let fake = Fake::start(&bench.root, |_, _| Some(vec![])).await;
    let said = bench.err(json!({"op": "attach", "adapter": "debugpy", "port": fake.port})).await;
    assert!(said.text.contains("within 10 seconds"), "{}", said.text);
    // A port on which nobody listens is refused at once.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let said = bench.err(json!({"op": "attach", "adapter": "debugpy", "port": closed})).await;
    assert!(said.text.contains("Nothing to attach to"), "{}", said.text);
    bench.end().await;
}

#[tokio::test]
async fn refusals_are_told_in_the_adapters_words() {
    let bench = bench();
    let fake = Fake::start(&bench.root, |command, _| match command {
        "attach" => Some(vec![
            Event("output", json!({"category": "important", "output": "no such process"})),
            Fail("Cannot attach"),
        ]),
        _ => None,
    })
    .await;
    let said = bench.err(json!({"op": "attach", "adapter": "debugpy", "port": fake.port})).await;
    assert!(said.text.contains("Cannot attach") && said.text.contains("no such process"), "{}", said.text);
    bench.end().await;

    let (bench, _, said) = attached(|command, _| match command {
        "setBreakpoints" => Some(vec![Fail("no such file in the program")]),
        "stackTrace" => Some(vec![Fail("thread is busy")]),
        "next" => Some(vec![Fail("cannot step here")]),
        _ => None,
    })
    .await;
    assert_eq!(said.state(), "stopped");
    assert!(said.text.contains("not known: thread is busy"), "{}", said.text);
    let status = bench.ok(op("status")).await;
    assert!(status.text.contains("NOT verified: no such file in the program"), "{}", status.text);
    let step = bench.err(op("step_over")).await;
    assert_eq!((step.text.as_str(), step.state()), ("cannot step here", "stopped"));
    bench.end().await;
}

#[tokio::test]
async fn an_evaluation_without_end_leaves_the_session_busy_and_not_dead() {
    let (bench, fake, _) = attached(only("evaluate", vec![Later(json!({"result": "done"}))])).await;
    let said = bench.err(json!({"op": "evaluate", "expression": "forever()", "wait_seconds": 0})).await;
    assert!(said.text.contains("goes on in the program"), "{}", said.text);
    let busy = bench.err(op("step_over")).await;
    assert!(busy.text.contains("still going on"), "{}", busy.text);
    let status = bench.ok(op("status")).await;
    assert!(status.text.contains("an evaluation has been going on"), "{}", status.text);
    fake.push.send(None).await.unwrap();
    loop {
        let said = bench.call(op("step_over")).await;
        if !said.is_error {
            assert_eq!(said.structured["state"], "stopped");
            break;
        }
    }
    bench.end().await;
}

#[tokio::test]
async fn breakpoints_are_kept_up_to_date_by_events() {
    let (bench, fake, _) = attached(|command, _| match command {
        "setBreakpoints" => Some(vec![Answer(
            json!({"breakpoints": [{"id": 4, "verified": false, "message": "not loaded"}]}),
        )]),
        _ => None,
    })
    .await;
    let status = bench.ok(op("status")).await;
    assert!(status.text.contains("NOT verified: not loaded"), "{}", status.text);
    fake.push
        .send(Some((
            "breakpoint",
            json!({"reason": "changed", "breakpoint": {"id": 4, "verified": true, "line": 3}}),
        )))
        .await
        .unwrap();
    // An answer that comes after the event shows that the event has been taken in.
    bench.ok(op("threads")).await;
    bench.ok(op("threads")).await;
    let listed = bench.ok(op("breakpoints")).await;
    assert!(listed.text.contains("a.py:2: verified, moved to line 3"), "{}", listed.text);
    assert_eq!(listed.fields["breakpoints"][0]["line"], 3);
    bench.end().await;
}

#[tokio::test]
async fn what_an_adapter_cannot_do_is_not_set_in_silence() {
    let (bench, fake, _) = attached(|_, _| None).await;
    let said = bench
        .ok(json!({"op": "breakpoints", "file": "a.py", "lines": [1, {"line": 2, "hit_condition": "3"}, 4, 40]}))
        .await;
    assert!(
        said.text.contains("a.py:2 [hits 3]: NOT verified: not set: this adapter has no hit conditions"),
        "{}",
        said.text
    );
    assert!(said.text.contains("Line 4 of a.py is blank."), "{}", said.text);
    assert!(said.text.contains("Line 40 is behind the end of a.py, which has 5 lines."), "{}", said.text);
    let last = fake.heard("setBreakpoints").pop().unwrap();
    assert_eq!(last["breakpoints"], json!([{"line": 1}, {"line": 4}, {"line": 40}]));
    let said = bench.ok(json!({"op": "breakpoints", "exceptions": ["everything"]})).await;
    assert!(said.text.contains("no exception filter everything; it has: raised, uncaught"), "{}", said.text);
    bench.end().await;
}

#[tokio::test]
async fn a_giant_value_is_cut_and_a_giant_message_ends_the_session() {
    let (bench, _, _) = attached(|command, _| match command {
        "evaluate" => Some(vec![Answer(json!({"result": "y".repeat(5 << 20)}))]),
        "variables" => {
            Some(vec![Answer(json!({"variables": [{"name": "x", "value": "z".repeat(1 << 20)}]}))])
        }
        "next" => Some(vec![Raw(b"Content-Length: 99999999999\r\n\r\n".to_vec())]),
        _ => None,
    })
    .await;
    let said = bench.ok(json!({"op": "evaluate", "expression": "x"})).await;
    assert!(said.text.len() < 5_000 && said.text.contains("5242880 characters"), "{}", said.text.len());
    let said = bench.ok(op("variables")).await;
    assert!(said.value("x").ends_with("… [cut, 1048576 characters]"));
    let said = bench.call(op("step_over")).await;
    assert!(said.all_text().contains("64 MiB"), "{}", said.all_text());
    bench.end().await;
}

#[tokio::test]
async fn an_end_without_a_code_is_told_as_such() {
    let (bench, _, _) = attached(only("next", vec![Answer(json!({})), Event("terminated", json!({}))])).await;
    let said = bench.ok(op("step_over")).await;
    assert_eq!((said.state(), said.fields.get("exit_code")), ("exited", None));
    assert!(said.text.contains("has not told its exit code"), "{}", said.text);
    bench.end().await;
    // The code after the end.
    let (bench, _, _) = attached(only(
        "next",
        vec![Answer(json!({})), Event("terminated", json!({})), Event("exited", json!({"exitCode": 5}))],
    ))
    .await;
    assert_eq!(bench.ok(op("step_over")).await.fields["exit_code"], 5);
    bench.end().await;
}

#[tokio::test]
async fn what_an_adapter_wants_in_a_terminal_is_run_and_ended_with_the_session() {
    let (bench, fake, _) = attached(|command, _| match command {
        "next" => Some(vec![
            Ask(
                "runInTerminal",
                json!({"args": ["sh", "-c", "echo from the terminal; exec sleep 1000"], "cwd": "@"}),
            ),
            Answer(json!({})),
        ]),
        _ => None,
    })
    .await;
    bench.ok(json!({"op": "step_over", "wait_seconds": 0})).await;
    // The answer to the step may have shown it already.
    while !bench.ok(json!({"op": "output", "all": true})).await.output().contains("from the terminal") {
        tokio::task::yield_now().await;
    }
    let answers = fake.heard("answer to runInTerminal");
    assert_eq!((answers.len(), answers[0]["body"]["processId"].is_u64()), (1, true), "{answers:?}");
    assert_eq!(bench.left().len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_process_whose_session_is_not_to_be_had_is_refused_and_named() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let process = |number: u32, connect: Value| {
        Ask(
            "startDebugging",
            json!({"request": "attach", "configuration": {"subProcessId": number, "connect": connect}}),
        )
    };
    let (bench, fake, _) = attached(move |command, _| match command {
        "next" => Some(vec![
            process(11, json!({})),
            process(12, json!({"port": closed})),
            process(13, json!({"host": "192.0.2.1", "port": 5})),
            Answer(json!({})),
        ]),
        _ => None,
    })
    .await;
    bench.ok(json!({"op": "step_over", "wait_seconds": 0})).await;
    while fake.heard("answer to startDebugging").len() < 3 {
        tokio::task::yield_now().await;
    }
    let answers = fake.heard("answer to startDebugging");
    assert!(answers.iter().all(|answer| answer["success"] == false), "{answers:?}");
    // The answer to the step may have had some of them.
    let status = bench.ok(op("status")).await;
    assert_eq!(status.state(), "running");
    let told: Vec<&str> = answers.iter().map(|answer| answer["message"].as_str().unwrap()).collect();
    assert!(told.iter().any(|why| why.contains("does not say on which port")), "{told:?}");
    assert!(told.iter().any(|why| why.contains("cannot be reached on port")), "{told:?}");
    assert!(told.iter().any(|why| why.contains("another machine (192.0.2.1)")), "{told:?}");
    bench.end().await;
}

#[tokio::test]
async fn a_session_for_a_process_that_refuses_is_told_and_the_program_goes_on() {
    let bench = bench();
    bench.ok(json!({"op": "breakpoints", "file": "a.py", "lines": [2]})).await;
    let below = Fake::start(&bench.root, only("attach", vec![Fail("no such process")])).await;
    let port = below.port;
    let configuration = json!({"name": "Subprocess 4", "subProcessId": 4_000_000, "connect": {"host": "127.0.0.1", "port": port}});
    let fake = Fake::start(&bench.root, move |command, _| match command {
        "attach" => Some(vec![
            Answer(json!({})),
            Ask("startDebugging", json!({"request": "attach", "configuration": configuration})),
            Event("initialized", json!({})),
        ]),
        "configurationDone" => Some(vec![Answer(json!({}))]),
        _ => None,
    })
    .await;
    bench.ok(json!({"op": "attach", "adapter": "debugpy", "port": fake.port, "wait_seconds": 0})).await;
    let mut told = String::new();
    while !told.contains("no such process") {
        told = bench.ok(op("status")).await.text;
    }
    assert!(told.contains("Process 4000000 is not being debugged"), "{told}");
    // It is in no list, and the program's own stop is the next thing that counts.
    fake.push.send(Some(("stopped", json!({"reason": "pause", "threadId": 1})))).await.unwrap();
    let stop = loop {
        let said = bench.ok(op("status")).await;
        if said.state() == "stopped" {
            break said;
        }
    };
    assert_eq!(stop.stop().0, "pause");
    assert_eq!(stop.fields["processes"].as_array().unwrap().len(), 1, "{}", stop.text);
    bench.end().await;
}

#[tokio::test]
async fn breakpoints_that_are_set_later_reach_every_process() {
    let bench = bench();
    let below = Fake::start(&bench.root, |_, _| None).await;
    let port = below.port;
    let fake = Fake::start(&bench.root, move |command, _| match command {
        "configurationDone" => Some(vec![
            Answer(json!({})),
            Ask(
                "startDebugging",
                json!({"request": "attach", "configuration": {"subProcessId": 4_000_001, "connect": {"port": port}, "mark": 1}}),
            ),
        ]),
        _ => None,
    })
    .await;
    let stop = bench.ok(json!({"op": "attach", "adapter": "debugpy", "port": fake.port})).await;
    assert_eq!(stop.fields["stopped"]["process_id"], 4_000_001, "{}", stop.text);
    assert_eq!(below.heard("attach")[0]["mark"], 1);
    bench.ok(json!({"op": "breakpoints", "file": "a.py", "lines": [3]})).await;
    for adapter in [&fake, &below] {
        let last = adapter.heard("setBreakpoints").pop().unwrap();
        assert_eq!(last["breakpoints"], json!([{"line": 3}]));
    }
    let gone = bench.err(json!({"op": "stack", "process_id": 7})).await;
    assert!(
        gone.text.contains("No process 7 is being debugged.") && gone.text.contains("4000001"),
        "{}",
        gone.text
    );
    bench.end().await;
    assert_eq!(below.heard("disconnect"), [json!({"restart": false, "terminateDebuggee": false})]);
}
