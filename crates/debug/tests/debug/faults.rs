//! What an outside hand or a dead adapter does to a session: the answer is right, comes in time, and nothing is left.

use std::time::Duration;

use pretty_assertions::assert_eq;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::bench::{Bench, Said, is_alive, op};

/// A program that stands at a breakpoint, runs for a long time when it is let go, and its adapter.
struct Subject {
    name: &'static str,
    bench: Bench,
    launch: Value,
    stop: Value,
}

fn subjects() -> Vec<Subject> {
    let python = Bench::new();
    python.put("requirements.txt", "").put(
        "spin.py",
        "import time\ncount = 0\nwhile True:\n    count += 1\n    if count == 2:\n        print('ready', flush=True)\n    time.sleep(0.01)\n",
    );
    let native = Bench::new();
    crate::native::compile(
        &native,
        "#include <unistd.h>\nint main(void) {\n    volatile int count = 0;\n    for (;;) {\n        count++;\n        usleep(10000);\n    }\n}\n",
        &["-g", "-O0"],
    );
    let go = Bench::new();
    go.put("go.mod", "module spin\n\ngo 1.19\n").put(
        "main.go",
        "package main\n\nimport \"time\"\n\nfunc main() {\n\tcount := 0\n\tfor {\n\t\tcount++\n\t\ttime.Sleep(10 * time.Millisecond)\n\t}\n}\n",
    );
    vec![
        Subject {
            name: "debugpy",
            bench: python,
            launch: json!({"op": "launch", "program": "spin.py"}),
            stop: json!({"op": "breakpoints", "file": "spin.py", "lines": [4]}),
        },
        Subject {
            name: "lldb",
            bench: native,
            launch: json!({"op": "launch", "program": "program"}),
            stop: json!({"op": "breakpoints", "file": "program.c", "lines": [5]}),
        },
        Subject {
            name: "delve",
            bench: go,
            launch: json!({"op": "launch", "program": "."}),
            stop: json!({"op": "breakpoints", "file": "main.go", "lines": [8]}),
        },
    ]
}

impl Subject {
    async fn at_a_stop(&self) -> u32 {
        self.bench.ok(self.stop.clone()).await;
        let stop = self.bench.ok(self.launch.clone()).await;
        assert_eq!(stop.stop().0, "breakpoint", "{}: {}", self.name, stop.text);
        stop.pid()
    }

    async fn running(&self) -> u32 {
        let pid = self.at_a_stop().await;
        let mut clear = self.stop.clone();
        clear["lines"] = json!([]);
        self.bench.ok(clear).await;
        let said = self.bench.ok(json!({"op": "continue", "wait_seconds": 0})).await;
        assert_eq!(said.state(), "running", "{}: {}", self.name, said.text);
        pid
    }

    fn adapter(&self) -> u32 {
        let running = self.bench.supervisor.running();
        assert_eq!(running.len(), 1, "{}: {running:?}", self.name);
        running[0].pid
    }

    /// Asks until the program is not running any more; the deadline is that of the whole call.
    async fn until_it_ended(&self) -> Said {
        let mut last = String::new();
        for _ in 0..400 {
            let said = self.bench.ok(op("status")).await;
            if said.state() != "running" && said.state() != "stopped" {
                return said;
            }
            last = said.text;
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{}: the end was not noticed: {last}", self.name);
    }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_program_killed_at_a_stop_has_ended() {
    for subject in subjects() {
        let pid = subject.at_a_stop().await;
        kill(pid);
        // delve answers this with success and a stop.
        let said = subject.bench.call(op("step_over")).await;
        assert_eq!(said.structured["state"], "exited", "{}: {}", subject.name, said.all_text());
        assert_eq!(subject.until_it_ended().await.state(), "exited");
        let again = subject.bench.ok(subject.launch.clone()).await;
        assert_eq!(again.state(), "stopped", "{}: {}", subject.name, again.text);
        subject.bench.end().await;
    }
}

#[tokio::test]
async fn a_program_killed_while_it_runs_has_ended() {
    for subject in subjects() {
        let pid = subject.running().await;
        kill(pid);
        let said = subject.until_it_ended().await;
        assert_eq!(said.state(), "exited", "{}: {}", subject.name, said.text);
        subject.bench.end().await;
    }
}

#[tokio::test]
async fn an_adapter_killed_takes_its_program_with_it_and_is_named() {
    for at_stop in [true, false] {
        for subject in subjects() {
            let pid = if at_stop { subject.at_a_stop().await } else { subject.running().await };
            kill(subject.adapter());
            let said = if at_stop {
                subject.bench.err(op("step_over")).await
            } else {
                subject.until_it_ended().await
            };
            assert!(
                said.text.contains("debug adapter has died"),
                "{} {at_stop}: {}",
                subject.name,
                said.text
            );
            assert_eq!(said.state(), "exited");
            // The end was told when everything below the adapter was dead.
            assert!(!is_alive(pid), "{}", subject.name);
            subject.bench.end().await;
        }
    }
}

#[tokio::test]
async fn terminate_ends_what_stands_and_what_runs() {
    for at_stop in [true, false] {
        for subject in subjects() {
            let pid = if at_stop { subject.at_a_stop().await } else { subject.running().await };
            let said = subject.bench.ok(op("terminate")).await;
            assert_eq!(said.state(), "exited", "{}: {}", subject.name, said.text);
            assert!(!is_alive(pid), "{}", subject.name);
            subject.bench.end().await;
        }
    }
}

#[tokio::test]
async fn a_running_program_is_paused_and_refuses_to_be_looked_into() {
    for subject in subjects() {
        subject.running().await;
        let refused = subject.bench.err(json!({"op": "evaluate", "expression": "1"})).await;
        assert!(refused.text.contains("running"), "{}: {}", subject.name, refused.text);
        assert_eq!(refused.state(), "running");
        let twice = subject.bench.err(op("continue")).await;
        assert!(twice.text.contains("already running"), "{}: {}", subject.name, twice.text);
        let second = subject.bench.err(subject.launch.clone()).await;
        assert!(second.text.contains("A session exists already"), "{}: {}", subject.name, second.text);
        let stop = subject.bench.ok(op("pause")).await;
        assert_eq!(
            (stop.state(), stop.stop().0.as_str()),
            ("stopped", "pause"),
            "{}: {}",
            subject.name,
            stop.text
        );
        let threads = subject.bench.ok(op("threads")).await;
        assert!(!threads.fields["threads"].as_array().unwrap().is_empty());
        subject.bench.end().await;
    }
}

#[tokio::test]
async fn a_session_ends_at_its_time_limit() {
    let bench = Bench::with_time_to_live(Duration::from_secs(2));
    bench.put("requirements.txt", "").put("spin.py", "import time\nwhile True:\n    time.sleep(0.01)\n");
    let subject = Subject {
        name: "debugpy",
        bench,
        launch: json!({"op": "launch", "program": "spin.py", "wait_seconds": 200}),
        stop: json!({"op": "breakpoints", "file": "spin.py", "lines": []}),
    };
    // Whether the limit comes before the program has started or after is the same to the answer.
    let said = subject.bench.call(subject.launch.clone()).await;
    assert!(said.all_text().contains("ended at its time limit (2 s)"), "{}", said.all_text());
    subject.bench.end().await;
}
