//! What can be interrupted and what cannot, and that the answer says which it was (SPEC E5).

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use std::time::Duration;

use haft_kernel::Settings;
use haft_tool::{Context, Progress};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::*;
use tokio_util::sync::CancellationToken;

fn impatient() -> Bench {
    let settings = Settings { inactivity: Duration::from_millis(400), ..Settings::default() };
    Bench::wishing(Wish { settings: Some(settings), ..Wish::default() })
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum End {
    Interrupted,
    Late,
    Killed,
}

/// Runs a cell that does not come to an end by itself, and looks whether what the answer says about the variables is true.
async fn stuck(bench: &Bench, language: &str, code: &str) -> End {
    let set = json!({"code": if language == "python" { "kept = 1" } else { "globalThis.kept = 1" }, "description": "d", "language": language});
    assert!(!bench.call(set).await.is_error);
    let outcome = bench.call(json!({"code": code, "description": "never ends", "language": language})).await;
    let text = outcome.all_text();
    assert!(outcome.is_error, "{code}: {text}");
    let kept = outcome.structured["state_kept"].as_bool().unwrap();
    let look = if language == "python" { "'kept' in globals()" } else { "'kept' in globalThis" };
    let next = bench.call(json!({"code": look, "description": "d", "language": language})).await;
    let truly = result(&next).to_lowercase() == "true";
    assert_eq!(kept, truly, "{code}: the answer is not true: {text}");
    assert_eq!(text.contains("variables are lost"), !kept, "{text}");
    assert_eq!(text.contains("variables are kept"), kept, "{text}");
    if !kept {
        assert!(text.contains("was killed"), "{text}");
        End::Killed
    } else if text.contains("and ended with an error") || text.contains("all the same") {
        End::Late
    } else {
        assert!(text.contains("it was interrupted"), "{text}");
        End::Interrupted
    }
}

async fn all(language: &str, cells: &[(&str, End)]) {
    let bench = impatient();
    let mut found = Vec::new();
    for (code, _) in cells {
        found.push((*code, stuck(&bench, language, code).await));
    }
    assert_eq!(found, cells.to_vec());
    bench.close().await;
}

#[tokio::test]
async fn what_python_itself_does_is_interrupted() {
    all(
        "python",
        &[
            ("while True: pass", End::Interrupted),
            ("import time; time.sleep(1000)", End::Interrupted),
            ("import re; re.match(r'(a+)+$', 'a' * 64 + 'b')", End::Interrupted),
            ("3 ** 10 ** 9", End::Interrupted),
            ("import threading; l = threading.Lock(); l.acquire(); l.acquire()", End::Interrupted),
            ("t = threading.Thread(target=time.sleep, args=(4,)); t.start(); t.join()", End::Interrupted),
            ("import ctypes; ctypes.CDLL(None).sleep(1000)", End::Interrupted),
        ],
    )
    .await;
}

#[tokio::test]
async fn asynchronous_cells_are_interrupted() {
    all(
        "python",
        &[
            ("import asyncio; asyncio.run(asyncio.sleep(1000))", End::Interrupted),
            ("import asyncio\nawait asyncio.sleep(1000)", End::Interrupted),
            ("await asyncio.gather(asyncio.sleep(1000), asyncio.sleep(1000))", End::Interrupted),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_waits_for_a_child_is_interrupted_with_it() {
    all(
        "python",
        &[
            ("import subprocess; subprocess.run(['sleep', '1000'])", End::Interrupted),
            ("!sleep 1000", End::Interrupted),
            ("x = !sleep 1000", End::Interrupted),
            ("%%bash\nsleep 1000", End::Interrupted),
            // The system ignores the interrupt for whoever waits in os.system; the shell dies of it.
            ("import os; os.system('sleep 1000')\nraise RuntimeError('late')", End::Late),
            ("subprocess.run(['bash', '-c', \"trap '' INT; sleep 5\"])", End::Interrupted),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_pool_is_interrupted() {
    all(
        "python",
        &[("import multiprocessing, time\nwith multiprocessing.Pool(2) as pool: pool.map(time.sleep, [1000] * 4)", End::Interrupted)],
    )
    .await;
}

#[tokio::test]
async fn a_sum_in_compiled_code_is_killed_and_the_loss_is_told() {
    all("python", &[("sum(range(10 ** 12))", End::Killed)]).await;
}

#[tokio::test]
async fn a_loop_that_swallows_everything_is_killed() {
    let code =
        "def work():\n    for i in range(10 ** 7): x = i\nwhile True:\n    try: work()\n    except: pass";
    all("python", &[(code, End::Killed)]).await;
}

#[tokio::test]
async fn a_cell_that_ignores_interrupts_is_killed_and_the_next_can_be_interrupted() {
    let code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)";
    all("python", &[(code, End::Killed), ("while True: pass", End::Interrupted)]).await;
    // A handler of an earlier cell's does not keep a later cell from being interrupted.
    let code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);";
    let bench = impatient();
    assert!(!bench.python(code).await.is_error);
    assert_eq!(stuck(&bench, "python", "while True: pass").await, End::Interrupted);
    bench.close().await;
}

#[tokio::test]
async fn javascript_is_interrupted_wherever_it_hangs() {
    all(
        "javascript",
        &[
            ("while (true) {}", End::Interrupted),
            ("await new Promise(() => {})", End::Interrupted),
            ("const f = async () => { while (true) await null }; await f()", End::Interrupted),
            ("/(a+)+$/.test('a'.repeat(64) + 'b')", End::Interrupted),
            ("try { while (true) {} } catch { } finally { }", End::Interrupted),
        ],
    )
    .await;
    // The end of the child makes an error, which the cell gets to before it is stopped, or not.
    let bench = impatient();
    for _ in 0..4 {
        let end = stuck(&bench, "javascript", "require('child_process').execSync('sleep 1000')").await;
        assert_ne!(end, End::Killed);
    }
    bench.close().await;
}

#[tokio::test]
async fn javascript_that_cannot_be_interrupted_is_killed() {
    let code = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9); while (true) {}";
    let bench = impatient();
    // Whether a wait on an atomic heeds the engine's termination depends on its version; the answer has to be true either way.
    stuck(&bench, "javascript", code).await;
    bench.close().await;
}

#[tokio::test]
async fn the_variables_of_an_interrupted_cell_are_kept() {
    let bench = impatient();
    bench.python("n = 0\nwhile True: n += 1").await;
    assert_eq!(result(&bench.python("n > 1000").await), "True");
    bench.close().await;
}

#[tokio::test]
async fn output_is_a_sign_of_life() {
    let bench = impatient();
    let code = "import time\nfor i in range(12):\n    print(i)\n    time.sleep(0.1)\n'done'";
    assert_eq!(result(&bench.python(code).await), "'done'");
    bench.close().await;
}

#[tokio::test]
async fn a_display_is_a_sign_of_life() {
    let bench = impatient();
    let code = "import time\nfor i in range(8):\n    display(i)\n    time.sleep(0.15)\n'done'";
    assert_eq!(result(&bench.python(code).await), "'done'");
    bench.close().await;
}

#[tokio::test]
async fn a_repr_that_never_ends_is_interrupted() {
    let bench = impatient();
    let code = "class Endless:\n    def __repr__(self):\n        while True: pass\nEndless()";
    assert_eq!(stuck(&bench, "python", code).await, End::Interrupted);
    assert_eq!(stuck(&bench, "python", "[{'in': Endless()}]").await, End::Interrupted);
    let code = "({[Symbol.for('nodejs.util.inspect.custom')]() { while (true) {} }})";
    assert_eq!(stuck(&bench, "javascript", code).await, End::Interrupted);
    let code = "throw {stack: 'x', [Symbol.for('nodejs.util.inspect.custom')]() { while (true) {} }}";
    assert_eq!(stuck(&bench, "javascript", code).await, End::Interrupted);
    bench.close().await;
}

/// microsoft/vscode-jupyter#14959.
#[tokio::test]
async fn what_the_shell_of_a_cell_has_started_ends_with_the_interrupt() {
    let bench = impatient();
    let code = "import subprocess; subprocess.run('sleep 5417 | cat; true', shell=True)";
    assert_eq!(stuck(&bench, "python", code).await, End::Interrupted);
    let code = "import os\n[p for p in os.listdir('/proc') if p.isdigit() and os.path.exists(f'/proc/{p}/cmdline') and b'sleep\\x005417' in open(f'/proc/{p}/cmdline', 'rb').read()]";
    assert_eq!(result(&bench.python(code).await), "[]");
    bench.close().await;
}

#[tokio::test]
async fn a_tool_call_stops_the_clock() {
    let bench = impatient();
    assert_eq!(result(&bench.python("tool('sleep', {'milliseconds': 1200})").await), "slept");
    assert_eq!(result(&bench.javascript("await tool('sleep', {milliseconds: 1200})").await), "slept");
    // And it starts anew behind it.
    assert_eq!(
        stuck(&bench, "python", "tool('sleep', {'milliseconds': 10})\nwhile True: pass").await,
        End::Interrupted
    );
    bench.close().await;
}

#[tokio::test]
async fn an_idle_kernel_ignores_interrupts() {
    let bench = Bench::new();
    bench.python("kept = 1").await;
    let pid = bench.supervisor.running()[0].pid;
    for _ in 0..5 {
        assert!(
            std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success()
        );
    }
    assert_eq!(gist(&bench.python("kept").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn a_cancelled_call_interrupts_its_cell_and_says_so() {
    let bench = Bench::new();
    bench.python("kept = 1").await;
    let cancel = CancellationToken::new();
    let context = Context::new(cancel.clone(), Progress::silent());
    let call =
        bench.call_with(json!({"code": "print('begun')\nwhile True: pass", "description": "d"}), context);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, stop);
    assert!(outcome.is_error);
    assert!(
        outcome.all_text().starts_with("The call was cancelled: it was interrupted."),
        "{}",
        outcome.all_text()
    );
    assert_eq!(gist(&bench.python("kept").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn a_call_that_was_dropped_interrupts_its_cell_and_the_next_result_says_so() {
    let bench = Bench::new();
    bench.python("kept = 1").await;
    let dropped =
        tokio::time::timeout(Duration::from_millis(200), bench.python("n = 0\nwhile True: n += 1")).await;
    assert!(dropped.is_err());
    let next = bench.python("kept").await;
    assert_eq!(gist(&next), fine("1", ""));
    assert_eq!(
        next.structured["notices"],
        json!([
            "The cell before this one (2) was interrupted when its call was given up; variables are kept."
        ])
    );
    assert_eq!(gist(&bench.python("kept").await)["result"], Value::from("1"));
    bench.close().await;
}

#[tokio::test]
async fn an_interrupted_coroutine_says_where_it_waited() {
    let bench = impatient();
    let outcome =
        bench.python("import asyncio\nasync def wait():\n    await asyncio.sleep(1000)\nawait wait()").await;
    let error = &outcome.structured["error"];
    assert_eq!(error["name"], "KeyboardInterrupt", "{}", outcome.all_text());
    let traceback = error["traceback"].as_str().unwrap();
    let lines = ["File \"<cell 1>\", line 4, in <module>", "File \"<cell 1>\", line 3, in wait"];
    assert!(lines.iter().all(|line| traceback.contains(line)), "{traceback}");
    bench.close().await;
}
