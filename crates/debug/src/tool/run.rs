//! The operations that start, move and end a program.

use haft_tool::{Context, Output, ToolError};

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
        session: &Session,
        word: &str,
        seconds: Option<u64>,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let waited = session.wait(wait(seconds), &context.cancel).await;
        let pid = session.pid().map_or_else(String::new, |pid| format!(", process {pid}"));
        let first = format!("{word} `{}` ({}{pid}).", session.title, session.adapter.id);
        self.waited(session, waited, Some(first)).await
    }

    pub(super) async fn resume(
        &self,
        command: &'static str,
        arguments: &DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let session = self.session()?;
        let time = wait(arguments.wait_seconds);
        let waited = session.resume(command, arguments.thread_id, time, &context.cancel).await;
        match waited {
            Ok(waited) => self.waited(&session, waited, None).await,
            Err(SessionError::Running) => Err(self.failed(&session, SessionError::AlreadyRunning).await),
            Err(error) => Err(self.failed(&session, error).await),
        }
    }

    pub(super) async fn pause(
        &self,
        arguments: &DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let session = self.session()?;
        let time = arguments.wait_seconds.map_or(PAUSE, |seconds| wait(Some(seconds)));
        match session.pause(arguments.thread_id, time, &context.cancel).await {
            Ok(Waited::Running) => {
                let mut answer = Answer::new("running");
                answer.say(format!(
                    "The program was asked to stop and has not stopped within {} s. It may be in a call that cannot be interrupted; \
                     ask for `status` later.",
                    time.as_secs()
                ));
                Ok(answer.output())
            }
            Ok(waited) => self.waited(&session, waited, None).await,
            Err(error) => Err(self.failed(&session, error).await),
        }
    }

    /// What a wait came to.
    pub(super) async fn waited(
        &self,
        session: &Session,
        waited: Waited,
        first: Option<String>,
    ) -> Result<Output, ToolError> {
        let workdir = &self.debugger.workdir;
        let mut answer = match &waited {
            Waited::Stopped(_) => Answer::new("stopped"),
            Waited::Ended(end) => Answer::new(render::end_state(end)),
            Waited::Running => Answer::new("running"),
            Waited::Cancelled => return Err(ToolError::Cancelled),
        };
        if let Some(first) = first {
            answer.say(first);
        }
        match waited {
            Waited::Stopped(stop) => {
                let standing = session.look(&stop, workdir.root()).await;
                // It may have been killed: delve reports that as a stop without a stack.
                if standing.unknown.is_some()
                    && (matches!(session.phase(), Phase::Ended(_)) || session.is_gone().await)
                {
                    return Ok(self.ended(session).await.output());
                }
                render::stop(&mut answer, &standing, workdir);
            }
            Waited::Ended(_) => {
                let end = session.settle().await;
                render::end(&mut answer, &end);
                if by_itself(&end) {
                    render::never_verified(&mut answer, &session.placed(), workdir);
                }
                explain_end(&mut answer, session, &end);
            }
            Waited::Running => {
                answer.say(
                    "The program is running and has not stopped. Ask for `status` later, stop it with `pause`, or `terminate` it.",
                );
            }
            Waited::Cancelled => {}
        }
        let look = session.output(|output| output.news(OUTPUT_WITH_STOP));
        render::output(&mut answer, &look, "New output");
        Ok(answer.output())
    }

    /// The answer for a session whose program has ended.
    pub(super) async fn ended(&self, session: &Session) -> Answer {
        let end = session.settle().await;
        let mut answer = Answer::new(render::end_state(&end));
        render::end(&mut answer, &end);
        explain_end(&mut answer, session, &end);
        answer
    }

    pub(super) async fn failed(&self, session: &Session, error: SessionError) -> ToolError {
        match error {
            SessionError::Cancelled => ToolError::Cancelled,
            SessionError::Ended(_) => {
                let mut answer = self.ended(session).await;
                let look = session.output(|output| output.news(OUTPUT_WITH_STOP));
                render::output(&mut answer, &look, "New output");
                answer.say("`launch` or `restart` starts it again.");
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
                render::end(&mut answer, &session.settle().await);
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
        let look = session.output(|output| output.news(OUTPUT_WITH_STOP));
        render::output(&mut answer, &look, "Its last output");
        Ok(answer.output())
    }
}
