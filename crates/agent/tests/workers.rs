//! Workers and their director (SPEC V1, V2).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::sync::Arc;

use haft_agent::{Approve, Event, Mode, Setup, WorkerEnd, WorkerEvent, WorkerStatus};
use haft_model::ModelError;
use haft_tool::Origin;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use support::{
    Puppet, Scene, World, calls, never, processes, said, wait_until, words,
    workers::{call, held, nothing_is_left, spawn, status, told, until, wait},
    write,
};

#[tokio::test]
async fn a_worker_works_and_its_result_is_given_once() {
    let world = World::acted(|scene| match scene.step {
        0 => calls("a", &[write("done.txt", "yes\n")]),
        _ => words("I wrote done.txt."),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    let mut all = vec![told(&spawn(&conversation, "writer", "Write done.txt.").await)];
    all.push(told(&wait(&conversation, "w1").await));
    assert_eq!(world.get("done.txt"), "yes\n");
    let again = wait(&conversation, "w1").await;
    all.push(told(&again));
    let list = call(&conversation, "vibe_list", json!({})).await;
    let [line] = list.structured["workers"].as_array().unwrap().as_slice() else { panic!("{list:?}") };
    assert_eq!(
        line,
        &json!({
            "worker_id": "w1", "label": "writer", "tier": "fast", "status": "settled",
            "elapsed_ms": line["elapsed_ms"], "last_result": "I wrote done.txt.", "conversation": line["conversation"],
        })
    );
    insta::assert_snapshot!(all.join("\n\n"));
    // The next step of the director hears nothing of it any more.
    let model = Puppet::new([words("Fine.")]);
    conversation.run(&model, said("And?"), never()).await.unwrap();
    assert_eq!(model.asked()[0].messages.len(), 1);
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_result_comes_by_itself_once() {
    let world = World::acted(|_| words("Forty-two.")).await;
    let conversation = world.direct(Approve::All).await;
    let model = Puppet::new([
        calls("s", &[("vibe_spawn", json!({"brief": "How many?", "label": "counter", "tier": "good"}))]),
        words("It is at work."),
    ]);
    conversation.run(&model, said("Count."), never()).await.unwrap();
    until(&conversation, 1, WorkerStatus::Settled).await;
    let model = Puppet::new([words("Forty-two, then."), words("Still.")]);
    conversation.run(&model, said("How many?"), never()).await.unwrap();
    conversation.run(&model, said("Sure?"), never()).await.unwrap();
    let last = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert_eq!(last.matches("Worker w1 (counter) has settled. Its report:").count(), 1, "{last}");
    assert_eq!(
        told(&wait(&conversation, "w1").await),
        "w1 (counter): settled. You were given its last result before."
    );
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_running_worker_hears_a_message_at_its_next_step() {
    let world = World::acted(|scene| match scene.step {
        0 => held(0),
        _ => words(if scene.heard().contains("Use blue.") { "Blue it is." } else { "I heard nothing." }),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "painter", "Paint.").await;
    until(&conversation, 1, WorkerStatus::Running).await;
    let running = call(&conversation, "vibe_wait", json!({"worker_id": "w1", "timeout_seconds": 0})).await;
    assert_eq!(told(&running), "w1 (painter) is still running after 0 s of waiting.");
    let sent = call(&conversation, "vibe_send", json!({"worker_id": "w1", "message": "Use blue."})).await;
    assert_eq!(told(&sent), "w1 (painter) is at work and gets the message at its next step.");
    world.put("go", "");
    assert!(told(&wait(&conversation, "w1").await).ends_with("Blue it is."));
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_settled_worker_goes_on_with_its_own_conversation() {
    let world = World::acted(|scene| {
        let heard = scene.heard();
        words(
            match (heard.contains("Name a number."), heard.contains("Add one."), heard.contains("Seven.")) {
                (true, false, false) => "Seven.",
                (true, true, true) => "Eight.",
                _ => "I do not remember.",
            },
        )
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "counter", "Name a number.").await;
    until(&conversation, 1, WorkerStatus::Settled).await;
    // Its first result is not given yet when it goes on: neither is lost, and they come in their order.
    let sent = call(&conversation, "vibe_send", json!({"worker_id": "w1", "message": "Add one."})).await;
    assert_eq!(told(&sent), "w1 (counter) goes to work again.");
    wait_until("its second turn", || {
        conversation.with_transcript(|transcript| transcript.workers().get(1).unwrap().turns == 2)
    })
    .await;
    let both = wait(&conversation, "w1").await;
    insta::assert_snapshot!(told(&both));
    assert_eq!(
        both.structured["delivered"],
        json!([{"worker_id": "w1", "turn": 1}, {"worker_id": "w1", "turn": 2}])
    );
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn of_fifty_workers_four_work_and_all_settle() {
    let world = World::acted(|scene| match scene.step {
        0 => held(0),
        _ => words("Done."),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    let mut texts = Vec::new();
    for number in 1..=50 {
        texts.push(told(&spawn(&conversation, &format!("part {number}"), "Wait.").await));
    }
    assert_eq!(texts[3], "w4 (part 4), fast, begins now.");
    assert_eq!(
        texts[4],
        "w5 (part 5), fast, is queued: 4 work side by side. It begins when one of them settles."
    );
    let count = |wanted| conversation.workers().iter().filter(|line| line.status == wanted).count();
    wait_until("four at work", || count(WorkerStatus::Running) == 4).await;
    assert_eq!(count(WorkerStatus::Queued), 46);
    // A queued one takes a message and is killed without ever having begun.
    let sent = call(&conversation, "vibe_send", json!({"worker_id": "w50", "message": "More."})).await;
    assert_eq!(told(&sent), "w50 (part 50) is still queued and gets the message together with its brief.");
    let killed = call(&conversation, "vibe_kill", json!({"worker_id": "w50"})).await;
    assert_eq!(told(&killed), "w50 (part 50) was queued and is dead.");
    world.put("go", "");
    wait_until("all settled", || count(WorkerStatus::Settled) == 49).await;
    // All results at once, each once.
    let model = Puppet::new([words("All done.")]);
    conversation.run(&model, said("Well?"), never()).await.unwrap();
    let heard = serde_json::to_string(&model.asked()[0].messages).unwrap();
    assert_eq!(heard.matches("has settled. Its report:").count(), 49);
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn more_workers_than_there_may_be_are_refused() {
    let world = World::acted(|_| held(0)).await;
    let conversation = world.direct(Approve::All).await;
    let all = futures::future::join_all(
        (0..101)
            .map(|_| call(&conversation, "vibe_spawn", json!({"brief": "Wait.", "label": "one of many"}))),
    )
    .await;
    let refused: Vec<String> = all.iter().filter(|outcome| outcome.is_error).map(told).collect();
    assert_eq!(
        refused,
        [
            "ERROR No worker was spawned: there are 100, which is the most there may be. Send one that has settled on with `vibe_send`, or end one with \
             `vibe_kill`."
        ]
    );
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_kill_ends_everything_that_the_worker_started() {
    let mark = format!("41{}", std::process::id());
    let command = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
    let background = format!("sleep {mark}");
    let world = World::acted(move |scene| match scene.step {
        0 => calls("b", &[("shell", json!({"command": background, "background": true}))]),
        // It never settles.
        _ => calls(
            &format!("s{}", scene.step),
            &[("shell", json!({"command": command, "timeout_seconds": 3600}))],
        ),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "sleeper", "Sleep.").await;
    wait_until("all asleep", || processes(&mark) >= 4).await;
    let killed = call(&conversation, "vibe_kill", json!({"worker_id": "w1"})).await;
    assert_eq!(processes(&mark), 0, "dead when it is said");
    let mut all = vec![told(&killed)];
    assert_eq!(killed.structured["workers"][0]["status"], "killed");
    for (tool, arguments) in [
        ("vibe_kill", json!({"worker_id": "w1"})),
        ("vibe_send", json!({"worker_id": "w1", "message": "Wake up."})),
        ("vibe_wait", json!({"worker_id": "w1"})),
        ("vibe_kill", json!({"worker_id": "w7"})),
        ("vibe_wait", json!({"worker_id": "w1", "timeout_seconds": 100_000})),
        ("vibe_spawn", json!({"brief": " ", "label": "x"})),
        ("vibe_spawn", json!({"brief": "x", "label": ""})),
        ("vibe_spawn", json!({"brief": "x", "label": "x".repeat(61)})),
        ("vibe_spawn", json!({"brief": "x", "label": "x", "tier": "best"})),
    ] {
        all.push(told(&call(&conversation, tool, arguments).await));
    }
    insta::assert_snapshot!(all.join("\n\n"));
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_settled_workers_background_job_lives_until_it_is_killed() {
    let mark = format!("42{}", std::process::id());
    let background = format!("sleep {mark}");
    let world = World::acted(move |scene| match scene.step {
        0 => calls("b", &[("shell", json!({"command": background, "background": true}))]),
        _ => words("It runs."),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "server", "Start the server.").await;
    wait(&conversation, "w1").await;
    assert!(processes(&mark) > 0);
    assert_eq!(
        told(&call(&conversation, "vibe_kill", json!({"worker_id": "w1"})).await),
        "w1 (server) was settled and is dead."
    );
    assert_eq!(processes(&mark), 0);
    spawn(&conversation, "server", "Start the server.").await;
    wait(&conversation, "w2").await;
    assert!(processes(&mark) > 0);
    nothing_is_left(&world, &conversation).await;
    assert_eq!(processes(&mark), 0, "closing the conversation ends it too");
}

#[tokio::test]
async fn a_kill_at_any_moment_of_a_spawn_leaves_nothing() {
    let mark = format!("43{}", std::process::id());
    let command = format!("sleep {mark}");
    let world = World::acted(move |scene| {
        calls(&format!("s{}", scene.step), &[("shell", json!({"command": command, "timeout_seconds": 3600}))])
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    for round in 0..12 {
        spawn(&conversation, "short-lived", "Sleep.").await;
        for _ in 0..round * 20 {
            tokio::task::yield_now().await;
        }
        call(&conversation, "vibe_kill", json!({"worker_id": format!("w{}", round + 1)})).await;
        assert_eq!(status(&conversation, round + 1), WorkerStatus::Killed);
        assert_eq!(processes(&mark), 0);
    }
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn leaving_vibe_mode_stops_the_workers_and_says_so() {
    let mark = format!("44{}", std::process::id());
    let command = format!("sleep {mark}");
    let world = World::acted(move |scene| {
        calls(&format!("s{}", scene.step), &[("shell", json!({"command": command, "timeout_seconds": 3600}))])
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    for label in ["one", "two", "three", "four", "five"] {
        spawn(&conversation, label, "Sleep.").await;
    }
    wait_until("four asleep", || processes(&mark) == 4).await;
    conversation.set_mode(Mode::Plan).await.unwrap();
    assert_eq!(processes(&mark), 0);
    assert!((1..=5).all(|number| status(&conversation, number) == WorkerStatus::Interrupted));
    let notices: Vec<String> = world
        .events(&conversation)
        .await
        .into_iter()
        .filter_map(|event| if let Event::Notice { text } = event { Some(text) } else { None })
        .collect();
    assert_eq!(
        notices,
        [
            "Vibe mode was left, so 5 workers were stopped: w1 (one), w2 (two), w3 (three), w4 (four), w5 (five)."
        ]
    );
    for tool in ["vibe_spawn", "vibe_send", "vibe_wait", "vibe_kill", "vibe_list"] {
        assert_eq!(told(&call(&conversation, tool, json!({})).await), format!("ERROR unknown tool: {tool}"));
    }
    // Back in vibe mode they can be sent on.
    conversation.set_mode(Mode::Vibe).await.unwrap();
    let sent = call(&conversation, "vibe_send", json!({"worker_id": "w2", "message": "Go on."})).await;
    assert_eq!(told(&sent), "w2 (two) goes to work again.");
    wait_until("one asleep", || processes(&mark) == 1).await;
    nothing_is_left(&world, &conversation).await;
    assert_eq!(processes(&mark), 0);
}

#[tokio::test]
async fn the_roster_and_its_results_survive_a_restart() {
    let play = |scene: &Scene<'_>| match scene.step {
        0 if scene.brief.contains("Hold.") && !scene.heard().contains("Finish.") => held(0),
        _ => words(if scene.heard().contains("Finish.") { "I remember: hold." } else { "Done." }),
    };
    let world = World::acted(play).await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "quick", "Be quick.").await;
    spawn(&conversation, "slow", "Hold.").await;
    until(&conversation, 1, WorkerStatus::Settled).await;
    until(&conversation, 2, WorkerStatus::Running).await;
    let id = conversation.id().clone();
    conversation.close().await.unwrap();
    drop(conversation);
    let conversation =
        Arc::new(world.host.resume(&id, world.staffed(Mode::Vibe, Approve::All)).await.unwrap());
    assert_eq!(conversation.mode(), Mode::Vibe);
    let list = call(&conversation, "vibe_list", json!({})).await;
    let shown: Vec<(&Value, &Value)> = list.structured["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (&line["worker_id"], &line["status"]))
        .collect();
    assert_eq!(shown, [(&json!("w1"), &json!("settled")), (&json!("w2"), &json!("interrupted"))]);
    // Both results come, once, and the interrupted one goes on with what it knew.
    let model = Puppet::new([words("I see."), words("Nothing new.")]);
    conversation.run(&model, said("What happened?"), never()).await.unwrap();
    let heard = serde_json::to_string(&model.asked()[0].messages).unwrap();
    assert!(heard.contains("Worker w1 (quick) has settled. Its report:\\nDone."), "{heard}");
    assert!(
        heard.contains("Worker w2 (slow) was interrupted: its director's conversation was closed."),
        "{heard}"
    );
    call(&conversation, "vibe_send", json!({"worker_id": "w2", "message": "Finish."})).await;
    assert!(told(&wait(&conversation, "w2").await).ends_with("I remember: hold."));
    conversation.run(&model, said("And now?"), never()).await.unwrap();
    let heard = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert_eq!(heard.matches("has settled").count(), 1, "{heard}");
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_fork_sees_the_roster_but_does_not_use_the_workers_of_its_origin() {
    let world = World::acted(|_| words("Done.")).await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "one", "Work.").await;
    wait(&conversation, "w1").await;
    let fork = world.host.fork(conversation.id(), None).await.unwrap();
    let forked = world.host.resume(&fork, world.staffed(Mode::Vibe, Approve::All)).await.unwrap();
    call(&forked, "vibe_send", json!({"worker_id": "w1", "message": "More."})).await;
    let answer = told(&wait(&forked, "w1").await);
    assert!(answer.contains("belongs to another conversation"), "{answer}");
    forked.close().await.unwrap();
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn two_waits_for_one_result_give_it_once() {
    let world = World::acted(|scene| match scene.step {
        0 => held(0),
        _ => words("Done."),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "one", "Wait.").await;
    let waits = tokio::spawn({
        let conversation = conversation.clone();
        async move { tokio::join!(wait(&conversation, "w1"), wait(&conversation, "w1")) }
    });
    until(&conversation, 1, WorkerStatus::Running).await;
    world.put("go", "");
    let (first, second) = waits.await.unwrap();
    let texts = [told(&first), told(&second)];
    assert_eq!(texts.iter().filter(|text| text.contains("Done.")).count(), 1, "{texts:?}");
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_wait_that_is_broken_off_gives_nothing_away() {
    let world = World::acted(|_| words("Done.")).await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "one", "Work.").await;
    until(&conversation, 1, WorkerStatus::Settled).await;
    let cancelled = never();
    cancelled.cancel();
    let broken = conversation.call("vibe_wait", json!({"worker_id": "w1"}), Origin::Console, cancelled).await;
    assert!(broken.is_error);
    assert!(told(&wait(&conversation, "w1").await).contains("Done."));
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn a_worker_that_fails_says_why_and_can_be_sent_on() {
    let world = World::acted(|scene| match scene.step {
        0 => Err(ModelError::Unavailable {
            model: "test/fast".into(),
            attempts: 3,
            message: "overloaded".into(),
        }),
        _ => words("Now it worked."),
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "unlucky", "Work.").await;
    let failed = told(&wait(&conversation, "w1").await);
    assert!(failed.starts_with("Worker w1 (unlucky) failed: ") && failed.contains("overloaded"), "{failed}");
    call(&conversation, "vibe_send", json!({"worker_id": "w1", "message": "Again."})).await;
    assert!(told(&wait(&conversation, "w1").await).ends_with("Now it worked."));
    nothing_is_left(&world, &conversation).await;
}

#[tokio::test]
async fn without_a_model_nobody_is_spawned() {
    let world = World::new().await;
    let setup = Setup { mode: Mode::Vibe, ..world.setup(Approve::All) };
    let conversation = world.host.start(&world.project(), setup).await.unwrap();
    let refused = call(&conversation, "vibe_spawn", json!({"brief": "Work.", "label": "one"})).await;
    let explained = conversation.explain();
    let explore = explained.iter().find(|line| line.name == "explore").unwrap();
    insta::assert_snapshot!(format!("{}\n\n{}", told(&refused), explore.why_not.as_deref().unwrap()));
    assert_eq!(conversation.workers(), []);
}

#[tokio::test]
async fn what_models_are_told_of_people_and_workers() {
    let world = World::acted(|_| words("")).await;
    let conversation = world.direct(Approve::All).await;
    let tools: Vec<_> = conversation
        .tools()
        .into_iter()
        .filter(|tool| tool.name.starts_with("vibe_") || matches!(tool.name.as_str(), "ask_user" | "explore"))
        .collect();
    insta::assert_json_snapshot!(tools);
    let seen: Vec<(String, Vec<String>)> = conversation
        .explain()
        .into_iter()
        .filter(|line| tools.iter().any(|tool| tool.name == line.name))
        .map(|line| (line.name, line.surfaces.iter().map(ToString::to_string).collect()))
        .collect();
    insta::assert_json_snapshot!("who_sees_them", seen);
}

#[tokio::test]
async fn a_dropped_conversation_stops_its_workers() {
    let mark = format!("45{}", std::process::id());
    let command = format!("sleep {mark}");
    let world = World::acted(move |scene| {
        calls(&format!("s{}", scene.step), &[("shell", json!({"command": command, "timeout_seconds": 3600}))])
    })
    .await;
    let conversation = world.direct(Approve::All).await;
    spawn(&conversation, "sleeper", "Sleep.").await;
    wait_until("asleep", || processes(&mark) == 1).await;
    drop(conversation);
    wait_until("dead", || processes(&mark) == 0).await;
}

#[test]
fn an_end_is_told_by_its_event() {
    let event = Event::Worker {
        worker: 2,
        event: WorkerEvent::Ended { end: WorkerEnd::Settled, report: "Done.".into(), ms: 12 },
    };
    assert_eq!(
        serde_json::to_value(&event).unwrap(),
        json!({"kind": "worker", "data": {"worker": 2, "event": {"what": "ended", "end": "settled", "report": "Done.", "ms": 12}}})
    );
}
