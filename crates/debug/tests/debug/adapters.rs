//! Which adapters are found where, and dart, whose adapter is played by a script that keeps to dart's own order of events.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use haft_system::Environment;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench::{Bench, Said, at, debugpy, op};

/// Puts an executable script there.
fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn adapter(said: &Said, id: &str) -> Value {
    let adapters = said.fields["adapters"].as_array().unwrap();
    adapters.iter().find(|adapter| adapter["id"] == id).unwrap().clone()
}

#[tokio::test]
async fn marker_and_binary_must_both_be_there() {
    let bin = TempDir::new().unwrap();
    script(&bin.path().join("dlv"), "#!/bin/sh\n");
    script(
        &bin.path().join("python3"),
        "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'debugpy'\" >&2\nexit 1\n",
    );
    let environment = Environment::of([("PATH", bin.path().to_str().unwrap())], "/");
    let bench = Bench::in_environment(TempDir::new().unwrap(), environment);
    // A marker below the root counts too.
    bench.put("services/api/go.mod", "").put("app/pubspec.yaml", "").put("setup.py", "");
    let said = bench.ok(op("adapters")).await;
    let delve = adapter(&said, "delve");
    assert_eq!((&delve["marker"], &delve["usable"]), (&json!("services/api/go.mod"), &json!(false)));
    assert_eq!(delve["binary"], bin.path().join("dlv").to_str().unwrap());
    assert_eq!(delve["why_not"], "no `go` on PATH, which delve builds programs with");
    let python = adapter(&said, "debugpy");
    assert_eq!((&python["marker"], &python["binary"]), (&json!("setup.py"), &Value::Null));
    assert_eq!(python["why_not"], format!("{}: it has no debugpy", bin.path().join("python3").display()));
    assert_eq!(python["install"], "python3 -m pip install debugpy");
    let dart = adapter(&said, "dart");
    assert_eq!(
        (&dart["marker"], &dart["why_not"]),
        (&json!("app/pubspec.yaml"), &json!("no `dart` on PATH"))
    );
    assert_eq!(adapter(&said, "lldb")["marker"], Value::Null);
    assert!(
        said.text.contains("- lldb: not usable here: no root marker here (Cargo.toml, CMakeLists.txt)"),
        "{}",
        said.text
    );
    bench.put("main.py", "");
    let said = bench.err(json!({"op": "launch", "program": "main.py"})).await;
    assert!(
        said.text.contains("it has no debugpy") && said.text.contains("pip install debugpy"),
        "{}",
        said.text
    );
    bench.end().await;
}

#[tokio::test]
async fn the_interpreter_of_the_project_is_asked_before_the_path() {
    let bench = Bench::new();
    bench.put("pyproject.toml", "");
    let said = bench.ok(op("adapters")).await;
    assert_eq!(adapter(&said, "debugpy")["binary"], debugpy().join("python3").to_str().unwrap());
    assert_eq!(adapter(&said, "debugpy")["probe"], "debugpy 1.8.22 can be imported");
    // One that has debugpy, as far as its answer tells.
    script(&bench.root.join("venv/bin/python"), "#!/bin/sh\nexit 0\n");
    let said = bench.ok(op("adapters")).await;
    assert_eq!(adapter(&said, "debugpy")["binary"], bench.root.join("venv/bin/python").to_str().unwrap());
    bench.end().await;
}

#[tokio::test]
async fn what_is_missing_is_installed_into_the_interpreter_of_the_project() {
    let bin = TempDir::new().unwrap();
    let environment = Environment::of([("PATH", bin.path().to_str().unwrap())], "/");
    let bench = Bench::in_environment(TempDir::new().unwrap(), environment);
    bench.put("pyproject.toml", "");
    let python = bench.root.join(".venv/bin/python");
    script(&python, "#!/bin/sh\necho broken >&2\nexit 3\n");
    let said = adapter(&bench.ok(op("adapters")).await, "debugpy");
    assert_eq!(said["why_not"], format!("{}: `import debugpy` failed: broken", python.display()));
    assert_eq!(said["install"], format!("uv pip install --python {} debugpy", python.display()));
    script(&bench.root.join(".venv/bin/pip"), "");
    let said = adapter(&bench.ok(op("adapters")).await, "debugpy");
    assert_eq!(said["install"], format!("{} -m pip install debugpy", python.display()));
    // A launch finds the same out from the adapter itself.
    bench.put("main.py", "");
    let said = bench.err(json!({"op": "launch", "program": "main.py"})).await;
    assert!(said.text.contains("`import debugpy` failed: broken"), "{}", said.text);
    assert!(said.text.contains(&format!("{} -m pip install debugpy", python.display())), "{}", said.text);
    bench.end().await;
}

#[tokio::test]
async fn a_numbered_lldb_is_found_by_its_highest_number_and_started_by_its_real_path() {
    let bin = TempDir::new().unwrap();
    for number in [9, 19, 104] {
        script(&bin.path().join(format!("lldb-dap-{number}")), "#!/bin/sh\n");
    }
    script(&bin.path().join("real"), "#!/bin/sh\n");
    let environment = Environment::of([("PATH", bin.path().to_str().unwrap())], "/");
    let bench = Bench::in_environment(TempDir::new().unwrap(), environment);
    let found =
        async || adapter(&bench.ok(op("adapters")).await, "lldb")["binary"].as_str().unwrap().to_owned();
    let real = |name: &str| bin.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned();
    assert_eq!(found().await, real("lldb-dap-104"));
    std::os::unix::fs::symlink(bin.path().join("real"), bin.path().join("lldb-dap")).unwrap();
    assert_eq!(found().await, real("real"));
    bench.end().await;
}

/// Dart's adapter, as the SDK's sources have it: `initialized` right after the answer to `initialize`, the launch answered only after
/// `configurationDone`, breakpoints verified later by events, own events in between, no process event.
const DART: &str = r#"#!/usr/bin/env python3
import json, subprocess, sys
assert sys.argv[1:2] == ["debug_adapter"], sys.argv
sequence = 0
def send(message):
    global sequence
    sequence += 1
    body = json.dumps({"seq": sequence, **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()
def event(name, **body):
    send({"type": "event", "event": name, "body": body})
def answer(request, **body):
    send({"type": "response", "request_seq": request["seq"], "command": request["command"], "success": True, "body": body})
launch, program, lines = None, None, []
while True:
    header = sys.stdin.buffer.readline()
    if not header:
        break
    length = int(header.split(b":")[1])
    sys.stdin.buffer.readline()
    request = json.loads(sys.stdin.buffer.read(length))
    command, arguments = request["command"], request.get("arguments") or {}
    if command == "initialize":
        answer(request, supportsConfigurationDoneRequest=True, supportsConditionalBreakpoints=True, supportsLogPoints=True,
               exceptionBreakpointFilters=[{"filter": "All", "label": "All Exceptions", "default": False},
                                           {"filter": "Unhandled", "label": "Uncaught Exceptions", "default": True}])
        event("initialized")
    elif command == "launch":
        launch = request
    elif command == "setBreakpoints":
        lines = [each["line"] for each in arguments["breakpoints"]]
        answer(request, breakpoints=[{"id": number + 1, "verified": False} for number in range(len(lines))])
    elif command == "configurationDone":
        answer(request)
        source = launch["arguments"]["program"]
        program = subprocess.Popen(["sleep", "1000"])
        answer(launch)
        event("dart.debuggerUris", vmServiceUri="ws://127.0.0.1/")
        event("thread", reason="started", threadId=1)
        event("breakpoint", reason="changed", breakpoint={"id": 1, "verified": True, "line": lines[0] + 1})
        event("output", category="stdout", output="flutter: hello\n")
        event("stopped", reason="breakpoint", threadId=1, allThreadsStopped=False)
    elif command == "stackTrace":
        answer(request, stackFrames=[{"id": 1, "name": "main", "line": lines[0] + 1, "column": 3,
                                      "source": {"name": "package:app/main.dart", "path": source}},
                                     {"id": 2, "name": "<asynchronous gap>", "line": 0, "column": 0, "presentationHint": "label"}],
               totalFrames=2)
    elif command == "scopes":
        answer(request, scopes=[{"name": "Locals", "presentationHint": "locals", "variablesReference": 5, "expensive": False}])
    elif command == "variables":
        answer(request, variables=[{"name": "count", "value": "3", "type": "int", "variablesReference": 0}])
    elif command == "evaluate":
        answer(request, result="4", variablesReference=0)
    elif command == "continue":
        answer(request, allThreadsContinued=False)
        program.kill()
        program.wait()
        event("output", category="console", output="\nExited (3).\n")
        event("exited", exitCode=3)
        event("terminated")
    elif command == "threads":
        answer(request, threads=[{"id": 1, "name": "main"}])
    else:
        answer(request)
        if command == "disconnect":
            break
"#;

fn dart() -> (TempDir, Bench) {
    let bin = TempDir::new().unwrap();
    script(&bin.path().join("dart"), DART);
    let bench = Bench::with_path(&[bin.path().to_owned()]);
    bench
        .put("pubspec.yaml", "name: app\n")
        .put("bin/main.dart", "void main() {\n  //\n  var count = 3;\n  print(count);\n}\n");
    (bin, bench)
}

#[tokio::test]
async fn dart_is_debugged_in_its_own_order_of_events() {
    let (_bin, bench) = dart();
    bench.ok(json!({"op": "breakpoints", "file": "bin/main.dart", "lines": [2]})).await;
    let stop = bench.ok(json!({"op": "launch", "program": "bin/main.dart"})).await;
    assert_eq!(stop.stop(), at("breakpoint", "bin/main.dart", 3));
    assert_eq!((stop.value("count"), stop.output()), ("3".into(), "flutter: hello\n"));
    let listed = bench.ok(op("breakpoints")).await;
    assert!(listed.text.contains("bin/main.dart:2: verified, moved to line 3"), "{}", listed.text);
    let stack = bench.ok(op("stack")).await;
    assert_eq!(stack.fields["frames"][1]["name"], "<asynchronous gap>");
    assert_eq!(bench.ok(json!({"op": "evaluate", "expression": "count + 1"})).await.fields["result"], "4");
    let end = bench.ok(op("continue")).await;
    assert_eq!((end.state(), end.fields["exit_code"].as_i64()), ("exited", Some(3)), "{}", end.text);
    bench.end().await;
}

#[tokio::test]
async fn what_an_adapter_leaves_running_is_ended_with_it() {
    let (_bin, bench) = dart();
    bench.ok(json!({"op": "breakpoints", "file": "bin/main.dart", "lines": [2]})).await;
    bench.ok(json!({"op": "launch", "program": "bin/main.dart"})).await;
    // Its farewell forgets the program.
    assert_eq!(bench.left().len(), 2, "{:?}", bench.left());
    bench.ok(op("terminate")).await;
    assert_eq!(bench.left(), Vec::<String>::new());
    bench.end().await;
}

/// debugpy alone waits a minute for a program that never reports back.
#[tokio::test]
async fn a_python_program_that_is_gone_before_it_reports_back_is_told_of_with_its_last_words() {
    // Less than that minute, and far more than a start takes.
    let bench = Bench::new().with_start(Duration::from_secs(45));
    bench.put("requirements.txt", "").put("program.py", "print('never')\n");
    let wrapper = format!(
        "#!/bin/sh
case \"$*\" in
    -c*) echo \"ModuleNotFoundError: No module named 'debugpy'\" >&2; exit 1;;
    *' --connect '*) echo 'it does not run' >&2; kill -9 $$;;
esac
exec '{}/python3' \"$@\"\n",
        debugpy().display()
    );
    script(&bench.root.join(".venv/bin/python"), &wrapper);
    let said = bench.err(json!({"op": "launch", "program": "program.py"})).await;
    assert!(
        said.text.starts_with(
            "The session did not start (debugpy): the program ended with exit code 247 before it could be debugged."
        ),
        "{}",
        said.text
    );
    assert!(said.text.contains("The program wrote:\nit does not run"), "{}", said.text);
    bench.end().await;
}
