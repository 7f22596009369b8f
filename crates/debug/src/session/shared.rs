//! What the tasks of a session have in common: the state, and a bell that rings when it changes.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use haft_system::{Process, ProcessSpec, ProcessWatch};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    company::Company,
    state::{End, Phase, State, Stop},
};
use crate::{limits::GRACE, protocol::Handler};

pub(crate) struct Shared {
    state: Mutex<State>,
    /// The other processes of the session, and what is common to all.
    pub(super) company: Arc<Company>,
    /// How many events the adapter has sent.
    events: AtomicU64,
    /// Fires when the session is to end.
    pub(crate) end: CancellationToken,
    /// Whether the adapter is a process of ours: its death is seen by whoever keeps it.
    has_process: bool,
    /// The program, once its number is known.
    pub(crate) watch: OnceLock<ProcessWatch>,
    /// What was started for `runInTerminal`. Dropped, and thereby ended, with the session.
    terminals: Mutex<Vec<Process>>,
}

/// How a wait for the program came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Waited {
    Stopped(Stop),
    Ended(End),
    /// The time is up and it has not stopped.
    Running,
    /// Another process of the session has stopped.
    Elsewhere,
    Cancelled,
}

impl Shared {
    pub(crate) fn new(company: Arc<Company>, has_process: bool) -> Arc<Self> {
        Arc::new(Shared {
            state: Mutex::default(),
            company,
            events: AtomicU64::new(0),
            end: CancellationToken::new(),
            has_process,
            watch: OnceLock::new(),
            terminals: Mutex::default(),
        })
    }

    /// Looks at the state or changes it. Whoever waits looks again.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let result = work(&mut self.lock());
        self.company.bell.send_modify(|count| *count += 1);
        result
    }

    /// Looks at the state.
    pub(crate) fn look<T>(&self, work: impl FnOnce(&State) -> T) -> T {
        work(&self.lock())
    }

    /// How many events the adapter has sent.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Waits until `question` has an answer.
    pub(crate) async fn when<T>(&self, mut question: impl FnMut(&State) -> Option<T>) -> T {
        let mut changed = self.company.bell.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(answer) = question(&self.lock()) {
                return answer;
            }
            // The sender is in `self`.
            if changed.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The same, for so long at most.
    pub(crate) async fn when_within<T>(
        &self,
        time: Duration,
        question: impl FnMut(&State) -> Option<T>,
    ) -> Option<T> {
        tokio::time::timeout(time, self.when(question)).await.ok()
    }

    /// Waits for the process to stop or end, or for another process of the session to do something that has to be told first.
    pub(crate) async fn stop_or_end(&self, until: Instant, cancel: &CancellationToken) -> Waited {
        self.stop_or_end_alone(Instant::now(), until, cancel).await
    }

    /// The same; until `alone`, nothing that happens elsewhere ends the wait.
    pub(super) async fn stop_or_end_alone(
        &self,
        alone: Instant,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Waited {
        let mut changed = self.company.bell.subscribe();
        loop {
            changed.borrow_and_update();
            match self.look(|state| state.phase.clone()) {
                Phase::Stopped(stop) => return Waited::Stopped(stop),
                Phase::Ended(end) => return Waited::Ended(end),
                Phase::Starting | Phase::Running => {}
            }
            let is_alone = Instant::now() < alone;
            if !is_alone && let Some(waited) = self.company.elsewhere(self) {
                return waited;
            }
            tokio::select! {
                biased;
                // The sender is in the company.
                _ = changed.changed() => {}
                () = cancel.cancelled() => return Waited::Cancelled,
                () = tokio::time::sleep_until(until) => return Waited::Running,
                () = tokio::time::sleep_until(alone), if is_alone => {}
            }
        }
    }

    /// Whether the process is dead, as far as can be seen from outside.
    pub(super) fn is_dead(&self) -> bool {
        if let Some(watch) = self.watch.get() {
            return watch.has_ended();
        }
        let Some(pid) = self.look(|state| state.pid) else { return false };
        match ProcessWatch::open(pid) {
            Ok(watch) => watch.has_ended(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Waits for the process to be dead, for so long at most.
    pub(super) async fn until_dead(&self, time: Duration) {
        if self.is_dead() {
            return;
        }
        let opened = self.look(|state| state.pid).and_then(|pid| ProcessWatch::open(pid).ok());
        if let Some(watch) = self.watch.get().or(opened.as_ref()) {
            // It may have been let go and live on.
            let _ = tokio::time::timeout(time, watch.ended()).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts what an adapter wants to be run in a terminal. There is none: its output goes where the program's goes.
    async fn run_in_terminal(self: Arc<Self>, arguments: Value) -> Result<Value, String> {
        let words: Vec<String> = arguments["args"]
            .as_array()
            .map(|words| words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        let [program, rest @ ..] = words.as_slice() else {
            return Err("runInTerminal without a command".into());
        };
        let directory = arguments["cwd"].as_str().filter(|text| !text.is_empty());
        let mut spec = ProcessSpec::new(
            program,
            directory.map_or(self.company.directory.clone(), std::path::PathBuf::from),
        )
        .args(rest)
        .stderr(haft_system::StderrMode::Merged)
        .grace(GRACE)
        .label(format!("debuggee {program}"));
        for (name, value) in arguments["env"].as_object().into_iter().flatten() {
            match value.as_str() {
                Some(value) => spec = spec.env(name, value),
                // The protocol takes a variable away by null.
                None => spec = spec.without_env(name),
            }
        }
        let mut process = self.company.supervisor.spawn(spec).await.map_err(|error| error.to_string())?;
        let pid = process.pid();
        if let Some(mut stdout) = process.take_stdout() {
            let shared = Arc::clone(&self);
            tokio::spawn(async move {
                let mut buffer = vec![0; 16 << 10];
                while let Ok(count) = stdout.read(&mut buffer).await {
                    if count == 0 {
                        return;
                    }
                    shared.with(|state| state.output.push(&buffer[..count]));
                }
            });
        }
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        Ok(json!({"processId": pid}))
    }

    /// Ends what was started for `runInTerminal`.
    pub(crate) async fn end_terminals(&self) {
        let terminals = std::mem::take(&mut *self.terminals.lock().unwrap_or_else(PoisonError::into_inner));
        for mut process in terminals {
            process.terminate().await;
        }
    }
}

impl Handler for Shared {
    fn event(&self, name: &str, body: Value) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if name == "output"
            && matches!(body["category"].as_str(), Some("stdout" | "stderr"))
            && self.company.wrote(self, body["output"].as_str().unwrap_or_default().as_bytes())
        {
            return;
        }
        if name == "output" && body["category"] == "important" {
            // What a person has to see: that the condition of a breakpoint raises, and so never stops the program.
            self.company.warn(body["output"].as_str().unwrap_or_default());
        }
        self.with(|state| state.event(name, &body));
    }

    fn reverse(
        self: Arc<Self>,
        command: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<Value, String>> {
        match command.as_str() {
            "runInTerminal" => self.run_in_terminal(arguments).boxed(),
            "startDebugging" => Arc::clone(&self.company).take_in(arguments).boxed(),
            other => {
                let why = format!("this client does not serve `{other}`");
                async move { Err(why) }.boxed()
            }
        }
    }

    fn junk(&self, line: &[u8]) {
        self.with(|state| state.stderr.push(line));
    }

    fn closed(&self, why: String) {
        if self.has_process {
            // An adapter that says nothing more is of no use: it is ended, and its keeper tells how it ended.
            self.with(State::closed);
        } else {
            self.with(|state| {
                state.closed();
                state.end(End::Disconnected { why });
            });
        }
        self.end.cancel();
    }
}
