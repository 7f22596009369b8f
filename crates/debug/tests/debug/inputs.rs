//! What callers get wrong, and programs that are no fun to debug.

use haft_tool::Surface;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, at, op};

#[tokio::test]
async fn what_models_are_shown() {
    let bench = Bench::with_path(&[]);
    insta::assert_json_snapshot!(bench.registry().list(&Surface::agent()));
}

/// A call's outcome as a model reads it.
async fn said(bench: &Bench, arguments: serde_json::Value) -> String {
    let outcome = bench.call(arguments.clone()).await;
    let kind = if outcome.is_error { "error" } else { "answer" };
    let text = outcome.all_text().replace(&bench.root.display().to_string(), "[root]");
    let text = text.replace(&bench.root.parent().unwrap().display().to_string(), "[above]");
    format!("{arguments}\n{kind}: {text}")
}

#[tokio::test]
async fn calls_without_a_session_and_wrong_ones() {
    let bench = Bench::new();
    bench
        .put("requirements.txt", "")
        .put("good.py", "print('x')\n")
        .put("notes.txt", "no program\n")
        .put("package/helper.py", "x = 1\n");
    let mut all = Vec::new();
    for arguments in [
        op("status"),
        op("continue"),
        op("pause"),
        op("stack"),
        op("output"),
        op("terminate"),
        op("restart"),
        op("breakpoints"),
        op("launch"),
        op("attach"),
        json!({"op": "launch", "program": "none.py"}),
        json!({"op": "launch", "program": "package/none.py"}),
        json!({"op": "launch", "program": "notes.txt"}),
        json!({"op": "launch", "program": "package"}),
        json!({"op": "launch", "program": "../outside.py"}),
        json!({"op": "launch", "program": "good.py", "adapter": "gdb"}),
        json!({"op": "launch", "program": "good.py", "cwd": "none"}),
        json!({"op": "launch", "program": "good.py", "env": {"A": 1}}),
        json!({"op": "launch", "program": "-m"}),
        json!({"op": "breakpoints", "file": "good.py"}),
        json!({"op": "breakpoints", "lines": [1]}),
        json!({"op": "breakpoints", "file": "none.py", "lines": [1]}),
        json!({"op": "breakpoints", "file": "/etc/passwd", "lines": [1]}),
        json!({"op": "breakpoints", "file": "good.py", "lines": [0]}),
        json!({"op": "breakpoints", "file": "good.py", "lines": [1, 2, {"line": 1, "condition": "x"}]}),
        json!({"op": "evaluate", "expression": "1"}),
        json!({"op": "attach", "port": 1}),
    ] {
        all.push(said(&bench, arguments).await);
    }
    insta::assert_snapshot!(all.join("\n\n"));
    bench.end().await;
}

#[tokio::test]
async fn without_a_marker_a_program_is_debugged_only_when_the_adapter_is_named() {
    let bench = Bench::new();
    bench.put("lone.py", "print('alone')\n");
    let refused = bench.err(json!({"op": "launch", "program": "lone.py"})).await;
    assert!(refused.text.contains("no root marker"), "{}", refused.text);
    let said = bench.ok(json!({"op": "launch", "program": "lone.py", "adapter": "debugpy"})).await;
    assert_eq!((said.state(), said.output()), ("exited", "alone\n"));
    bench.end().await;
}

#[tokio::test]
async fn a_breakpoint_on_a_blank_line_is_moved_and_the_move_is_told() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("gap.py", "a = 1\n\n\nb = 2\nprint(a + b)\n");
    let said = bench.ok(json!({"op": "breakpoints", "file": "gap.py", "lines": [5, 9999]})).await;
    assert!(said.text.contains("Line 9999 is behind the end of gap.py"), "{}", said.text);
    let stop = bench.ok(json!({"op": "launch", "program": "gap.py"})).await;
    assert_eq!(stop.stop(), at("breakpoint", "gap.py", 5));
    let listed = bench.ok(op("breakpoints")).await;
    assert!(
        !listed.text.contains("9999: verified\n"),
        "a line that is not there is shown where it is: {}",
        listed.text
    );
    bench.end().await;
}

#[tokio::test]
async fn an_expression_that_does_not_parse_and_one_that_takes_too_long() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("idle.py", "import time\nvalue = 5\nprint(value)\n");
    bench.ok(json!({"op": "breakpoints", "file": "idle.py", "lines": [3]})).await;
    bench.ok(json!({"op": "launch", "program": "idle.py"})).await;
    let broken = bench.err(json!({"op": "evaluate", "expression": "value +"})).await;
    assert!(broken.text.contains("SyntaxError"), "{}", broken.text);
    assert_eq!(broken.state(), "stopped");
    let unknown = bench.err(json!({"op": "evaluate", "expression": "nothing"})).await;
    assert!(unknown.text.contains("NameError"), "{}", unknown.text);
    let slow =
        bench.err(json!({"op": "evaluate", "expression": "time.sleep(1000)", "wait_seconds": 1})).await;
    assert!(slow.text.contains("goes on in the program"), "{}", slow.text);
    let busy = bench.err(op("stack")).await;
    assert!(busy.text.contains("still going on"), "{}", busy.text);
    let said = bench.ok(op("terminate")).await;
    assert_eq!(said.state(), "exited");
    bench.end().await;
}

#[tokio::test]
async fn an_uncaught_exception_stops_where_it_is_raised() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("fail.py", "def part(all):\n    return 1 / all\n\npart(0)\n");
    let stop = bench.ok(json!({"op": "launch", "program": "fail.py"})).await;
    assert_eq!(stop.stop(), at("exception", "fail.py", 2));
    assert!(stop.text.contains("division by zero"), "{}", stop.text);
    assert_eq!(stop.value("all"), "0");
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(1)), "{}", end.text);
    // Not any more, when that was asked for.
    bench.ok(json!({"op": "breakpoints", "exceptions": []})).await;
    let end = bench.ok(op("restart")).await;
    assert_eq!(end.fields["exit_code"], 1, "{}", end.text);
    bench.end().await;
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_its_end_is_kept() {
    let bench = Bench::new();
    bench
        .put("requirements.txt", "")
        .put("flood.py", "for number in range(40000):\n    print('line', number, 'x' * 40)\nprint('\\x1b[31mthe end\\x1b[0m')\n");
    let end = bench.ok(json!({"op": "launch", "program": "flood.py", "wait_seconds": 200})).await;
    assert_eq!(end.state(), "exited", "{}", end.text);
    assert!(end.text.len() < 4_000 && end.output().ends_with("the end\n"), "{}", end.text);
    let all = bench.ok(json!({"op": "output", "all": true})).await;
    assert!(all.text.len() < 20_000, "{}", all.text.len());
    assert!(all.text.contains("are not kept") && all.output().contains("line 39999 "), "{}", all.text);
    bench.end().await;
}

#[tokio::test]
async fn a_program_that_reads_its_input_and_one_that_forks() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("ask.py", "import sys\nprint('read', repr(sys.stdin.read()))\n").put(
        "fork.py",
        "import subprocess, sys\nchild = subprocess.run([sys.executable, '-c', 'print(\"child\")'], capture_output=True, text=True)\nprint('got', child.stdout.strip())\n",
    );
    let said = bench.ok(json!({"op": "launch", "program": "ask.py"})).await;
    assert_eq!((said.state(), said.output()), ("exited", "read ''\n"));
    let said = bench.ok(json!({"op": "launch", "program": "fork.py"})).await;
    assert_eq!((said.state(), said.output()), ("exited", "got child\n"));
    bench.end().await;
}

#[tokio::test]
async fn a_module_with_arguments_in_a_directory_with_a_variable() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("tools/__init__.py", "").put(
        "tools/show.py",
        "import os, sys\nprint(sys.argv[1:], os.path.basename(os.getcwd()), os.environ['COLOUR'])\n",
    );
    bench.put("inner/keep", "");
    let said = bench
        .ok(json!({"op": "launch", "program": "-m tools.show a", "args": ["b c"], "env": {"COLOUR": "red"}}))
        .await;
    assert_eq!(said.output(), "['a', 'b c'] work red\n");
    let said = bench
        .ok(json!({"op": "launch", "program": "tools/show.py", "cwd": "inner", "env": {"COLOUR": "red"}}))
        .await;
    assert_eq!(said.output(), "[] inner red\n");
    bench.end().await;
}

#[tokio::test]
async fn log_messages_are_written_and_do_not_stop() {
    let bench = Bench::new();
    bench
        .put("requirements.txt", "")
        .put("count.py", "for number in range(3):\n    double = number * 2\nprint('done')\n");
    bench
        .ok(json!({"op": "breakpoints", "file": "count.py", "lines": [{"line": 2, "log_message": "number is {number}"}]}))
        .await;
    let said = bench.ok(json!({"op": "launch", "program": "count.py"})).await;
    assert_eq!(said.state(), "exited", "{}", said.text);
    // They come another way than the program's own output, and so in no certain order to it: one may stand between a line and its end.
    let output = said.output();
    assert_eq!(output.matches("number is ").count(), 3, "{output}");
    for piece in ["done", "number is 0", "number is 1", "number is 2"] {
        assert_eq!(output.matches(piece).count(), 1, "{piece}: {output}");
    }
    bench.end().await;
}

#[tokio::test]
async fn a_venv_of_the_project_runs_the_program_though_the_adapter_comes_from_elsewhere() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("where.py", "import sys\nprint(sys.prefix)\n");
    let status = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(bench.root.join(".venv"))
        .status()
        .unwrap();
    assert!(status.success());
    let said = bench.ok(json!({"op": "launch", "program": "where.py"})).await;
    assert_eq!(said.output(), format!("{}\n", bench.root.join(".venv").display()));
    bench.end().await;
}
