//! Processes that a cell starts with `multiprocessing`.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::Value;
use support::*;

/// Jupyter's kernels wait for ever here, while the pool's processes die one after the other.
#[tokio::test]
async fn what_a_spawned_process_cannot_find_is_refused_at_once() {
    let bench = Bench::new();
    let code = "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor\ndef double(n): return 2 * n\nclass Job(multiprocessing.get_context('spawn').Process): pass";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, ""));
    for method in ["spawn", "forkserver"] {
        bench.python(&format!("context = multiprocessing.get_context('{method}')")).await;
        // What is in a module it can find.
        let pool = "with context.Pool(1) as pool: print(pool.map";
        assert_eq!(
            gist(&bench.python(&format!("{pool}(abs, [-1, -2]))")).await),
            fine(Value::Null, "[1, 2]\n"),
            "{method}"
        );
        for code in [
            format!("{pool}(double, [1, 2]))"),
            "context.Process(target=double, args=(1,)).start()".to_owned(),
            "with ProcessPoolExecutor(1, mp_context=context) as pool: pool.submit(double, 1).result()"
                .to_owned(),
        ] {
            let outcome = bench.python(&code).await;
            let error = &outcome.structured["error"];
            assert_eq!(error["name"], "PicklingError", "{method}, {code}:\n{}", outcome.all_text());
            let message = error["message"].as_str().unwrap();
            let expected = format!(
                "'double' is defined in a cell, and a process that is started by '{method}' cannot find it there."
            );
            assert!(message.starts_with(&expected), "{code}: {message}");
        }
    }
    let outcome = bench.python("Job().start()").await;
    assert_eq!(outcome.structured["error"]["name"], "PicklingError", "{}", outcome.all_text());
    // A fork knows the cells.
    let code = "with multiprocessing.get_context('fork').Pool(1) as pool: print(pool.map(double, [1, 2]))";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, "[2, 4]\n"));
    bench.close().await;
}

#[tokio::test]
async fn what_was_defined_after_a_fork_is_not_sent_to_it() {
    let bench = Bench::new();
    let code = "import multiprocessing\ndef known(n): return n + 1\nclass Known:\n    def __init__(self): self.n = 1";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, ""));
    let code = "pool = multiprocessing.get_context('fork').Pool(1)\npool.map(known, [1]), pool.apply(repr, [Known().n])";
    assert_eq!(gist(&bench.python(code).await), fine("([2], '1')", ""));
    // One is new there, the other would be the old one.
    bench.python("def late(n): return 3 * n\ndef known(n): return n + 100\nclass Late(Known):\n    def go(self): pass").await;
    for (name, call) in [
        ("late", "pool.map(late, [1])"),
        ("known", "pool.map(known, [1])"),
        ("Late", "pool.map(repr, [Late()])"),
    ] {
        let outcome = bench.python(call).await;
        let error = &outcome.structured["error"];
        assert_eq!(error["name"], "PicklingError", "{call}:\n{}", outcome.all_text());
        let expected = format!("'{name}' was defined after the process to which it is sent had been forked");
        assert!(error["message"].as_str().unwrap().starts_with(&expected), "{call}: {}", outcome.all_text());
    }
    let code = "pool.terminate()\npool.join()\npool = multiprocessing.get_context('fork').Pool(1)\npool.map(late, [1]), pool.map(known, [1])";
    assert_eq!(gist(&bench.python(code).await), fine("([3], [101])", ""));
    bench.close().await;
}
