//! Runs against the real tools, with a model that is told what to answer.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::time::Duration;

use haft_agent::{
    Approve, Event, Frame, Mode, RunEnd, RunError, Transcript,
    cards::{Answer, CardError},
};
use haft_model::{AssistantPart, Message, ModelError, ToolResult, UserPart};
use haft_tool::{CallId, Content, Origin, Outcome};
use pretty_assertions::assert_eq;
use serde_json::json;
use support::{Puppet, World, calls, never, said, words, write};

fn results(transcript: &Transcript) -> Vec<ToolResult> {
    transcript
        .messages()
        .iter()
        .filter_map(
            |message| if let Message::Results { results } = message { Some(results.clone()) } else { None },
        )
        .flatten()
        .collect()
}

fn text(result: &ToolResult) -> String {
    Outcome {
        is_error: result.is_error,
        content: result.content.clone(),
        structured: serde_json::Map::default(),
    }
    .all_text()
}

#[tokio::test]
async fn a_task_is_worked_on_until_the_model_has_said_what_it_wants() {
    let world = World::new().await;
    world.put("a.txt", "one\n");
    let conversation = world.start(Approve::All).await;
    let model = Puppet::new([
        calls("first", &[("read", json!({"path": "a.txt"})), write("b.txt", "two\n")]),
        words("Done."),
    ]);
    let end = conversation.run(&model, said("Copy it."), never()).await.unwrap();
    assert_eq!(end, RunEnd::Completed);
    assert_eq!(world.get("b.txt"), "two\n");
    let results = conversation.with_transcript(results);
    assert_eq!(
        results
            .iter()
            .map(|result| (result.id.as_str(), result.tool.as_str(), result.is_error))
            .collect::<Vec<_>>(),
        [("first_0", "read", false), ("first_1", "write", false)],
        "results come in the order of the calls"
    );
    let kinds: Vec<String> =
        world.events(&conversation).await.iter().map(|event| event.to_new(0).kind).collect();
    assert_eq!(kinds[..4], ["mode_changed", "run_started", "user_message", "assistant_message"]);
    assert_eq!(kinds[kinds.len() - 2..], ["assistant_message", "run_finished"]);
}

#[tokio::test]
async fn a_request_begins_with_the_one_before_it() {
    let world = World::new().await;
    world.put("a.txt", "one\n");
    let conversation = world.start(Approve::All).await;
    let read = || calls("x", &[("read", json!({"path": "a.txt"}))]);
    let model = Puppet::new([
        read(),
        calls("y", &[("glob", json!({"pattern": "*"}))]),
        words("Done."),
        words("Again."),
    ]);
    conversation.run(&model, said("Look."), never()).await.unwrap();
    conversation.run(&model, said("And now?"), never()).await.unwrap();
    let asked = model.asked();
    for pair in asked.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].tools, pair[1].tools);
        assert_eq!(pair[1].messages[..pair[0].messages.len()], pair[0].messages);
    }
}

#[tokio::test]
async fn plan_mode_hides_what_writes_and_refuses_it_by_name() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    conversation.set_mode(Mode::Plan).await.unwrap();
    let model = Puppet::new([
        calls(
            "x",
            &[write("a.txt", "x"), ("shell", json!({"command": "touch b.txt"})), ("nonsense", json!({}))],
        ),
        words("A plan."),
    ]);
    conversation.run(&model, said("Do it."), never()).await.unwrap();
    let names: Vec<String> = model.asked()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(
        names.contains(&"read".to_owned())
            && !names.contains(&"write".to_owned())
            && !names.contains(&"shell".to_owned())
    );
    assert_eq!(
        conversation.with_transcript(results).iter().map(text).collect::<Vec<_>>(),
        ["unknown tool: write", "unknown tool: shell", "unknown tool: nonsense"]
    );
    assert_eq!(std::fs::read_dir(world.project()).unwrap().count(), 0);
    let by_hand =
        conversation.call("write", json!({"path": "a.txt", "content": "x"}), Origin::Console, never()).await;
    assert_eq!(by_hand, Outcome::error("unknown tool: write"));
}

#[tokio::test]
async fn nobody_to_ask_is_a_refusal_at_once() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let model = Puppet::new([calls("x", &[write("a.txt", "x")]), words("I could not.")]);
    conversation.run(&model, said("Write."), never()).await.unwrap();
    let results = conversation.with_transcript(results);
    assert!(results[0].is_error);
    assert_eq!(results[0].structured["refused_by"], "nobody");
    assert!(!world.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_person_allows_refuses_and_allows_for_good() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let person = conversation.cards().attach();
    let mut frames = conversation.watch();
    let answers = tokio::spawn({
        let conversation = conversation.clone();
        async move {
            let mut answers = vec![
                Answer::Allowed { always: false },
                Answer::Denied { reason: "not that one".into() },
                Answer::Allowed { always: true },
            ]
            .into_iter();
            let mut asked = Vec::new();
            loop {
                let Frame::Event(event) = frames.recv().await.unwrap() else { continue };
                match &event.1 {
                    Event::CardOpened { card } => {
                        asked.push(card.question.clone());
                        let wrong = Answer::Chosen { selected: vec!["yes".into()], text: String::new() };
                        assert!(matches!(
                            conversation.cards().answer(card.number, wrong),
                            Err(CardError::WrongKind { .. })
                        ));
                        conversation.cards().answer(card.number, answers.next().unwrap()).unwrap();
                        let again =
                            conversation.cards().answer(card.number, Answer::Allowed { always: false });
                        assert_eq!(again, Err(CardError::NotOpen(card.number)));
                    }
                    Event::RunFinished { .. } => return asked,
                    _ => {}
                }
            }
        }
    });
    let model = Puppet::new([
        calls("a", &[write("a.txt", "1")]),
        calls("b", &[write("b.txt", "1")]),
        calls("c", &[write("c.txt", "1")]),
        calls("d", &[write("c.txt", "2")]),
        words("Done."),
    ]);
    conversation.run(&model, said("Write."), never()).await.unwrap();
    drop(person);
    let asked = answers.await.unwrap();
    assert_eq!(asked, ["Allow write: a.txt?", "Allow write: b.txt?", "Allow write: c.txt?"]);
    let results = conversation.with_transcript(results);
    assert_eq!(results.iter().map(|result| result.is_error).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(text(&results[1]), "The person refused this call: not that one");
    assert_eq!(world.get("c.txt"), "2");
    assert!(!world.project().join("b.txt").exists());
}

#[tokio::test]
async fn arguments_that_do_not_fit_come_back_in_words() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let model = Puppet::new([
        calls(
            "x",
            &[("read", json!("{\"path\": ")), ("read", json!({"file": "a"})), ("read", json!({"path": 3}))],
        ),
        words("Sorry."),
    ]);
    conversation.run(&model, said("Read."), never()).await.unwrap();
    let texts: Vec<String> = conversation.with_transcript(results).iter().map(text).collect();
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[tokio::test]
async fn a_circle_is_told_and_then_stopped() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let model = Puppet::new(
        (0..8).map(|round| calls(&format!("x{round}"), &[("glob", json!({"pattern": "*.nothing"}))])),
    );
    let end = conversation.run(&model, said("Look."), never()).await.unwrap();
    assert_eq!(
        end,
        RunEnd::Stopped {
            why: "the model made the same calls with the same outcome 8 times in a row".into()
        }
    );
    let reminders = world
        .events(&conversation)
        .await
        .into_iter()
        .filter(|event| matches!(event, Event::Reminder { .. }))
        .count();
    assert_eq!(reminders, 1);
}

#[tokio::test]
async fn a_stopped_run_ends_its_calls_and_their_processes() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let mark = format!("31{}", std::process::id());
    let command = format!("sleep {mark} & sleep {mark}");
    let model = Puppet::new([calls("x", &[("shell", json!({"command": command, "timeout_seconds": 3600}))])]);
    let cancel = never();
    let stop = tokio::spawn({
        let (cancel, mark) = (cancel.clone(), mark.clone());
        async move {
            wait_until(|| processes(&mark) >= 2).await;
            cancel.cancel();
        }
    });
    let end = conversation.run(&model, said("Wait."), cancel).await.unwrap();
    stop.await.unwrap();
    assert_eq!(end, RunEnd::Interrupted);
    wait_until(|| processes(&mark) == 0).await;
    assert!(
        conversation.with_transcript(|transcript| transcript.closing().is_empty()),
        "nothing is left open"
    );
    // The conversation can go on.
    let model = Puppet::new([words("Here.")]);
    assert_eq!(conversation.run(&model, said("Still there?"), never()).await.unwrap(), RunEnd::Completed);
}

#[tokio::test]
async fn two_runs_on_one_conversation_do_not_mix() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let cancel = never();
    let model = Puppet::new([calls("x", &[("shell", json!({"command": "sleep 600"}))])]);
    let first = tokio::spawn({
        let (conversation, cancel) = (conversation.clone(), cancel.clone());
        async move { conversation.run(&model, said("Wait."), cancel).await }
    });
    wait_until(|| conversation.with_transcript(Transcript::running)).await;
    let second = conversation.run(&Puppet::new([]), said("Me too."), never()).await;
    assert!(matches!(second, Err(RunError::Busy)));
    // Nor does another process get in.
    let other = World::host(world.root.path()).await;
    let refused = other.resume(conversation.id(), world.setup(Approve::All)).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("is in use by"), "{refused}");
    cancel.cancel();
    assert_eq!(first.await.unwrap().unwrap(), RunEnd::Interrupted);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_summarised_and_goes_on() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let too_long =
        || Err(ModelError::ContextTooLong { model: "test/puppet".into(), message: "too many tokens".into() });
    let model = Puppet::new([
        calls("x", &[("glob", json!({"pattern": "*"}))]),
        too_long(),
        words("They want the files listed; glob was called."),
        words("There are none."),
    ]);
    let end = conversation.run(&model, said("List the files."), never()).await.unwrap();
    assert_eq!(end, RunEnd::Completed);
    let last = model.asked().pop().unwrap();
    let [Message::User { parts }] = last.messages.as_slice() else { panic!("{:?}", last.messages) };
    let [UserPart::Text { text }] = parts.as_slice() else { panic!("{parts:?}") };
    insta::assert_snapshot!(text);
    // The record keeps it all.
    let all = world.events(&conversation).await;
    assert!(all.iter().any(|event| matches!(event, Event::CallFinished { .. })));
    assert_eq!(conversation.spent().usage.input_tokens, 30, "the summary's tokens count too");
}

#[tokio::test]
async fn compaction_that_does_not_help_ends_the_run_with_the_reason() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let too_long =
        || Err(ModelError::ContextTooLong { model: "test/puppet".into(), message: "too many tokens".into() });
    let model = Puppet::new([too_long(), words("s1"), too_long(), words("s2"), too_long()]);
    let end = conversation.run(&model, said("Hello."), never()).await.unwrap();
    assert_eq!(
        end,
        RunEnd::Failed { error: "the conversation is too long for test/puppet: too many tokens".into() }
    );
}

#[tokio::test]
async fn a_conversation_is_taken_up_as_it_was_left() {
    let world = World::new().await;
    world.put("a.txt", "one\n");
    let conversation = world.start(Approve::All).await;
    let model = Puppet::new([calls("x", &[("read", json!({"path": "a.txt"}))]), words("It says one.")]);
    conversation.run(&model, said("What does it say?"), never()).await.unwrap();
    conversation.set_mode(Mode::Plan).await.unwrap();
    let before = conversation.with_transcript(Clone::clone);
    conversation.close().await.unwrap();
    let other = World::host(world.root.path()).await;
    let again = other.resume(conversation.id(), world.setup(Approve::All)).await.unwrap();
    assert_eq!(again.with_transcript(Clone::clone), before);
    let fork = other.fork(conversation.id(), None).await.unwrap();
    let forked = other.resume(&fork, world.setup(Approve::All)).await.unwrap();
    assert_eq!(forked.with_transcript(Clone::clone), before);
}

#[tokio::test]
async fn pictures_survive_the_record() {
    let world = World::new().await;
    let mut png = Vec::new();
    image(&mut png);
    std::fs::write(world.project().join("dot.png"), &png).unwrap();
    let conversation = world.start(Approve::All).await;
    let model = Puppet::new([calls("x", &[("read", json!({"path": "dot.png"}))]), words("A dot.")]);
    conversation.run(&model, said("Look."), never()).await.unwrap();
    let before = conversation.with_transcript(Clone::clone);
    assert!(
        results(&before)[0].content.iter().any(|piece| matches!(piece, Content::Image { .. })),
        "{before:?}"
    );
    let raw = world.host.store().read(conversation.id(), 0, 1000).await.unwrap();
    assert!(
        raw.iter().all(|stored| !stored.event.data.to_string().contains("\"data\":\"iVBOR")),
        "kept beside the events"
    );
    conversation.close().await.unwrap();
    let again = World::host(world.root.path())
        .await
        .resume(conversation.id(), world.setup(Approve::All))
        .await
        .unwrap();
    assert_eq!(again.with_transcript(Clone::clone), before);
}

fn image(into: &mut Vec<u8>) {
    // A red dot, 1 × 1.
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
    use base64::{Engine, engine::general_purpose::STANDARD};
    into.extend(STANDARD.decode(DOT).unwrap());
}

#[tokio::test]
async fn long_output_is_cut_for_the_model_and_can_be_read_in_full() {
    let world = World::new().await;
    let conversation = world.start(Approve::All).await;
    let line = "x".repeat(99);
    world.put("long.txt", &format!("{line}\n").repeat(3000));
    let outcome =
        conversation.call("shell", json!({"command": "cat long.txt"}), Origin::Console, never()).await;
    let text = outcome.all_text();
    assert!(text.len() < 60_000, "{}", text.len());
    assert!(
        text.contains("left out") || text.contains("cut"),
        "{}",
        &text[text.len() / 2 - 200..text.len() / 2 + 200]
    );
}

#[test]
fn what_a_dead_process_left_open_is_closed_honestly() {
    let mut transcript = Transcript::default();
    let parts = ["started", "not_started", "finished"].map(|id| {
        AssistantPart::Call(haft_model::ToolCall {
            id: id.into(),
            tool: "shell".into(),
            arguments: json!({}),
            proof: None,
        })
    });
    let call = |id: &str| haft_tool::Call {
        id: CallId(id.into()),
        tool: "shell".into(),
        arguments: json!({}),
        origin: Origin::Model,
    };
    let surface = haft_tool::SurfaceKind::Agent;
    for event in [
        Event::RunStarted { mode: Mode::Agent, model: None },
        Event::UserMessage { parts: said("Go.") },
        Event::AssistantMessage {
            parts: parts.to_vec(),
            stop: haft_model::StopReason::ToolCalls,
            usage: haft_model::Usage::default(),
            cost: None,
            model: "test/puppet".into(),
        },
        Event::CallStarted { call: call("finished"), surface },
        Event::CallStarted { call: call("started"), surface },
        Event::CallFinished {
            id: CallId("finished".into()),
            outcome: Outcome::default(),
            ms: 1.0,
            whole: None,
            kept: Vec::new(),
        },
    ] {
        transcript.apply(&event);
    }
    let closing = transcript.closing();
    insta::assert_json_snapshot!(closing);
    closing.iter().for_each(|event| transcript.apply(event));
    assert_eq!(transcript.closing(), []);
    assert_eq!(results(&transcript).len(), 3, "every call has its result");
}

/// Processes whose command line holds `mark`.
fn processes(mark: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
        .count()
}

async fn wait_until(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "it did not come to pass");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn prices_that_a_person_has_set_are_counted() {
    let world = World::new().await;
    let own = world.root.path().join(".config/haft");
    std::fs::create_dir_all(&own).unwrap();
    let settings =
        "[models.profiles.\"openai-chat/puppet\"]\nprices = { input = 1000000.0, output = 2000000.0 }\n";
    std::fs::write(own.join("haft.toml"), settings).unwrap();
    let conversation = world.start(Approve::All).await;
    let mut model = Puppet::new([words("Done.")]);
    model.name = "openai-chat/puppet";
    conversation.run(&model, said("Go."), never()).await.unwrap();
    let spent = conversation.spent();
    assert_eq!((spent.cost, spent.unpriced_answers), (10.0 + 2.0 * 5.0, 0));
}
