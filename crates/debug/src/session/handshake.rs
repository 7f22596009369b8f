//! The start of a session, in the one order that every adapter understands.
//!
//! When `initialized` comes differs by adapter (before the launch, after it, after a build of seconds), and so does whether the launch
//! is answered before or only after `configurationDone`. So the launch is sent and not waited for; what is waited for is
//! `initialized`, a failure, or an end.

use std::{fmt, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    Session,
    state::{End, Phase, State},
};
use crate::{
    adapters::Adapter,
    limits::{SETTLE, START},
    protocol::{Sent, message::one},
};

/// What to begin with.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    /// `launch` or `attach`.
    pub(crate) command: &'static str,
    pub(crate) arguments: Value,
    pub(crate) within: Duration,
    /// Stop where a Rust program panics.
    pub(crate) stop_at_panic: bool,
}

/// Why a session did not come about: what was said, and everything else that the adapter wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartError {
    pub(crate) adapter: &'static str,
    pub(crate) said: String,
    pub(crate) words: String,
    pub(crate) output: String,
    pub(crate) stderr: String,
    pub(crate) cancelled: bool,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The session did not start ({}): {}", self.adapter, self.said.trim())?;
        // The same text often comes on more than one way.
        let mut known = self.said.clone();
        for (what, text) in [
            ("The debug adapter wrote", &self.words),
            ("The program wrote", &self.output),
            ("On the adapter's stderr", &self.stderr),
        ] {
            let text = text.trim();
            if !known.contains(text) {
                write!(f, "\n{what}:\n{text}")?;
                known.push_str(text);
            }
        }
        Ok(())
    }
}

impl Session {
    /// Brings the session from nothing to a program that runs, or stands at its first stop. On an error the caller terminates it.
    pub(crate) async fn begin(&self, begin: &Begin, cancel: &CancellationToken) -> Result<(), StartError> {
        let deadline = Instant::now() + begin.within;
        let initialize =
            self.client.request("initialize", client_words(self.adapter), START.min(begin.within));
        let capabilities = tokio::select! {
            answer = initialize => match answer {
                Ok(body) => one(&body),
                Err(error) => return Err(self.start_error(error.to_string()).await),
            },
            () = cancel.cancelled() => return Err(self.cancelled()),
        };
        // Set once; a second `begin` on one session does not happen.
        let _ = self.capabilities.set(capabilities);

        let mut launch = match self.client.send(begin.command, begin.arguments.clone()).await {
            Ok(sent) => sent,
            Err(error) => return Err(self.start_error(error.to_string()).await),
        };
        let mut answered = false;
        loop {
            tokio::select! {
                biased;
                came = self.shared.when(initialized_or_end) => match came {
                    Came::Initialized => break,
                    Came::Ended(end) => return Err(self.ended_early(begin, &end).await),
                },
                answer = launch.wait(), if !answered => match answer {
                    Ok(_) => answered = true,
                    Err(error) => return Err(self.start_error(error.to_string()).await),
                },
                () = cancel.cancelled() => return Err(self.cancelled()),
                () = sleep_until(deadline) => {
                    return Err(self.start_error(late(begin, "has not said that it is ready")).await);
                }
            }
        }
        self.configure(begin.stop_at_panic).await;
        self.shared.with(|state| {
            state.let_go();
        });
        if self.capabilities().supports_configuration_done_request {
            let done = self.client.send("configurationDone", json!({"_": 0})).await;
            let mut done = match done {
                Ok(done) => done,
                Err(error) => return Err(self.start_error(error.to_string()).await),
            };
            self.both(&mut done, &mut launch, answered, begin, deadline, cancel).await?;
        } else if !answered {
            self.one(&mut launch, begin, deadline, cancel).await?;
        }
        self.find_program();
        Ok(())
    }

    /// Tells the adapter all breakpoints; once more where somebody has changed them meanwhile.
    async fn configure(&self, stop_at_panic: bool) {
        loop {
            let plan = self.shared.company.plan();
            self.place_all(&plan, stop_at_panic).await;
            if self.shared.company.if_still(&plan, || self.set_configured()) {
                return;
            }
        }
    }

    /// Waits for the answers to `configurationDone` and to the launch, whichever comes first. The launch's own error says more.
    async fn both(
        &self,
        done: &mut Sent,
        launch: &mut Sent,
        launch_answered: bool,
        begin: &Begin,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<(), StartError> {
        let mut open = (true, !launch_answered);
        while open.0 || open.1 {
            tokio::select! {
                biased;
                answer = launch.wait(), if open.1 => match answer {
                    Ok(_) => open.1 = false,
                    Err(error) => return Err(self.start_error(error.to_string()).await),
                },
                answer = done.wait(), if open.0 => match answer {
                    Ok(_) => open.0 = false,
                    Err(error) => {
                        let mut error = error;
                        if open.1 && let Ok(Err(better)) = tokio::time::timeout(SETTLE, launch.wait()).await {
                            error = better;
                        }
                        return Err(self.start_error(error.to_string()).await);
                    }
                },
                // A program that ends or stops at once is a session that came about, whatever is still unanswered.
                () = self.shared.when(|state| {
                    matches!(state.phase, Phase::Stopped(_) | Phase::Ended(End::Exited { .. })).then_some(())
                }) => return Ok(()),
                end = self.shared.when(ended) => return Err(self.ended_early(begin, &end).await),
                () = cancel.cancelled() => return Err(self.cancelled()),
                () = sleep_until(deadline) => {
                    return Err(self.start_error(late(begin, "has not started the program")).await);
                }
            }
        }
        Ok(())
    }

    async fn one(
        &self,
        launch: &mut Sent,
        begin: &Begin,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<(), StartError> {
        tokio::select! {
            biased;
            answer = launch.wait() => match answer {
                Ok(_) => Ok(()),
                Err(error) => Err(self.start_error(error.to_string()).await),
            },
            end = self.shared.when(ended) => match end {
                End::Exited { .. } => Ok(()),
                end => Err(self.ended_early(begin, &end).await),
            },
            () = cancel.cancelled() => Err(self.cancelled()),
            () = sleep_until(deadline) => {
                Err(self.start_error(late(begin, "has not started the program")).await)
            }
        }
    }

    /// delve does not tell the program's number: it is looked for among what runs below the adapter.
    fn find_program(&self) {
        if !self.launched || self.pid().is_some() || !self.adapter.hides_pid {
            return;
        }
        let Some(adapter) = self.adapter_pid else { return };
        // The compiler has ended by now; what runs below delve is the program, and below that what the program started.
        let program =
            haft_system::process::below(adapter).into_iter().find(|process| process.parent == adapter);
        if let Some(program) = program {
            self.shared.with(|state| state.pid = Some(program.pid));
        }
    }

    async fn ended_early(&self, begin: &Begin, end: &End) -> StartError {
        let said = match end {
            End::Exited { .. } => {
                let what = if begin.command == "launch" { "the program" } else { "the session" };
                let code = match self.settle().await {
                    End::Exited { code: Some(code) } => format!(" with exit code {code}"),
                    _ => String::new(),
                };
                format!("{what} ended{code} before it could be debugged.")
            }
            End::AdapterDied { how } => format!("the debug adapter ended ({how})."),
            End::Disconnected { why } => format!("the connection was lost: {why}."),
            End::Vanished => {
                "the program was gone before the debugger had reached it: it was killed, or could not run."
                    .to_owned()
            }
            End::Terminated { why } => why.clone(),
        };
        self.start_error(said).await
    }

    async fn start_error(&self, said: String) -> StartError {
        // What explains the failure may come a moment after it; an adapter that has died is waited for, so that its end is known.
        self.shared.when_within(SETTLE, |state| state.settled.closed.then_some(())).await;
        let closed = self.shared.look(|state| state.settled.closed);
        let mut said = said;
        if closed && let Some(End::AdapterDied { how }) = self.end_within(SETTLE * 4).await {
            said = format!("{}. The debug adapter ended ({how}).", said.trim_end_matches('.'));
        }
        let (words, stderr) = self.words();
        let output = self.output(|output| output.all(crate::limits::WORDS_BYTES).text);
        // The adapter's own words may have the reason and not what it means.
        let refused = [&said, &words, &stderr].iter().any(|text| is_refusal_to_trace(text));
        if refused && self.adapter.traces && !said.contains(NO_TRACE) {
            said = format!("{}{NO_TRACE}", said.trim_end());
        }
        StartError { adapter: self.adapter.id, said, words, output, stderr, cancelled: false }
    }

    fn cancelled(&self) -> StartError {
        StartError {
            adapter: self.adapter.id,
            said: "cancelled".into(),
            words: String::new(),
            output: String::new(),
            stderr: String::new(),
            cancelled: true,
        }
    }
}

/// What to say where a debugger may not do what it has to.
const NO_TRACE: &str = "\nThis machine does not let one process trace another (ptrace), which this debugger needs; a sandbox or container \
                        setting forbids it.";

/// As lldb ("ptrace failed: Operation not permitted") and delve ("fork/exec …: operation not permitted") have it.
fn is_refusal_to_trace(text: &str) -> bool {
    text.to_ascii_lowercase().contains("operation not permitted")
}

fn late(begin: &Begin, what: &str) -> String {
    let hint = match begin.command {
        "attach" => {
            " Is that port the one on which a debugger listens (debugpy --listen, dlv --headless, gdbserver)?"
        }
        _ => match haft_system::process::may_trace() {
            Ok(()) => "",
            Err(_) => NO_TRACE,
        },
    };
    format!("the debug adapter {what} within {} seconds.{hint}", begin.within.as_secs())
}

enum Came {
    Initialized,
    Ended(End),
}

fn initialized_or_end(state: &State) -> Option<Came> {
    if let Some(end) = ended(state) {
        return Some(Came::Ended(end));
    }
    state.initialized.then_some(Came::Initialized)
}

fn ended(state: &State) -> Option<End> {
    match &state.phase {
        Phase::Ended(end) => Some(end.clone()),
        _ => None,
    }
}

fn client_words(adapter: &Adapter) -> Value {
    json!({
        "clientID": "haft",
        "clientName": "Haft",
        "adapterID": adapter.id,
        "locale": "en-US",
        "pathFormat": "path",
        "linesStartAt1": true,
        "columnsStartAt1": true,
        "supportsVariableType": true,
        "supportsVariablePaging": true,
        // Only used by adapters that are told so: what is started in a terminal has no output of its own. Who asks all the same is served.
        "supportsRunInTerminalRequest": false,
        "supportsStartDebuggingRequest": adapter.announces_processes,
    })
}
