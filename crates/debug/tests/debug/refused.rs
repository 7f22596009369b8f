//! Starts that a machine, an adapter or the caller's own words do not allow: an answer with the true reason, in time, and nothing left.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use pretty_assertions::assert_eq;
use serde_json::json;
use tempfile::TempDir;

use crate::bench::{Bench, op};

/// Runs a program in which `ptrace` is refused, as in many a container: a filter on system calls that is inherited (seccomp(2)).
const WITHOUT_PTRACE: &str = r#"#!/usr/bin/env python3
import ctypes, os, platform, struct, sys
number = {"x86_64": 101, "aarch64": 117}[platform.machine()]
def instruction(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)
# Load the number of the call; EPERM if it is ptrace, else let it pass.
code = (instruction(0x20, 0, 0, 0) + instruction(0x15, 0, 1, number)
        + instruction(0x06, 0, 0, 0x00050001) + instruction(0x06, 0, 0, 0x7FFF0000))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
text = ctypes.create_string_buffer(code, len(code))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(text))), 0, 0) == 0
os.execv("REAL", ["REAL", *sys.argv[1:]])
"#;

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Where the adapter's binary really is.
async fn binary(id: &str) -> String {
    let bench = Bench::new();
    let said = bench.ok(op("adapters")).await;
    let adapters = said.fields["adapters"].as_array().unwrap();
    let adapter = adapters.iter().find(|adapter| adapter["id"] == id).unwrap();
    let binary = adapter["binary"].as_str().unwrap_or_else(|| panic!("{}", said.text)).to_owned();
    bench.end().await;
    binary
}

#[tokio::test]
async fn where_ptrace_is_refused_the_answer_says_so() {
    for (id, name) in [("lldb", "lldb-dap"), ("delve", "dlv")] {
        let bin = TempDir::new().unwrap();
        script(&bin.path().join(name), &WITHOUT_PTRACE.replace("REAL", &binary(id).await));
        let bench = Bench::with_path(&[bin.path().to_owned()]);
        let program = if id == "lldb" {
            crate::native::compile(&bench, "int main(void) {\n    return 3;\n}\n", &["-g", "-O0"]);
            "program"
        } else {
            bench
                .put("go.mod", "module three\n\ngo 1.19\n")
                .put("main.go", "package main\n\nfunc main() {}\n");
            "."
        };
        let said = bench.err(json!({"op": "launch", "program": program})).await;
        assert!(said.text.to_lowercase().contains("operation not permitted"), "{id}: {}", said.text);
        assert!(said.text.contains("does not let one process trace another (ptrace)"), "{id}: {}", said.text);
        assert_eq!(bench.ok(op("status")).await.state(), "none");
        bench.end().await;
    }
}

/// An adapter that answers `initialize`, and `launch` not at all.
const SILENT: &str = r#"#!/usr/bin/env python3
import json, sys
def send(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()
while True:
    header = sys.stdin.buffer.readline()
    if not header:
        break
    sys.stdin.buffer.readline()
    request = json.loads(sys.stdin.buffer.read(int(header.split(b":")[1])))
    print("heard", request["command"], file=sys.stderr, flush=True)
    done = {"type": "response", "request_seq": request["seq"], "command": request["command"], "success": True, "body": BODY}
    if request["command"] in ANSWERED:
        send(done)
    if request["command"] == "launch" and INITIALIZED:
        send({"type": "event", "event": "initialized"})
"#;

#[tokio::test]
async fn a_launch_that_stays_silent_ends_at_its_deadline() {
    for (initialized, said_late) in [
        ("False", "has not said that it is ready within 2 seconds"),
        ("True", "has not started the program within 2 seconds"),
    ] {
        let bin = TempDir::new().unwrap();
        let answered = r#"("initialize", "setExceptionBreakpoints", "setBreakpoints")"#;
        let text = SILENT
            .replace("INITIALIZED", initialized)
            .replace("ANSWERED", answered)
            .replace("BODY", r#"{"supportsConfigurationDoneRequest": True}"#);
        script(&bin.path().join("lldb-dap"), &text);
        let bench = Bench::with_path(&[bin.path().to_owned()]).with_start(Duration::from_secs(2));
        crate::native::compile(&bench, "int main(void) {\n    return 3;\n}\n", &["-g", "-O0"]);
        let said = bench.err(json!({"op": "launch", "program": "program"})).await;
        assert!(said.text.contains(said_late), "{}", said.text);
        // What it wrote to its stderr comes with it.
        assert!(said.text.contains("heard launch"), "{}", said.text);
        assert_eq!(bench.ok(op("status")).await.state(), "none");
        bench.end().await;
    }
}

#[tokio::test]
async fn a_directory_is_no_program() {
    let bench = Bench::new();
    bench.put("CMakeLists.txt", "").put("build/main.c", "int main(void) { return 0; }\n");
    for (program, adapter) in
        [("build", None), (".", None), ("build", Some("lldb")), ("build/", Some("lldb"))]
    {
        let said = bench.err(json!({"op": "launch", "program": program, "adapter": adapter})).await;
        assert!(
            said.text.contains("is a directory. Name the program that was built."),
            "{program} {adapter:?}: {}",
            said.text
        );
    }
    bench.end().await;
}
