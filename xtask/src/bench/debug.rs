//! `cargo xtask bench debug`: the tool `debug` through `haft console`, beside a bare script that says the same to the same adapter.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    Debug,
    report::{Report, Row, Spread, Target, Unit},
};
use crate::{provision, repo};

/// What the debugger does to debugpy's adapter; the bare script starts it the same way, and once more without.
const BOOTSTRAP: &str = include_str!("../../../crates/debug/src/bootstrap.py");

/// A program to debug, and how the bare script has it launched.
struct Sample {
    names: Names,
    files: &'static [(&'static str, &'static str)],
    file: &'static str,
    line: u64,
    launch: Value,
    adapter: Adapter,
    arguments: fn(&Path) -> Value,
    evaluate_context: &'static str,
    step_target: f64,
}

struct Names {
    start: &'static str,
    step: &'static str,
    stack: &'static str,
    evaluate: &'static str,
    pause: &'static str,
    overhead: &'static str,
}

macro_rules! names {
    ($adapter:literal) => {
        Names {
            start: concat!($adapter, ": launch to the first stop"),
            step: concat!($adapter, ": step with its locals"),
            stack: concat!($adapter, ": stack"),
            evaluate: concat!($adapter, ": evaluate"),
            pause: concat!($adapter, ": pause"),
            overhead: concat!($adapter, ": what Haft adds to stack and evaluate"),
        }
    };
}

#[derive(Clone, Copy, PartialEq)]
enum Adapter {
    Debugpy { quick: bool },
    Lldb,
    Delve,
}

fn samples() -> Vec<Sample> {
    vec![
        Sample {
            names: names!("debugpy"),
            files: &[
                ("requirements.txt", ""),
                (
                    "main.py",
                    "import time\ndef work(turn):\n    a = turn\n    b = [a, a]\n    c = {'b': b}\n    return c\nturn = 0\nwhile True:\n    turn += 1\n    work(turn)\n    time.sleep(0.001)\n",
                ),
            ],
            file: "main.py",
            line: 3,
            launch: json!({"program": "main.py"}),
            adapter: Adapter::Debugpy { quick: true },
            arguments: |project| {
                json!({"program": project.join("main.py"), "cwd": project, "console": "internalConsole", "redirectOutput": true,
                       "justMyCode": true, "subProcess": false})
            },
            evaluate_context: "repl",
            step_target: 10.0,
        },
        Sample {
            names: names!("lldb"),
            files: &[
                ("CMakeLists.txt", ""),
                (
                    "main.c",
                    "#include <unistd.h>\nstatic int work(int turn) {\n    int a = turn;\n    int b = a * 2;\n    int c = a + b;\n    return c;\n}\nint main(void) {\n    int turn = 0;\n    for (;;) {\n        turn = work(turn) % 7;\n        usleep(1000);\n    }\n}\n",
                ),
            ],
            file: "main.c",
            line: 3,
            launch: json!({"program": "main"}),
            adapter: Adapter::Lldb,
            arguments: |project| json!({"program": project.join("main"), "cwd": project, "args": []}),
            evaluate_context: "watch",
            step_target: 15.0,
        },
        Sample {
            names: names!("delve"),
            files: &[
                ("go.mod", "module bench\n\ngo 1.19\n"),
                (
                    "main.go",
                    "package main\n\nimport \"time\"\n\nfunc work(turn int) int {\n\ta := turn\n\tb := a * 2\n\tc := a + b\n\treturn c\n}\n\nfunc main() {\n\tturn := 0\n\tfor {\n\t\tturn = work(turn) % 7\n\t\ttime.Sleep(time.Millisecond)\n\t}\n}\n",
                ),
            ],
            file: "main.go",
            line: 6,
            launch: json!({"program": "."}),
            adapter: Adapter::Delve,
            arguments: |project| json!({"mode": "debug", "program": project, "cwd": project, "output": project.join("built")}),
            evaluate_context: "repl",
            step_target: 15.0,
        },
    ]
}

/// Milliseconds of each operation, of every round.
#[derive(Default)]
struct Times {
    start: Vec<f64>,
    step: Vec<f64>,
    stack: Vec<f64>,
    evaluate: Vec<f64>,
    pause: Vec<f64>,
}

pub(crate) fn run(options: &Debug) -> Result<()> {
    let python = provision::program("debugpy")?;
    let haft = match &options.haft {
        Some(path) => fs::canonicalize(path).with_context(|| format!("there is no {}", path.display()))?,
        None => {
            repo::run(repo::cargo(["build", "--release", "--package", "haft"]))?;
            repo::target().join("release/haft")
        }
    };
    let work = repo::target().join("bench").join(format!("debug-{}", std::process::id()));
    let result = compare(options, &haft, &python, &work);
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot clear {}", work.display()))?;
    }
    print!("{}", result?);
    Ok(())
}

fn compare(options: &Debug, haft: &Path, python: &Path, work: &Path) -> Result<String> {
    let mut rows = Vec::new();
    let mut stock_steps = Vec::new();
    for sample in samples() {
        let project = work.join(sample.file.replace('.', "-"));
        for (name, text) in sample.files {
            fs::create_dir_all(&project)?;
            fs::write(project.join(name), text)?;
        }
        if sample.adapter == Adapter::Lldb {
            let mut cc = Command::new("cc");
            cc.args(["-g", "-O0", "-o", "main", "main.c"]).current_dir(&project);
            repo::run(cc)?;
        }
        let (mut bare, mut ours) = (Times::default(), Times::default());
        for round in 0..=options.runs {
            // The first round does not count: it compiles, and fills caches.
            let (mut first_bare, mut first_ours) = (Times::default(), Times::default());
            let (bare, ours) =
                if round == 0 { (&mut first_bare, &mut first_ours) } else { (&mut bare, &mut ours) };
            let run_bare = |bare: &mut Times| {
                measure_bare(&sample, sample.adapter, &project, python, options.steps, bare)
            };
            let run_ours =
                |ours: &mut Times| measure_ours(&sample, &project, haft, python, work, options.steps, ours);
            // In turns: whoever comes second finds warmer caches.
            if round % 2 == 0 {
                run_bare(bare)?;
                run_ours(ours)?;
            } else {
                run_ours(ours)?;
                run_bare(bare)?;
            }
            if let (Adapter::Debugpy { .. }, 1..) = (sample.adapter, round) {
                let mut stock = Times::default();
                measure_bare(
                    &sample,
                    Adapter::Debugpy { quick: false },
                    &project,
                    python,
                    options.steps,
                    &mut stock,
                )?;
                stock_steps.extend(stock.step);
            }
        }
        rows.extend(rows_of(&sample, &bare, &ours)?);
    }
    let stock = Spread::of(stock_steps).context("nothing was measured")?;
    let report = Report {
        conditions: vec![
            format!("haft: {}", haft.display()).replace(&repo::root().display().to_string(), "."),
            format!(
                "a step with debugpy as it comes, without the bootstrap that acknowledges at once: {:.1} ms (bare script)",
                stock.median
            ),
            format!("{} steps, stacks and evaluations a round", options.steps),
        ],
        peer: "bare script".into(),
        rounds: options.runs,
        rows,
    };
    Ok(if options.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.markdown() })
}

fn rows_of(sample: &Sample, bare: &Times, ours: &Times) -> Result<Vec<Row>> {
    let names = &sample.names;
    let row = |what, ours: &[f64], bare: &[f64], targets| -> Result<Row> {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let haft = spread(ours).with_context(|| format!("{what}: nothing was measured"))?;
        Ok(Row { what, unit: Unit::Milliseconds, haft, peer: spread(bare), targets })
    };
    let middle = |values: &[f64]| Spread::of(values.iter().copied()).map_or(0.0, |spread| spread.median);
    let added = [middle(&ours.stack) - middle(&bare.stack), middle(&ours.evaluate) - middle(&bare.evaluate)];
    Ok(vec![
        row(names.start, &ours.start, &bare.start, vec![Target::RatioAtMost(1.1)])?,
        row(names.step, &ours.step, &bare.step, vec![Target::AtMost(sample.step_target)])?,
        row(names.stack, &ours.stack, &bare.stack, vec![])?,
        row(names.evaluate, &ours.evaluate, &bare.evaluate, vec![])?,
        row(names.overhead, &added, &[], vec![Target::AtMost(1.0)])?,
        row(names.pause, &ours.pause, &bare.pause, vec![Target::AtMost(150.0)])?,
    ])
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

// ---- Haft

struct Console {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Console {
    fn ask(&mut self, arguments: Value) -> Result<Value> {
        writeln!(self.stdin, "{}", json!({"id": 1, "tool": "debug", "arguments": arguments}))?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let answer: Value =
            serde_json::from_str(&line).with_context(|| format!("not an answer: {line:?}"))?;
        if answer["is_error"] == true {
            bail!("{arguments}: {}", answer["content"][0]["text"]);
        }
        Ok(answer)
    }

    fn stopped(&mut self, arguments: Value) -> Result<Value> {
        let answer = self.ask(arguments.clone())?;
        if answer["structured"]["state"] != "stopped" {
            bail!("{arguments} did not stop: {}", answer["content"][0]["text"]);
        }
        Ok(answer)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure_ours(
    sample: &Sample,
    project: &Path,
    haft: &Path,
    python: &Path,
    work: &Path,
    steps: u32,
    times: &mut Times,
) -> Result<()> {
    let mut command = Command::new(haft);
    command
        .args(["console", "--approve", "all", "--dir"])
        .arg(project)
        .env("PATH", path_with(python)?)
        .env("HAFT_STATE_DIR", work.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", haft.display()))?;
    let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
    let mut console = Console { child, stdin, stdout: BufReader::new(stdout) };
    console.ask(json!({"op": "breakpoints", "file": sample.file, "lines": [sample.line]}))?;
    let mut launch = sample.launch.clone();
    launch["op"] = "launch".into();
    let begin = Instant::now();
    console.stopped(launch)?;
    times.start.push(milliseconds(begin));
    for _ in 0..steps {
        let begin = Instant::now();
        let answer = console.stopped(json!({"op": "step_over"}))?;
        times.step.push(milliseconds(begin));
        if answer["structured"]["variables"].as_array().is_none_or(Vec::is_empty) {
            bail!("a step without locals: {answer}");
        }
        let begin = Instant::now();
        console.ask(json!({"op": "stack"}))?;
        times.stack.push(milliseconds(begin));
        let begin = Instant::now();
        console.ask(json!({"op": "evaluate", "expression": "turn"}))?;
        times.evaluate.push(milliseconds(begin));
        // Back to the same place, so that every step is one inside the function.
        console.stopped(json!({"op": "continue"}))?;
    }
    console.ask(json!({"op": "breakpoints", "file": sample.file, "lines": []}))?;
    console.ask(json!({"op": "continue", "wait_seconds": 0}))?;
    std::thread::sleep(RUNNING);
    let begin = Instant::now();
    console.stopped(json!({"op": "pause"}))?;
    times.pause.push(milliseconds(begin));
    console.ask(json!({"op": "terminate"}))?;
    Ok(())
}

/// How long a program runs before it is paused, for both.
const RUNNING: Duration = Duration::from_millis(50);

fn path_with(python: &Path) -> Result<OsString> {
    let bin = python.parent().context("no directory")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?)
}

// ---- the bare script

/// A client that knows nothing but to send, and to wait for an answer or an event.
struct Bare {
    child: Child,
    reader: BufReader<Box<dyn Read>>,
    writer: Box<dyn Write>,
    sequence: i64,
    /// Events that came while something else was waited for.
    events: Vec<Value>,
}

impl Bare {
    fn start(adapter: Adapter, project: &Path, python: &Path) -> Result<Bare> {
        if adapter == Adapter::Delve {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let child = Command::new("dlv")
                .args(["dap", &format!("--client-addr={}", listener.local_addr()?)])
                .current_dir(project)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context("cannot start dlv")?;
            let stream: TcpStream = listener.accept()?.0;
            stream.set_nodelay(true)?;
            let reader: Box<dyn Read> = Box::new(stream.try_clone()?);
            return Ok(Bare {
                child,
                reader: BufReader::new(reader),
                writer: Box::new(stream),
                sequence: 0,
                events: Vec::new(),
            });
        }
        let mut command = match adapter {
            Adapter::Debugpy { quick } => {
                let mut command = Command::new(python);
                if quick {
                    command.args(["-c", BOOTSTRAP]);
                } else {
                    command.args(["-m", "debugpy.adapter"]);
                }
                command
            }
            Adapter::Lldb | Adapter::Delve => Command::new(lldb()?),
        };
        let mut child = command
            .current_dir(project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the adapter")?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let reader: Box<dyn Read> = Box::new(stdout);
        Ok(Bare {
            child,
            reader: BufReader::new(reader),
            writer: Box::new(stdin),
            sequence: 0,
            events: Vec::new(),
        })
    }

    fn send(&mut self, command: &str, arguments: Value) -> Result<i64> {
        self.sequence += 1;
        let body =
            json!({"seq": self.sequence, "type": "request", "command": command, "arguments": arguments})
                .to_string();
        self.writer.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        self.writer.flush()?;
        Ok(self.sequence)
    }

    fn read(&mut self) -> Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                bail!("the adapter closed the connection");
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("Content-Length:") {
                length = number.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    fn answer(&mut self, sequence: i64) -> Result<Value> {
        loop {
            let message = self.read()?;
            if message["type"] == "event" {
                self.events.push(message);
            } else if message["request_seq"] == sequence {
                if message["success"] == false {
                    bail!("the adapter refused: {message}");
                }
                return Ok(message["body"].clone());
            }
        }
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let sequence = self.send(command, arguments)?;
        self.answer(sequence)
    }

    fn event(&mut self, name: &str) -> Result<Value> {
        if let Some(at) = self.events.iter().position(|event| event["event"] == name) {
            return Ok(self.events.remove(at)["body"].clone());
        }
        loop {
            let message = self.read()?;
            if message["type"] != "event" {
                continue;
            }
            if message["event"] == name {
                return Ok(message["body"].clone());
            }
            if message["event"] == "terminated" {
                bail!("the program ended");
            }
        }
    }

    /// The stop, with what Haft answers at a stop: the top frame and its locals.
    fn stop(&mut self) -> Result<(i64, i64)> {
        let stopped = self.event("stopped")?;
        let thread = match stopped["threadId"].as_i64() {
            Some(thread) => thread,
            None => {
                let threads = self.ask("threads", json!({"_": 0}))?;
                threads["threads"][0]["id"].as_i64().context("no threads")?
            }
        };
        let frames = self.ask("stackTrace", json!({"threadId": thread, "startFrame": 0, "levels": 1}))?;
        let frame = frames["stackFrames"][0]["id"].as_i64().context("no frame")?;
        let scopes = self.ask("scopes", json!({"frameId": frame}))?;
        let locals = scopes["scopes"][0]["variablesReference"].as_i64().context("no scope")?;
        self.ask("variables", json!({"variablesReference": locals, "start": 0, "count": 31}))?;
        Ok((thread, frame))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.send("disconnect", json!({"terminateDebuggee": true}));
        // The adapter takes its program with it when it is asked; it is not waited for longer than that.
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline && self.child.try_wait().is_ok_and(|status| status.is_none()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure_bare(
    sample: &Sample,
    adapter: Adapter,
    project: &Path,
    python: &Path,
    steps: u32,
    times: &mut Times,
) -> Result<()> {
    // Haft has the program built to a new place every time, so the same is linked here.
    let _ = fs::remove_file(project.join("built"));
    let begin = Instant::now();
    let mut bare = Bare::start(adapter, project, python)?;
    bare.ask("initialize", json!({"adapterID": "bench", "pathFormat": "path", "linesStartAt1": true}))?;
    let launch = bare.send("launch", (sample.arguments)(project))?;
    bare.event("initialized")?;
    let place = |lines: Value| json!({"source": {"path": project.join(sample.file)}, "breakpoints": lines});
    bare.ask("setBreakpoints", place(json!([{"line": sample.line}])))?;
    bare.send("configurationDone", json!({"_": 0}))?;
    let (mut thread, _) = bare.stop()?;
    times.start.push(milliseconds(begin));
    let _ = launch;
    for _ in 0..steps {
        let begin = Instant::now();
        bare.send("next", json!({"threadId": thread}))?;
        let (_, frame) = bare.stop()?;
        times.step.push(milliseconds(begin));
        let begin = Instant::now();
        bare.ask("stackTrace", json!({"threadId": thread, "startFrame": 0, "levels": 31}))?;
        times.stack.push(milliseconds(begin));
        let begin = Instant::now();
        bare.ask(
            "evaluate",
            json!({"expression": "turn", "frameId": frame, "context": sample.evaluate_context}),
        )?;
        times.evaluate.push(milliseconds(begin));
        bare.send("continue", json!({"threadId": thread}))?;
        (thread, _) = bare.stop()?;
    }
    bare.ask("setBreakpoints", place(json!([])))?;
    bare.send("continue", json!({"threadId": thread}))?;
    std::thread::sleep(RUNNING);
    let begin = Instant::now();
    bare.send("pause", json!({"threadId": thread}))?;
    bare.stop()?;
    times.pause.push(milliseconds(begin));
    Ok(())
}

fn lldb() -> Result<PathBuf> {
    ["lldb-dap", "lldb-dap-19"]
        .into_iter()
        .find_map(repo::find_program)
        .map(|path| fs::canonicalize(&path).unwrap_or(path))
        .context("lldb-dap is not on PATH")
}
