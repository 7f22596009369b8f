//! Python programs that start processes: each is debugged in a session of its own, all of them through one conversation with the tool.

use pretty_assertions::assert_eq;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bench::{Bench, Said, is_alive, op};

fn project(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new();
    bench.put("requirements.txt", "");
    for (name, text) in files {
        bench.put(name, text);
    }
    bench
}

/// Where it stopped, in which process.
fn place(said: &Said) -> (String, String, u64) {
    let stopped = &said.fields["stopped"];
    (
        stopped["reason"].as_str().unwrap_or_default().to_owned(),
        stopped["file"].as_str().unwrap_or_default().to_owned(),
        stopped["line"].as_u64().unwrap_or_default(),
    )
}

fn process(said: &Said) -> u32 {
    let pid = said.fields["stopped"]["process_id"].as_u64();
    pid.unwrap_or_else(|| panic!("{}", said.text)).try_into().unwrap()
}

const STARTER: &str = "\
import subprocess, sys

def main():
    answer = subprocess.run([sys.executable, 'child.py', '7'], capture_output=True, text=True)
    print('child said', answer.stdout.strip())

main()
";

const CHILD: &str = "\
import sys

def work(number):
    double = number * 2
    return double

print(work(int(sys.argv[1])))
";

#[tokio::test]
async fn a_python_that_the_program_starts_is_stopped_and_stepped() {
    let bench = project(&[("starter.py", STARTER), ("child.py", CHILD)]);
    bench.ok(json!({"op": "breakpoints", "file": "child.py", "lines": [4]})).await;
    bench.ok(json!({"op": "breakpoints", "file": "starter.py", "lines": [5]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "starter.py"})).await;
    assert_eq!(place(&stop), ("breakpoint".into(), "child.py".into(), 4), "{}", stop.text);
    assert_eq!(stop.value("number"), "7");
    let child = process(&stop);
    assert!(is_alive(child));
    let step = bench.ok(op("step_over")).await;
    assert_eq!((place(&step).2, step.value("double"), process(&step)), (5, "14".into(), child));
    let stack = bench.ok(op("stack")).await;
    let frame = stack.fields["frames"][1]["id"].clone();
    let value = bench.ok(json!({"op": "evaluate", "expression": "sys.argv", "frame_id": frame})).await;
    assert_eq!(value.fields["result"], "['child.py', '7']");
    let stop = bench.ok(op("continue")).await;
    assert_eq!(place(&stop), ("breakpoint".into(), "starter.py".into(), 5), "{}", stop.text);
    assert_ne!(process(&stop), child);
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.output()), ("exited", "child said 14\n"), "{}", end.text);
    bench.end().await;
}

const POOL: &str = "\
import multiprocessing, os, sys

def work(number):
    square = number * number
    return square

if __name__ == '__main__':
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(2) as pool:
        print(pool.map(work, [1, 2, 3], chunksize=1))
";

#[tokio::test]
async fn the_workers_of_a_pool_stop_and_the_program_gets_their_results() {
    for method in ["fork", "spawn"] {
        let bench = project(&[("pool.py", POOL)]);
        bench.ok(json!({"op": "breakpoints", "file": "pool.py", "lines": [5]})).await;
        let mut said = bench.ok(json!({"op": "launch", "program": "pool.py", "args": [method]})).await;
        let mut squares = Vec::new();
        while said.state() == "stopped" {
            assert_eq!(place(&said), ("breakpoint".into(), "pool.py".into(), 5), "{method}: {}", said.text);
            squares.push(said.value("square"));
            said = bench.ok(op("continue")).await;
        }
        squares.sort();
        assert_eq!(squares, ["1", "4", "9"], "{method}");
        assert_eq!((said.state(), said.fields["exit_code"].as_i64()), ("exited", Some(0)), "{}", said.text);
        assert!(said.output().contains("[1, 4, 9]"), "{method}: {}", said.text);
        bench.end().await;
    }
}

const LEAVER: &str = "\
import os, subprocess, sys, time
subprocess.Popen([sys.executable, 'stays.py'])
while not os.path.exists('stays'):
    time.sleep(0.01)
";

const STAYS: &str = "\
import os, time
first = os.getppid()
open('stays', 'w').close()
while os.getppid() == first: time.sleep(0.01)
left = True
print('alone', flush=True)
";

#[tokio::test]
async fn processes_are_left_alone_on_demand() {
    let bench = project(&[("starter.py", STARTER), ("child.py", CHILD)]);
    bench.ok(json!({"op": "breakpoints", "file": "child.py", "lines": [4]})).await;
    let end = bench.ok(json!({"op": "launch", "program": "starter.py", "subprocesses": false})).await;
    assert_eq!((end.state(), end.output()), ("exited", "child said 14\n"), "{}", end.text);
    assert_eq!(end.fields.get("processes"), None);
    bench.end().await;
}

#[tokio::test]
async fn a_process_that_outlives_the_program_is_debugged_to_its_end() {
    let bench = project(&[("leaver.py", LEAVER), ("stays.py", STAYS)]);
    bench.ok(json!({"op": "breakpoints", "file": "stays.py", "lines": [6]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "leaver.py"})).await;
    assert_eq!(place(&stop), ("breakpoint".into(), "stays.py".into(), 6), "{}", stop.text);
    let status = bench.ok(op("status")).await;
    assert_eq!((status.state(), &status.fields["processes"][0]["state"]), ("stopped", &json!("exited")));
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(0)), "{}", end.text);
    assert_eq!(end.output(), "alone\n");
    bench.end().await;
}

#[tokio::test]
async fn a_process_killed_at_its_stop_leaves_the_program_to_go_on() {
    let bench = project(&[("starter.py", STARTER), ("child.py", CHILD)]);
    bench.ok(json!({"op": "breakpoints", "file": "child.py", "lines": [4]})).await;
    bench.ok(json!({"op": "breakpoints", "file": "starter.py", "lines": [5]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "starter.py"})).await;
    let child = process(&stop);
    kill_process(Pid::from_raw(child.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // The step is one in a process that is gone: what follows is the program's own next stop.
    let said = bench.ok(op("step_over")).await;
    assert_eq!(place(&said), ("breakpoint".into(), "starter.py".into(), 5), "{}", said.text);
    assert!(said.value("answer").contains("returncode=-9"), "{}", said.text);
    let gone = bench.err(json!({"op": "stack", "process_id": child})).await;
    assert!(gone.text.contains(&format!("No process {child} is being debugged.")), "{}", gone.text);
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(0)), "{}", end.text);
    bench.end().await;
}

#[tokio::test]
async fn two_processes_stand_at_once_and_each_is_looked_into() {
    let bench = project(&[
        (
            "two.py",
            "import subprocess, sys\nboth = [subprocess.Popen([sys.executable, 'child.py', n]) for n in '12']\ncodes = [each.wait() for each in both]\nprint(codes)\n",
        ),
        ("child.py", CHILD),
    ]);
    bench.ok(json!({"op": "breakpoints", "file": "child.py", "lines": [5]})).await;
    let first = bench.ok(json!({"op": "launch", "program": "two.py"})).await;
    // A look at the one that stands waits for nobody; the other one stops by itself.
    let other = loop {
        let status = bench.ok(op("status")).await;
        let stands = |each: &&serde_json::Value| each["state"] == "stopped" && each["id"] != process(&first);
        if let Some(other) = status.fields["processes"].as_array().unwrap().iter().find(stands) {
            break other["id"].clone();
        }
    };
    let here = bench.ok(json!({"op": "evaluate", "expression": "number * 100"})).await;
    let there = bench.ok(json!({"op": "evaluate", "expression": "number * 100", "process_id": other})).await;
    let mut both = [here.fields["result"].clone(), there.fields["result"].clone()];
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("100"), json!("200")]);
    let step = bench.ok(json!({"op": "step_out", "process_id": other})).await;
    assert_eq!((json!(process(&step)), place(&step).0), (other, "step".into()), "{}", step.text);
    bench.ok(op("terminate")).await;
    bench.end().await;
}

/// Ends by itself, whatever it has started.
const QUICK: &str = "\
import os, subprocess, sys

def deeper(level):
    if level:
        subprocess.run([sys.executable, __file__, str(level - 1)], check=True)
    here = level
    return here

if len(sys.argv) > 1:
    deeper(int(sys.argv[1]))
else:
    for turn in range(3):
        subprocess.run([sys.executable, '-c', 'print(1)'], check=True)
    child = os.fork()
    if child == 0:
        deeper(1)
        os._exit(3)
    print('forked', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, __file__, '0'])
";

#[tokio::test]
async fn processes_of_processes_a_fork_and_a_replaced_program_are_followed() {
    let bench = project(&[("quick.py", QUICK)]);
    // Without a breakpoint everything runs through.
    let end = bench.ok(json!({"op": "launch", "program": "quick.py"})).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(0)), "{}", end.text);
    assert!(end.output().contains("1\n1\n1\n") && end.output().contains("forked 3"), "{}", end.text);
    bench.ok(json!({"op": "breakpoints", "file": "quick.py", "lines": [7]})).await;
    let mut said = bench.ok(json!({"op": "launch", "program": "quick.py"})).await;
    let mut levels = Vec::new();
    while said.state() == "stopped" {
        let ids: Vec<u64> = said.fields["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["id"].as_u64().unwrap())
            .collect();
        let mut once = ids.clone();
        once.dedup();
        assert_eq!(ids, once);
        levels.push((said.value("level"), said.fields["stopped"]["process_id"].as_u64().unwrap()));
        said = bench.ok(op("continue")).await;
    }
    let seen: Vec<&str> = levels.iter().map(|(level, _)| level.as_str()).collect();
    // Below the fork, in the fork, and in what the program is replaced by.
    assert_eq!(seen, ["0", "1", "0"]);
    assert_eq!((said.state(), said.fields["exit_code"].as_i64()), ("exited", Some(0)), "{}", said.text);
    bench.end().await;
}

#[tokio::test]
async fn everything_below_a_program_ends_with_it() {
    for what in ["terminate", "kill the program", "kill the adapter"] {
        let bench = project(&[
            (
                "two.py",
                "import subprocess, sys\nboth = [subprocess.Popen([sys.executable, 'child.py', n]) for n in '12']\nfor each in both:\n    each.wait()\n",
            ),
            ("child.py", CHILD),
        ]);
        bench.ok(json!({"op": "breakpoints", "file": "child.py", "lines": [4]})).await;
        let stop = bench.ok(json!({"op": "launch", "program": "two.py"})).await;
        let child = process(&stop);
        let program = stop.fields["processes"][0]["id"].as_u64().unwrap().try_into().unwrap();
        let kill = |pid: u32| kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        match what {
            "terminate" => {}
            "kill the program" => kill(program),
            _ => kill(bench.supervisor.running()[0].pid),
        }
        let said = bench.call(op("step_over")).await;
        if what == "kill the adapter" {
            assert_eq!(said.structured["state"], "exited", "{}", said.all_text());
            assert!(said.all_text().contains("debug adapter has died"), "{}", said.all_text());
        } else {
            // The processes below go on being debugged.
            assert_eq!(said.structured["stopped"]["process_id"], child, "{what}: {}", said.all_text());
            let state = if what == "terminate" { "running" } else { "exited" };
            assert_eq!(said.structured["processes"][0]["state"], state, "{what}: {}", said.all_text());
        }
        let said = bench.ok(op("terminate")).await;
        assert_eq!(said.state(), "exited", "{what}: {}", said.text);
        assert!(!is_alive(child) && !is_alive(program), "{what}");
        bench.end().await;
    }
}

#[tokio::test]
async fn a_program_that_listens_brings_its_processes_along_and_keeps_them() {
    let bench = project(&[
        (
            "serve.py",
            "import subprocess, sys, time\nimport debugpy\ndebugpy.listen(int(sys.argv[1]))\nprint('ready', flush=True)\ndebugpy.wait_for_client()\nwhile True:\n    subprocess.run([sys.executable, 'child.py', '3'])\n",
        ),
        ("child.py", CHILD),
    ]);
    let port = crate::attach::free_port();
    let mut stranger = crate::attach::Stranger::start(
        std::process::Command::new(crate::bench::debugpy().join("python3"))
            .args(["serve.py", &port.to_string()])
            .current_dir(&bench.root),
    );
    stranger.says("ready");
    for _ in 0..2 {
        bench.ok(json!({"op": "breakpoints", "file": "child.py", "lines": [5]})).await;
        let stop = bench.ok(json!({"op": "attach", "adapter": "debugpy", "port": port})).await;
        assert_eq!((place(&stop).1, stop.value("double")), ("child.py".into(), "6".into()), "{}", stop.text);
        let said = bench.ok(op("terminate")).await;
        assert_eq!(said.state(), "none", "{}", said.text);
        assert!(stranger.is_alive());
    }
    bench.debugger.shutdown().await;
    assert!(stranger.is_alive());
}

#[tokio::test]
async fn a_process_that_has_let_go_of_the_output_is_ended_with_the_program() {
    let bench = project(&[
        (
            "leave.py",
            "import os, subprocess, sys, time\nnone = subprocess.DEVNULL\nsubprocess.Popen([sys.executable, 'stay.py'], stdin=none, stdout=none, stderr=none)\nwhile not os.path.exists('there'):\n    time.sleep(0.01)\n",
        ),
        ("stay.py", "import time\nopen('there', 'w').close()\nwhile True:\n    time.sleep(0.01)\n"),
    ]);
    let end = bench.ok(json!({"op": "launch", "program": "leave.py"})).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(0)), "{}", end.text);
    // debugpy may have ended it before anybody could see that it was still there; in either case nothing of it is left.
    bench.ok(op("terminate")).await;
    assert_eq!(bench.left(), Vec::<String>::new());
    bench.end().await;
}
