//! `shell`: commands, and background jobs (SPEC H1).

pub(crate) mod output;
pub(crate) mod terminal;

use std::{
    fmt::Write,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_system::{Exit, Finished, ProcessSpec, RunBounds, RunEnd, StderrMode, Supervisor, Workdir};
use haft_tool::{Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    jobs::{Job, Jobs, News, ending},
    limits::{SHELL_BYTES, SHELL_LIVE_BYTES, SHELL_LIVE_EVERY, SHELL_TIME, SHELL_TIME_MOST},
};
use output::{Live, Shown, show};

/// Runs command lines in the working directory.
pub struct Shell {
    supervisor: Supervisor,
    workdir: Workdir,
    jobs: Arc<Jobs>,
    time: Duration,
}

impl Shell {
    /// The tool for a run; `jobs` belong to its conversation.
    pub fn new(supervisor: Supervisor, workdir: Workdir, jobs: Arc<Jobs>) -> Self {
        Shell { supervisor, workdir, jobs, time: SHELL_TIME }
    }

    /// The same with another time-out for commands that do not name one.
    pub fn with_time(self, time: Duration) -> Self {
        Shell { time: time.min(SHELL_TIME_MOST), ..self }
    }
}

/// Either `command`, or `job` and `action`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellArguments {
    /// The command line, for bash. Needed unless you look after a job.
    #[serde(default)]
    command: Option<String>,
    /// How long the command may run (at most 3600; a background job has no time-out unless you give one), or how
    /// long `wait` may wait.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_seconds: Option<u32>,
    /// Start the command as a background job and answer at once.
    #[serde(default)]
    background: bool,
    /// A background job to look after, such as `job_1`, instead of a command.
    #[serde(default)]
    job: Option<String>,
    /// What to do with `job`: `output` (the default: what it wrote since you last looked, and whether it still runs), `wait` (the
    /// same once it has ended or the time is up), `kill` (end it and everything it started); or, without `job`, `list` (all jobs).
    #[serde(default)]
    action: Option<JobAction>,
}

// Without doc comments on the variants, which would make the schema a choice between schemas instead of a list of words.
/// What can be done with a background job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum JobAction {
    Output,
    Wait,
    Kill,
    List,
}

impl Tool for Shell {
    type Arguments = ShellArguments;
    const NAME: &'static str = "shell";
    const TIER: Tier = Tier::Exec;

    fn description(&self) -> String {
        format!(
            "Runs a command line with bash in the working directory and answers with its output (stdout and stderr in the order in \
             which they came) and its exit code. Each call is a new shell: a `cd` or a variable does not last. There is no input and \
             no terminal: use flags that keep programs from asking or paging.\n\
             A non-zero exit code is an answer, not an error. After `timeout_seconds` ({} unless given) the command is ended with \
             everything it started. Processes left running with `&` are ended with the command; for servers and watchers \
             use `background`: true, which answers with a job's name at once. Look after it with {{\"job\": \"job_1\"}} (new output), \
             and `action` wait, kill or list. Jobs end with the conversation.\n\
             Of long output the first and the last {} KiB are shown; send it to a file to read all of it. Read, search and edit files \
             with the tools made for that, not with this one.",
            self.time.as_secs(),
            SHELL_BYTES / 2 / 1024,
        )
    }

    fn touches(&self, arguments: &ShellArguments) -> Vec<Touch> {
        arguments.command.iter().map(|command| Touch::Command(command.clone())).collect()
    }

    async fn call(&self, arguments: ShellArguments, context: &Context) -> Result<Output, ToolError> {
        let ShellArguments { command, timeout_seconds, background, job, action } = arguments;
        if timeout_seconds == Some(0) {
            return Err(ToolError::model("`timeout_seconds` is 0: give at least 1, or leave it out."));
        }
        let time = timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        match (command, job, action) {
            (Some(command), None, None) if command.trim().is_empty() => {
                Err(ToolError::model("`command` is empty: there is nothing to run."))
            }
            (Some(command), None, None) if background => self.start(&command, time).await,
            (Some(command), None, None) => self.run(&command, time, context).await,
            (Some(_), _, _) => Err(ToolError::model(
                "`command` cannot be combined with `job` or `action`: run a command, or look after a job, in two calls.",
            )),
            (None, _, _) if background => {
                Err(ToolError::model("`background` needs a `command`: it starts one as a background job."))
            }
            (None, None, Some(JobAction::List)) => Ok(list(&self.jobs.all())),
            (None, Some(_), Some(JobAction::List)) => Err(ToolError::model(
                "`list` shows all jobs and takes no `job`; for one of them leave `action` out.",
            )),
            (None, Some(name), action) => {
                let job = self.jobs.find(&name)?;
                match action {
                    Some(JobAction::Wait) => {
                        let time = time.unwrap_or(self.time).min(SHELL_TIME_MOST);
                        let ended = until_cancelled(context, tokio::time::timeout(time, job.wait())).await?;
                        let waited = ended.is_err().then_some(time);
                        Ok(report(&job, waited))
                    }
                    Some(JobAction::Kill) => {
                        job.end();
                        until_cancelled(context, job.wait()).await?;
                        Ok(report(&job, None))
                    }
                    Some(JobAction::Output | JobAction::List) | None => Ok(report(&job, None)),
                }
            }
            (None, None, Some(_)) => Err(ToolError::model(
                "`job` is missing: name the background job, such as `job_1`, or use `action`: \"list\".",
            )),
            (None, None, None) => Err(ToolError::model("Give a `command` to run, or a `job` to look after.")),
        }
    }
}

impl Shell {
    /// The shell that runs `command`, and a note where it is not bash.
    fn spec(&self, command: &str) -> (ProcessSpec, Option<&'static str>) {
        let environment = self.supervisor.environment();
        let (shell, note) = match environment.find_program("bash") {
            Some(_) => ("bash", None),
            None => ("sh", Some("[run with sh: there is no bash on the PATH]")),
        };
        let spec = ProcessSpec::new(shell, self.workdir.root())
            .arg("-c")
            .arg(command)
            .env("TERM", "dumb")
            .stderr(StderrMode::Merged)
            .label(command);
        (spec, note)
    }

    async fn start(&self, command: &str, time: Option<Duration>) -> Result<Output, ToolError> {
        let (spec, note) = self.spec(command);
        let job = self.jobs.start(spec, command, time).await?;
        let mut text = format!(
            "Started {job} (pid {}). {{\"job\": \"{job}\"}} shows what it writes and whether it still runs.",
            job.pid()
        );
        if let Some(note) = note {
            let _ = write!(text, "\n{note}");
        }
        Ok(Output::text(text).structured(job_fields(&job, false)))
    }

    async fn run(
        &self,
        command: &str,
        time: Option<Duration>,
        context: &Context,
    ) -> Result<Output, ToolError> {
        let (spec, note) = self.spec(command);
        let mut notes: Vec<String> = note.into_iter().map(str::to_owned).collect();
        let asked = time.unwrap_or(self.time);
        let time = asked.min(SHELL_TIME_MOST);
        let bounds = RunBounds { time: Some(time), capture_bytes: SHELL_BYTES };
        let live = Mutex::new((Live::default(), 0_u64));
        let mut on_output = |piece: &[u8]| {
            let (live, left_out) = &mut *live.lock().unwrap_or_else(PoisonError::into_inner);
            if live.waiting() < SHELL_LIVE_BYTES {
                live.push(piece);
            } else {
                *left_out += piece.len() as u64;
            }
        };
        let finished = {
            let mut run = pin!(self.supervisor.run(spec, bounds, &context.cancel, &mut on_output));
            let mut ticks = tokio::time::interval(SHELL_LIVE_EVERY);
            loop {
                tokio::select! {
                    finished = &mut run => break finished?,
                    _ = ticks.tick() => emit(&live, context, false),
                }
            }
        };
        emit(&live, context, true);
        if asked > time {
            let most = time.as_secs();
            notes.push(format!(
                "[timeout_seconds is at most {most}; what takes longer belongs in the background]"
            ));
        }
        answer(&finished, time, &notes)
    }
}

/// Passes on what has come since the last time.
fn emit(live: &Mutex<(Live, u64)>, context: &Context, last: bool) {
    let (live, left_out) = &mut *live.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(piece) = live.take(last) {
        context.progress.emit(piece);
    }
    let left_out = std::mem::take(left_out);
    if left_out > 0 {
        context.progress.emit(format!("\n[{left_out} bytes too fast to be shown live]\n"));
    }
}

async fn until_cancelled<T>(context: &Context, future: impl Future<Output = T>) -> Result<T, ToolError> {
    tokio::select! {
        () = context.cancel.cancelled() => Err(ToolError::Cancelled),
        value = future => Ok(value),
    }
}

/// The answer to a command that was run to its end.
fn answer(finished: &Finished, time: Duration, notes: &[String]) -> Result<Output, ToolError> {
    let Shown { mut text, truncated } = show(&finished.stdout);
    push_remains(&mut text, finished);
    for note in notes {
        let _ = write!(text, "\n{note}");
    }
    let ended = match &finished.exit {
        Exit::Unknown(why) => format!("how the command ended is not known: {why}"),
        Exit::Code(_) | Exit::Signal(_) => "the command and everything it had started were ended".to_owned(),
    };
    let verdict = match finished.end {
        RunEnd::Exited => finished.exit.to_string(),
        RunEnd::TimedOut => format!(
            "timed out after {} s: {ended}. Give a longer timeout_seconds, or start it with \"background\": true",
            time.as_secs()
        ),
        RunEnd::Cancelled => format!("cancelled: {ended}"),
    };
    let _ = write!(text, "\n[{verdict}]");
    let (exit_code, signal) = codes(&finished.exit);
    let fields = json!({
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": finished.end == RunEnd::TimedOut,
        "cancelled": finished.end == RunEnd::Cancelled,
        "output_bytes": finished.stdout.total,
        "truncated": truncated,
        "leftovers": finished.leftovers,
    });
    match (finished.end, &finished.exit) {
        (RunEnd::Exited, Exit::Code(_) | Exit::Signal(_)) => Ok(Output::text(text).structured(fields)),
        // With the output, which tells how far it came.
        _ => Err(ToolError::model(text).with_structured(fields)),
    }
}

/// What a job wrote, and how it stands. `waited` where a wait for its end was in vain.
fn report(job: &Job, waited: Option<Duration>) -> Output {
    let News { lost, output } = job.news();
    let finished = job.finished();
    let Shown { text: shown, truncated } = if output.total == 0 {
        let text = if job.output_bytes() == 0 { "(no output)" } else { "(no new output)" };
        Shown { text: text.to_owned(), truncated: false }
    } else {
        show(&output)
    };
    let mut text = String::new();
    if lost > 0 {
        let _ = writeln!(
            text,
            "[{lost} bytes before this were dropped: only the newest are kept until you look]"
        );
    }
    text.push_str(&shown);
    if let Some(finished) = &finished {
        push_remains(&mut text, finished);
    }
    let state = match (&finished, waited) {
        (Some(finished), _) => format!("{job} has ended: {}", ending(finished)),
        (None, Some(time)) => format!("{job} is still running after {} s of waiting", time.as_secs()),
        (None, None) => format!("{job} is running"),
    };
    let _ = write!(text, "\n[{state}]");
    Output::text(text).structured(job_fields(job, truncated || lost > 0))
}

fn list(jobs: &[Arc<Job>]) -> Output {
    let lines: Vec<String> = jobs
        .iter()
        .map(|job| {
            format!(
                "{job}  {}  {} s  pid {}  {} bytes of output  {}",
                job.state(),
                job.elapsed().as_secs(),
                job.pid(),
                job.output_bytes(),
                job.command_line()
            )
        })
        .collect();
    let text = if lines.is_empty() {
        "No background job was started in this conversation.".to_owned()
    } else {
        lines.join("\n")
    };
    let fields: Vec<Value> = jobs.iter().map(|job| job_fields(job, false)).collect();
    Output::text(text).structured(json!({ "jobs": fields }))
}

fn job_fields(job: &Job, truncated: bool) -> Value {
    let finished = job.finished();
    let (exit_code, signal) = finished.as_ref().map_or((None, None), |finished| codes(&finished.exit));
    json!({
        "job": job.to_string(),
        "command": job.command(),
        "pid": job.pid(),
        "running": finished.is_none(),
        "exit_code": exit_code,
        "signal": signal,
        "timed_out": finished.as_ref().is_some_and(|finished| finished.end == RunEnd::TimedOut),
        "output_bytes": job.output_bytes(),
        "truncated": truncated,
        "leftovers": finished.map(|finished| finished.leftovers).unwrap_or_default(),
    })
}

/// Says what a command had left running, and what could not be killed.
fn push_remains(text: &mut String, finished: &Finished) {
    if !finished.leftovers.is_empty() {
        let _ = write!(
            text,
            "\n[still running when the command ended, and killed: {}. What is to stay needs a call of its own with \
             \"background\": true]",
            finished.leftovers.join("; ")
        );
    }
    if !finished.survivors.is_empty() {
        let _ = write!(text, "\n[could not be killed and may still run: {}]", finished.survivors.join("; "));
    }
}

fn codes(exit: &Exit) -> (Option<i32>, Option<i32>) {
    match exit {
        Exit::Code(code) => (Some(*code), None),
        Exit::Signal(number) => (None, Some(*number)),
        Exit::Unknown(_) => (None, None),
    }
}
