//! The tool `debug` (SPEC D3).

mod breakpoints;
mod look;
mod run;

use std::{sync::Arc, time::Duration};

use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Debugger,
    limits::{WAIT_DEFAULT, WAIT_MOST},
    render::{self, Answer},
    session::{Session, state::Phase},
};

/// Runs programs under a debugger.
pub struct Debug {
    debugger: Arc<Debugger>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the operations are those of SPEC D3, by their names")]
pub enum Op {
    Adapters,
    Status,
    Breakpoints,
    Launch,
    Attach,
    Restart,
    Continue,
    Pause,
    StepOver,
    StepIn,
    StepOut,
    Threads,
    Stack,
    Scopes,
    Variables,
    Evaluate,
    Output,
    Terminate,
}

/// A line to stop at.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Line {
    /// Its number, 1-based.
    Number(u32),
    /// Its number and when to stop there.
    Conditional(ConditionalLine),
}

/// A line with a condition.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionalLine {
    /// 1-based.
    pub line: u32,
    /// Stop only where this is true, in the program's language.
    #[serde(default)]
    pub condition: Option<String>,
    /// Stop at the hits that this allows: `3`, with some debuggers `>= 3`.
    #[serde(default)]
    pub hit_condition: Option<String>,
    /// Write this to the output instead of stopping; `{expression}` is filled in.
    #[serde(default)]
    pub log_message: Option<String>,
}

/// The arguments of `debug`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DebugArguments {
    /// What to do.
    pub op: Op,
    /// launch: a source file, a binary, a package directory, `-m module` (Python), or a cargo binary, example or test by name.
    #[serde(default)]
    pub program: Option<String>,
    /// launch: the program's arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// launch: debug the tests of what program names (cargo, go, pytest).
    #[serde(default)]
    pub test: bool,
    /// launch: the program's directory; the working directory by default.
    #[serde(default)]
    pub cwd: Option<String>,
    /// launch: environment variables.
    #[serde(default)]
    pub env: Map<String, Value>,
    /// launch: debug the Python processes that the program starts, too. Each of them starts a second later for it: false where there are many.
    #[serde(default = "yes")]
    pub subprocesses: bool,
    /// launch, attach: dart, debugpy, lldb or delve, where it is not clear.
    #[serde(default)]
    pub adapter: Option<String>,
    /// attach: where a debugger listens on this machine.
    #[serde(default)]
    pub port: Option<u16>,
    /// breakpoints: the source file.
    #[serde(default)]
    pub file: Option<String>,
    /// breakpoints: all lines of the file to stop at; an empty list clears it.
    #[serde(default)]
    pub lines: Option<Vec<Line>>,
    /// breakpoints: all functions to stop in.
    #[serde(default)]
    pub functions: Option<Vec<String>>,
    /// breakpoints: the exception filters, by the adapter's names. By default uncaught exceptions and panics stop the program.
    #[serde(default)]
    pub exceptions: Option<Vec<String>>,
    /// The process, where the program has started others; the one that stopped by default.
    #[serde(default)]
    pub process_id: Option<u32>,
    /// The thread; the one that stopped by default.
    #[serde(default)]
    pub thread_id: Option<i64>,
    /// scopes, variables, evaluate: the frame; the top one by default.
    #[serde(default)]
    pub frame_id: Option<u64>,
    /// variables: from `scopes` or from a variable.
    #[serde(default)]
    pub reference: Option<u64>,
    /// stack, variables: how many to leave out.
    #[serde(default)]
    pub start: usize,
    /// evaluate: in the program's language.
    #[serde(default)]
    pub expression: Option<String>,
    /// launch, attach, continue, step, pause, evaluate: how long to wait; 30 by default, evaluate 10.
    #[serde(default)]
    pub wait_seconds: Option<u64>,
    /// output: everything that is kept, not just what is new.
    #[serde(default)]
    pub all: bool,
}

impl Debug {
    /// The tool over a conversation's debugger.
    pub fn new(debugger: Arc<Debugger>) -> Self {
        Debug { debugger }
    }
}

impl Tool for Debug {
    type Arguments = DebugArguments;
    const NAME: &'static str = "debug";
    const TIER: Tier = Tier::Exec;
    const PARALLEL: bool = false;

    fn description(&self) -> String {
        "Stops a program and looks inside, instead of guessing from prints. Usual way: `breakpoints` (file, lines; before or after \
         the start), `launch` (program), then `continue`, `step_over`, `step_in`, `step_out`; `stack`, `scopes`, `variables`, `evaluate` \
         look around. Every answer at a stop has the reason, the place, the lines around it and the locals. Uncaught exceptions and \
         panics stop by themselves. Numbers of frames and references are good until the program moves. One session at a time; \
         `terminate` ends it. `adapters` says which languages can be debugged here."
            .into()
    }

    fn touches(&self, arguments: &DebugArguments) -> Vec<Touch> {
        let mut touches = Vec::new();
        if let Some(program) = &arguments.program
            && !program.starts_with("-m")
        {
            touches.push(Touch::Path(program.into(), Access::Read));
        }
        if let Some(file) = &arguments.file {
            touches.push(Touch::Path(file.into(), Access::Read));
        }
        touches
    }

    async fn call(&self, arguments: DebugArguments, context: &Context) -> Result<Output, ToolError> {
        match arguments.op {
            Op::Adapters => Ok(self.adapters().await),
            Op::Status => Ok(self.status().await),
            Op::Breakpoints => self.breakpoints(arguments).await,
            Op::Launch => self.launch(arguments, context).await,
            Op::Attach => self.attach(arguments, context).await,
            Op::Restart => {
                let session = self.debugger.restart(context).await?;
                self.started(&session, "Restarted", arguments.wait_seconds, context).await
            }
            Op::Continue => self.resume("continue", &arguments, context).await,
            Op::StepOver => self.resume("next", &arguments, context).await,
            Op::StepIn => self.resume("stepIn", &arguments, context).await,
            Op::StepOut => self.resume("stepOut", &arguments, context).await,
            Op::Pause => self.pause(&arguments, context).await,
            Op::Threads => self.threads(&arguments).await,
            Op::Stack => self.stack(&arguments).await,
            Op::Scopes => self.scopes(&arguments).await,
            Op::Variables => self.variables(&arguments).await,
            Op::Evaluate => self.evaluate(&arguments, context).await,
            Op::Output => self.output(&arguments),
            Op::Terminate => self.terminate().await,
        }
    }
}

fn yes() -> bool {
    true
}

fn needed<T>(value: Option<T>, op: &str, field: &str) -> Result<T, ToolError> {
    value.ok_or_else(|| ToolError::model(format!("`{op}` needs `{field}`.")))
}

fn wait(seconds: Option<u64>) -> Duration {
    seconds.map_or(WAIT_DEFAULT, |seconds| Duration::from_secs(seconds.min(WAIT_MOST)))
}

impl Debug {
    /// The session that is there; an error where there is none.
    pub(super) fn session(&self) -> Result<Arc<Session>, ToolError> {
        self.debugger.session().ok_or_else(|| {
            let mut answer = Answer::new("none");
            answer.say("There is no debug session. Start one with `launch` (program) or `attach` (port).");
            answer.error()
        })
    }

    /// The process on which a call acts: the one it names, the one that its number belongs to, or the one that stopped.
    pub(super) fn acting(
        &self,
        arguments: &DebugArguments,
        number: Option<u64>,
    ) -> Result<(Arc<Session>, Arc<Session>), ToolError> {
        let session = self.session()?;
        let process = match arguments.process_id {
            Some(pid) => session.process(pid).ok_or_else(|| {
                let mut answer = Answer::new(self.state_word());
                answer.say(format!("No process {pid} is being debugged."));
                render::processes(&mut answer, &session.processes(), &session.notices());
                answer.error()
            })?,
            None => number.and_then(|number| session.owner_of(number)).unwrap_or_else(|| session.in_focus()),
        };
        Ok((session, process))
    }

    pub(super) fn state_word(&self) -> &'static str {
        let Some(session) = self.debugger.session() else { return "none" };
        let phase = match session.phase() {
            ended @ Phase::Ended(_) => ended,
            _ => session.in_focus().phase(),
        };
        match phase {
            Phase::Starting | Phase::Running => "running",
            Phase::Stopped(_) => "stopped",
            Phase::Ended(end) => render::end_state(&end),
        }
    }
}
