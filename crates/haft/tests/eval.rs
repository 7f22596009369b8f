//! Kernels through the program: order, surfaces, export, and that nothing is left.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{World, mark, processes, wait_until};

/// Whether bubblewrap works here.
fn bubblewrap() -> bool {
    let works = std::process::Command::new("bwrap")
        .args(["--unshare-pid", "--bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("left out: there is no bwrap that works here");
    }
    works
}

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

#[test]
fn kernels_run_in_the_enclosure_of_the_settings_and_the_rest_on_the_host() {
    if !bubblewrap() {
        return;
    }
    let world = World::new();
    std::fs::create_dir_all(world.root.path().join(".config/haft")).unwrap();
    // As a person would: the machine read-only, the project not, no network, processes of its own.
    let settings = r#"
[enclosure]
command_prefix = ["bwrap", "--ro-bind", "/", "/", "--tmpfs", "/var/tmp", "--bind", "{workdir}", "{workdir}", "--dev", "/dev", "--proc", "/proc",
  "--unshare-pid", "--unshare-net", "--unshare-uts", "--hostname", "enclosed", "--die-with-parent"]
environment = { HAFT_ENCLOSED = "yes" }
[run]
eval_timeout_seconds = 1
eval_timeout_most_seconds = 2
"#;
    std::fs::write(world.root.path().join(".config/haft/haft.toml"), settings).unwrap();
    let mut console = world.console(&["--approve", "all"]);
    let code = "import os, socket
kept = 1
open('made.txt', 'w').write('from inside')
try: open('/usr/made.txt', 'w')
except OSError as error: print(error.strerror)
print(socket.gethostname(), os.environ['HAFT_ENCLOSED'], os.getpid() < 50, open('/proc/net/dev').read().count(':'))
print(tool('shell', {'command': 'uname -n'}).splitlines()[0] != 'enclosed')
!uname -n";
    let answer = console.call("eval", cell(code));
    assert_eq!(
        answer["structured"]["stdout"], "Read-only file system\nenclosed yes True 1\nTrue\nenclosed\n",
        "{answer}"
    );
    assert_eq!(world.get("made.txt"), "from inside");
    // The times of the settings: unless the call says otherwise, and at most.
    let answer = console.call("eval", cell("while True: pass"));
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The cell gave no sign of life for 1 s: it was interrupted."), "{text}");
    let arguments =
        json!({"code": "import time; time.sleep(100)", "description": "d", "timeout_seconds": 50});
    let answer = console.call("eval", arguments);
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The cell gave no sign of life for 2 s: it was interrupted."), "{text}");
    assert!(text.contains("[timeout_seconds is at most 2; the cell ran with that]"), "{text}");
    assert_eq!(console.call("eval", cell("kept"))["structured"]["result"], "1");
    // Killed in there, it is told of and started anew in there.
    let answer = console.call("eval", cell("os.kill(os.getpid(), 9)"));
    assert_eq!((&answer["is_error"], &answer["structured"]["state_kept"]), (&json!(true), &json!(false)));
    let answer = console.call("eval", cell("import socket; socket.gethostname()"));
    assert_eq!(answer["structured"]["result"], "'enclosed'");
    assert_eq!(console.end(), (Some(0), vec![]));
    // An enclosure that does not start leaves no kernel on the host.
    let gone = settings.replace("\"--unshare-pid\"", "\"--ro-bind\", \"/nowhere/at/all\", \"/x\"");
    std::fs::write(world.root.path().join(".config/haft/haft.toml"), gone).unwrap();
    let mut console = world.console(&["--approve", "all"]);
    let answer = console.call("eval", cell("1"));
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("There is no Python that a kernel could run in the conversation's enclosure.")
            && text.contains("/nowhere/at/all"),
        "{text}"
    );
    assert_eq!(console.end(), (Some(0), vec![]));
}

#[test]
fn the_whole_of_long_output_is_exported() {
    let world = World::new();
    let mut console = world.console(&["--approve", "all"]);
    let answer = console
        .call("eval", cell("for n in range(30_000): print('line', n)\ndisplay('between')\nprint('end')"));
    let whole: String = (0..30_000).map(|n| ["line ", &n.to_string(), "\n"].concat()).collect();
    let file = answer["structured"]["stdout_file"].as_str().unwrap();
    let read = console.call("read", json!({"path": file, "offset": 20_001, "limit": 1}));
    assert!(read["content"][0]["text"].as_str().unwrap().starts_with("20001\tline 20000\n"), "{read}");
    assert_eq!(console.end().0, Some(0));
    let output = world.run(&["export", "--output", "talk.md"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = world.get("talk.md");
    let link = text.split(" bytes](").nth(1).unwrap().split(')').next().unwrap();
    assert_eq!(world.get(link), format!("{whole}end\n"));
    let output = world.run(&["export", "--notebook", "--output", "made.ipynb"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let made: Value = serde_json::from_str(&world.get("made.ipynb")).unwrap();
    let outputs = made["cells"][1]["outputs"].as_array().unwrap();
    let texts: Vec<String> = outputs
        .iter()
        .map(|output| {
            let lines = output.get("text").unwrap_or(&output["data"]["text/plain"]);
            lines.as_array().unwrap().iter().filter_map(Value::as_str).collect()
        })
        .collect();
    assert_eq!(texts, [whole, "'between'".to_owned(), "end\n".to_owned()]);
}
