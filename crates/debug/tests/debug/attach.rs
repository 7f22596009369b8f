//! Attaching to what listens on a port; the program is somebody else's and stays.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, debugpy, is_alive, op};

/// A program of somebody else's, killed at the end of the test.
pub(crate) struct Stranger(Child);

impl Stranger {
    pub(crate) fn start(command: &mut Command) -> Stranger {
        Stranger(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits for a line on stdout that holds `word`.
    pub(crate) fn says(&mut self, word: &str) {
        let mut lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(word)));
    }
}

impl Stranger {
    pub(crate) fn is_alive(&self) -> bool {
        is_alive(self.0.id())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn debugpy_is_attached_to_twice_and_the_program_runs_on() {
    let bench = Bench::new();
    bench.put("requirements.txt", "").put(
        "serve.py",
        "import sys, time\nimport debugpy\ndebugpy.listen(int(sys.argv[1]))\nprint('ready', flush=True)\nwhile True:\n    turn = time.time()\n    time.sleep(0.01)\n",
    );
    let port = free_port();
    let mut stranger = Stranger::start(
        Command::new(debugpy().join("python3"))
            .args(["serve.py", &port.to_string()])
            .current_dir(&bench.root),
    );
    stranger.says("ready");
    for _ in 0..2 {
        bench.ok(json!({"op": "breakpoints", "file": "serve.py", "lines": [7]})).await;
        let stop = bench.ok(json!({"op": "attach", "adapter": "debugpy", "port": port})).await;
        assert_eq!(stop.stop().2, 7, "{}", stop.text);
        let said = bench.ok(op("terminate")).await;
        assert_eq!(said.state(), "none", "{}", said.text);
        assert!(is_alive(stranger.0.id()));
    }
    bench.debugger.shutdown().await;
    assert!(is_alive(stranger.0.id()));
}

#[tokio::test]
async fn a_headless_delve_is_attached_to() {
    let bench = Bench::new();
    bench.put("go.mod", "module loop\n\ngo 1.19\n").put(
        "main.go",
        "package main\n\nimport \"time\"\n\nfunc main() {\n\tcount := 0\n\tfor {\n\t\tcount++\n\t\ttime.Sleep(10 * time.Millisecond)\n\t}\n}\n",
    );
    let port = free_port();
    let mut stranger = Stranger::start(
        Command::new("dlv")
            .args(["debug", "--headless", "--accept-multiclient", "--output"])
            .arg(bench.root.join("built"))
            .arg(format!("--listen=127.0.0.1:{port}"))
            .current_dir(&bench.root),
    );
    stranger.says("listening");
    bench.ok(json!({"op": "breakpoints", "file": "main.go", "lines": [8]})).await;
    let stop = bench.ok(json!({"op": "attach", "port": port})).await;
    assert_eq!((stop.stop().0.as_str(), stop.stop().2), ("breakpoint", 8), "{}", stop.text);
    bench.ok(op("terminate")).await;
    assert!(is_alive(stranger.0.id()));
    // Its program is below it.
    let below = haft_system::process::below(stranger.0.id());
    assert!(
        below.iter().any(|process| process.program.as_deref() == Some(Path::new(&bench.root.join("built"))))
    );
    for process in below {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(process.pid.cast_signed()).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    }
}

#[tokio::test]
async fn a_gdb_server_is_attached_to_by_lldb() {
    let bench = Bench::new();
    crate::native::compile(
        &bench,
        "#include <unistd.h>\nint main(void) {\n    volatile int count = 0;\n    for (;;) {\n        count++;\n        usleep(10000);\n    }\n}\n",
        &["-g", "-O0"],
    );
    let port = free_port();
    let server = ["/usr/lib/llvm-19/bin/lldb-server", "/usr/bin/lldb-server-19"];
    let server = server.into_iter().find(|path| Path::new(path).exists()).unwrap();
    let _stranger = Stranger::start(
        Command::new(server)
            .args(["gdbserver", &format!("127.0.0.1:{port}"), "./program"])
            .current_dir(&bench.root),
    );
    bench.ok(json!({"op": "breakpoints", "file": "program.c", "lines": [5]})).await;
    // The server says nothing when it listens.
    let stop = loop {
        let said =
            bench.call(json!({"op": "attach", "adapter": "lldb", "port": port, "program": "program"})).await;
        if !said.is_error {
            break said;
        }
    };
    assert_eq!(stop.structured["stopped"]["line"], 5, "{}", stop.all_text());
    bench.ok(op("terminate")).await;
    bench.debugger.shutdown().await;
}

#[tokio::test]
async fn a_port_where_nobody_debugs_is_an_error_within_the_deadline() {
    let bench = Bench::new();
    // It accepts and never says a word.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for adapter in ["debugpy", "delve", "lldb"] {
        let said = bench.err(json!({"op": "attach", "adapter": adapter, "port": port})).await;
        assert!(said.text.contains("The session did not start"), "{adapter}: {}", said.text);
        assert_eq!(bench.ok(op("status")).await.state(), "none");
    }
    bench.end().await;
}
