//! `haft chat` at a terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "these tests open a terminal")]

mod support;

use std::{
    fs::File,
    io::{Read, Write},
    process::Child,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use support::{World, mark, processes, wait_until};

/// A chat and the terminal that it runs at.
struct Chat {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    seen: usize,
}

impl Chat {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = || File::options().read(true).write(true).open(&name).unwrap();
        let mut all = vec!["chat"];
        all.extend(arguments);
        let child = world.haft(&all).stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
        let ours = File::from(ours);
        let screen = Arc::new(Mutex::new(String::new()));
        std::thread::spawn({
            let (mut ours, screen) = (ours.try_clone().unwrap(), screen.clone());
            move || {
                let mut bytes = [0; 4096];
                // An error says that the chat is gone.
                while let Ok(count @ 1..) = ours.read(&mut bytes) {
                    screen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
                }
            }
        });
        Chat { child, keyboard: ours, screen, seen: 0 }
    }

    /// Waits until the screen shows `text` after what was expected before.
    fn expect(&mut self, text: &str) {
        self.expect_one(&[text]);
    }

    /// As `expect`, for the first of `texts` that has come; says which.
    fn expect_one(&mut self, texts: &[&str]) -> usize {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let screen = self.screen.lock().unwrap().clone();
            for (which, text) in texts.iter().enumerate() {
                if let Some(at) = screen[self.seen..].find(text) {
                    self.seen += at + text.len();
                    return which;
                }
            }
            assert!(Instant::now() < deadline, "no {texts:?} on the screen:\n{}", &screen[self.seen..]);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn say(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\r").as_bytes()).unwrap();
    }

    fn end(mut self) {
        self.say("/quit");
        self.expect("Go on later with: haft chat --resume");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn script(world: &World, name: &str, turns: &[Value]) -> String {
    let path = world.root.path().join(name);
    let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    format!("script:{}", path.display())
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": arguments}]})
}

#[test]
fn a_person_allows_undoes_forks_and_goes_back() {
    let world = World::new();
    let model = script(
        &world,
        "model",
        &[call("write", json!({"path": "a.txt", "content": "1\n"})), json!({"text": "It is written."})],
    );
    let mut chat = Chat::start(&world, &["--model", &model]);
    chat.expect("agent mode");
    chat.expect("› ");
    chat.say("Write it.");
    chat.expect("Card 1 from agent: Allow write: a.txt?");
    chat.expect("n [reason] › ");
    chat.say("y");
    chat.expect("It is written.");
    chat.expect("› ");
    assert_eq!(world.get("a.txt"), "1\n");
    chat.say("/undo");
    chat.expect("a.txt is as it was");
    assert!(!world.project().join("a.txt").exists());
    chat.expect("› ");
    chat.say("/undo");
    chat.expect("the last run changed no files");
    chat.expect("› ");
    chat.say("/fork");
    chat.expect("The one before: /resume ");
    chat.expect("› ");
    chat.say("/resume none_such");
    chat.expect("there is no conversation `none_such`");
    chat.expect("› ");
    chat.say("/plan");
    chat.expect("Plan mode");
    chat.expect("plan › ");
    chat.end();
}

#[test]
fn a_workers_question_reaches_the_prompt_and_leaving_vibe_mode_stops_it() {
    let world = World::new();
    let mark = mark(81);
    let director = script(
        &world,
        "director",
        &[
            call("vibe_spawn", json!({"label": "asker", "brief": "Ask, then sleep."})),
            json!({"text": "It is on its way."}),
        ],
    );
    let worker = script(
        &world,
        "worker",
        &[
            call("ask_user", json!({"question": "Now?", "options": [{"label": "now"}, {"label": "later"}]})),
            call("shell", json!({"command": format!("sleep {mark}"), "timeout_seconds": 3600})),
        ],
    );
    let mut chat =
        Chat::start(&world, &["--model", &director, "--fast", &worker, "--mode", "vibe", "--approve", "all"]);
    chat.expect("vibe › ");
    chat.say("Let somebody ask.");
    // The run may be over before the card comes; then the prompt holds the terminal.
    if chat.expect_one(&["Card 1 from asker: Now?", "card 1 from asker waits: press Enter to see it"]) == 1 {
        chat.say("");
        chat.expect("Card 1 from asker: Now?");
    }
    chat.expect("empty to skip › ");
    chat.say("1");
    wait_until("the worker sleeps", || !processes(&mark).is_empty());
    chat.say("/status");
    chat.expect("worker   w1 (asker), fast: running");
    chat.expect("process  ");
    chat.say("/agent");
    chat.expect("Vibe mode was left, so 1 worker was stopped: w1 (asker).");
    assert!(processes(&mark).is_empty());
    chat.end();
}
