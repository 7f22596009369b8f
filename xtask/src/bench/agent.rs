//! `cargo xtask bench agent`: Haft beside `codex exec`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    Agent,
    measure::{self, Invocation, Sample, Subject},
    mock::Mock,
    report::{Report, Row, Spread, Target, Unit},
    wire::{self, Scene},
};
use crate::{provision, repo};

const ONE_SHOT: Scene = Scene { tools: 0, chunks: 4, delay_ms: 0 };
const WITH_TOOLS: Scene = Scene { tools: 5, chunks: 4, delay_ms: 0 };
/// Long enough to look at a run that waits for its model.
const WAITING: Scene = Scene { tools: 0, chunks: 4, delay_ms: 1_500 };
/// From the request to the look: the run has nothing left to do but to wait.
const SETTLE: Duration = Duration::from_millis(700);

pub(crate) fn run(options: &Agent) -> Result<()> {
    let mock = Mock::start(([127, 0, 0, 1], 0).into())?;
    let work = repo::target().join("bench").join(std::process::id().to_string());
    let report = compare(options, &mock, &work);
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot clear {}", work.display()))?;
    }
    let report = report?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(())
}

/// A program under measurement.
struct Contender {
    subject: Subject,
    /// How it is told to do a turn with the model at this base address.
    turn: fn(base: String) -> Invocation,
    version: String,
    samples: Samples,
}

/// What was measured of one program; the rounds of all lists are the same.
#[derive(Default)]
struct Samples {
    start: Vec<Sample>,
    one_shot: Vec<Sample>,
    with_tools: Vec<Sample>,
    waiting: Vec<u64>,
}

fn compare(options: &Agent, mock: &Mock, work: &Path) -> Result<Report> {
    let mut haft = haft(options, &work.join("haft"))?;
    // Without npm there is no peer; that is said, and Haft is measured all the same.
    let program = if options.alone { None } else { Some(codex_program(options)) };
    let (mut codex, absent) = match program {
        None => (None, "no peer (`--alone`)"),
        Some(Ok(program)) => (Some(codex(&program, mock, &work.join("codex"))?), ""),
        Some(Err(error)) => {
            eprintln!("codex is not measured: {error:#}");
            (None, "codex (could not be fetched)")
        }
    };
    let bash = measure::subject(
        &repo::find_program("bash").context("bash is not on PATH")?,
        work.join("bash"),
        &[],
    )?;
    let tool = Invocation::of(["-c", wire::COMMAND]);
    let mut bare = Vec::new();
    // The first round fills caches and makes the programs' own files; it does not count.
    for round in 0..=options.runs {
        eprint!("\rround {round} of {} ", options.runs);
        for contender in std::iter::once(&mut haft).chain(&mut codex) {
            contender.round(mock, round > 0)?;
        }
        let sample = bash.run(&tool, "mock-42")?;
        bare.extend((round > 0).then_some(sample));
    }
    eprintln!();
    report(options.runs, &haft, codex.as_ref(), absent, &bare)
}

impl Contender {
    fn new(subject: Subject, turn: fn(String) -> Invocation) -> Result<Contender> {
        let output = Command::new(&subject.program)
            .arg("--version")
            .env_clear()
            .envs(subject.environment.iter().cloned())
            .output()
            .with_context(|| format!("cannot start {}", subject.program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if version.is_empty() {
            bail!("{} --version says nothing", subject.program.display());
        }
        Ok(Contender { subject, turn, version, samples: Samples::default() })
    }

    fn round(&mut self, mock: &Mock, counts: bool) -> Result<()> {
        let turn = |scene| self.subject.run(&(self.turn)(mock.base(scene)), &wire::ending(scene));
        let start = self.subject.run(&Invocation::of(["--version"]), &self.version)?;
        let one_shot = turn(ONE_SHOT)?;
        let with_tools = turn(WITH_TOOLS)?;
        let waiting = self.waiting(mock)?;
        if counts {
            self.samples.start.push(start);
            self.samples.one_shot.push(one_shot);
            self.samples.with_tools.push(with_tools);
            self.samples.waiting.push(waiting);
        }
        Ok(())
    }

    /// What a run has in memory while it waits for its model.
    fn waiting(&self, mock: &Mock) -> Result<u64> {
        let before = mock.requests();
        let running = self.subject.start(&(self.turn)(mock.base(WAITING)))?;
        let start = Instant::now();
        while mock.requests() == before && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(SETTLE);
        let resident = measure::resident(running.pid());
        running.finish(&wire::ending(WAITING))?;
        resident
    }
}

fn haft(options: &Agent, directory: &Path) -> Result<Contender> {
    let program = match &options.haft {
        Some(program) => {
            fs::canonicalize(program).with_context(|| format!("no program {}", program.display()))?
        }
        None => {
            repo::run(repo::cargo(["build", "--release", "--package", "haft"]))?;
            repo::target().join("release/haft")
        }
    };
    let subject = measure::subject(&program, directory.to_owned(), &[("OPENAI_API_KEY", "none".to_owned())])?;
    Contender::new(subject, |base| Invocation {
        environment: vec![("OPENAI_BASE_URL", base)],
        ..Invocation::of(["run", "--model", "openai/mock", "--approve", "all", "hi"])
    })
}

fn codex_program(options: &Agent) -> Result<PathBuf> {
    match &options.codex {
        Some(program) => {
            fs::canonicalize(program).with_context(|| format!("no program {}", program.display()))
        }
        None => provision::program("codex"),
    }
}

/// Without its sandbox, without asking and without keeping the session: the least that it can be made to do.
fn codex(program: &Path, mock: &Mock, directory: &Path) -> Result<Contender> {
    let home = directory.join("codex");
    fs::create_dir_all(&home)?;
    // Nothing may be asked of the world outside, whatever the version looks for at its start.
    let nowhere = mock.base(ONE_SHOT);
    let subject = measure::subject(
        program,
        directory.to_owned(),
        &[
            ("CODEX_HOME", home.display().to_string()),
            ("MOCK_KEY", "none".to_owned()),
            ("OPENAI_BASE_URL", nowhere),
        ],
    )?;
    Contender::new(subject, |base| {
        let provider = format!(
            "model_providers.mock={{name=\"mock\",base_url=\"{base}\",env_key=\"MOCK_KEY\",wire_api=\"responses\"}}"
        );
        Invocation::of([
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--ephemeral",
            "-s",
            "danger-full-access",
            "-m",
            "mock",
            "-c",
            "model_provider=mock",
            "-c",
            &provider,
            "hi",
        ])
    })
}

type Take = fn(&Sample) -> f64;

fn wall(sample: &Sample) -> f64 {
    sample.wall.as_secs_f64() * 1e3
}

fn cpu(sample: &Sample) -> f64 {
    sample.cpu.as_secs_f64() * 1e3
}

fn peak(sample: &Sample) -> f64 {
    mebibytes(sample.peak)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Samples {
    /// What a round with the model and one tool call costs, per pair of runs.
    fn per_call(&self) -> impl Iterator<Item = f64> {
        let calls = f64::from(WITH_TOOLS.tools);
        self.with_tools
            .iter()
            .zip(&self.one_shot)
            .map(move |(with, without)| (wall(with) - wall(without)) / calls)
    }
}

fn report(
    rounds: u32,
    haft: &Contender,
    codex: Option<&Contender>,
    absent: &str,
    bare: &[Sample],
) -> Result<Report> {
    let tool = Spread::of(bare.iter().map(wall)).context("nothing was measured")?;
    let row = |what, unit, targets: &[Target], measure: &dyn Fn(&Samples) -> Option<Spread>| {
        Ok::<_, anyhow::Error>(Row {
            what,
            unit,
            haft: measure(&haft.samples).context("nothing was measured")?,
            peer: codex.and_then(|codex| measure(&codex.samples)),
            targets: targets.to_vec(),
        })
    };
    let start = |take: Take| move |samples: &Samples| Spread::of(samples.start.iter().map(take));
    let one_shot = |take: Take| move |samples: &Samples| Spread::of(samples.one_shot.iter().map(take));
    let with_tools = |take: Take| move |samples: &Samples| Spread::of(samples.with_tools.iter().map(take));
    use Unit::{Mebibytes, Milliseconds};
    let rows = vec![
        row("start (`--version`)", Milliseconds, &[Target::AtMost(10.0)], &start(wall))?,
        row("start: processor time", Milliseconds, &[], &start(cpu))?,
        row(
            "one-shot turn",
            Milliseconds,
            &[Target::AtMost(120.0), Target::RatioAtMost(0.6)],
            &one_shot(wall),
        )?,
        row("one-shot turn: processor time", Milliseconds, &[], &one_shot(cpu))?,
        row("one-shot turn: peak memory", Mebibytes, &[], &one_shot(peak))?,
        row("turn with 5 shell calls", Milliseconds, &[], &with_tools(wall))?,
        row("turn with 5 shell calls: processor time", Milliseconds, &[], &with_tools(cpu))?,
        row("round with one shell call", Milliseconds, &[], &|samples| Spread::of(samples.per_call()))?,
        row("the same beyond the bare command", Milliseconds, &[Target::AtMost(15.0)], &|samples| {
            Spread::of(samples.per_call().map(|round| round - tool.median))
        })?,
        row("memory of a waiting run", Mebibytes, &[Target::AtMost(40.0)], &|samples| {
            Spread::of(samples.waiting.iter().map(|bytes| mebibytes(*bytes)))
        })?,
    ];
    let conditions = vec![
        machine(),
        format!("{} at {}", haft.version, commit()),
        format!(
            "the bare command (`bash -c '{}'`): {:.2} ms ({:.2} – {:.2})",
            wire::COMMAND,
            tool.median,
            tool.min,
            tool.max
        ),
    ];
    Ok(Report {
        conditions,
        peer: codex.map_or(absent.to_owned(), |codex| codex.version.clone()),
        rounds,
        rows,
    })
}

fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    format!("{cpus} × {model}, Linux {}", kernel.trim())
}

fn commit() -> String {
    let output =
        Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(repo::root()).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "an unknown commit".to_owned(),
    }
}
