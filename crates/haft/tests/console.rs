//! The console's contract (SPEC, "The console").

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{World, mark, processes, wait_until};

#[test]
fn a_call_is_answered_with_its_id() {
    let world = World::new();
    world.put("a.txt", "one\n");
    let mut console = world.console(&[]);
    console.send(r#"{"id": 7, "tool": "read", "arguments": {"path": "a.txt"}}"#);
    let mut answer = console.next();
    assert!(answer["ms"].as_f64().unwrap() >= 0.0);
    answer["ms"] = json!(0);
    insta::assert_json_snapshot!(answer);
    assert_eq!(console.end(), (Some(0), vec![]));
}

#[test]
fn what_is_not_a_call_is_answered_with_an_error() {
    let world = World::new();
    let mut console = world.console(&[]);
    let mut answers = Vec::new();
    for line in [
        "nonsense",
        "",
        "[1, 2]",
        r#"{"id": 1}"#,
        r#"{"id": 2, "tool": 3}"#,
        r#"{"id": 3, "list": false}"#,
        r#"{"id": 4, "tool": "read", "argument": {}}"#,
        r#"{"card": 1, "skip": true, "allow": "once"}"#,
        r#"{"card": 1, "skip": true}"#,
        r#"{"id": 5, "tool": "none_such", "arguments": {}}"#,
        r#"{"id": 6, "tool": "read"}"#,
    ] {
        console.send(line);
        let mut answer = console.next();
        if answer.get("ms").is_some() {
            answer["ms"] = json!(0);
        }
        assert_eq!(answer["is_error"], true, "{line}");
        answers.push(json!({"line": line, "answer": answer}));
    }
    insta::assert_json_snapshot!(answers);
    assert_eq!(console.end().0, Some(0));
}

#[test]
fn calls_may_overlap_and_the_end_of_input_lets_them_finish() {
    let world = World::new();
    let mut console = world.console(&["--approve", "all"]);
    console.send(r#"{"id": "slow", "tool": "shell", "arguments": {"command": "until [ -e go ]; do sleep 0.01; done; echo slow"}}"#);
    console.send(r#"{"id": "fast", "tool": "glob", "arguments": {"pattern": "*"}}"#);
    assert_eq!(console.next()["id"], "fast");
    world.put("go", "");
    let (code, rest) = console.end();
    assert_eq!(code, Some(0));
    assert_eq!(rest.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), ["slow"]);
    assert!(rest[0]["content"][0]["text"].as_str().unwrap().starts_with("slow"));
}

#[test]
fn the_surface_of_plan_mode_is_the_read_tier() {
    let world = World::new();
    let mut console = world.console(&["--mode", "plan", "--approve", "all"]);
    console.send(r#"{"id": 1, "list": true}"#);
    let list = console.next();
    let tools = list["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["tier"] == "read"), "{tools:?}");
    let fields: Vec<&String> = tools[0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "tier", "description", "schema", "parallel"]);
    let answer = console.call("write", json!({"path": "a", "content": "b"}));
    assert_eq!(answer["content"][0]["text"], "unknown tool: write");
    console.end();
}

#[test]
fn schemas_per_tier_are_as_reviewed() {
    let world = World::new();
    let mut console = world.console(&[]);
    console.send(r#"{"id": 1, "list": true}"#);
    let list = console.next();
    insta::assert_json_snapshot!(list["tools"]);
    console.end();
}

#[test]
fn nobody_attached_is_a_refusal_and_a_person_is_asked() {
    let world = World::new();
    let mut console = world.console(&[]);
    let answer = console.call("write", json!({"path": "a.txt", "content": "b"}));
    assert_eq!((&answer["is_error"], &answer["structured"]["refused_by"]), (&json!(true), &json!("nobody")));
    console.end();

    let mut console = world.console(&["--person"]);
    console.send(r#"{"id": 1, "tool": "write", "arguments": {"path": "a.txt", "content": "b"}}"#);
    let card = console.next();
    insta::assert_json_snapshot!(card);
    console.send(r#"{"card": 1, "selected": ["yes"]}"#);
    assert_eq!(
        console.next(),
        json!({"card": 1, "is_error": true, "error": "card 1 is a permission card: answer it with allow: once, always or no"})
    );
    console.send(r#"{"card": 1, "allow": "once"}"#);
    assert_eq!(console.next()["is_error"], false);
    console.send(r#"{"card": 1, "allow": "once"}"#);
    assert_eq!(console.next()["is_error"], true, "a card is answered once");
    // A card that waits when the person leaves is refused, not left hanging.
    console.send(r#"{"id": 2, "tool": "write", "arguments": {"path": "b.txt", "content": "b"}}"#);
    assert_eq!(console.next()["card"]["number"], 2);
    let (code, rest) = console.end();
    assert_eq!(code, Some(0));
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["structured"]["refused_by"], "nobody");
    assert!(!world.project().join("b.txt").exists());
}

#[test]
fn nothing_is_left_when_the_console_ends() {
    let world = World::new();
    let mark = mark(1);
    let mut console = world.console(&["--approve", "all"]);
    console.call("shell", json!({"command": format!("sleep {mark}"), "background": true}));
    console.call("shell", json!({"command": format!("(setsid sleep {mark} &) ; sleep 0.05")}));
    wait_until("the job runs", || !processes(&mark).is_empty());
    assert_eq!(console.end().0, Some(0));
    assert_eq!(processes(&mark), Vec::<String>::new());
}

#[test]
fn nothing_is_left_when_the_console_is_killed() {
    let world = World::new();
    let mark = mark(2);
    let mut console = world.console(&["--approve", "all"]);
    console.call("shell", json!({"command": format!("trap '' TERM; sleep {mark}"), "background": true}));
    console.send(&json!({"id": 1, "tool": "shell", "arguments": {"command": format!("(setsid nohup sleep {mark} &); sleep {mark}")}}).to_string());
    wait_until("three sleeps run", || processes(&mark).len() >= 3);
    console.child.kill().unwrap();
    console.child.wait().unwrap();
    wait_until("everything is dead", || processes(&mark).is_empty());
}

#[test]
fn a_reader_that_goes_away_ends_what_runs() {
    let world = World::new();
    let mark = mark(3);
    let mut console = world.console(&["--approve", "all"]);
    console.send(&json!({"id": 1, "tool": "shell", "arguments": {"command": format!("sleep {mark}"), "timeout_seconds": 3600}}).to_string());
    wait_until("it runs", || !processes(&mark).is_empty());
    let mut child = console.child;
    drop((console.stdin, console.stdout));
    child.wait().unwrap();
    assert_eq!(processes(&mark), Vec::<String>::new());
}

#[test]
fn the_tool_command_prints_for_people_and_for_programs() {
    let world = World::new();
    world.put("a.txt", "one\n");
    let output = world.run(&["tool", "read", r#"{"path": "a.txt"}"#]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("one"));
    let output = world.run(&["tool", "--json", "read", r#"{"path": "none.txt"}"#]);
    assert_eq!(output.status.code(), Some(1));
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["tool"], &line["is_error"]), (&json!("read"), &json!(true)));
    let output = world.run(&["tool", "read", "path=a.txt"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}
