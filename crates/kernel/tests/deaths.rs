//! Kernels that die, cells that fork, end, flood and leave things behind (SPEC E5, E6).

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use std::time::Duration;

use haft_kernel::Settings;
use haft_tool::Outcome;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::*;

/// The first line of a failed cell.
fn headline(outcome: &Outcome) -> String {
    assert!(outcome.is_error, "{}", outcome.all_text());
    outcome.first_text().unwrap().lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_kernel_that_dies_is_reported_and_the_next_call_starts_clean() {
    let bench = Bench::new();
    bench.python("x = 1").await;
    bench.python("y = 1").await;
    let lost = "All variables are lost, those of the 2 cells before too; the next call starts a fresh kernel. The cell was not run again.";
    let outcome = bench.python("import os; print('last words'); os._exit(3)").await;
    assert_eq!(headline(&outcome), format!("The Python kernel died while the cell ran: exit code 3. {lost}"));
    assert_eq!(
        gist(&outcome),
        json!({"is_error": true, "result": null, "stdout": "last words\n", "stderr": "", "error": null, "state_kept": false})
    );
    assert_eq!(gist(&bench.python("'x' in globals()").await), fine("False", ""));
    bench.close().await;
}

#[tokio::test]
async fn the_signal_that_killed_a_kernel_is_named_with_its_last_words() {
    let bench = Bench::new();
    let outcome = bench.python("print('partial', end=''); import ctypes; ctypes.string_at(0)").await;
    assert!(
        headline(&outcome).starts_with(
            "The Python kernel died while the cell ran: killed by signal 11 (SIGSEGV) (a crash in compiled code)."
        ),
        "{}",
        outcome.all_text()
    );
    // The interpreter's own account of where it was.
    let stderr = outcome.structured["stderr"].as_str().unwrap();
    assert!(stderr.contains("Segmentation fault") && stderr.contains("string_at"), "{stderr}");
    let outcome = bench.python("import os; os.abort()").await;
    assert!(headline(&outcome).contains("killed by signal 6 (SIGABRT)"), "{}", outcome.all_text());
    let outcome = bench.python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").await;
    assert!(
        headline(&outcome).contains("(SIGKILL) (often the system, when memory runs out)"),
        "{}",
        outcome.all_text()
    );
    let outcome = bench.javascript("process.abort()").await;
    assert!(
        headline(&outcome).starts_with("The JavaScript kernel died while the cell ran: killed by signal"),
        "{}",
        outcome.all_text()
    );
    assert_eq!(gist(&bench.javascript("1 + 1").await), fine("2", ""));
    bench.close().await;
}

/// nteract/papermill#127.
#[tokio::test]
async fn a_line_without_an_end_is_not_lost_with_the_kernel() {
    let bench = Bench::new();
    for end in ["os._exit(3)", "os.kill(os.getpid(), 9)", "ctypes.string_at(0)"] {
        let code = format!(
            "import ctypes, os, sys; print('progress 7 of', end=' '); print('so far', end='\\n\\n', file=sys.stderr); {end}"
        );
        let outcome = bench.python(&code).await;
        assert_eq!((outcome.is_error, stdout(&outcome)), (true, "progress 7 of "), "{end}");
        let stderr = outcome.structured["stderr"].as_str().unwrap();
        assert_eq!(stderr.split_once("\n\n").unwrap().0, "so far", "{end}");
    }
    // A child's end is not the kernel's: nothing is said twice.
    let code = "import os\nprint('once', end=' ')\nif os.fork() == 0: os._exit(0)\nos.wait()[1]";
    assert_eq!(gist(&bench.python(code).await), fine("0", "once "));
    bench.close().await;
}

#[tokio::test]
async fn a_child_that_keeps_the_streams_open_does_not_hold_up_the_cell() {
    let bench = Bench::new();
    let code = "import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    time.sleep(1000)
os.wait()[1]";
    assert_eq!(gist(&bench.python(code).await), fine("0", ""));
    assert_eq!(gist(&bench.python("!sleep 1000 & echo started").await), fine(Value::Null, "started\n"));
    assert_eq!(gist(&bench.python("print('next')").await), fine(Value::Null, "next\n"));
    let outcome = bench.python("os._exit(1)").await;
    assert!(outcome.all_text().contains(" a fork of the kernel"), "{}", outcome.all_text());
    bench.close().await;
}

#[tokio::test]
async fn leaving_a_program_does_not_end_the_kernel() {
    let bench = Bench::new();
    bench.python("x = 1").await;
    for (code, message) in
        [("import sys; sys.exit(3)", "3"), ("quit()", "None"), ("raise SystemExit('enough')", "enough")]
    {
        let outcome = bench.python(code).await;
        assert_eq!(outcome.structured["error"]["name"], "SystemExit", "{code}");
        assert_eq!(outcome.structured["error"]["message"], message, "{code}");
        assert_eq!(outcome.structured["state_kept"], true);
    }
    assert_eq!(gist(&bench.python("x").await), fine("1", ""));
    bench.javascript("globalThis.x = 1").await;
    let outcome = bench.javascript("process.exit(3)").await;
    assert_eq!(outcome.structured["error"]["name"], "ExitError");
    assert_eq!(gist(&bench.javascript("x").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn a_forked_child_does_not_answer_in_the_kernels_place() {
    let bench = Bench::new();
    let code = "import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n    os.waitpid(pid, 0)\n    print('parent')\n'end' if pid else 'child end'";
    assert_eq!(gist(&bench.python(code).await), fine("'end'", "child\nparent\n"));
    // A child that comes to the end of the cell by an error, and one that asks for a tool.
    let code = "pid = os.fork()\nif pid == 0: 1/0\nos.waitpid(pid, 0)[1] != 0";
    let outcome = bench.python(code).await;
    assert_eq!(result(&outcome), "True");
    assert!(outcome.structured["stderr"].as_str().unwrap().contains("ZeroDivisionError"));
    let code = "pid = os.fork()\nif pid == 0:\n    try: tool('echo', {'text': 'x'})\n    except RuntimeError as e: print(e)\n    os._exit(0)\nos.waitpid(pid, 0)[1]";
    assert_eq!(
        gist(&bench.python(code).await),
        fine("0", "tool() works in the kernel's own process only, not in a forked child\n")
    );
    let code = "import multiprocessing\ndef double(n): return 2 * n\nwith multiprocessing.get_context('fork').Pool(2) as pool: doubled = pool.map(double, [1, 2, 3])\ndoubled";
    assert_eq!(gist(&bench.python(code).await), fine("[2, 4, 6]", ""));
    bench.close().await;
}

#[tokio::test]
async fn memory_and_depth_that_run_out_are_errors_of_the_cell() {
    let bench = Bench::new();
    let code =
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\nb = bytearray(4 << 30)";
    let outcome = bench.python(code).await;
    assert_eq!(
        (&outcome.structured["error"]["name"], &outcome.structured["state_kept"]),
        (&json!("MemoryError"), &json!(true))
    );
    let outcome = bench.python("def f(): f()\nf()").await;
    assert_eq!(outcome.structured["error"]["name"], "RecursionError");
    assert!(outcome.structured["error"]["traceback"].as_str().unwrap().contains("Previous line repeated"));
    assert_eq!(gist(&bench.python("1").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn nobody_answers_input() {
    let bench = Bench::new();
    let outcome = bench.python("name = input('Your name? ')").await;
    assert_eq!(outcome.structured["error"]["name"], "EOFError");
    assert!(headline(&outcome).contains("nobody sits at this kernel"), "{}", outcome.all_text());
    assert_eq!(gist(&bench.python("import sys; sys.stdin.read()").await), fine("''", ""));
    let outcome = bench.python("breakpoint()").await;
    assert!(headline(&outcome).contains("Use the debug tool"), "{}", outcome.all_text());
    let outcome =
        bench.python("import getpass, warnings; warnings.simplefilter('ignore'); getpass.getpass()").await;
    assert_eq!(outcome.structured["error"]["name"], "EOFError");
    let outcome = bench.python("import pdb; pdb.set_trace(); x = 1").await;
    assert!(outcome.structured["state_kept"].as_bool().unwrap());
    assert_eq!(gist(&bench.python("!cat; echo end").await), fine(Value::Null, "end\n"));
    bench.close().await;
}

#[tokio::test]
async fn everything_that_is_written_is_captured_in_order() {
    let bench = Bench::new();
    let code = r#"
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None)
libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)
print("print")
os.write(1, b"os.write\n")
print("no end", end="")
subprocess.run(["echo", " subprocess"])
libc.printf(b"printf\n")
os.system("echo os.system")
sys.stdout.buffer.write(b"buffer\n")
print("fileno", sys.stdout.fileno())
subprocess.run(["echo", "given"], stdout=sys.stdout)
!echo bang
print("last")
"#;
    let expected =
        "print\nos.write\nno end subprocess\nprintf\nos.system\nbuffer\nfileno 1\ngiven\nbang\nlast\n";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, expected));
    // What C code has in its own buffer comes out with its cell.
    assert_eq!(
        gist(&bench.python("libc2 = ctypes.CDLL(None); libc2.setvbuf(ctypes.c_void_p.in_dll(libc2, 'stdout'), None, 0, 4096); libc2.puts(b'buffered');").await),
        fine(Value::Null, "buffered\n")
    );
    let code = "console.log('log'); require('fs').writeSync(1, 'fs\\n'); process.stdout.write('write\\n'); require('child_process').execSync('echo child', {stdio: 'inherit'}); console.error('oh'); undefined";
    let outcome = bench.javascript(code).await;
    assert_eq!(
        (stdout(&outcome), &outcome.structured["stderr"]),
        ("log\nfs\nwrite\nchild\n", &json!("oh\n"))
    );
    bench.close().await;
}

#[tokio::test]
async fn output_between_cells_is_shown_with_the_next() {
    let bench = Bench::new();
    let code = "import threading, time, os\ngate = threading.Event()\ndef late():\n    gate.wait()\n    time.sleep(0.05)\n    os.write(1, b'from the thread\\n')\n    os.write(2, b'and its stderr\\n')\n    os.mkfifo('done')\nthreading.Thread(target=late, daemon=True).start()\ngate.set()\nprint('cell')";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, "cell\n"));
    // Until the thread has written, without a cell.
    while !bench.path().join("done").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let outcome = bench.python("print('next')").await;
    assert_eq!(stdout(&outcome), "next\n");
    assert_eq!(
        outcome.structured["notices"],
        json!([
            "Output since the last cell, from threads or processes that it left running:\nfrom the thread\nand its stderr"
        ])
    );
    bench.close().await;
}

#[tokio::test]
async fn a_flood_is_bounded_and_its_whole_is_in_a_file() {
    let bench = Bench::new();
    let outcome = bench.python("print('x' * 10_000_000)\nprint('the end')").await;
    let text = outcome.all_text();
    assert!(text.len() < 40_000, "{}", text.len());
    assert!(text.contains("the end"), "{}", &text[text.len() - 400..]);
    assert_eq!(outcome.structured["stdout_bytes"], 10_000_009);
    let file = outcome.structured["stdout_file"].as_str().unwrap();
    assert!(
        text.contains(&format!("the whole output, 10000009 bytes, is in {file}")),
        "{}",
        &text[text.len() - 400..]
    );
    let whole = std::fs::read(file).unwrap();
    assert_eq!(whole.len(), 10_000_009);
    assert!(whole.ends_with(b"x\nthe end\n"));
    let outcome = bench.python("for i in range(100_000): print(i)").await;
    assert_eq!(outcome.structured["stdout_bytes"], 588_890);
    let outcome =
        bench.javascript("console.log('y'.repeat(5_000_000)); console.error('z'.repeat(300_000)); 1").await;
    assert_eq!(
        (&outcome.structured["stdout_bytes"], &outcome.structured["stderr_bytes"]),
        (&json!(5_000_001), &json!(300_001))
    );
    bench.close().await;
}

#[tokio::test]
async fn compiled_code_that_floods_while_it_holds_the_interpreter_does_not_hang() {
    let bench = Bench::new();
    // PyDLL keeps the interpreter's lock during the call.
    let code = "import ctypes\nlib = ctypes.PyDLL(None)\ntext = b'y' * 1_000_000\nfor _ in range(3): lib.write(1, text, len(text))\nNone";
    let outcome = bench.python(code).await;
    assert_eq!((outcome.is_error, &outcome.structured["stdout_bytes"]), (false, &json!(3_000_000)));
    // Children that flood both streams at once (ipykernel#847).
    let code = "import subprocess; subprocess.run(['sh', '-c', 'head -c 3000000 /dev/zero & head -c 3000000 /dev/zero >&2; wait']).returncode";
    let outcome = bench.python(code).await;
    assert_eq!(
        (result(&outcome), &outcome.structured["stdout_bytes"], &outcome.structured["stderr_bytes"]),
        ("0", &json!(3_000_000), &json!(3_000_000))
    );
    bench.close().await;
}

#[tokio::test]
async fn a_cell_that_takes_its_streams_apart_comes_to_an_end() {
    let bench = Bench::new();
    assert!(!bench.python("import os, sys\nos.close(1)\nos.close(2)\nx = 1").await.is_error);
    assert_eq!(result(&bench.python("x").await), "1");
    // What is printed is seen again, and that it was not is said.
    let outcome = bench.python("os.dup2(os.open('/dev/null', os.O_WRONLY), 1); print('unseen')").await;
    assert_eq!(stdout(&outcome), "");
    let outcome = bench.python("print('seen')").await;
    assert_eq!(
        (stdout(&outcome), &outcome.structured["stderr"]),
        (
            "seen\n",
            &json!("[descriptor 1 had been closed or redirected by an earlier cell; it is captured again]\n")
        )
    );
    bench.python("import io; sys.stdout = io.StringIO(); sys.stderr = None").await;
    assert_eq!(result(&bench.python("print('lost'); x + 1").await), "2");
    bench.close().await;
}

#[tokio::test]
async fn a_cell_that_closes_the_channel_is_told_of_as_it_is() {
    let bench = Bench::new();
    let outcome = bench
        .python("import os\nfor fd in range(3, 50):\n    try: os.close(fd)\n    except OSError: pass\n")
        .await;
    assert!(outcome.is_error);
    assert_eq!(outcome.structured["state_kept"], false);
    assert_eq!(gist(&bench.python("1 + 1").await), fine("2", ""));
    bench.close().await;
}

#[tokio::test]
async fn reset_starts_afresh_whatever_becomes_of_the_code() {
    let bench = Bench::new();
    bench.python("x = 1").await;
    let outcome = bench.call(json!({"code": "1/0", "description": "d", "reset": true})).await;
    assert!(
        outcome.all_text().contains("[The Python kernel was started anew; its variables are gone.]"),
        "{}",
        outcome.all_text()
    );
    assert_eq!(gist(&bench.python("'x' in globals()").await), fine("False", ""));
    bench.python("x = 1").await;
    let outcome = bench.call(json!({"code": "", "description": "d", "reset": true})).await;
    assert_eq!(
        (outcome.is_error, outcome.first_text().unwrap()),
        (false, "The Python kernel was started anew; its variables are gone.")
    );
    assert_eq!(gist(&bench.python("'x' in globals()").await), fine("False", ""));
    // The other language's kernel is another matter.
    bench.javascript("globalThis.z = 1").await;
    bench.call(json!({"code": "", "description": "d", "reset": true})).await;
    assert_eq!(gist(&bench.javascript("z").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn a_kernel_that_was_killed_between_cells_is_told_of() {
    let bench = Bench::new();
    bench.python("x = 1").await;
    let pid = bench.supervisor.running()[0].pid;
    assert!(std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    while !bench.supervisor.running().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let outcome = bench.python("'x' in globals()").await;
    assert_eq!(result(&outcome), "False");
    assert_eq!(
        outcome.structured["notices"],
        json!([
            "The Python kernel ended while no cell ran (killed by signal 9 (SIGKILL)); all variables are lost."
        ])
    );
    bench.close().await;
}

#[tokio::test]
async fn an_idle_kernel_is_stopped_and_the_next_result_says_so() {
    let settings = Settings { idle: Duration::from_millis(200), ..Settings::default() };
    let bench = Bench::wishing(Wish { settings: Some(settings), ..Wish::default() });
    bench.python("x = 1").await;
    while !bench.supervisor.running().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let outcome = bench.python("'x' in globals()").await;
    assert_eq!(result(&outcome), "False");
    let notice = outcome.structured["notices"][0].as_str().unwrap();
    assert!(notice.starts_with("The Python kernel was stopped after"), "{notice}");
    bench.close().await;
}

#[tokio::test]
async fn nothing_that_a_cell_has_started_survives_the_conversation() {
    let bench = Bench::new();
    let code = "import subprocess\na = subprocess.Popen(['sleep', '1000'])\nb = subprocess.Popen(['sleep', '1000'], start_new_session=True)\nprint(a.pid, b.pid)";
    let pids: Vec<String> = stdout(&bench.python(code).await).split_whitespace().map(str::to_owned).collect();
    let code = "const c = require('child_process').spawn('sleep', ['1000'], {detached: true, stdio: 'ignore'}); c.unref(); c.pid";
    let pids = [pids, vec![result(&bench.javascript(code).await).to_owned()]].concat();
    assert_eq!(pids.len(), 3);
    bench.close().await;
    for pid in pids {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let dead = state.is_empty() || state.rsplit(')').next().unwrap().trim_start().starts_with('Z');
        assert!(dead, "{pid} lives: {state}");
    }
}

#[tokio::test]
async fn a_kernel_does_not_hand_its_channel_to_children() {
    let bench = Bench::new();
    let code = "import subprocess\nlen(subprocess.run(['sh', '-c', 'ls /proc/self/fd'], capture_output=True, text=True, close_fds=False).stdout.split())";
    // 0, 1, 2 and the directory itself.
    assert_eq!(gist(&bench.python(code).await), fine("4", ""));
    let code = "require('child_process').execSync('ls /proc/self/fd').toString().trim().split('\\n').length";
    assert_eq!(gist(&bench.javascript(code).await), fine("4", ""));
    bench.close().await;
}

#[tokio::test]
async fn shutting_down_ends_a_cell_that_runs() {
    let bench = Bench::new();
    bench.python("1").await;
    let running = bench.python("while True: pass");
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        bench.kernels.shutdown().await;
    };
    let (outcome, ()) = tokio::join!(running, stop);
    assert!(outcome.is_error);
    assert!(bench.python("1").await.all_text().contains("The conversation is ending"));
    assert_eq!(bench.supervisor.running(), vec![]);
}
