//! A working directory with the tool over it, and programs to debug.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_debug::{Debug, Debugger};
use haft_system::{Environment, Supervisor, Workdir};
use haft_tool::{Call, Context, Family, Origin, Outcome, Registry, Surface};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Bench {
    pub(crate) root: PathBuf,
    pub(crate) debugger: Arc<Debugger>,
    pub(crate) supervisor: Supervisor,
    registry: Registry,
    directory: TempDir,
}

/// The directory of the debugpy that `cargo xtask test` fetches.
pub(crate) fn debugpy() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let bin = target.join("provision/debugpy-1.8.22/bin");
    assert!(bin.join("python3").exists(), "{} is missing: run `cargo xtask test` once", bin.display());
    bin
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench::with_path(&[debugpy()])
    }

    /// With these directories before the PATH.
    pub(crate) fn with_path(before: &[PathBuf]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = std::env::join_paths(
            before.iter().cloned().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        )
        .unwrap();
        Bench::in_environment(directory, Environment::capture().with("PATH", path))
    }

    /// With another limit to the life of a session.
    pub(crate) fn with_time_to_live(time: Duration) -> Self {
        let bench = Bench::new();
        let workdir = Workdir::new(&bench.root).unwrap();
        let debugger = Arc::new(Debugger::new(bench.supervisor.clone(), workdir).with_time_to_live(time));
        let registry = Registry::builder().tool(Debug::new(Arc::clone(&debugger)), Family::Workshop).build();
        Bench { debugger, registry, ..bench }
    }

    /// With another limit to the start of a program.
    pub(crate) fn with_start(self, time: Duration) -> Self {
        let workdir = Workdir::new(&self.root).unwrap();
        let debugger = Arc::new(Debugger::new(self.supervisor.clone(), workdir).with_start_limit(time));
        let registry = Registry::builder().tool(Debug::new(Arc::clone(&debugger)), Family::Workshop).build();
        Bench { debugger, registry, ..self }
    }

    pub(crate) fn in_environment(directory: TempDir, environment: Environment) -> Self {
        let root = directory.path().join("work");
        fs::create_dir(&root).unwrap();
        let workdir = Workdir::new(&root).unwrap();
        let supervisor = Supervisor::new(environment);
        let debugger = Arc::new(Debugger::new(supervisor.clone(), workdir.clone()));
        let registry = Registry::builder().tool(Debug::new(Arc::clone(&debugger)), Family::Workshop).build();
        Bench { root: workdir.root().to_owned(), debugger, supervisor, registry, directory }
    }

    pub(crate) fn put(&self, path: &str, content: &str) -> &Self {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) async fn call(&self, arguments: Value) -> Outcome {
        let call = Call::new("debug", arguments.clone(), Origin::Console);
        // Far beyond every deadline of the tool: a call that hangs fails its test and not the whole run.
        let limit = Duration::from_mins(4);
        let surface = Surface::agent();
        let called = self.registry.call(&surface, call, Context::detached());
        tokio::time::timeout(limit, called).await.unwrap_or_else(|_| panic!("{arguments} hangs"))
    }

    /// A call that has to succeed; its fields.
    pub(crate) async fn ok(&self, arguments: Value) -> Said {
        let outcome = self.call(arguments.clone()).await;
        let said = Said::of(outcome);
        assert!(!said.is_error, "{arguments}:\n{}", said.text);
        said
    }

    /// A call that has to fail.
    pub(crate) async fn err(&self, arguments: Value) -> Said {
        let said = Said::of(self.call(arguments.clone()).await);
        assert!(said.is_error, "{arguments}:\n{}", said.text);
        said
    }

    /// Ends the session and looks whether anything is left of it.
    pub(crate) async fn end(self) {
        self.debugger.shutdown().await;
        assert_eq!(self.supervisor.running(), vec![]);
        let left = self.left();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Processes that stand in this bench's directory, without those that only wait to be reaped.
    pub(crate) fn left(&self) -> Vec<String> {
        let root = self.directory.path();
        processes(|pid| {
            let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
            [link("cwd"), link("exe")].into_iter().flatten().any(|path| path.starts_with(root))
        })
    }
}

/// Living processes of which `test` is true, with their command lines.
pub(crate) fn processes(test: impl Fn(u32) -> bool) -> Vec<String> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| is_alive(*pid) && test(*pid))
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Not gone, and not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let after = stat.rfind(')').map_or(0, |at| at + 2);
        !stat[after..].starts_with(['Z', 'X'])
    })
}

#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) fields: Value,
}

impl Said {
    fn of(outcome: Outcome) -> Self {
        Said {
            is_error: outcome.is_error,
            text: outcome.all_text(),
            fields: Value::Object(outcome.structured),
        }
    }

    pub(crate) fn state(&self) -> &str {
        self.fields["state"].as_str().unwrap_or("(none)")
    }

    /// Reason, file and line of the stop.
    pub(crate) fn stop(&self) -> (String, String, u64) {
        let stop = &self.fields["stopped"];
        let text = |name: &str| stop[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(self.state(), "stopped", "{}", self.text);
        (text("reason"), text("file"), stop["line"].as_u64().unwrap_or(0))
    }

    pub(crate) fn value(&self, name: &str) -> String {
        self.variable(name)["value"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn variable(&self, name: &str) -> Value {
        self.fields["variables"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|variable| variable["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no variable {name}:\n{}", self.text))
    }

    pub(crate) fn output(&self) -> &str {
        self.fields["output"].as_str().unwrap_or_default()
    }

    pub(crate) fn pid(&self) -> u32 {
        let (_, rest) = self.text.split_once("process ").unwrap_or_else(|| panic!("{}", self.text));
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }
}

pub(crate) fn at(reason: &str, file: &str, line: u64) -> (String, String, u64) {
    (reason.to_owned(), file.to_owned(), line)
}

/// A call in short.
pub(crate) fn op(op: &str) -> Value {
    json!({ "op": op })
}
