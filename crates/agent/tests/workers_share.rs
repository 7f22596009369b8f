//! What workers share with their director: cards, rules, files; and what they do not have.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use haft_agent::{
    Approve, RunEnd, WorkerStatus,
    cards::{Answer, Card},
};
use haft_model::{Answer as Said, ModelError};
use pretty_assertions::assert_eq;
use serde_json::json;

use support::{
    Puppet, Scene, World, calls, never, person, processes, said, wait_until, words,
    workers::{call, held, nothing_is_left, spawn, told, until, wait},
    write,
};

fn writes(scene: &Scene<'_>) -> Result<Said, ModelError> {
    match scene.step {
        0 => calls("w", &[write("a.txt", "1")]),
        _ => words(if scene.heard().contains("refused") { "I was refused." } else { "Written." }),
    }
}

#[tokio::test]
async fn a_workers_card_appears_at_its_director_under_its_label() {
    let world = World::acted(|scene| match scene.step {
        1 if scene.brief.contains("Ask") => words(&scene.heard()),
        0 if scene.brief.contains("Ask") => {
            calls("q", &[("ask_user", json!({"question": "Which way?", "options": [{"label": "left"}]}))])
        }
        _ => writes(scene),
    })
    .await;
    let conversation = world.direct(Approve::None).await;
    // Nobody is there: refused at once, and the worker is told why.
    spawn(&conversation, "alone", "Write.").await;
    let alone = wait(&conversation, "w1").await;
    assert!(!world.project().join("a.txt").exists());
    let people = person(&conversation, |card: &Card| {
        Some(match card.kind {
            haft_agent::cards::CardKind::Permission => Answer::Allowed { always: true },
            haft_agent::cards::CardKind::Question => {
                Answer::Chosen { selected: vec!["left".into()], text: String::new() }
            }
        })
    });
    spawn(&conversation, "writer", "Write.").await;
    assert_eq!(
        told(&wait(&conversation, "w2").await),
        "Worker w2 (writer) has settled. Its report:\nWritten."
    );
    assert_eq!(world.get("a.txt"), "1");
    spawn(&conversation, "asker", "Ask.").await;
    assert!(told(&wait(&conversation, "w3").await).contains("The person chose: left"));
    // "Always" was said in this conversation, of which the workers are a part.
    std::fs::remove_file(world.project().join("a.txt")).unwrap();
    spawn(&conversation, "second writer", "Write.").await;
    wait(&conversation, "w4").await;
    assert_eq!(world.get("a.txt"), "1");
    let cards: Vec<(u64, String, String)> = people
        .cards
        .lock()
        .unwrap()
        .iter()
        .map(|card| (card.number, card.from.clone(), card.question.clone()))
        .collect();
    assert_eq!(
        cards,
        [(1, "writer".into(), "Allow write: a.txt?".into()), (2, "asker".into(), "Which way?".into()),]
    );
    assert!(told(&alone).contains("has settled"), "{alone:?}");
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_killed_worker_takes_its_card_with_it() {
    let world = World::acted(writes).await;
    let conversation = world.direct(Approve::None).await;
    let _person = conversation.cards().attach();
    spawn(&conversation, "writer", "Write.").await;
    wait_until("the card", || {
        conversation.with_transcript(|transcript| transcript.open_cards().count() == 1)
    })
    .await;
    call(&conversation, "vibe_kill", json!({"worker_id": "w1"})).await;
    conversation.cards().settled().await;
    assert_eq!(conversation.with_transcript(|transcript| transcript.open_cards().count()), 0);
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn stopping_the_director_leaves_a_workers_card_alone() {
    let world = World::acted(writes).await;
    let conversation = world.direct(Approve::None).await;
    let _person = conversation.cards().attach();
    spawn(&conversation, "writer", "Write.").await;
    wait_until("the card", || {
        conversation.with_transcript(|transcript| transcript.open_cards().count() == 1)
    })
    .await;
    let cancel = never();
    cancel.cancel();
    let model = Puppet::new([]);
    assert_eq!(conversation.run(&model, said("Stop."), cancel).await.unwrap(), RunEnd::Interrupted);
    conversation.cards().answer(1, Answer::Allowed { always: false }).unwrap();
    assert!(told(&wait(&conversation, "w1").await).contains("Written."));
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn helpers_have_no_tools_beyond_their_own() {
    let world = World::acted(|scene| {
        let unknown = |names: &[&str]| {
            calls(
                &format!("u{}", scene.model),
                &names.iter().map(|name| (*name, json!({}))).collect::<Vec<_>>(),
            )
        };
        let worker = scene.brief.contains("Work.");
        match (worker, scene.step) {
            (true, 0) => unknown(&["vibe_spawn", "vibe_send", "vibe_wait", "vibe_kill", "vibe_list"]),
            (true, 1) => calls("e", &[("explore", json!({"question": "Look."}))]),
            (false, 0) => unknown(&[
                "write",
                "edit",
                "apply_patch",
                "shell",
                "ast_edit",
                "resolve",
                "explore",
                "ask_user",
                "vibe_spawn",
                "debug",
                "eval",
                "lsp_rename",
            ]),
            _ => {
                let tools: Vec<&str> = scene.request.tools.iter().map(|tool| tool.name.as_str()).collect();
                assert!(!tools.iter().any(|tool| tool.starts_with("vibe_")), "{tools:?}");
                if !worker {
                    assert!(!tools.contains(&"write") && !tools.contains(&"shell"), "{tools:?}");
                }
                words(&scene.heard())
            }
        }
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "nested", "Work.").await;
    let nested = told(&wait(&conversation, "w1").await);
    let alone = told(&call(&conversation, "explore", json!({"question": "Look."})).await);
    for name in [
        "write",
        "edit",
        "apply_patch",
        "shell",
        "ast_edit",
        "resolve",
        "explore",
        "ask_user",
        "vibe_spawn",
        "debug",
        "eval",
        "lsp_rename",
    ] {
        let words = format!("unknown tool: {name}");
        assert!(alone.contains(&words), "{words}: {alone}");
        assert!(nested.contains(&words), "{words}: {nested}");
    }
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn of_two_workers_on_one_file_the_stale_write_is_refused() {
    let world = World::acted(|scene| match (scene.brief.contains("Slow"), scene.step) {
        (_, 0) => calls("r", &[("read", json!({"path": "shared.txt"}))]),
        (true, 1) => held(1),
        (true, 2) => calls("w", &[write("shared.txt", "slow\n")]),
        (false, 1) => calls("w", &[write("shared.txt", "quick\n")]),
        _ => words(&scene.heard()),
    })
    .await;
    world.put("shared.txt", "old\n");
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "slow", "Slow.").await;
    until(&conversation, 1, WorkerStatus::Running).await;
    // It has read the file when its shell waits.
    wait_until("the shell", || processes("until [ -e go ]; do sleep 0.02; done; echo went") > 0).await;
    spawn(&conversation, "quick", "Quick.").await;
    wait(&conversation, "w2").await;
    world.put("go", "");
    let slow = told(&wait(&conversation, "w1").await);
    assert_eq!(world.get("shared.txt"), "quick\n", "{slow}");
    assert!(slow.contains("changed") && slow.contains("\"is_error\":true"), "{slow}");
    nothing_is_left(&world, &conversation).await;
}
