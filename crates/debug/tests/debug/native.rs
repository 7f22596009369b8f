use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, at, is_alive, op};

const STATS: &str = "\
#[derive(Debug)]
struct Sample {
    name: String,
    values: Vec<u32>,
}

fn mean(sample: &Sample) -> u32 {
    let mut sum = 0;
    for value in &sample.values {
        sum += value;
    }
    sum / sample.values.len() as u32
}

fn main() {
    let full = Sample { name: \"full\".to_string(), values: vec![2, 4, 9] };
    let of_full = mean(&full);
    println!(\"{} {:?} {}\", full.name, full.values, of_full);
    let empty = Sample { name: \"empty\".to_string(), values: vec![] };
    println!(\"{} {}\", empty.name, mean(&empty));
}

#[test]
fn of_three() {
    let sample = Sample { name: String::new(), values: vec![1, 2, 3] };
    assert_eq!(mean(&sample), 2);
}
";

fn crate_of(bench: &Bench) {
    bench
        .put(
            "Cargo.toml",
            "[package]\nname = \"stats\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        )
        .put("src/main.rs", STATS);
}

#[tokio::test]
async fn a_rust_program_is_built_by_its_name_and_stops_where_it_panics() {
    let bench = Bench::new();
    crate_of(&bench);
    bench.ok(json!({"op": "breakpoints", "file": "src/main.rs", "lines": [12]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "stats"})).await;
    assert_eq!(stop.stop(), at("breakpoint", "src/main.rs", 12));
    assert_eq!(stop.value("sum"), "15");
    assert!(is_alive(stop.pid()));
    // The compiler's own formatters: elements, not pointers.
    let stack = bench.ok(op("stack")).await;
    assert_eq!(stack.fields["frames"][1]["name"], "stats::main");
    let outer = bench.ok(json!({"op": "variables", "frame_id": stack.fields["frames"][1]["id"]})).await;
    let full = outer.variable("full")["reference"].clone();
    let fields = bench.ok(json!({"op": "variables", "reference": full})).await;
    assert_eq!(fields.value("name"), "\"full\"");
    let values =
        bench.ok(json!({"op": "variables", "reference": fields.variable("values")["reference"]})).await;
    assert_eq!((values.value("[0]"), values.value("[2]")), ("2".into(), "9".into()));
    let value = bench.ok(json!({"op": "evaluate", "expression": "sum * 2"})).await;
    assert_eq!(value.fields["result"], "30");
    // A line with `println!` is several pieces of code, each with the breakpoint; one step leaves it all the same.
    bench.ok(json!({"op": "breakpoints", "file": "src/main.rs", "lines": [18]})).await;
    let line = bench.ok(op("continue")).await;
    assert_eq!(line.stop(), at("breakpoint", "src/main.rs", 18));
    assert_eq!(bench.ok(op("step_over")).await.stop(), at("step", "src/main.rs", 19));

    bench.ok(json!({"op": "breakpoints", "file": "src/main.rs", "lines": []})).await;
    let panic = bench.ok(op("continue")).await;
    assert_eq!(panic.stop(), at("panic", "src/main.rs", 12));
    let detail = panic.fields["stopped"]["detail"].as_str().unwrap();
    assert_eq!(detail, "panicked at src/main.rs:12:5: attempt to divide by zero", "{}", panic.text);
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(101)), "{}", end.text);
    bench.end().await;
}

#[tokio::test]
async fn a_rust_test_is_built_and_run_alone() {
    let bench = Bench::new();
    crate_of(&bench);
    bench.ok(json!({"op": "breakpoints", "functions": ["stats::mean"]})).await;
    let stop =
        bench.ok(json!({"op": "launch", "program": "stats", "test": true, "args": ["of_three"]})).await;
    let (reason, file, _) = stop.stop();
    assert_eq!((reason.as_str(), file.as_str()), ("breakpoint", "src/main.rs"), "{}", stop.text);
    let said = bench.ok(op("terminate")).await;
    assert_eq!(said.state(), "exited");
    bench.end().await;
}

#[tokio::test]
async fn what_does_not_build_is_not_started() {
    let bench = Bench::new();
    crate_of(&bench);
    bench.put("src/main.rs", "fn main() { let x: u32 = \"text\"; }\n");
    let said = bench.err(json!({"op": "launch", "program": "stats"})).await;
    assert!(said.text.contains("does not build") && said.text.contains("mismatched types"), "{}", said.text);
    let said = bench.err(json!({"op": "launch", "program": "nothing"})).await;
    assert!(said.text.contains("`bin:stats` (package stats)"), "{}", said.text);
    bench.end().await;
}

const WORDS: &str = "\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word { char text[16]; int length; };

static int measure(struct word *word) {
    word->length = (int)strlen(word->text);
    return word->length;
}

int main(int argc, char **argv) {
    struct word words[60];
    int all = 0;
    for (int i = 0; i < 60; i++) {
        snprintf(words[i].text, sizeof words[i].text, \"w%d\", i);
        all += measure(&words[i]);
    }
    printf(\"all %d %s\\n\", all, argc > 1 ? getenv(argv[1]) : \"\");
    return getchar() == EOF ? 3 : 4;
}
";

/// A C program with or without debug information.
pub(crate) fn compile(bench: &Bench, source: &str, flags: &[&str]) {
    bench.put("CMakeLists.txt", "").put("program.c", source);
    let status = Command::new("cc")
        .args(flags)
        .args(["-o", "program", "program.c"])
        .current_dir(&bench.root)
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_c_program_with_hit_counts_conditions_and_long_arrays() {
    let bench = Bench::new();
    compile(&bench, WORDS, &["-g", "-O0"]);
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [{"line": 9, "hit_condition": "11"}, 19]})).await;
    let stop = bench
        .ok(json!({"op": "launch", "program": "program", "args": ["COLOUR"], "env": {"COLOUR": "red"}}))
        .await;
    assert_eq!(stop.stop(), at("breakpoint", "program.c", 9));
    let text = bench.ok(json!({"op": "evaluate", "expression": "word->text"})).await;
    assert!(text.fields["result"].as_str().unwrap().contains("w10"), "{}", text.text);
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [19]})).await;
    let stop = bench.ok(op("continue")).await;
    assert_eq!(stop.stop(), at("breakpoint", "program.c", 19));
    let words = stop.variable("words")["reference"].clone();
    let first = bench.ok(json!({"op": "variables", "reference": words})).await;
    assert_eq!(first.fields["variables"].as_array().unwrap().len(), 50);
    assert!(first.text.contains("start: 50"), "{}", first.text);
    let rest = bench.ok(json!({"op": "variables", "reference": words, "start": 50})).await;
    let names: Vec<&str> = rest.fields["variables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["[50]", "[51]", "[52]", "[53]", "[54]", "[55]", "[56]", "[57]", "[58]", "[59]"]);
    // It reads its input, which is at its end.
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(3)), "{}", end.text);
    assert_eq!(end.output(), "all 170 red\n");
    bench.end().await;
}

#[tokio::test]
async fn a_program_without_debug_information_runs_through_and_says_why() {
    let bench = Bench::new();
    compile(&bench, WORDS, &["-O0"]);
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [9]})).await;
    let end = bench.ok(json!({"op": "launch", "program": "program"})).await;
    assert_eq!(end.state(), "exited");
    assert!(end.text.contains("could not stop") && end.text.contains("debug information"), "{}", end.text);
    bench.end().await;
}

#[tokio::test]
async fn a_program_ended_by_its_signal_has_not_exited_with_a_code() {
    let bench = Bench::new();
    compile(
        &bench,
        "#include <stdlib.h>\nint main(int argc, char **argv) {\n    if (argc > 1) return 11;\n    int *none = 0;\n    *none = 1;\n    return 0;\n}\n",
        &["-g", "-O0"],
    );
    let stop = bench.ok(json!({"op": "launch", "program": "program"})).await;
    assert_eq!(stop.stop(), at("exception", "program.c", 5));
    let end = bench.ok(op("continue")).await;
    assert!(
        end.text.starts_with("The program was ended by SIGSEGV, at which it had stopped"),
        "{}",
        end.text
    );
    let end = bench.ok(json!({"op": "launch", "program": "program", "args": ["x"]})).await;
    assert!(end.text.contains("The program has ended with exit code 11."), "{}", end.text);
    bench.end().await;
}

const THREADS: &str = "\
#include <pthread.h>
#include <unistd.h>

static volatile int go_on = 1;

static int depth(int n) {
    if (n == 0)
        return 0;
    int below = depth(n - 1);
    return below + 1;
}

static void *work(void *none) {
    for (;;)
        usleep(1000);
    return none;
}

int main(void) {
    pthread_t other;
    int all = depth(3);
    pthread_create(&other, 0, work, 0);
    while (go_on) ;
    return all;
}
";

#[tokio::test]
async fn a_step_or_a_call_that_was_cut_short_is_not_gone_on_with() {
    let bench = Bench::new();
    compile(&bench, THREADS, &["-g", "-O0", "-pthread"]);
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [7]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "program"})).await;
    assert_eq!(stop.stop(), at("breakpoint", "program.c", 7));
    assert_eq!(bench.ok(op("step_over")).await.stop(), at("step", "program.c", 9));
    // A breakpoint in what the step has called: a step out of that comes back to the line.
    assert_eq!(bench.ok(op("step_over")).await.stop(), at("breakpoint", "program.c", 7));
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": []})).await;
    let out = bench.ok(op("step_out")).await;
    assert_eq!((out.stop(), out.value("n")), (at("step", "program.c", 9), "3".into()));

    // A pause in a step that does not end: what other threads run into is still heard of.
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [23]})).await;
    assert_eq!(bench.ok(op("continue")).await.stop(), at("breakpoint", "program.c", 23));
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": []})).await;
    let said = bench.err(json!({"op": "evaluate", "expression": "work(0)"})).await;
    assert!(
        said.text.contains("lldb gives a call half a second, and ended this one at that."),
        "{}",
        said.text
    );
    let still = bench.ok(json!({"op": "step_over", "wait_seconds": 1})).await;
    assert_eq!(still.state(), "running", "{}", still.text);
    bench.ok(op("pause")).await;
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [15]})).await;
    assert_eq!(bench.ok(op("continue")).await.stop(), at("breakpoint", "program.c", 15));
    bench.end().await;
}
