//! The project's own checkers (SPEC L4, `diagnostics "*"`): found by root markers, run in the process supervisor with a time limit, their output read.
//!
//! Checking runs code of the project (build scripts, plugins, macros). It is a read all the same, as the specification says, and the tool's description says that too.
//!
//! The exit code is believed only together with the output: a checker that failed without naming a problem did not check anything, and is reported as such.

mod discover;
mod parse;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use futures::{StreamExt, stream};
use haft_system::{Environment, Exit, Finished, ProcessSpec, RunBounds, RunEnd, Supervisor, Workdir};
use haft_tool::{Access, Context, Output, ToolError};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    diagnostics::{Diagnostic, Severity, counted, listed, sort},
    limits::{CHECKER_AT_ONCE, CHECKER_OUTPUT, CHECKER_TAIL_LINES, CHECKER_TIME, STRUCTURED_DIAGNOSTICS},
};

/// How a checker's output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Cargo,
    Tsc,
    Pyright,
    Gitlab,
    Pyrefly,
    Ruff,
    Eslint,
    PythonSyntax,
    Mypy,
    GoBuild,
    GoVet,
    Dart,
    Compiler,
}

/// One command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    /// What is checked: "Rust", "TypeScript".
    language: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    directory: PathBuf,
    environment: Vec<(&'static str, &'static str)>,
    format: Format,
    /// Only if these went well, for it would only repeat what they found.
    after: Option<&'static str>,
    /// What this command leaves unchecked, in words that follow "not verified: ".
    incomplete: Option<String>,
}

/// A root that cannot be checked, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unchecked {
    language: &'static str,
    directory: PathBuf,
    why: String,
}

/// What came of a command, for `structured`.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Ran {
    language: &'static str,
    /// As a person would type it.
    command: String,
    directory: String,
    /// In words: "exit code 101".
    exit: String,
    verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    #[serde(skip)]
    found: Vec<Diagnostic>,
    #[serde(skip)]
    seconds: f64,
}

/// Runs every checker that fits what is in the working directory.
pub(crate) async fn check_all(
    workdir: &Workdir,
    supervisor: &Supervisor,
    environment: &Environment,
    context: &Context,
) -> Result<Output, ToolError> {
    let plan = {
        let (workdir, environment) = (workdir.clone(), environment.clone());
        tokio::task::spawn_blocking(move || discover::discover(&workdir, &environment))
            .await
            .map_err(|error| ToolError::Bug(format!("looking for checkers ended early: {error}")))?
    };
    let (jobs, unchecked) = discover::without_members(plan, supervisor, &context.cancel).await;
    // Commands of one language and root depend on each other; different ones run side by side.
    let mut groups: Vec<Vec<Job>> = Vec::new();
    for job in jobs {
        match groups.last_mut().filter(|group| {
            group.last().is_some_and(|last| last.language == job.language && last.directory == job.directory)
        }) {
            Some(group) => group.push(job),
            None => groups.push(vec![job]),
        }
    }
    let running = groups.into_iter().map(|group| run_group(group, workdir, supervisor, &context.cancel));
    let mut ran: Vec<Ran> = Vec::new();
    let mut results = stream::iter(running).buffered(CHECKER_AT_ONCE);
    while let Some(group) = results.next().await {
        for one in &group {
            context.progress.emit(format!("{}: {}\n", one.command, outcome(one)));
        }
        ran.extend(group);
    }
    if context.cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    Ok(answer(workdir, ran, unchecked))
}

async fn run_group(
    group: Vec<Job>,
    workdir: &Workdir,
    supervisor: &Supervisor,
    cancel: &CancellationToken,
) -> Vec<Ran> {
    let mut ran: Vec<Ran> = Vec::new();
    for job in group {
        let stands_in_the_way = |one: &Ran| {
            job.after.is_some_and(|before| one.command.contains(before))
                && (!one.verified || has_errors(&one.found))
        };
        if ran.iter().any(stands_in_the_way) {
            continue;
        }
        ran.push(run(job, workdir, supervisor, cancel).await);
    }
    ran
}

async fn run(job: Job, workdir: &Workdir, supervisor: &Supervisor, cancel: &CancellationToken) -> Ran {
    let command = shown_command(&job);
    let mut spec =
        ProcessSpec::new(&job.program, &job.directory).args(job.arguments.iter().cloned()).label(&command);
    for (name, value) in &job.environment {
        spec = spec.env(name, value);
    }
    let bounds = RunBounds { time: Some(CHECKER_TIME), capture_bytes: CHECKER_OUTPUT };
    let mut result = Ran {
        language: job.language,
        command,
        directory: workdir.show(&job.directory),
        exit: "not started".into(),
        verified: false,
        why_not: None,
        found: Vec::new(),
        seconds: 0.0,
    };
    match supervisor.run(spec, bounds, cancel, &mut |_| {}).await {
        Err(error) => result.why_not = Some(error.to_string().trim_end_matches('.').to_owned()),
        Ok(finished) => read(&job, workdir, &finished, &mut result),
    }
    result
}

/// What a finished command proves.
fn read(job: &Job, workdir: &Workdir, finished: &Finished, result: &mut Ran) {
    result.exit = finished.exit.to_string();
    result.seconds = finished.elapsed.as_secs_f64();
    let text = |output: &haft_system::CapturedOutput| {
        String::from_utf8_lossy(&[output.head.as_slice(), output.tail.as_slice()].concat()).into_owned()
    };
    let (stdout, stderr) = (text(&finished.stdout), text(&finished.stderr));
    let parsed = parse::parse(job.format, &stdout, &stderr);
    let findings = parsed.clone().unwrap_or_default();
    result.found = findings
        .into_iter()
        .map(|finding| {
            let file = shown_file(workdir, &job.directory, &finding.path);
            finding.into_diagnostic(file)
        })
        .collect();
    let is_cut =
        |output: &haft_system::CapturedOutput| output.total > (output.head.len() + output.tail.len()) as u64;
    result.why_not = match (finished.end, &finished.exit) {
        (RunEnd::TimedOut, _) => {
            Some(format!("it had not ended after {} s and was stopped", duration(CHECKER_TIME)))
        }
        (RunEnd::Cancelled, _) => Some("it was cancelled".into()),
        (RunEnd::Exited, _) if is_cut(&finished.stdout) || is_cut(&finished.stderr) => {
            Some("its output was too long to be kept whole, so problems may be missing".into())
        }
        (RunEnd::Exited, Exit::Code(code)) => match parsed {
            Err(why) => Some(failed(&format!("{why} ({})", finished.exit), &stdout, &stderr)),
            Ok(_) if *code != 0 && result.found.is_empty() => Some(failed(
                &format!("it failed ({}) without naming a problem", finished.exit),
                &stdout,
                &stderr,
            )),
            Ok(_) => parse::doubt(job.format, *code, &stdout, &stderr).or_else(|| job.incomplete.clone()),
        },
        (RunEnd::Exited, exit) => Some(failed(&exit.to_string(), &stdout, &stderr)),
    };
    result.verified = result.why_not.is_none();
}

fn failed(why: &str, stdout: &str, stderr: &str) -> String {
    let said = if stderr.trim().is_empty() { stdout } else { stderr };
    // What went wrong stands above the places in the checker's own code that it went through.
    let is_frame = |line: &str| line.trim_start().starts_with("at ") && line.contains(':');
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty() && !is_frame(line)).collect();
    let tail = &lines[lines.len().saturating_sub(CHECKER_TAIL_LINES)..];
    if tail.is_empty() { why.to_owned() } else { format!("{why}; it said:\n    {}", tail.join("\n    ")) }
}

fn duration(time: Duration) -> u64 {
    time.as_secs()
}

/// The path that a checker printed, as it is shown; for what is no file, the directory.
fn shown_file(workdir: &Workdir, directory: &std::path::Path, printed: &str) -> String {
    let path = directory.join(printed);
    match workdir.resolve(&path, Access::Read) {
        Ok(resolved) => resolved.shown,
        // Headers and libraries outside: as they were printed.
        Err(_) => path.display().to_string(),
    }
}

fn shown_command(job: &Job) -> String {
    let program = job.program.file_name().unwrap_or(job.program.as_os_str()).to_string_lossy().into_owned();
    let words = job.arguments.iter().map(|word| word.to_string_lossy()).map(|word| {
        // Our own script is nothing that a person would type.
        if word.contains('\n') { "…".to_owned() } else { word.into_owned() }
    });
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

fn has_errors(list: &[Diagnostic]) -> bool {
    list.iter().any(|one| one.severity == Severity::Error)
}

fn outcome(ran: &Ran) -> String {
    match &ran.why_not {
        Some(why) if ran.found.is_empty() => format!("not verified: {why}"),
        Some(why) => format!("{}; not verified: {why}", counted(&ran.found, "")),
        None => format!("{} ({}, {:.1} s)", counted(&ran.found, ""), ran.exit, ran.seconds),
    }
}

fn answer(workdir: &Workdir, ran: Vec<Ran>, unchecked: Vec<Unchecked>) -> Output {
    let mut found: Vec<Diagnostic> = Vec::new();
    for one in ran.iter().flat_map(|one| &one.found).filter(|one| one.severity.matters()) {
        if !found.contains(one) {
            found.push(one.clone());
        }
    }
    sort(&mut found);
    let mut why_not: Vec<String> = Vec::new();
    let mut text = String::new();
    for one in &ran {
        text.push_str(&format!("`{}` in {}: {}\n", one.command, one.directory, outcome(one)));
        why_not
            .extend(one.why_not.as_ref().map(|why| format!("{} in {}: {why}", one.command, one.directory)));
    }
    for one in &unchecked {
        let directory = workdir.show(&one.directory);
        text.push_str(&format!("{} in {directory}: not checked: {}\n", one.language, one.why));
        why_not.push(format!("{} in {directory}: {}", one.language, one.why));
    }
    if ran.is_empty() && unchecked.is_empty() {
        let why = "nothing here says how this project is checked (no Cargo.toml, tsconfig.json, pyproject.toml, go.mod, pubspec.yaml, \
                   compile_commands.json or package.json was found)";
        text.push_str(&format!("Not checked: {why}. Use the shell to run the project's own checks.\n"));
        why_not.push(why.into());
    }
    if !found.is_empty() {
        text.push('\n');
        text.push_str(&listed(&found));
    } else if !ran.is_empty() && why_not.is_empty() {
        text.push_str("\nNo problems.\n");
    }
    let mut structured = json!({
        "diagnostics": found.iter().take(STRUCTURED_DIAGNOSTICS).collect::<Vec<_>>(),
        "total": found.len(),
        "verified": why_not.is_empty(),
        "commands": ran,
    });
    if !why_not.is_empty()
        && let Some(fields) = structured.as_object_mut()
    {
        fields.insert("unverified_because".into(), json!(why_not.join("; ")));
    }
    Output::text(text.trim_end()).structured(structured)
}
