//! Questions to people and the cards that carry them (SPEC Q1–Q4).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::{sync::Arc, time::Duration};

use haft_agent::{
    Approve, Conversation, Event, Mode, RunEnd,
    cards::{Answer, Answered, Card, CardError, CardKind},
};
use haft_tool::{Origin, Outcome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use support::{Person, Puppet, World, calls, never, person, said, wait_until, words};

async fn ask(conversation: &Conversation, arguments: Value) -> Outcome {
    conversation.call("ask_user", arguments, Origin::Console, never()).await
}

fn chosen(selected: &[&str], text: &str) -> Answer {
    Answer::Chosen { selected: selected.iter().map(|label| (*label).into()).collect(), text: text.into() }
}

fn told(outcome: &Outcome) -> String {
    let structured = serde_json::to_string(&outcome.structured).unwrap();
    format!("{}{}\n{structured}", if outcome.is_error { "ERROR " } else { "" }, outcome.all_text())
}

fn colours() -> Value {
    json!({
        "question": "Which colour?",
        "context": "The sign is repainted tomorrow.",
        "options": [{"label": "red", "description": "as before"}, {"label": "blue"}],
        "allow_free_text": true,
        "multi_select": true,
    })
}

#[tokio::test]
async fn an_answer_a_skip_and_nobody_are_told_apart() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let mut all = vec![told(&ask(&conversation, colours()).await)];
    let mut answers = vec![
        chosen(&["blue"], ""),
        chosen(&["red", "blue"], "half and half"),
        chosen(&[], "green"),
        Answer::Skipped,
    ]
    .into_iter();
    let attached = person(&conversation, move |_| answers.next());
    for _ in 0..4 {
        all.push(told(&ask(&conversation, colours()).await));
    }
    let card = attached.cards.lock().unwrap()[0].clone();
    drop(attached);
    assert_eq!(
        card,
        Card {
            number: 1,
            kind: CardKind::Question,
            from: "agent".into(),
            question: "Which colour?".into(),
            context: "The sign is repainted tomorrow.".into(),
            options: card.options.clone(),
            allow_free_text: true,
            multi_select: true,
        }
    );
    all.push(told(&ask(&conversation, colours()).await));
    insta::assert_snapshot!(all.join("\n\n"));
    let open = conversation.with_transcript(|transcript| transcript.open_cards().count());
    assert_eq!(open, 0);
}

#[tokio::test]
async fn arguments_that_nobody_could_answer_are_named() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let _person: Person = person(&conversation, |_| panic!("no card may come of this"));
    let mut all = Vec::new();
    for arguments in [
        json!({"question": "  ", "allow_free_text": true}),
        json!({"question": "Which?"}),
        json!({"question": "Which?", "allow_free_text": true, "multi_select": true}),
        json!({"question": "Which?", "options": [{"label": "a"}, {"label": " a "}]}),
        json!({"question": "Which?", "options": [{"label": ""}]}),
        json!({"question": "Which?", "options": "[{\"label\": \"a\"}]"}),
        json!({"questions": []}),
    ] {
        all.push(told(&ask(&conversation, arguments).await));
    }
    insta::assert_snapshot!(all.join("\n\n"));
    assert_eq!(conversation.with_transcript(haft_agent::Transcript::last_card), 0);
}

#[tokio::test]
async fn a_question_that_nobody_answers_times_out_and_nothing_is_chosen() {
    let world = World::new().await;
    world.put("haft.toml", "[run]\nquestion_timeout_seconds = 1\n");
    let conversation = world.start(Approve::None).await;
    let _person = person(&conversation, |_| None);
    let outcome = ask(&conversation, colours()).await;
    insta::assert_snapshot!(told(&outcome));
    assert_eq!(conversation.cards().answer(1, chosen(&["red"], "")), Err(CardError::NotOpen(1)));
    let closed = world.events(&conversation).await;
    assert!(closed.contains(&Event::CardClosed { number: 1, answer: Answer::TimedOut }));
}

/// Whatever wins, both sides believe the same.
#[tokio::test]
async fn an_answer_at_the_moment_of_the_time_out_counts_on_both_sides_or_on_none() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let _person = conversation.cards().attach();
    let card = Card {
        number: 0,
        kind: CardKind::Question,
        from: "agent".into(),
        question: "Now?".into(),
        context: String::new(),
        options: Vec::new(),
        allow_free_text: true,
        multi_select: false,
    };
    let mut seen = [0, 0];
    for number in 1..=60 {
        let asking = tokio::spawn({
            let (cards, card) = (conversation.cards().clone(), card.clone());
            async move { cards.ask(card, Some(Duration::from_millis(3)), &never()).await }
        });
        // Tried until it is taken or too late.
        let taken = loop {
            match conversation.cards().answer(number, chosen(&[], "now")) {
                Ok(()) => break true,
                Err(_) if asking.is_finished() => break false,
                Err(_) if number % 2 == 0 => tokio::time::sleep(Duration::from_millis(3)).await,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let expected = if taken { chosen(&[], "now") } else { Answer::TimedOut };
        seen[usize::from(taken)] += 1;
        assert_eq!(asking.await.unwrap().unwrap(), Answered { number, answer: expected });
    }
    assert!(seen[1] > 0, "{seen:?}");
}

#[tokio::test]
async fn of_two_answers_at_once_one_is_taken() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let _person = conversation.cards().attach();
    let asking = tokio::spawn({
        let conversation = conversation.clone();
        async move { ask(&conversation, colours()).await }
    });
    wait_until("the card", || conversation.with_transcript(|transcript| transcript.last_card() == 1)).await;
    let answers: Vec<_> = ["red", "blue"]
        .map(|label| {
            let cards = Arc::clone(conversation.cards());
            std::thread::spawn(move || cards.answer(1, chosen(&[label], "")).map(|()| label))
        })
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let taken: Vec<&str> = answers.iter().filter_map(|answer| answer.as_ref().ok().copied()).collect();
    let refused: Vec<&CardError> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert_eq!((taken.len(), refused), (1, vec![&CardError::NotOpen(1)]));
    assert_eq!(asking.await.unwrap().structured["selected"], json!(taken));
}

#[tokio::test]
async fn two_questions_in_one_step_are_two_cards() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let _person = conversation.cards().attach();
    let question = |text: &str| ("ask_user", json!({"question": text, "allow_free_text": true}));
    let model = Puppet::new([calls("q", &[question("First?"), question("Second?")]), words("Thanks.")]);
    let run = tokio::spawn({
        let conversation = conversation.clone();
        async move { conversation.run(&model, said("Ask."), never()).await }
    });
    wait_until("both cards", || {
        conversation.with_transcript(|transcript| transcript.open_cards().count() == 2)
    })
    .await;
    let open: Vec<Card> =
        conversation.with_transcript(|transcript| transcript.open_cards().cloned().collect());
    for card in open.iter().rev() {
        conversation.cards().answer(card.number, chosen(&[], &format!("to {}", card.question))).unwrap();
    }
    assert_eq!(run.await.unwrap().unwrap(), RunEnd::Completed);
    let texts =
        conversation.with_transcript(|transcript| serde_json::to_value(transcript.messages()).unwrap());
    assert!(texts[2]["results"][0].to_string().contains("to First?"), "{texts:#}");
    assert!(texts[2]["results"][1].to_string().contains("to Second?"), "{texts:#}");
}

#[tokio::test]
async fn a_run_that_is_stopped_while_it_asks_leaves_no_card() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let cancel = never();
    let stop = cancel.clone();
    let person = person(&conversation, move |_| {
        stop.cancel();
        None
    });
    let model = Puppet::new([calls("q", &[("ask_user", colours())])]);
    let end = conversation.run(&model, said("Ask."), cancel).await.unwrap();
    drop(person);
    assert_eq!(end, RunEnd::Interrupted);
    conversation.cards().settled().await;
    assert_eq!(conversation.with_transcript(|transcript| transcript.open_cards().count()), 0);
    assert_eq!(conversation.cards().answer(1, chosen(&["red"], "")), Err(CardError::NotOpen(1)));
}

#[tokio::test]
async fn a_question_whose_caller_is_dropped_is_closed_all_the_same() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let _person = conversation.cards().attach();
    let asking = tokio::spawn({
        let conversation = conversation.clone();
        async move { ask(&conversation, colours()).await }
    });
    wait_until("the card", || conversation.with_transcript(|transcript| transcript.last_card() == 1)).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    conversation.cards().settled().await;
    let events = world.events(&conversation).await;
    let closed: Vec<&Event> =
        events.iter().filter(|event| matches!(event, Event::CardClosed { .. })).collect();
    assert_eq!(closed, [&Event::CardClosed { number: 1, answer: Answer::Cancelled }]);
}

#[tokio::test]
async fn the_last_person_who_leaves_takes_no_card_with_them_but_new_ones_fail() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let page = conversation.cards().attach();
    let asking = tokio::spawn({
        let conversation = conversation.clone();
        async move { ask(&conversation, colours()).await }
    });
    wait_until("the card", || conversation.with_transcript(|transcript| transcript.last_card() == 1)).await;
    // A page that is loaded again: the card is still there.
    drop(page);
    assert!(told(&ask(&conversation, colours()).await).contains("Nobody is attached"));
    let _again = conversation.cards().attach();
    conversation.cards().answer(1, chosen(&["red"], "")).unwrap();
    assert_eq!(asking.await.unwrap().structured["selected"], json!(["red"]));
}

#[tokio::test]
async fn nobody_can_answer_with_a_time_out() {
    let world = World::new().await;
    let conversation = world.start(Approve::None).await;
    let _person = conversation.cards().attach();
    let asking = tokio::spawn({
        let conversation = conversation.clone();
        async move { ask(&conversation, colours()).await }
    });
    wait_until("the card", || conversation.with_transcript(|transcript| transcript.last_card() == 1)).await;
    let refused = conversation.cards().answer(1, Answer::TimedOut).unwrap_err();
    assert_eq!(refused.to_string(), "card 1 times out by itself; nobody can answer that");
    conversation.cards().leave();
    assert!(told(&asking.await.unwrap()).contains("Nobody is attached"));
}

#[tokio::test]
async fn without_a_space_there_is_nobody_to_ask_and_the_wiring_says_so() {
    let world = World::new().await;
    let setup = haft_agent::Setup { space: String::new(), ..world.setup(Approve::None) };
    let conversation = world.host.start(&world.project(), setup).await.unwrap();
    let explained = conversation.explain();
    let line = explained.iter().find(|line| line.name == "ask_user").unwrap();
    assert_eq!(line.why_not.as_deref(), Some("the run is in no space, so nobody sees it"));
    assert!(told(&ask(&conversation, colours()).await).contains("unknown tool: ask_user"));
    let plan = world.setup(Approve::None);
    let plan = haft_agent::Setup { mode: Mode::Plan, ..plan };
    let plan = world.host.start(&world.project(), plan).await.unwrap();
    assert!(plan.tools().iter().any(|tool| tool.name == "ask_user"), "it is read tier");
}
