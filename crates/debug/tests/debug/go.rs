use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, at, is_alive, op};

const MAIN: &str = "\
package main

import (
\t\"fmt\"
\t\"os\"
)

type Order struct {
\tName  string
\tCount int
}

func total(orders []Order) int {
\tsum := 0
\tfor _, order := range orders {
\t\tsum += order.Count
\t}
\treturn sum
}

func main() {
\torders := []Order{{\"pen\", 2}, {\"ink\", 5}}
\tfmt.Println(\"sum\", total(orders))
\tif len(os.Args) > 1 {
\t\tvar missing []Order
\t\tfmt.Println(missing[3].Name)
\t}
\tos.Exit(4)
}
";

const TEST: &str = "\
package main

import \"testing\"

func TestTotal(t *testing.T) {
\tif got := total([]Order{{\"a\", 1}}); got != 1 {
\t\tt.Fatal(got)
\t}
}
";

fn module() -> Bench {
    let bench = Bench::new();
    bench.put("go.mod", "module shop\n\ngo 1.19\n").put("main.go", MAIN).put("main_test.go", TEST);
    bench
}

#[tokio::test]
async fn a_go_package_is_built_stopped_and_stepped() {
    let bench = module();
    bench
        .ok(json!({"op": "breakpoints", "file": "main.go", "lines": [{"line": 16, "condition": "sum == 2"}]}))
        .await;
    let stop = bench.ok(json!({"op": "launch", "program": "."})).await;
    assert_eq!(stop.stop(), at("breakpoint", "main.go", 16));
    assert_eq!(stop.value("sum"), "2");
    assert!(is_alive(stop.pid()));
    let value = bench.ok(json!({"op": "evaluate", "expression": "order.Count + 1"})).await;
    assert_eq!(value.fields["result"], "6");
    let step = bench.ok(op("step_over")).await;
    assert_eq!((step.stop(), step.value("sum")), (at("step", "main.go", 15), "7".into()));
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(4)), "{}", end.text);
    assert_eq!(end.output(), "sum 7\n");
    bench.end().await;
}

#[tokio::test]
async fn a_go_panic_stops_and_a_go_test_is_debugged() {
    let bench = module();
    let stop = bench.ok(json!({"op": "launch", "program": ".", "args": ["x"]})).await;
    let (reason, _, _) = stop.stop();
    assert_eq!(reason, "exception", "{}", stop.text);
    assert!(stop.text.contains("index out of range"), "{}", stop.text);
    assert!(stop.text.contains("main.go:26"), "{}", stop.text);
    bench.ok(op("terminate")).await;
    bench.ok(json!({"op": "breakpoints", "file": "main.go", "lines": [18]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": ".", "test": true})).await;
    assert_eq!((stop.stop(), stop.value("sum")), (at("breakpoint", "main.go", 18), "1".into()));
    bench.end().await;
}

#[tokio::test]
async fn a_build_error_is_shown() {
    let bench = module();
    bench.put("main.go", "package main\n\nfunc main() { undefinedThing() }\n");
    let said = bench.err(json!({"op": "launch", "program": "."})).await;
    assert!(said.text.contains("undefinedThing"), "{}", said.text);
    assert_eq!(bench.ok(op("status")).await.state(), "none");
    bench.end().await;
}

#[tokio::test]
async fn a_long_slice_is_shown_to_its_end_and_long_values_are_cut() {
    let bench = Bench::new();
    bench.put("go.mod", "module long\n\ngo 1.19\n").put(
        "main.go",
        "package main\n\nimport \"strings\"\n\nfunc main() {\n\tall := make([]int, 120)\n\tfor at := range all {\n\t\tall[at] = at * at\n\t}\n\ttext := strings.Repeat(\"ab\", 4000)\n\tprintln(len(all), len(text))\n}\n",
    );
    bench.ok(json!({"op": "breakpoints", "file": "main.go", "lines": [11]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "main.go"})).await;
    let reference = stop.variable("all")["reference"].clone();
    let mut seen = Vec::new();
    for start in [0, 50, 100] {
        let part = bench.ok(json!({"op": "variables", "reference": reference, "start": start})).await;
        assert_eq!(part.text.contains("more are not shown"), start < 100, "{}", part.text);
        for variable in part.fields["variables"].as_array().unwrap() {
            seen.push(variable["value"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, (0..120).map(|at| (at * at).to_string()).collect::<Vec<_>>());
    let text = stop.value("text");
    assert!(text.contains("… [cut, ") || text.contains("more"), "{text}");
    assert!(text.chars().count() < 450, "{text}");
    bench.end().await;
}

#[tokio::test]
async fn more_goroutines_than_delve_lists_are_not_counted_as_if_they_were_all() {
    let bench = Bench::new();
    bench.put("go.mod", "module many\n\ngo 1.19\n").put(
        "main.go",
        "package main\n\nimport \"time\"\n\nfunc main() {\n\tfor i := 0; i < 3000; i++ {\n\t\tgo time.Sleep(time.Hour)\n\t}\n\ttime.Sleep(time.Second)\n\tprintln(\"done\")\n}\n",
    );
    bench.ok(json!({"op": "breakpoints", "file": "main.go", "lines": [10]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "."})).await;
    assert_eq!(stop.state(), "stopped", "{}", stop.text);
    let threads = bench.ok(op("threads")).await;
    assert!(
        threads.text.ends_with("and there may be others: the debug adapter does not list all."),
        "{}",
        threads.text
    );
    bench.end().await;
}
