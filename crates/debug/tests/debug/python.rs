use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, at, is_alive, op};

const SUMS: &str = "\
import sys

def total(items):
    result = 0
    for index, item in enumerate(items):
        result += item

    return result

def main():
    values = [3, 4, 5]
    print('adding', len(values))
    answer = total(values)
    print('total', answer)

main()
";

fn project() -> Bench {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put("sums.py", SUMS);
    bench
}

#[tokio::test]
async fn a_program_is_stopped_looked_into_and_stepped() {
    let bench = project();
    let said = bench.ok(json!({"op": "breakpoints", "file": "sums.py", "lines": [{"line": 6, "condition": "index == 1"}]})).await;
    assert_eq!(said.fields["breakpoints"][0]["verified"], false);
    assert_eq!(said.state(), "none");
    let stop = bench.ok(json!({"op": "launch", "program": "sums.py"})).await;
    assert_eq!(stop.stop(), at("breakpoint", "sums.py", 6));
    assert_eq!(
        (stop.value("index"), stop.value("item"), stop.value("result")),
        ("1".into(), "4".into(), "3".into())
    );
    assert_eq!(stop.output(), "adding 3\n");
    let pid = stop.pid();
    assert!(is_alive(pid));

    let stack = bench.ok(op("stack")).await;
    let names: Vec<&str> = stack.fields["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["total", "main", "<module>"]);
    let outer = stack.fields["frames"][1]["id"].clone();
    let value = bench.ok(json!({"op": "evaluate", "expression": "answer if 'answer' in dir() else values[0] * 10", "frame_id": outer})).await;
    assert_eq!(value.fields["result"], "30");
    let scopes = bench.ok(json!({"op": "scopes", "frame_id": outer})).await;
    assert_eq!(scopes.fields["scopes"][0]["name"], "Locals");
    let reference = scopes.fields["scopes"][0]["reference"].clone();
    let locals = bench.ok(json!({"op": "variables", "reference": reference})).await;
    assert_eq!(locals.value("values"), "[3, 4, 5]");
    let children =
        bench.ok(json!({"op": "variables", "reference": locals.variable("values")["reference"]})).await;
    assert_eq!(children.value("1"), "4");

    let step = bench.ok(op("step_over")).await;
    assert_eq!(step.stop(), at("step", "sums.py", 5));
    assert_eq!(step.value("result"), "7");
    // The adapter would answer for the old frame with what is there now.
    let stale = bench.err(json!({"op": "evaluate", "expression": "values", "frame_id": outer})).await;
    assert!(stale.text.contains("has moved"), "{}", stale.text);
    let stale = bench.err(json!({"op": "variables", "reference": reference})).await;
    assert!(stale.text.contains("has moved"), "{}", stale.text);

    let out = bench.ok(op("step_out")).await;
    assert_eq!(out.stop(), at("step", "sums.py", 13));
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(0)));
    assert_eq!(end.output(), "total 12\n");
    let late = bench.err(op("stack")).await;
    assert_eq!(late.state(), "exited");
    let again = bench.ok(op("restart")).await;
    assert_eq!(again.stop(), at("breakpoint", "sums.py", 6));
    bench.end().await;
}

#[tokio::test]
async fn long_lists_and_values_are_cut_and_the_cut_is_told() {
    let bench = Bench::new();
    bench
        .put("requirements.txt", "")
        .put("long.py", "numbers = list(range(70))\ntext = 'ab' * 4000\nprint(len(numbers), len(text))\n");
    bench.ok(json!({"op": "breakpoints", "file": "long.py", "lines": [3]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "long.py"})).await;
    assert!(stop.value("text").ends_with(" characters]"), "{}", stop.value("text"));
    assert!(stop.value("text").chars().count() < 450);
    let reference = stop.variable("numbers")["reference"].clone();
    let mut elements = Vec::new();
    for start in [0, 50, 100] {
        let part = bench.ok(json!({"op": "variables", "reference": reference, "start": start})).await;
        assert_eq!(part.text.contains("more are not shown"), start == 0, "{}", part.text);
        for variable in part.fields["variables"].as_array().unwrap() {
            elements.extend(variable["name"].as_str().unwrap().parse::<usize>().ok());
        }
    }
    assert_eq!(elements, (0..70).collect::<Vec<_>>());
    bench.end().await;
}

#[tokio::test]
async fn a_condition_that_raises_is_told_and_one_that_is_never_met_is_not_set() {
    let bench = project();
    bench
        .ok(json!({"op": "breakpoints", "file": "sums.py", "lines": [{"line": 6, "condition": "1 / 0"}]}))
        .await;
    let end = bench.ok(json!({"op": "launch", "program": "sums.py"})).await;
    assert_eq!(end.state(), "exited", "{}", end.text);
    assert!(
        end.text.contains("Error while evaluating expression in conditional breakpoint: 1 / 0"),
        "{}",
        end.text
    );
    assert_eq!(end.text.matches("ZeroDivisionError").count(), 1, "{}", end.text);

    let lines = json!([{"line": 5, "hit_condition": "soon"}, {"line": 6, "hit_condition": "2", "condition": "item > 0"}]);
    bench.ok(json!({"op": "breakpoints", "file": "sums.py", "lines": lines})).await;
    let end = bench.ok(json!({"op": "launch", "program": "sums.py"})).await;
    assert_eq!(end.state(), "exited", "{}", end.text);
    for why in [
        "sums.py:5 [hits soon]: NOT verified: not set: hit_condition has to be a number, or one of",
        "sums.py:6 [if item > 0] [hits 2]: NOT verified: not set: this adapter would stop where the condition or",
    ] {
        assert!(end.text.contains(why), "{}", end.text);
    }
    bench.end().await;
}

#[tokio::test]
async fn an_exception_with_half_a_character_is_a_stop_all_the_same() {
    let bench = project();
    bench.put("half.py", "def fail():\n    raise ValueError('half \\ud83d of')\n\nfail()\n");
    let stop = bench.ok(json!({"op": "launch", "program": "half.py"})).await;
    assert_eq!(stop.stop(), at("exception", "half.py", 2));
    assert_eq!(stop.fields["stopped"]["detail"], "ValueError: half \u{fffd} of");
    bench.end().await;
}

#[tokio::test]
async fn a_signal_that_ended_a_program_is_named_beside_the_code_that_debugpy_makes_of_it() {
    let bench = project();
    bench.put("crash.py", "import os, sys\nos.kill(os.getpid(), 11)\n");
    let end = bench.ok(json!({"op": "launch", "program": "crash.py"})).await;
    assert!(
        end.text.contains(
            "The program has ended with exit code 245 (what is reported when a program is killed by SIGSEGV)."
        ),
        "{}",
        end.text
    );
    bench.end().await;
}

#[tokio::test]
async fn a_file_that_was_changed_under_the_program_is_not_shown_as_what_runs() {
    let bench = project();
    bench.ok(json!({"op": "breakpoints", "file": "sums.py", "lines": [8]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "sums.py"})).await;
    let warning =
        "sums.py was changed after the session had begun: the lines shown may not be those that run.";
    assert_eq!((stop.stop(), stop.text.contains(warning)), (at("breakpoint", "sums.py", 8), false));
    bench.put("sums.py", &format!("# one more\n{SUMS}"));
    let status = bench.ok(op("status")).await;
    assert!(status.text.contains(warning), "{}", status.text);
    // The next launch runs what is there; a line without code is moved to one that has.
    let stop = bench.ok(op("restart")).await;
    assert!(!stop.text.contains(warning), "{}", stop.text);
    assert_eq!(stop.stop(), at("breakpoint", "sums.py", 7));
    let said = bench.ok(op("status")).await;
    assert!(said.text.contains("sums.py:8: verified, moved to line 7, which has code"), "{}", said.text);
    bench.end().await;
}
