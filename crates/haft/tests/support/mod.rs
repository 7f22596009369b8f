//! Runs the real program in a home of its own.

#![allow(dead_code, reason = "every test file uses a part of this")]
#![allow(clippy::disallowed_methods, reason = "these tests start the program from outside")]

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A home with a project in it.
pub(crate) struct World {
    pub(crate) root: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        World { root }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub(crate) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.project().join(name), text).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.project().join(name)).unwrap()
    }

    /// The program with arguments, in the project, with nothing of this machine's but the search path.
    pub(crate) fn haft(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.root.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.haft(arguments).output().unwrap()
    }

    pub(crate) fn console(&self, arguments: &[&str]) -> Console {
        self.console_with(arguments, &[])
    }

    /// A console with other variables.
    pub(crate) fn console_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, std::ffi::OsString)],
    ) -> Console {
        let mut all = vec!["console"];
        all.extend(arguments);
        let mut child = self
            .haft(&all)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Console { stdin: child.stdin.take(), stdout: BufReader::new(child.stdout.take().unwrap()), child }
    }
}

/// A console that runs.
pub(crate) struct Console {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: BufReader<ChildStdout>,
}

impl Console {
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.send(&json!({"id": tool, "tool": tool, "arguments": arguments}).to_string());
        self.next()
    }

    /// Ends the input and waits; the exit code and the lines that were left.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<Value>) {
        self.stdin = None;
        let rest = self.stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        (self.child.wait().unwrap().code(), rest)
    }
}

/// Processes whose command line holds the word `mark`, without those that only wait to be reaped.
pub(crate) fn processes(mark: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()))
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

/// Waits for what has to come to pass; how long it takes is not what is tested.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come to pass");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A number that no other test uses, for `sleep`.
pub(crate) fn mark(test: u32) -> String {
    format!("{}{test:03}", std::process::id())
}
