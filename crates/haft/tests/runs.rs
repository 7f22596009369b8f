//! `haft run` and what goes on with conversations, with the script model and the real tools.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the demo needs the real home of the toolchain")]

mod support;

use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{World, mark, processes, wait_until};

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

fn lines(bytes: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(bytes).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_run_says_what_it_does_and_how_it_ended() {
    let world = World::new();
    world.put("a.txt", "one\n");
    let model = script(
        &world,
        "s",
        &[
            json!({"text": "I'll look.", "calls": [{"tool": "read", "arguments": {"path": "a.txt"}}]}),
            call("edit", json!({"path": "a.txt", "old": "one", "new": "two"})),
            json!({"text": "It says two now."}),
        ],
    );
    let output = world.run(&["run", "--model", &model, "--approve", "all", "Change it."]);
    assert_eq!(
        (output.status.code(), text(output.stdout).as_str()),
        (Some(0), "I'll look.\nIt says two now.\n")
    );
    let told = text(output.stderr);
    assert!(told.contains("→ read a.txt") && told.contains("✓ edit"), "{told}");
    assert_eq!(world.get("a.txt"), "two\n");

    let output = world.run(&["run", "--json", "--model", &model, "Change it."]);
    assert_eq!(output.status.code(), Some(0));
    let lines = lines(&output.stdout);
    assert_eq!(lines[0]["type"], "conversation");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["end"], &last["text"]),
        (&json!("result"), &json!({"how": "completed"}), &json!("It says two now."))
    );
    let refused = lines.iter().find(|line| line["data"]["outcome"]["is_error"] == true).unwrap();
    assert_eq!(refused["data"]["outcome"]["structured"]["refused_by"], "nobody");
}

#[test]
fn exit_codes_say_how_a_run_ended() {
    let world = World::new();
    let code = |arguments: &[&str]| world.run(arguments).status.code();
    let up = script(&world, "used_up", &[call("glob", json!({"pattern": "*"}))]);
    assert_eq!(code(&["run", "--model", &up, "Go."]), Some(1), "a script that is used up is a failure");
    let circle: Vec<Value> = (0..20).map(|_| call("glob", json!({"pattern": "*"}))).collect();
    let circle = script(&world, "circle", &circle);
    assert_eq!(code(&["run", "--model", &circle, "Go."]), Some(3));
    assert_eq!(code(&["run", "Go."]), Some(2), "no model");
    assert_eq!(code(&["run", "--model", "script:none_such", "Go."]), Some(2));
    assert_eq!(code(&["run", "--model", &up, " "]), Some(2), "no task");
    assert_eq!(code(&["run", "--model", &up, "--dir", "none_such", "Go."]), Some(2));
    assert_eq!(code(&["run", "--model", &up, "--resume", "none_such", "Go."]), Some(2));
}

#[test]
fn a_run_that_was_killed_is_taken_up_with_what_is_known() {
    let world = World::new();
    let mark = mark(11);
    let first = script(
        &world,
        "first",
        &[
            call("write", json!({"path": "a.txt", "content": "kept\n"})),
            json!({"calls": [{"tool": "glob", "arguments": {"pattern": "*"}}, {"tool": "shell", "arguments": {"command": format!("sleep {mark}")}}]}),
        ],
    );
    let mut child = world
        .haft(&["run", "--model", &first, "--approve", "all", "Work."])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command runs", || !processes(&mark).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the command is dead", || processes(&mark).is_empty());

    let second = script(&world, "second", &[json!({"text": "{{last.text}}"})]);
    let output =
        world.run(&["run", "--continue", "--json", "--model", &second, "--approve", "all", "Go on."]);
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let exported = lines(&world.run(&["export", "--format", "jsonl"]).stdout);
    let finished: Vec<String> = exported
        .iter()
        .filter(|line| line["kind"] == "call_finished")
        .map(|line| line["data"]["outcome"]["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(finished.len(), 3);
    assert!(finished[0].starts_with("Created `a.txt`"), "{finished:?}");
    assert!(finished[1].starts_with("a.txt"), "the call that had ended kept its result: {finished:?}");
    assert!(
        finished[2].starts_with("Interrupted: Haft ended while this call of `shell` ran."),
        "{finished:?}"
    );
    let ends: Vec<&Value> = exported
        .iter()
        .filter(|line| line["kind"] == "run_finished")
        .map(|line| &line["data"]["end"]["how"])
        .collect();
    assert_eq!(ends, ["lost", "completed"]);
    let sequences: Vec<u64> = exported.iter().map(|line| line["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=exported.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_conversation_in_use_is_refused_to_others() {
    let world = World::new();
    let mark = mark(12);
    let model = script(&world, "s", &[call("shell", json!({"command": format!("sleep {mark}")}))]);
    let mut child = world
        .haft(&["run", "--model", &model, "--approve", "all", "Work."])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command runs", || !processes(&mark).is_empty());
    let output = world.run(&["run", "--continue", "--model", &model, "Me too."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).contains("is in use by process"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ctrl_c_stops_a_run_at_once_and_leaves_nothing() {
    let world = World::new();
    let mark = mark(13);
    let command = format!("trap '' INT TERM; (setsid sleep {mark} &); sleep {mark}; sleep {mark}");
    let model = script(&world, "s", &[call("shell", json!({"command": command, "timeout_seconds": 3600}))]);
    let child = world
        .haft(&["run", "--model", &model, "--approve", "all", "Work."])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the commands run", || processes(&mark).len() >= 2);
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(output.stderr).contains("haft: interrupted"));
    assert_eq!(processes(&mark), Vec::<String>::new());
}

fn interrupt(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn a_gigabyte_of_output_is_bounded() {
    let world = World::new();
    let mut console = world.console(&["--approve", "all"]);
    let answer = console
        .call("shell", json!({"command": "head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo end"}));
    assert_eq!(answer["is_error"], false);
    let shown = answer["content"][0]["text"].as_str().unwrap();
    assert!(shown.len() < 100_000, "{}", shown.len());
    assert!(shown.contains("end\n[exit code 0"), "{}", &shown[shown.len() - 300..]);
    assert_eq!(answer["structured"]["output_bytes"], 1_000_000_005_u64);
    let status = std::fs::read_to_string(format!("/proc/{}/status", console.child.id())).unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.trim().parse().ok())
        .unwrap();
    assert!(peak < 200_000, "{peak} kB at the peak");
    console.end();
}

#[test]
fn a_change_by_somebody_else_is_not_overwritten() {
    let world = World::new();
    world.put("a.txt", "one\n");
    let mut console = world.console(&["--approve", "all"]);
    console.call("read", json!({"path": "a.txt"}));
    world.put("a.txt", "somebody else\n");
    let answer = console.call("write", json!({"path": "a.txt", "content": "two\n"}));
    assert_eq!(answer["is_error"], true);
    assert_eq!(world.get("a.txt"), "somebody else\n");
    console.end();
}

#[test]
fn the_demo_shows_the_main_job() {
    let world = World::new();
    // cargo looks for its toolchain in the real home.
    let mut command = world.haft(&["demo"]);
    for name in ["HOME", "CARGO_HOME", "RUSTUP_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let output = command.output().unwrap();
    let shown = text(output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}\n{}", text(output.stderr));
    assert!(shown.contains("`cargo test`: 4 passed. Nothing was pushed."), "{shown}");
}

#[test]
fn a_projects_own_settings_need_trust() {
    let world = World::new();
    world.put("haft.toml", "[guardrails]\npreset = \"trusted\"\n");
    let write = r#"{"path": "a.txt", "content": "x"}"#;
    assert_eq!(world.run(&["tool", "write", write]).status.code(), Some(1));
    assert_eq!(world.run(&["config", "trust"]).status.code(), Some(0));
    assert_eq!(world.run(&["tool", "write", write]).status.code(), Some(0));
    world.put("haft.toml", "[guardrails]\npreset = \"trusted\"\n# changed\n");
    assert_eq!(world.run(&["tool", "write", r#"{"path": "b.txt", "content": "x"}"#]).status.code(), Some(1));
}

#[test]
fn an_export_can_be_read() {
    let world = World::new();
    world.put("a.txt", "```\ncode\n```\n");
    let model = script(&world, "s", &[call("read", json!({"path": "a.txt"})), json!({"text": "Done."})]);
    world.run(&["run", "--model", &model, "Look at it."]);
    let output = world.run(&["export"]);
    let shown = text(output.stdout);
    assert!(shown.starts_with("# Look at it.\n"), "{shown}");
    assert!(shown.contains("\n````\n1\t```"), "the fence is longer than what it holds: {shown}");
    assert!(shown.ends_with("## Agent\n\nDone.\n"), "{shown}");
    let listed = text(world.run(&["conversations"]).stdout);
    assert!(listed.contains("Look at it."), "{listed}");
}
