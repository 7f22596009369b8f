//! The tool `debug` (SPEC D3).

use std::{sync::Arc, time::Duration};

use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    Debugger, adapters,
    debugger::by_itself,
    limits::{
        EVALUATE, OUTPUT_SHOWN, OUTPUT_WITH_STOP, PAUSE, RESULT_CHARACTERS, THREADS, WAIT_DEFAULT, WAIT_MOST,
    },
    render::{self, Answer},
    session::{
        Evaluation, Session, SessionError, Waited,
        breakpoints::LineBreak,
        state::{End, Phase},
    },
    target::Launch,
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
            Op::Threads => self.threads().await,
            Op::Stack => self.stack(&arguments).await,
            Op::Scopes => self.scopes(&arguments).await,
            Op::Variables => self.variables(&arguments).await,
            Op::Evaluate => self.evaluate(&arguments, context).await,
            Op::Output => self.output(&arguments),
            Op::Terminate => self.terminate().await,
        }
    }
}

fn needed<T>(value: Option<T>, op: &str, field: &str) -> Result<T, ToolError> {
    value.ok_or_else(|| ToolError::model(format!("`{op}` needs `{field}`.")))
}

fn wait(seconds: Option<u64>) -> Duration {
    seconds.map_or(WAIT_DEFAULT, |seconds| Duration::from_secs(seconds.min(WAIT_MOST)))
}

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
    /// The session that is there; an error where there is none.
    fn session(&self) -> Result<Arc<Session>, ToolError> {
        self.debugger.session().ok_or_else(|| {
            let mut answer = Answer::new("none");
            answer.say("There is no debug session. Start one with `launch` (program) or `attach` (port).");
            answer.error()
        })
    }

    async fn adapters(&self) -> Output {
        let mut answer = Answer::new(self.state_word());
        let reports = adapters::report(&self.debugger.supervisor, &self.debugger.workdir).await;
        render::adapters(&mut answer, &reports, &self.debugger.workdir);
        answer.output()
    }

    fn state_word(&self) -> &'static str {
        match self.debugger.session().map(|session| session.phase()) {
            None => "none",
            Some(Phase::Starting | Phase::Running) => "running",
            Some(Phase::Stopped(_)) => "stopped",
            Some(Phase::Ended(end)) => render::end_state(&end),
        }
    }

    async fn status(&self) -> Output {
        let workdir = &self.debugger.workdir;
        let Some(session) = self.debugger.session() else {
            let mut answer = Answer::new("none");
            answer.say("There is no debug session.");
            let placed = self.debugger.placed();
            render::breakpoints(&mut answer, &placed, workdir);
            return answer.output();
        };
        let mut answer = match session.phase() {
            Phase::Ended(_) => self.ended(&session).await,
            Phase::Starting | Phase::Running => {
                let mut answer = Answer::new("running");
                answer.say("The program is running.");
                answer
            }
            Phase::Stopped(stop) => match session.busy().await {
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
                    let standing = session.look(&stop, workdir.root()).await;
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
        if session.output(|output| output.unseen()) > 0 {
            answer.say("There is new output: ask for `output`.");
        }
        let placed = self.debugger.placed();
        render::breakpoints(&mut answer, &placed, workdir);
        answer.output()
    }

    async fn breakpoints(&self, arguments: DebugArguments) -> Result<Output, ToolError> {
        let workdir = &self.debugger.workdir;
        let mut notes = Vec::new();
        match (arguments.file, arguments.lines) {
            (Some(file), Some(lines)) => {
                let resolved = workdir.resolve(&file, Access::Read)?;
                if resolved.state != haft_system::PathState::File && !lines.is_empty() {
                    return Err(ToolError::model(format!(
                        "There is no file `{file}`, so no breakpoint was set."
                    )));
                }
                let mut wanted: Vec<LineBreak> = Vec::new();
                for line in lines {
                    let line = match line {
                        Line::Number(line) => LineBreak { line, ..LineBreak::default() },
                        Line::Conditional(line) => LineBreak {
                            line: line.line,
                            condition: line.condition,
                            hit_condition: line.hit_condition,
                            log_message: line.log_message,
                        },
                    };
                    if line.line == 0 {
                        return Err(ToolError::model("Lines are counted from 1. No breakpoint was changed."));
                    }
                    // The last word about a line counts; adapters differ on what two would mean.
                    wanted.retain(|known| known.line != line.line);
                    wanted.push(line);
                }
                wanted.sort_by_key(|line| line.line);
                let text = std::fs::read_to_string(&resolved.real).unwrap_or_default();
                for line in &wanted {
                    let on_line = text.lines().nth(line.line as usize - 1);
                    match on_line {
                        None if !text.is_empty() => notes.push(format!(
                            "Line {} is behind the end of {}, which has {} lines.",
                            line.line,
                            resolved.shown,
                            text.lines().count()
                        )),
                        Some(blank) if blank.trim().is_empty() => {
                            notes.push(format!("Line {} of {} is blank.", line.line, resolved.shown));
                        }
                        _ => {}
                    }
                }
                self.debugger.break_at(&resolved.real, wanted).await;
            }
            (Some(_), None) => {
                return Err(ToolError::model(
                    "`breakpoints` with a file needs `lines`; an empty list clears the file.",
                ));
            }
            (None, Some(_)) => return Err(ToolError::model("`breakpoints` with lines needs a `file`.")),
            (None, None) => {}
        }
        if let Some(functions) = arguments.functions {
            self.debugger.break_in(functions).await;
        }
        if let Some(exceptions) = arguments.exceptions {
            let unknown = self.debugger.break_on(exceptions).await;
            if !unknown.is_empty() {
                let known: Vec<String> = self
                    .debugger
                    .session()
                    .map(|session| session.capabilities().exception_breakpoint_filters)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|filter| filter.filter)
                    .collect();
                notes.push(format!(
                    "This adapter has no exception filter {}; it has: {}.",
                    unknown.join(", "),
                    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
                ));
            }
        }
        let mut answer = Answer::new(self.state_word());
        let placed = self.debugger.placed();
        render::breakpoints(&mut answer, &placed, workdir);
        for note in notes {
            answer.say(note);
        }
        Ok(answer.output())
    }

    async fn launch(&self, arguments: DebugArguments, context: &Context) -> Result<Output, ToolError> {
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

    async fn attach(&self, arguments: DebugArguments, context: &Context) -> Result<Output, ToolError> {
        let port = needed(arguments.port, "attach", "port")?;
        let session = self
            .debugger
            .attach(arguments.adapter.as_deref(), port, arguments.program.as_deref(), context)
            .await?;
        // Without a breakpoint there is nothing to wait for: the program runs, and that is the answer.
        let seconds = arguments.wait_seconds.or_else(|| self.debugger.placed().is_empty().then_some(1));
        self.started(&session, "Attached to", seconds, context).await
    }

    async fn started(
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

    async fn resume(
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

    async fn pause(&self, arguments: &DebugArguments, context: &Context) -> Result<Output, ToolError> {
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
    async fn waited(
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
    async fn ended(&self, session: &Session) -> Answer {
        let end = session.settle().await;
        let mut answer = Answer::new(render::end_state(&end));
        render::end(&mut answer, &end);
        explain_end(&mut answer, session, &end);
        answer
    }

    async fn failed(&self, session: &Session, error: SessionError) -> ToolError {
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

    async fn threads(&self) -> Result<Output, ToolError> {
        let session = self.session()?;
        if let Phase::Ended(end) = session.phase() {
            return Err(self.failed(&session, SessionError::Ended(end)).await);
        }
        let threads = match session.threads().await {
            Ok(threads) => threads,
            Err(error) => return Err(self.failed(&session, error).await),
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
            answer.say(format!("{} more are not shown.", threads.len() - THREADS));
        }
        let field: Vec<Value> =
            threads.iter().take(THREADS).map(|(id, name)| json!({"id": id, "name": name})).collect();
        answer.field("threads", json!(field));
        Ok(answer.output())
    }

    async fn stack(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let session = self.session()?;
        match session.stack(arguments.thread_id, arguments.start).await {
            Ok((thread, frames)) => {
                let mut answer = Answer::new("stopped");
                render::stack(&mut answer, thread, &frames, arguments.start, &self.debugger.workdir);
                Ok(answer.output())
            }
            Err(error) => Err(self.failed(&session, error).await),
        }
    }

    async fn scopes(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let session = self.session()?;
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
            Err(error) => Err(self.failed(&session, error).await),
        }
    }

    async fn variables(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
        let session = self.session()?;
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
            Err(error) => Err(self.failed(&session, error).await),
        }
    }

    async fn evaluate(&self, arguments: &DebugArguments, context: &Context) -> Result<Output, ToolError> {
        let session = self.session()?;
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
                let look = session.output(|output| output.news(OUTPUT_WITH_STOP));
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
            Err(error) => Err(self.failed(&session, error).await),
        }
    }

    fn output(&self, arguments: &DebugArguments) -> Result<Output, ToolError> {
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

    async fn terminate(&self) -> Result<Output, ToolError> {
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
