//! Explorers: read-only helpers that answer one question (SPEC G3).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use haft_agent::{Approve, Event, Mode, RunEnd, Setup};
use haft_store::ConversationId;
use haft_tool::{Origin, SurfaceKind};
use pretty_assertions::assert_eq;
use serde_json::json;

use support::{Puppet, World, calls, never, said, words};

#[tokio::test]
async fn an_explorer_reads_and_reports_and_is_a_child_of_the_conversation() {
    let world = World::acted(|scene| match scene.step {
        0 => {
            assert_eq!(scene.model, "test/fast");
            calls("r", &[("read", json!({"path": "a.txt"}))])
        }
        _ => words("a.txt:1 says one."),
    })
    .await;
    world.put("a.txt", "one\n");
    let setup = Setup { mode: Mode::Plan, ..world.staffed(Mode::Plan, Approve::None) };
    let conversation = world.host.start(&world.project(), setup).await.unwrap();
    let outcome = conversation
        .call("explore", json!({"question": "What does a.txt say?"}), Origin::Console, never())
        .await;
    assert_eq!((outcome.is_error, outcome.all_text().as_str()), (false, "a.txt:1 says one."));
    assert_eq!(outcome.structured["complete"], true);
    assert_eq!(outcome.structured["tokens"], 30);
    let child = ConversationId(outcome.structured["conversation"].as_str().unwrap().to_owned());
    let record = world.host.store().conversation(&child).await.unwrap();
    assert_eq!(record.parent.as_ref(), Some(conversation.id()));
    assert_eq!(record.extra[haft_agent::ROLE], "explorer");
    let events = world.host.store().read(&child, 0, 100).await.unwrap();
    let surfaces: Vec<SurfaceKind> = events
        .iter()
        .filter_map(|stored| match Event::from_stored(stored).unwrap() {
            Event::CallStarted { surface, .. } => Some(surface),
            _ => None,
        })
        .collect();
    assert_eq!(surfaces, [SurfaceKind::Explorer]);
    // It is given back and can be looked into.
    world.host.resume(&child, world.setup(Approve::None)).await.unwrap();
}

#[tokio::test]
async fn several_explorers_work_side_by_side() {
    let asked = Arc::new(AtomicUsize::new(0));
    let world = World::acted({
        let asked = asked.clone();
        move |scene| match scene.step {
            0 => {
                asked.fetch_add(1, Ordering::SeqCst);
                calls("g", &[("glob", json!({"pattern": "*"}))])
            }
            // Only when all have begun does any of them end.
            _ if asked.load(Ordering::SeqCst) < 3 => calls(
                &format!("g{}", scene.step),
                &[("glob", json!({"pattern": format!("*{}", scene.step)}))],
            ),
            _ => words("Seen."),
        }
    })
    .await;
    let conversation = Arc::new(
        world.host.start(&world.project(), world.staffed(Mode::Agent, Approve::None)).await.unwrap(),
    );
    let question = |text: &str| ("explore", json!({"question": text}));
    let model = Puppet::new([calls("e", &[question("a?"), question("b?"), question("c?")]), words("Done.")]);
    assert_eq!(conversation.run(&model, said("Look."), never()).await.unwrap(), RunEnd::Completed);
    let heard = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert_eq!(heard.matches("\"Seen.\"").count(), 3, "{heard}");
}

#[tokio::test]
async fn an_explorer_that_finds_no_end_is_stopped_and_says_so() {
    let world = World::acted(|scene| {
        let mut answer =
            calls(&format!("g{}", scene.step), &[("glob", json!({"pattern": format!("*.{}", scene.step)}))])?;
        answer
            .parts
            .insert(0, haft_model::AssistantPart::Text { text: format!("Looked {} times.", scene.step + 1) });
        Ok(answer)
    })
    .await;
    let conversation =
        world.host.start(&world.project(), world.staffed(Mode::Agent, Approve::None)).await.unwrap();
    let outcome = conversation.call("explore", json!({"question": "Where?"}), Origin::Console, never()).await;
    assert_eq!(
        outcome.all_text(),
        "The explorer was stopped before it was done: the run reached its bound of 40 steps. What it had said by then:\n\nLooked 40 times."
    );
    assert_eq!(outcome.structured["complete"], false);
}

#[tokio::test]
async fn an_explorer_that_eats_too_many_tokens_is_stopped() {
    let world = World::acted(|scene| {
        let mut answer =
            calls(&format!("g{}", scene.step), &[("glob", json!({"pattern": format!("*.{}", scene.step)}))])?;
        // Below the size of the context, so that nothing is summarised.
        answer.usage.input_tokens = 70_000;
        Ok(answer)
    })
    .await;
    let conversation =
        world.host.start(&world.project(), world.staffed(Mode::Agent, Approve::None)).await.unwrap();
    let outcome = conversation.call("explore", json!({"question": "Where?"}), Origin::Console, never()).await;
    assert!(outcome.is_error);
    assert_eq!(
        outcome.all_text(),
        "The explorer was stopped before it had a report: the run used 1540110 tokens, and its bound is 1500000. Ask something narrower, or look yourself."
    );
}

#[tokio::test]
async fn an_explorer_ends_with_its_caller() {
    let cancel = never();
    let stop = cancel.clone();
    let world = World::acted(move |scene| {
        stop.cancel();
        calls(&format!("g{}", scene.step), &[("glob", json!({"pattern": "*"}))])
    })
    .await;
    let conversation =
        world.host.start(&world.project(), world.staffed(Mode::Agent, Approve::None)).await.unwrap();
    let outcome = conversation.call("explore", json!({"question": "Where?"}), Origin::Console, cancel).await;
    assert_eq!(outcome.all_text(), "Cancelled before it finished.");
    for record in world.host.store().conversations(None).await.unwrap() {
        if record.parent.is_some() {
            let again = world.host.resume(&record.id, world.setup(Approve::None)).await.unwrap();
            assert!(!world.events(&again).await.contains(&Event::RunFinished { end: RunEnd::Lost }));
        }
    }
}

#[tokio::test]
async fn an_explorer_whose_model_fails_says_so() {
    let world = World::acted(|_| {
        Err(haft_model::ModelError::Unavailable {
            model: "test/fast".into(),
            attempts: 3,
            message: "overloaded".into(),
        })
    })
    .await;
    let conversation =
        world.host.start(&world.project(), world.staffed(Mode::Agent, Approve::None)).await.unwrap();
    let outcome = conversation.call("explore", json!({"question": "Where?"}), Origin::Console, never()).await;
    assert!(outcome.is_error);
    assert!(outcome.all_text().starts_with("The explorer could not go on: "), "{outcome:?}");
    let empty = conversation.call("explore", json!({"question": " "}), Origin::Console, never()).await;
    assert_eq!(empty.all_text(), "`question` is empty. Write what is to be found out.");
}
