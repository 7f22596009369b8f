//! The operations that look, `evaluate` among them.

use haft_tool::{Context, Output, ToolError};
use serde_json::{Value, json};

use super::{Debug, DebugArguments, needed, run::still_running, wait};
use crate::{
    limits::{EVALUATE, OUTPUT_SHOWN, OUTPUT_WITH_STOP, RESULT_CHARACTERS, THREADS},
    render::{self, Answer},
    session::{Evaluation, SessionError, state::Phase},
};

impl Debug {
    pub(super) async fn adapters(&self) -> Output {
        let mut answer = Answer::new(self.state_word());
        let reports = self.debugger.adapters().await;
        render::adapters(&mut answer, &reports, &self.debugger.workdir);
        answer.output()
    }

    pub(super) async fn status(&self) -> Output {
        let workdir = &self.debugger.workdir;
        let Some(session) = self.debugger.session() else {
            let mut answer = Answer::new("none");
            answer.say("There is no debug session.");
            let placed = self.debugger.placed();
            render::breakpoints(&mut answer, &placed, workdir);
            return answer.output();
        };
        let acting = session.in_focus();
        let phase = if session.has_ended() { session.phase() } else { acting.phase() };
        let mut answer = match phase {
            Phase::Ended(_) => self.ended(&session).await,
            Phase::Starting | Phase::Running => {
                let mut answer = Answer::new("running");
                if session.has_left() {
                    answer.say(still_running(&session, &acting));
                } else {
                    answer.say("The program is running.");
                }
                answer
            }
            Phase::Stopped(stop) => match acting.busy().await {
                Some(since) => {
                    let mut answer = Answer::new("stopped");
                    answer.say(format!(
                        "The program stands at a stop, and an evaluation has been going on in it for {} s.",
                        since.as_secs()
                    ));
                    answer
                }
                None => {
                    let mut answer = Answer::new("stopped");
                    let standing = acting.look(&stop, workdir.root()).await;
                    render::stop(&mut answer, &standing, workdir);
                    answer
                }
            },
        };
        let pid = session.pid().map_or_else(String::new, |pid| format!(", process {pid}"));
        let whose = if session.launched { "launched" } else { "attached" };
        answer.say(format!(
            "Session: `{}` with {}{pid}, {whose} {} s ago.",
            session.title,
            session.adapter.id,
            session.begun.elapsed().as_secs()
        ));
        render::processes(&mut answer, &session.processes(), &session.notices());
        if session.output(|output| output.unseen()) > 0 {
            answer.say("There is new output: ask for `output`.");
        }
        let placed = self.debugger.placed();
        render::breakpoints(&mut answer, &placed, workdir);
        answer.output()
    }

    pub(super) async fn threads(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, None)?;
        if let Phase::Ended(end) = session.phase() {
            return Err(self.failed(&leader, &session, SessionError::Ended(end)).await);
        }
        let threads = match session.threads().await {
            Ok(threads) => threads,
            Err(error) => return Err(self.failed(&leader, &session, error).await),
        };
        let stopped = match session.phase() {
            Phase::Stopped(stop) => stop.thread,
            _ => None,
        };
        let mut answer = Answer::new(self.state_word());
        for (id, name) in threads.iter().take(THREADS) {
            let mark = if Some(*id) == stopped { "  <- stopped here" } else { "" };
            answer.say(format!("- {id}: {}{mark}", render::cut(name, 200)));
        }
        if threads.len() > THREADS {
            let more = threads.len() - THREADS;
            let all = session.adapter.lists_threads_up_to.is_none_or(|most| threads.len() < most);
            answer.say(if all {
                format!("{more} more are not shown.")
            } else {
                format!(
                    "{more} more are not shown, and there may be others: the debug adapter does not list all."
                )
            });
        }
        let field: Vec<Value> =
            threads.iter().take(THREADS).map(|(id, name)| json!({"id": id, "name": name})).collect();
        answer.field("threads", json!(field));
        Ok(answer.output())
    }

    pub(super) async fn stack(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, None)?;
        match session.stack(arguments.thread_id, arguments.start).await {
            Ok((thread, frames)) => {
                let mut answer = Answer::new("stopped");
                render::stack(&mut answer, thread, &frames, arguments.start, &self.debugger.workdir);
                Ok(answer.output())
            }
            Err(error) => Err(self.failed(&leader, &session, error).await),
        }
    }

    pub(super) async fn scopes(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, arguments.frame_id)?;
        let scopes = async {
            let frame = match arguments.frame_id {
                Some(frame) => frame,
                None => session.current_frame().await?,
            };
            session.scopes(frame).await
        };
        match scopes.await {
            Ok(scopes) => {
                let mut answer = Answer::new("stopped");
                for (name, reference) in &scopes {
                    answer.say(format!("- {name} [reference {reference}]"));
                }
                let field: Vec<Value> = scopes
                    .iter()
                    .map(|(name, reference)| json!({"name": name, "reference": reference}))
                    .collect();
                answer.field("scopes", json!(field));
                Ok(answer.output())
            }
            Err(error) => Err(self.failed(&leader, &session, error).await),
        }
    }

    pub(super) async fn variables(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, arguments.reference.or(arguments.frame_id))?;
        let listed = async {
            match (arguments.reference, arguments.frame_id) {
                (Some(reference), _) => session.variables(reference, arguments.start).await,
                (None, Some(frame)) => session.locals(frame).await,
                (None, None) => session.locals(session.current_frame().await?).await,
            }
        };
        match listed.await {
            Ok(listed) => {
                let mut answer = Answer::new("stopped");
                render::variables(&mut answer, &listed, arguments.start);
                Ok(answer.output())
            }
            Err(error) => Err(self.failed(&leader, &session, error).await),
        }
    }

    pub(super) async fn evaluate(
        &self,
        arguments: &DebugArguments,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let (leader, session) = self.acting(arguments, arguments.frame_id)?;
        let expression = needed(arguments.expression.as_deref(), "evaluate", "expression")?;
        let time = arguments.wait_seconds.map_or(EVALUATE, |seconds| wait(Some(seconds)));
        match session.evaluate(expression, arguments.frame_id, time, &context.cancel).await {
            Ok(Evaluation::Value(value)) => {
                let mut answer = Answer::new(self.state_word());
                let kind = value
                    .kind
                    .as_ref()
                    .map_or_else(String::new, |kind| format!(" ({})", render::cut(kind, 120)));
                let reference =
                    value.reference.map_or_else(String::new, |number| format!("  [reference {number}]"));
                let result = render::cut(value.value.trim_end(), RESULT_CHARACTERS);
                let result = if result.is_empty() { "(no value)".to_owned() } else { result };
                answer.say(format!("{result}{kind}{reference}"));
                let look = leader.output(|output| output.news(OUTPUT_WITH_STOP));
                render::output(&mut answer, &look, "New output");
                answer.field("result", json!(result));
                answer.field("variables", render::variables_field(std::slice::from_ref(&value)));
                Ok(answer.output())
            }
            Ok(Evaluation::GoesOn) => {
                let mut answer = Answer::new(self.state_word());
                answer.say(format!(
                    "The evaluation is not done after {} s and goes on in the program, which can do nothing else meanwhile. Ask for \
                     `status` later, or `terminate`.",
                    time.as_secs()
                ));
                Err(answer.error())
            }
            Err(error) => Err(self.failed(&leader, &session, error).await),
        }
    }

    pub(super) fn output(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let session = self.session()?;
        let look =
            session.output(
                |output| {
                    if arguments.all { output.all(OUTPUT_SHOWN) } else { output.news(OUTPUT_SHOWN) }
                },
            );
        let mut answer = Answer::new(self.state_word());
        if look.text.is_empty() && look.left_out == 0 {
            answer.say(if arguments.all {
                "The program has written nothing."
            } else {
                "The program has written nothing since the last look. all: true shows what is kept."
            });
            answer.field("output", json!(""));
        } else {
            let what = if arguments.all { "Output" } else { "Output since the last look" };
            render::output(&mut answer, &look, what);
        }
        Ok(answer.output())
    }
}
