//! Kernels in a conversation's enclosure (SPEC E7), with bubblewrap where it is there.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use std::{ffi::OsString, process::Command, time::Duration};

use haft_kernel::{Enclosure, Settings};
use pretty_assertions::assert_eq;
use support::*;

/// A bubblewrap that works here, with namespaces of its own.
fn enclosure() -> Option<Enclosure> {
    let words = [
        "bwrap",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--hostname",
        "enclosed",
        "--bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--die-with-parent",
    ];
    let works = Command::new(words[0])
        .args(&words[1..])
        .arg("true")
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("left out: there is no bwrap that works here");
        return None;
    }
    Some(Enclosure {
        command_prefix: words.map(OsString::from).to_vec(),
        environment: vec![("HAFT_ENCLOSED".into(), "yes".into())],
    })
}

#[tokio::test]
async fn a_kernel_runs_is_interrupted_and_ends_in_its_enclosure() {
    let Some(enclosure) = enclosure() else { return };
    let settings = Settings {
        enclosure: Some(enclosure),
        inactivity: Duration::from_millis(500),
        ..Settings::default()
    };
    let bench = Bench::wishing(Wish { settings: Some(settings), ..Wish::default() });
    let code = "import os, socket\nkept = 1\nprint(socket.gethostname(), os.environ['HAFT_ENCLOSED'], os.getpid() < 20)\nos.write(1, b'captured\\n')\ntool('echo', text='through')";
    let outcome = bench.python(code).await;
    assert_eq!((stdout(&outcome), result(&outcome)), ("enclosed yes True\ncaptured\n", "through"));
    let outcome = bench.python("while True: pass").await;
    assert!(outcome.all_text().contains("variables are kept"), "{}", outcome.all_text());
    assert_eq!(result(&bench.python("kept").await), "1");
    let outcome = bench.python("import subprocess; subprocess.run(['sleep', '1000'])").await;
    assert!(outcome.all_text().contains("variables are kept"), "{}", outcome.all_text());
    let outcome = bench.python("os.kill(os.getpid(), 9)").await;
    assert!(outcome.is_error && outcome.structured["state_kept"] == false, "{}", outcome.all_text());
    assert_eq!(result(&bench.javascript("require('os').hostname()").await), "'enclosed'");
    let outcome = bench.javascript("globalThis.kept = 2; while (true) {}").await;
    assert!(outcome.all_text().contains("variables are kept"), "{}", outcome.all_text());
    assert_eq!(result(&bench.javascript("kept").await), "2");
    bench.close().await;
}

#[tokio::test]
async fn an_enclosure_that_is_gone_is_told_of_and_the_host_is_not_taken_instead() {
    let enclosure = Enclosure { command_prefix: vec!["false".into()], environment: Vec::new() };
    let settings = Settings { enclosure: Some(enclosure), ..Settings::default() };
    let bench = Bench::wishing(Wish { settings: Some(settings), ..Wish::default() });
    let outcome = bench.python("1").await;
    let text = outcome.first_text().unwrap();
    assert!(outcome.is_error && text.starts_with("There is no Python that a kernel could run in the conversation's enclosure. Tried:\n- python3: it did not start (exit code 1)"), "{text}");
    bench.close().await;
}
