//! People and workers through the real program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{Console, World, mark, processes, wait_until};

/// Writes a script and names it as a model.
fn script(world: &World, name: &str, turns: &[Value]) -> String {
    let path = world.root.path().join(name);
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    format!("script:{}", path.display())
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": arguments}]})
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn exported(world: &World, id: &str) -> Vec<Value> {
    let output = world.run(&["export", "--format", "jsonl", id]);
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Conversations as they are listed, those of workers too.
fn conversations(world: &World) -> Vec<Value> {
    let output = world.run(&["conversations", "--all", "--json"]);
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(console: &mut Console) -> Vec<String> {
    console.send(r#"{"id": 0, "list": true}"#);
    let list = console.next();
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const QUESTION: &str = r#"{"id": 1, "tool": "ask_user", "arguments": {"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}}"#;

#[test]
fn a_person_at_the_console_is_asked_and_answers_once() {
    let world = World::new();
    let mut console = world.console(&["--person"]);
    console.send(QUESTION);
    assert_eq!(
        console.next(),
        json!({"card": {
            "number": 1, "kind": "question", "from": "agent", "question": "Which?", "context": "",
            "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}],
            "allow_free_text": false, "multi_select": false,
        }})
    );
    for (line, error) in [
        (r#"{"card": 1, "text": "c"}"#, "card 1 takes no free text, only options"),
        (r#"{"card": 1, "selected": ["a", "b"]}"#, "card 1 takes one option"),
        (
            r#"{"card": 1, "allow": "once"}"#,
            "card 1 is a question card: answer it with selected, text or skip",
        ),
    ] {
        console.send(line);
        assert_eq!(console.next(), json!({"card": 1, "is_error": true, "error": error}));
    }
    console.send(r#"{"card": 1, "selected": ["b"]}"#);
    console.send(r#"{"card": 1, "selected": ["a"]}"#);
    let both = [console.next(), console.next()];
    let answer = both.iter().find(|line| line["id"] == 1).unwrap();
    let refused = both.iter().find(|line| line["card"] == 1).unwrap();
    assert_eq!(
        answer["structured"],
        json!({"outcome": "answered", "selected": ["b"], "text": "", "card": 1})
    );
    assert_eq!(
        refused["error"],
        "card 1 is not waiting for an answer: it was answered before, or there is no such card"
    );
    console.end();
}

#[test]
fn nobody_is_waited_for_where_nobody_is() {
    let world = World::new();
    let model = script(
        &world,
        "asks",
        &[
            call("ask_user", json!({"question": "Which?", "allow_free_text": true})),
            json!({"when": "Nobody is attached", "text": "I assume the first."}),
        ],
    );
    let output = world.run(&["run", "--model", &model, "Do it."]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("I assume the first."));
    let mut console = world.console(&[]);
    console.send(QUESTION);
    assert_eq!(console.next()["structured"]["outcome"], "nobody");
    console.end();
}

#[test]
fn a_card_that_was_open_when_haft_was_killed_is_cancelled() {
    let world = World::new();
    let mut console = world.console(&["--person"]);
    console.send(QUESTION);
    assert_eq!(console.next()["card"]["number"], 1);
    console.child.kill().unwrap();
    console.child.wait().unwrap();
    let id = conversations(&world)[0]["id"].as_str().unwrap().to_owned();
    let model = script(&world, "s", &[json!({"text": "Here again."})]);
    let output = world.run(&["run", "--resume", &id, "--model", &model, "Go on."]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let closed: Vec<Value> = exported(&world, &id)
        .into_iter()
        .filter(|line| line["kind"] == "card_closed")
        .map(|line| line["data"].clone())
        .collect();
    assert_eq!(closed, [json!({"number": 1, "answer": {"answer": "cancelled"}})]);
}

#[test]
fn a_dead_directors_workers_are_dead_and_listed_and_their_results_are_given() {
    let world = World::new();
    let mark = mark(71);
    let worker = script(
        &world,
        "worker",
        &[
            json!({"when": "Be quick.", "text": "Quick as told."}),
            json!({"when": "Sleep.", "calls": [{"tool": "shell", "arguments": {"command": format!("sleep {mark}")}}]}),
            json!({"text": "Awake again."}),
        ],
    );
    let mut console =
        world.console(&["--mode", "vibe", "--approve", "all", "--fast", &worker, "--good", &worker]);
    for (label, brief) in [("quick", "Be quick."), ("sleeper", "Sleep.")] {
        let spawned = console.call("vibe_spawn", json!({"label": label, "brief": brief}));
        assert_eq!(spawned["is_error"], false, "{spawned}");
    }
    wait_until("the sleeper sleeps", || !processes(&mark).is_empty());
    wait_until("the quick one has settled", || {
        exported(
            &world,
            conversations(&world).iter().find(|one| one["parent"].is_null()).unwrap()["id"].as_str().unwrap(),
        )
        .iter()
        .any(|line| line["data"]["event"]["what"] == "ended")
    });
    console.child.kill().unwrap();
    console.child.wait().unwrap();
    wait_until("the sleeper is dead", || processes(&mark).is_empty());

    let all = conversations(&world);
    let own = all.iter().find(|one| one["parent"].is_null()).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(all.iter().filter(|one| one["parent"] == json!(own)).count(), 2, "workers are children");
    let listed = text(&world.run(&["conversations"]).stdout);
    assert_eq!(listed.lines().count(), 1, "people go on with their own: {listed}");
    let director = script(
        &world,
        "director",
        &[
            call("vibe_list", json!({})),
            call("vibe_send", json!({"worker_id": "w2", "message": "Never mind."})),
            call("vibe_wait", json!({"worker_id": "w2", "timeout_seconds": 60})),
            json!({"text": "{{last.text}}"}),
        ],
    );
    let output = world.run(&[
        "run",
        "--continue",
        "--model",
        &director,
        "--approve",
        "all",
        "--fast",
        &worker,
        "What happened?",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let events = exported(&world, &own);
    let reminders: Vec<&str> = events
        .iter()
        .filter(|line| line["kind"] == "reminder")
        .map(|line| line["data"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        reminders,
        [
            "Worker w1 (quick) has settled. Its report:\nQuick as told.\n\nWorker w2 (sleeper) was interrupted: Haft ended while it worked. What it had done by \
             then stands; `vibe_send` lets it go on."
        ]
    );
    assert!(text(&output.stdout).contains("Worker w2 (sleeper) has settled."), "{}", text(&output.stdout));
}

#[test]
fn the_tools_of_vibe_mode_are_there_in_vibe_mode_only() {
    let world = World::new();
    let vibe = ["vibe_spawn", "vibe_send", "vibe_wait", "vibe_kill", "vibe_list"];
    for (mode, there) in [("agent", false), ("plan", false), ("vibe", true)] {
        let mut console = world.console(&["--mode", mode]);
        let names = names(&mut console);
        for tool in vibe {
            assert_eq!(names.iter().any(|name| name == tool), there, "{tool} in {mode} mode");
            if !there {
                let answer = console.call(tool, json!({}));
                assert_eq!(answer["content"][0]["text"], format!("unknown tool: {tool}"));
            }
        }
        assert!(names.iter().any(|name| name == "ask_user"), "{mode}");
        console.end();
    }
    let explained = text(&world.run(&["tools", "--explain"]).stdout);
    let line = |tool: &str| explained.lines().find(|line| line.starts_with(tool)).unwrap().to_owned();
    assert!(line("vibe_spawn").ends_with("registered; seen by vibe"), "{explained}");
    assert!(line("explore").contains("not registered: no model is configured for explorers"), "{explained}");
    assert!(line("ask_user").ends_with("seen by agent, plan, vibe, worker"), "{explained}");
}

#[test]
fn a_workers_card_comes_to_the_person_at_the_console() {
    let world = World::new();
    let worker = script(
        &world,
        "worker",
        &[call("write", json!({"path": "a.txt", "content": "1\n"})), json!({"text": "{{last.text}}"})],
    );
    let mut console = world.console(&["--mode", "vibe", "--person", "--fast", &worker]);
    console.send(r#"{"id": 1, "tool": "vibe_spawn", "arguments": {"label": "writer", "brief": "Write."}}"#);
    let both = [console.next(), console.next()];
    let card = &both.iter().find(|line| line.get("card").is_some()).unwrap()["card"];
    assert_eq!((&card["kind"], &card["from"]), (&json!("permission"), &json!("writer")));
    console.send(r#"{"card": 1, "allow": "no", "reason": "not now"}"#);
    let waited = console.call("vibe_wait", json!({"worker_id": "w1", "timeout_seconds": 60}));
    assert!(
        waited["content"][0]["text"].as_str().unwrap().contains("refused this call: not now"),
        "{waited}"
    );
    assert!(!world.project().join("a.txt").exists());
    console.end();
}

#[test]
fn nothing_is_left_when_a_director_ends() {
    let world = World::new();
    let mark = mark(72);
    let worker = script(
        &world,
        "worker",
        &[
            json!({"calls": [{"tool": "shell", "arguments": {"command": format!("sleep {mark} & sleep {mark}"), "timeout_seconds": 3600}}]}),
        ],
    );
    let mut console = world.console(&["--mode", "vibe", "--approve", "all", "--fast", &worker]);
    for label in ["one", "two"] {
        console.call("vibe_spawn", json!({"label": label, "brief": "Sleep."}));
    }
    wait_until("both sleep", || processes(&mark).len() >= 4);
    assert_eq!(console.end().0, Some(0));
    assert_eq!(processes(&mark), Vec::<String>::new());
    // No lease is left: each conversation can be taken up at once.
    let model = script(&world, "s", &[json!({"text": "Here."})]);
    for conversation in conversations(&world) {
        let id = conversation["id"].as_str().unwrap();
        let output = world.run(&["run", "--resume", id, "--model", &model, "There?"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}

#[test]
fn the_demo_of_workers_ends_as_it_says() {
    let world = World::new();
    let output = world.haft(&["demo", "workers"]).env("TMPDIR", world.root.path()).output().unwrap();
    let (shown, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{shown}\n{told}");
    assert!(
        shown.contains("Done. A parcel at the limit of a band is charged as that band"),
        "{shown}\n{told}"
    );
    assert!(told.contains("Card 1 from agent:") && told.contains("Card 2 from mend: Allow edit"), "{told}");
    assert!(told.contains("worker w2: killed"), "{told}");
}
