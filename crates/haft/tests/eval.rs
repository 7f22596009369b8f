//! Kernels through the program: order, surfaces, export, and that nothing is left.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{World, mark, processes, wait_until};

fn cell(code: &str) -> Value {
    json!({"code": code, "description": "a cell of a test"})
}

#[test]
fn cells_that_are_sent_at_once_run_in_the_order_of_their_lines() {
    let world = World::new();
    let mut console = world.console(&["--approve", "all"]);
    for n in 0..30 {
        let code = if n == 0 { "seen = [0]".to_owned() } else { format!("seen.append({n})") };
        console.send(&json!({"id": n, "tool": "eval", "arguments": cell(&code)}).to_string());
    }
    let ids: Vec<Value> = (0..30).map(|_| console.next()["id"].clone()).collect();
    assert_eq!(ids, (0..30).map(Value::from).collect::<Vec<_>>());
    let answer = console.call("eval", cell("seen == list(range(30))"));
    assert_eq!(answer["structured"]["result"], "True");
    assert_eq!(console.end(), (Some(0), vec![]));
}

#[test]
fn plan_mode_has_no_eval() {
    let world = World::new();
    let mut console = world.console(&["--approve", "all", "--mode", "plan"]);
    let answer = console.call("eval", cell("1"));
    assert_eq!(
        (&answer["is_error"], &answer["content"][0]["text"]),
        (&json!(true), &json!("unknown tool: eval"))
    );
    assert_eq!(console.end(), (Some(0), vec![]));
}

#[test]
fn the_cells_of_a_conversation_are_exported_as_a_notebook() {
    let world = World::new();
    let mut console = world.console(&["--approve", "all"]);
    let picture = "from base64 import b64decode
class P:
    def _repr_png_(self): return b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')
P()";
    let answer = console.call("eval", cell(picture));
    assert_eq!(answer["content"][0]["type"], "image");
    console.call("eval", cell("print('printed')\n6 * 7"));
    console.call("glob", json!({"pattern": "*"}));
    assert_eq!(console.end().0, Some(0));
    let output = world.run(&["export", "--notebook", "--output", "made.ipynb"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let made: Value = serde_json::from_str(&world.get("made.ipynb")).unwrap();
    let cells = made["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    let data = cells[1]["outputs"][0]["data"]["image/png"].as_str().unwrap();
    assert!(data.starts_with("iVBORw0KGgo"), "{data}");
    assert_eq!(
        cells[2]["outputs"],
        json!([
            {"output_type": "stream", "name": "stdout", "text": ["printed\n"]},
            {"output_type": "execute_result", "execution_count": 2, "data": {"text/plain": ["42"]}, "metadata": {}},
        ])
    );
}

#[test]
fn nothing_of_a_kernel_is_left_when_haft_is_killed() {
    let world = World::new();
    let mark = mark(1);
    let mut console = world.console(&["--approve", "all"]);
    let code =
        format!("import subprocess\na = subprocess.Popen(['sleep', '{mark}'], start_new_session=True)");
    console.call("eval", cell(&code));
    let code = format!(
        "require('child_process').spawn('sleep', ['{mark}'], {{detached: true, stdio: 'ignore'}}).unref()"
    );
    let arguments = json!({"code": code, "description": "a cell of a test", "language": "javascript"});
    console.call("eval", arguments);
    // A cell runs while Haft dies.
    console.send(
        &json!({"id": 1, "tool": "eval", "arguments": cell(&format!("subprocess.run(['sleep', '{mark}'])"))})
            .to_string(),
    );
    wait_until("three sleeps run", || processes(&mark).len() >= 3);
    console.child.kill().unwrap();
    console.child.wait().unwrap();
    wait_until("everything is dead", || processes(&mark).is_empty());
}
