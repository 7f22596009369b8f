//! Cells of both languages, from their code to what the model gets.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

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
