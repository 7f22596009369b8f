//! The operations that start, move and end a program.

use std::sync::Arc;

use haft_tool::{Context, Output, ToolError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Debug, DebugArguments, needed, wait};
use crate::{
    debugger::by_itself,
    limits::{OUTPUT_WITH_STOP, PAUSE, RESULT_CHARACTERS},
    render::{self, Answer},
    session::{
        Session, SessionError, Waited,
        state::{End, Phase},
    },
    target::Launch,
};

/// What the adapter said last, where it explains an end.
fn explain_end(answer: &mut Answer, session: &Session, end: &End) {
    if matches!(end, End::AdapterDied { .. }) {
        let (_, stderr) = session.words();
        if !stderr.is_empty() {
            answer.say(format!("On the adapter's stderr:\n{stderr}"));
        }
    }
}

/// What to say where nothing has stopped.
pub(super) fn still_running(leader: &Session, session: &Session) -> String {
    let what = match session.pid().filter(|_| leader.has_company()) {
        _ if leader.has_left() => {
            return "The program itself has ended. Processes that it has started go on and are debugged further; its exit code is told \
                    when they have ended too. Ask for `status` later, or `terminate` them."
                .to_owned();
        }
        Some(pid) => format!("Process {pid}"),
        None => "The program".to_owned(),
    };
    format!(
        "{what} is running and has not stopped. Ask for `status` later, stop it with `pause`, or `terminate` it."
    )
}

fn begin_answer(state: &str, first: Option<String>) -> Answer {
    let mut answer = Answer::new(state);
    if let Some(first) = first {
        answer.say(first);
    }
    answer
}

/// Until when a call waits, and what ends its wait.
struct Wait<'a> {
    until: Instant,
    cancel: &'a CancellationToken,
}

impl Debug {
    pub(super) async fn launch(
        &self,
        arguments: DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        for (name, value) in &arguments.env {
            if !value.is_string() {
                return Err(ToolError::model(format!("env: the value of `{name}` has to be a string.")));
            }
        }
        let wish = Launch {
            program: arguments.program,
            arguments: arguments.args,
            adapter: arguments.adapter,
            test: arguments.test,
            directory: arguments.cwd,
            variables: arguments.env,
            subprocesses: arguments.subprocesses,
        };
        let session = self.debugger.launch(wish, context).await?;
        self.started(&session, "Started", arguments.wait_seconds, context).await
    }

    pub(super) async fn attach(
        &self,
        arguments: DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let port = needed(arguments.port, "attach", "port")?;
        let session = self
            .debugger
            .attach(arguments.adapter.as_deref(), port, arguments.program.as_deref(), context)
            .await?;
        // Without a breakpoint there is nothing to wait for: the program runs, and that is the answer.
        let seconds = arguments.wait_seconds.or_else(|| self.debugger.placed().is_empty().then_some(1));
        self.started(&session, "Attached to", seconds, context).await
    }

    pub(super) async fn started(
        &self,
        session: &Arc<Session>,
        word: &str,
        seconds: Option<u64>,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let wait = Wait { until: Instant::now() + wait(seconds), cancel: &context.cancel };
        let waited = session.wait(wait.until, wait.cancel).await;
        let pid = session.pid().map_or_else(String::new, |pid| format!(", process {pid}"));
        let first = format!("{word} `{}` ({}{pid}).", session.title, session.adapter.id);
        self.waited(session, (Arc::clone(session), waited), &wait, Some(first)).await
    }

    pub(super) async fn resume(
        &self,
        command: &'static str,
        arguments: &DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, None)?;
        session.take_focus();
        let wait = Wait { until: Instant::now() + wait(arguments.wait_seconds), cancel: &context.cancel };
        match session.resume(command, arguments.thread_id, wait.until, wait.cancel).await {
            Ok(waited) => self.waited(&leader, (session, waited), &wait, None).await,
            // A process below the program that has ended leaves something to wait for, and so do processes that all run.
            Err(SessionError::Ended(end)) if !leader.has_ended() => {
                self.waited(&leader, (session, Waited::Ended(end)), &wait, None).await
            }
            Err(SessionError::Running) if command == "continue" && leader.has_company() => {
                let waited = session.wait(wait.until, wait.cancel).await;
                self.waited(&leader, (session, waited), &wait, None).await
            }
            Err(SessionError::Running) => {
                Err(self.failed(&leader, &session, SessionError::AlreadyRunning).await)
            }
            Err(error) => Err(self.failed(&leader, &session, error).await),
        }
    }

    pub(super) async fn pause(
        &self,
        arguments: &DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, None)?;
        let time = arguments.wait_seconds.map_or(PAUSE, |seconds| wait(Some(seconds)));
        let wait = Wait { until: Instant::now() + time, cancel: &context.cancel };
        match session.pause(arguments.thread_id, time, &context.cancel).await {
            Ok(Waited::Running) => {
                let mut answer = Answer::new("running");
                answer.say(format!(
                    "The program was asked to stop and has not stopped within {} s. It may be in a call that cannot be interrupted; \
                     ask for `status` later.",
                    time.as_secs()
                ));
                render::processes(&mut answer, &leader.processes(), &leader.notices());
                Ok(answer.output())
            }
            Ok(waited) => self.waited(&leader, (session, waited), &wait, None).await,
            Err(error) => Err(self.failed(&leader, &session, error).await),
        }
    }

    /// What a wait in one process came to. `leader` is the program.
    async fn waited(
        &self,
        leader: &Arc<Session>,
        (session, waited): (Arc<Session>, Waited),
        wait: &Wait<'_>,
        first: Option<String>,
    ) -> Result<Output, ToolError> {
        let workdir = &self.debugger.workdir;
        let mut at = leader.whole(session, waited, wait.until, wait.cancel).await;
        let mut answer = loop {
            let (session, waited) = at;
            match waited {
                Waited::Stopped(stop) => {
                    let standing = session.look(&stop, workdir.root()).await;
                    // It may have been killed: delve reports that as a stop without a stack.
                    if standing.unknown.is_some()
                        && (matches!(session.phase(), Phase::Ended(_)) || session.is_gone().await)
                    {
                        let ended = match session.phase() {
                            Phase::Ended(end) => Waited::Ended(end),
                            _ => Waited::Elsewhere,
                        };
                        at = leader.whole(session, ended, wait.until, wait.cancel).await;
                        continue;
                    }
                    let mut answer = begin_answer("stopped", first);
                    render::stop(&mut answer, &standing, workdir);
                    break answer;
                }
                Waited::Ended(_) => {
                    leader.close_company();
                    let end = leader.settle().await;
                    let mut answer = begin_answer(render::end_state(&end), first);
                    render::end(&mut answer, &end, leader.signal().as_deref());
                    if by_itself(&end) {
                        render::never_verified(&mut answer, &leader.placed(), workdir);
                    }
                    explain_end(&mut answer, leader, &end);
                    break answer;
                }
                Waited::Running | Waited::Elsewhere => {
                    let mut answer = begin_answer("running", first);
                    answer.say(still_running(leader, &session));
                    break answer;
                }
                Waited::Cancelled => return Err(ToolError::Cancelled),
            }
        };
        render::processes(&mut answer, &leader.processes(), &leader.notices());
        let look = leader.output(|output| output.news(OUTPUT_WITH_STOP));
        render::output(&mut answer, &look, "New output");
        Ok(answer.output())
    }

    /// The answer for a session whose program has ended.
    pub(super) async fn ended(&self, session: &Arc<Session>) -> Answer {
        session.close_company();
        let end = session.settle().await;
        let mut answer = Answer::new(render::end_state(&end));
        render::end(&mut answer, &end, session.signal().as_deref());
        explain_end(&mut answer, session, &end);
        render::processes(&mut answer, &session.processes(), &session.notices());
        answer
    }

    /// The answer for what could not be done in a process. `leader` is the program.
    pub(super) async fn failed(
        &self,
        leader: &Arc<Session>,
        session: &Session,
        error: SessionError,
    ) -> ToolError {
        if matches!(error, SessionError::Ended(End::Disconnected { .. })) {
            // An adapter that dies loses the processes first, and only then is known to be dead.
            leader.may_have_ended().await;
        }
        match error {
            SessionError::Cancelled => ToolError::Cancelled,
            SessionError::Ended(_) if leader.has_ended() => {
                let mut answer = self.ended(leader).await;
                let look = leader.output(|output| output.news(OUTPUT_WITH_STOP));
                render::output(&mut answer, &look, "New output");
                answer.say("`launch` or `restart` starts it again.");
                answer.error()
            }
            SessionError::Ended(_) => {
                let mut answer = Answer::new(self.state_word());
                let pid = session.pid().map_or_else(String::new, |pid| format!(" {pid}"));
                answer.say(format!("Process{pid} has ended; the program goes on without it."));
                render::processes(&mut answer, &leader.processes(), &leader.notices());
                answer.error()
            }
            other => {
                let mut answer = Answer::new(self.state_word());
                answer.say(render::cut(&other.to_string(), RESULT_CHARACTERS));
                answer.error()
            }
        }
    }

    pub(super) async fn terminate(&self) -> Result<Output, ToolError> {
        let session = self.session()?;
        let already = match session.phase() {
            Phase::Ended(end) => Some(end),
            _ => None,
        };
        session.terminate("it was terminated").await;
        let mut answer = match already {
            Some(end) => {
                let mut answer = Answer::new(render::end_state(&end));
                render::end(&mut answer, &session.settle().await, session.signal().as_deref());
                answer.say("Nothing of it is left.");
                answer
            }
            None if session.launched => {
                let mut answer = Answer::new("exited");
                answer.say("Terminated: the program and its debug adapter are ended.");
                answer
            }
            None => {
                let mut answer = Answer::new("none");
                answer.say("Detached. The program was not started by Haft and goes on without a debugger.");
                answer
            }
        };
        render::processes(&mut answer, &session.processes(), &session.notices());
        let look = session.output(|output| output.news(OUTPUT_WITH_STOP));
        render::output(&mut answer, &look, "Its last output");
        Ok(answer.output())
    }
}
