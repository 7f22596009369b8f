//! What only JavaScript cells can do to their kernel.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::*;

#[tokio::test]
async fn names_may_be_declared_again_even_after_a_failure() {
    let bench = Bench::new();
    for (code, value) in [
        ("const a = 1; a", "1"),
        ("const a = 2; let b = a; b", "2"),
        ("const { a, c } = { a: 3, c: 4 }; a + c", "7"),
        ("class K {}; class L {}; typeof K", "'function'"),
        ("class K { now() { return 1 } }; new K().now()", "1"),
        ("function again() { return 4 }; again()", "4"),
        ("function again() { return 5 }; again()", "5"),
        ("const slow = await new Promise((done) => setTimeout(done, 5, 'late')); slow", "'late'"),
        ("for await (const one of (async function* () { yield 6 })()) globalThis.six = one; six", "6"),
        ("{ a: 1, b: [2] }", "{ a: 1, b: [ 2 ] }"),
    ] {
        assert_eq!(gist(&bench.javascript(code).await), fine(value, ""), "{code}");
    }
    let outcome = bench.javascript("const broken = (() => { throw new Error('no') })()").await;
    assert_eq!(outcome.structured["error"]["message"], "no");
    assert_eq!(gist(&bench.javascript("const broken = 8; broken").await), fine("8", ""));
    bench.close().await;
}

#[tokio::test]
async fn modules_are_imported_and_one_that_is_not_there_is_said() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("lib.mjs"), "export const value = 1; export default 'standard'")
        .unwrap();
    let code = "const lib = await import('./lib.mjs'); import fs, { readFileSync } from 'node:fs'; [lib.value, lib.default, fs.readFileSync === readFileSync]";
    assert_eq!(result(&bench.javascript(code).await), "[ 1, 'standard', true ]");
    let outcome = bench.javascript("await import('./nothing.mjs')").await;
    assert!(outcome.all_text().contains("Cannot find module"), "{}", outcome.all_text());
    let outcome = bench.javascript("import { nothing } from './lib.mjs'").await;
    assert_eq!(
        outcome.structured["error"]["message"],
        "The requested module './lib.mjs' does not provide an export named 'nothing'"
    );
    assert_eq!(result(&bench.javascript("lib.value").await), "1");
    bench.close().await;
}

#[tokio::test]
async fn what_nobody_catches_is_told_with_its_cell_and_the_kernel_goes_on() {
    let bench = Bench::new();
    let outcome = bench.javascript("globalThis.kept = 1; Promise.reject(new Error('unhandled')); 2").await;
    assert_eq!((result(&outcome), outcome.is_error), ("2", false));
    assert_eq!(
        (&outcome.structured["stderr"], &outcome.structured["notices"]),
        (&json!("Uncaught (in promise) Error: unhandled\n    at cell-1:1:37\n"), &json!([]))
    );
    let code = "setTimeout(() => { throw new Error('later') }, 5); await new Promise((done) => setTimeout(done, 40)); 3";
    let outcome = bench.javascript(code).await;
    assert_eq!(result(&outcome), "3");
    let stderr = outcome.structured["stderr"].as_str().unwrap();
    assert!(stderr.starts_with("Uncaught Error: later\n"), "{stderr}");
    for (code, text) in
        [("throw undefined", "undefined"), ("throw null", "null"), ("throw 'words'", "'words'")]
    {
        assert_eq!(bench.javascript(code).await.structured["error"]["message"], text);
    }
    assert_eq!(gist(&bench.javascript("kept").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn threads_of_a_cells_own_are_ended_by_it() {
    let bench = Bench::new();
    let code = "const { Worker } = require('worker_threads');
const busy = new Worker('require(\"worker_threads\").parentPort.postMessage(1); while (true) {}', { eval: true });
await new Promise((done) => busy.once('message', done));
await busy.terminate()";
    assert_eq!(result(&bench.javascript(code).await), "1");
    let code = "const speaks = new Worker('console.log(\"from a thread\")', { eval: true }); await new Promise((done) => speaks.once('exit', done))";
    assert_eq!(gist(&bench.javascript(code).await), fine("0", "from a thread\n"));
    bench.close().await;
}

#[tokio::test]
async fn leaving_is_an_error_of_the_cell_and_does_not_hang() {
    let bench = Bench::new();
    bench.javascript("globalThis.kept = 1").await;
    for code in [
        "process.exit(3)",
        "process.reallyExit(3)",
        "setTimeout(() => process.exit(3), 1); await new Promise((done) => setTimeout(done, 20)); throw new Error('on')",
    ] {
        let outcome = bench.javascript(code).await;
        assert_eq!((outcome.is_error, &outcome.structured["state_kept"]), (true, &json!(true)), "{code}");
    }
    assert_eq!(gist(&bench.javascript("kept").await), fine("1", ""));
    bench.close().await;
}

#[tokio::test]
async fn a_heap_that_is_full_is_told_as_that() {
    let bench = Bench::new();
    bench.javascript("globalThis.kept = 1").await;
    let code = "require('v8').setFlagsFromString('--max-old-space-size=60'); const all = []; while (true) all.push(new Array(1e5).fill(1.5))";
    let outcome = bench.javascript(code).await;
    assert_eq!((outcome.is_error, &outcome.structured["state_kept"]), (true, &json!(false)));
    assert!(
        outcome.first_text().unwrap().starts_with(
            "The JavaScript kernel died while the cell ran: killed by signal 6 (SIGABRT) (the engine's memory ran out: hold less at a time). All variables are lost, those of the cell before too"
        ),
        "{}",
        outcome.all_text()
    );
    assert_eq!(gist(&bench.javascript("typeof kept").await), fine("'undefined'", ""));
    bench.close().await;
}

#[tokio::test]
async fn a_cell_that_closes_descriptors_is_told_of_as_it_is() {
    let bench = Bench::new();
    let outcome = bench.javascript("require('fs').closeSync(1); console.log('still seen'); 4").await;
    assert_eq!((result(&outcome), stdout(&outcome)), ("4", "still seen\n"));
    let outcome = bench.javascript("require('fs').closeSync(3); 5").await;
    assert_eq!((outcome.is_error, &outcome.structured["state_kept"]), (true, &json!(false)));
    let stderr = outcome.structured["stderr"].as_str().unwrap();
    assert!(
        stderr.starts_with("The cell has closed the descriptor through which its kernel speaks to Haft.\n"),
        "{stderr}"
    );
    assert_eq!(gist(&bench.javascript("6").await), fine("6", ""));
    // What a kernel needs is not what a cell may have changed.
    let code = "JSON.stringify = () => 'x'; globalThis.setImmediate = () => {}; delete globalThis.console; delete globalThis.process; 7";
    assert_eq!(gist(&bench.javascript(code).await), fine("7", ""));
    assert_eq!(gist(&bench.javascript("Promise.resolve(8)").await)["state_kept"], Value::from(true));
    bench.close().await;
}

#[tokio::test]
async fn half_a_character_does_not_cost_the_kernel() {
    let bench = Bench::new();
    bench.javascript("globalThis.kept = 1").await;
    let outcome = bench.javascript(r"throw new Error('half of \ud83d')").await;
    assert_eq!(outcome.structured["error"]["message"], "half of \u{fffd}", "{}", outcome.all_text());
    assert_eq!(gist(&bench.javascript("kept").await), fine("1", ""));
    bench.close().await;
}
