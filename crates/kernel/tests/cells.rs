//! Cells of both languages, from their code to what the model gets.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use haft_tool::Outcome;
use pretty_assertions::assert_eq;
use serde_json::Value;
use support::*;

#[tokio::test]
async fn variables_stay_and_the_last_expression_is_shown() {
    let bench = Bench::new();
    assert_eq!(
        gist(&bench.python("import math\nx = 20\nprint('hello')\nx + 1").await),
        fine("21", "hello\n")
    );
    assert_eq!(gist(&bench.python("x * 2").await), fine("40", ""));
    assert_eq!(gist(&bench.python("x * 2;").await), fine(Value::Null, ""));
    assert_eq!(gist(&bench.python("x = math.floor(2.5)\nNone").await), fine(Value::Null, ""));
    assert_eq!(gist(&bench.python("_").await), fine("40", ""));
    assert_eq!(gist(&bench.javascript("const y = 3; y + 1").await), fine("4", ""));
    assert_eq!(
        gist(&bench.javascript("const y = 5; console.log(`y is ${y}`); y").await),
        fine("5", "y is 5\n")
    );
    assert_eq!(gist(&bench.javascript("{a: y}").await), fine("{ a: 5 }", ""));
    bench.close().await;
}

#[tokio::test]
async fn what_a_cell_raises_is_told_with_its_lines() {
    let bench = Bench::new();
    let outcome = bench.python("x = 1\n\n1/0").await;
    assert_eq!(
        outcome.all_text(),
        "The cell raised ZeroDivisionError: division by zero\nTraceback (most recent call last):\n  File \"<cell 1>\", line 3, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero"
    );
    assert_eq!(outcome.structured["error"]["message"], "division by zero");
    assert_eq!(outcome.structured["state_kept"], true);
    assert_eq!(result(&bench.python("x").await), "1");
    let outcome = bench.python("def f(:").await;
    assert_eq!(outcome.structured["error"]["name"], "SyntaxError");
    // A function of an earlier cell, and a cause.
    bench.python("def inner():\n    return {}['k']").await;
    let outcome =
        bench.python("try:\n    inner()\nexcept KeyError as e:\n    raise ValueError('outer') from e").await;
    let traceback = outcome.structured["error"]["traceback"].as_str().unwrap();
    assert!(
        traceback.contains("in inner\n    return {}['k']") && traceback.contains("direct cause"),
        "{traceback}"
    );
    assert_eq!(
        result(&bench.python("import inspect; inspect.getsource(inner)").await),
        "\"def inner():\\n    return {}['k']\\n\""
    );
    bench.close().await;
}

#[tokio::test]
async fn cells_may_await() {
    let bench = Bench::new();
    let code = "import asyncio\nqueue = asyncio.Queue()\nawait queue.put(3)\nawait queue.get()";
    assert_eq!(result(&bench.python(code).await), "3");
    // The loop is the same in the next cell, and asyncio.run has its own.
    assert_eq!(
        result(
            &bench
                .python(
                    "await queue.put(4)\nasync for _ in (n async for n in aiter_of()): pass\nqueue.qsize()"
                        .replace("async for _ in (n async for n in aiter_of()): pass\n", "")
                        .as_str()
                )
                .await
        ),
        "1"
    );
    assert_eq!(result(&bench.python("async def g(): return 5\nasyncio.run(g())").await), "5");
    assert_eq!(
        result(&bench.python("async with asyncio.timeout(1): x = [await g() for _ in range(2)]\nx").await),
        "[5, 5]"
    );
    bench.close().await;
}

#[tokio::test]
async fn a_cell_finds_the_environment_that_it_needs() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("beside.py"), "value = 7").unwrap();
    let code = "import os, sys, beside
[os.environ.get(name) for name in ('PYTHONUNBUFFERED', 'PYTHONIOENCODING', 'MPLBACKEND', 'TERM')], sys.path[0], beside.value, sys.argv, os.getcwd() == os.path.realpath('.'), sys.stdin.fileno(), os.readlink('/proc/self/fd/0')";
    assert_eq!(
        result(&bench.python(code).await),
        "(['1', 'utf-8', 'Agg', 'dumb'], '', 7, [''], True, 0, '/dev/null')"
    );
    // What a person has set is kept.
    let environment = haft_system::Environment::capture().with("VIRTUAL_ENV", "").with("MPLBACKEND", "svg");
    let other = Bench::wishing(Wish { environment: Some(environment), ..Wish::default() });
    assert_eq!(result(&other.python("import os; os.environ['MPLBACKEND']").await), "'svg'");
    other.close().await;
    // ipykernel#859: what is captured is not captured again.
    let code = "import sys\nfor stream in (sys.stdout, sys.__stdout__): print('once', file=stream)\nsys.stdout.flush()";
    assert_eq!(gist(&bench.python(code).await), fine(serde_json::Value::Null, "once\nonce\n"));
    bench.close().await;
}

#[tokio::test]
async fn output_is_shown_live() {
    let bench = Bench::new();
    let code = "import time\nfor i in range(3):\n    print('line', i)\n    time.sleep(0.12)";
    let (outcome, live) = bench.live(serde_json::json!({"code": code, "description": "d"})).await;
    assert_eq!((stdout(&outcome), live.as_str()), ("line 0\nline 1\nline 2\n", "line 0\nline 1\nline 2\n"));
    bench.close().await;
}

#[tokio::test]
async fn wrong_arguments_are_told_in_words() {
    let bench = Bench::new();
    for (arguments, words) in [
        (serde_json::json!({"code": "1", "description": " "}), "`description` is empty"),
        (serde_json::json!({"code": " ", "description": "d"}), "`code` is empty"),
        (serde_json::json!({"code": "1"}), "description"),
        (serde_json::json!({"code": "1", "description": "d", "language": "ruby"}), "ruby"),
        (serde_json::json!({"code": "1", "description": "d", "timeout_seconds": 0}), "timeout_seconds"),
    ] {
        let outcome = bench.call(arguments.clone()).await;
        assert!(
            outcome.is_error && outcome.all_text().contains(words),
            "{arguments}: {}",
            outcome.all_text()
        );
    }
    bench.close().await;
}

#[tokio::test]
async fn pickles_and_dataclasses_know_where_they_come_from() {
    let bench = Bench::new();
    let code = "import dataclasses, pickle, typing\n@dataclasses.dataclass\nclass P:\n    x: 'int'\npickle.loads(pickle.dumps(P(1))), typing.get_type_hints(P), __name__";
    assert_eq!(result(&bench.python(code).await), "(P(x=1), {'x': <class 'int'>}, '__main__')");
    bench.python("from __future__ import annotations").await;
    assert_eq!(
        result(&bench.python("def f(a: undefined_name): pass\nf.__annotations__").await),
        "{'a': 'undefined_name'}"
    );
    bench.close().await;
}

#[tokio::test]
async fn the_words_for_models_are_these() {
    let bench = Bench::new();
    let tools = bench.registry.list(&haft_tool::Surface::agent());
    let eval = tools.iter().find(|spec| spec.name == "eval").unwrap();
    insta::assert_snapshot!("description", eval.description);
    insta::assert_json_snapshot!("schema", eval.schema);
    let mut words = Vec::new();
    for code in [
        "print('out'); import sys; print('err', file=sys.stderr); {'a': [1, 2]}",
        "pass",
        "raise ValueError('two\\nlines')",
        "raise KeyboardInterrupt",
        "%nothing",
        "import os; os._exit(7)",
        "input()",
    ] {
        words.push(format!("# {code}\n{}", bench.python(code).await.all_text()));
    }
    insta::assert_snapshot!("answers", words.join("\n\n"));
    bench.close().await;
}

/// The lines that the kernel itself has put into stderr.
fn notes(outcome: &Outcome) -> Vec<&str> {
    outcome.structured["stderr"].as_str().unwrap().lines().collect()
}

#[tokio::test]
async fn streams_that_a_cell_has_shut_are_open_in_the_next() {
    let bench = Bench::new();
    for shut in ["sys.stdout.close()", "sys.stdout = None", "sys.stdout.detach()", "del sys.stdout"] {
        let outcome = bench.python(&format!("import sys; {shut};")).await;
        assert_eq!((outcome.is_error, notes(&outcome)), (false, vec![]), "{shut}");
        let outcome = bench.python("print('seen')").await;
        assert_eq!((outcome.is_error, stdout(&outcome)), (false, "seen\n"), "{shut}");
        assert_eq!(
            notes(&outcome),
            ["[sys.stdout had been closed or removed by an earlier cell; it is open again]"],
            "{shut}"
        );
    }
    bench.python("sys.stderr.close()").await;
    let outcome = bench.python("print('seen', file=sys.stderr)").await;
    assert_eq!(
        notes(&outcome),
        ["[sys.stderr had been closed or removed by an earlier cell; it is open again]", "seen"]
    );
    bench.close().await;
}

#[tokio::test]
async fn a_stream_that_a_cell_leaves_replaced_is_told_of_once() {
    let bench = Bench::new();
    let outcome = bench.python("import io, sys; sys.stdout = io.StringIO()").await;
    assert_eq!(
        notes(&outcome),
        [
            "[sys.stdout is left replaced: what is printed goes into its StringIO, in later cells too, until sys.stdout = sys.__stdout__]"
        ]
    );
    assert_eq!(gist(&bench.python("print('unseen')").await), fine(Value::Null, ""));
    assert_eq!(
        gist(&bench.python("sys.stdout = sys.__stdout__; print('seen')").await),
        fine(Value::Null, "seen\n")
    );
    // One that leads here is no replacement, and neither is one that was put back.
    let code = "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8'); print('seen')";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, "seen\n"));
    let code = "import contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as held: print('held')\nheld.getvalue()";
    assert_eq!(gist(&bench.python(code).await), fine("'held\\n'", ""));
    bench.close().await;
}

/// Node makes it so for whoever shares the pipe with it.
#[tokio::test]
async fn a_pipe_that_does_not_wait_loses_nothing() {
    let bench = Bench::new();
    let code = "import fcntl, os\nfor fd in (1, 2): fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)\nprint('x' * 1_000_000)";
    let outcome = bench.python(code).await;
    assert_eq!((outcome.is_error, &outcome.structured["stdout_bytes"]), (false, &Value::from(1_000_001)));
    bench.close().await;
}
