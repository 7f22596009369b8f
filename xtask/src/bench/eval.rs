//! Kernels through the whole tool (`haft console`) beside jupyter_client and ipykernel, in one run.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};

use super::Eval;
use crate::{provision, repo};

/// What the peer does, a line for each of our measures: it answers `NAME MILLISECONDS` to a name.
const PEER: &str = r#"
import sys, time
from jupyter_client.manager import KernelManager
state = {}
def start():
    begin = time.perf_counter()
    manager = KernelManager(); manager.start_kernel()
    client = manager.blocking_client(); client.start_channels(); client.wait_for_ready(timeout=60)
    state.update(manager=manager, client=client)
    run("1")
    return begin
def stop():
    state['client'].stop_channels(); state['manager'].shutdown_kernel(now=True)
def run(code):
    state['client'].execute_interactive(code, output_hook=lambda message: None, timeout=120)
def timed(code):
    begin = time.perf_counter(); run(code); return begin
def resident():
    import os
    found = []
    client = state['client']
    client.execute_interactive("import os; print(os.getpid())", output_hook=lambda m: found.append(m['content'].get('text', '')), timeout=60)
    pid = int("".join(found).strip())
    for line in open(f'/proc/{pid}/status'):
        if line.startswith('VmRSS'): return int(line.split()[1]) / 1024
for line in sys.stdin:
    name = line.strip()
    if name == 'start': begin = start()
    elif name == 'stop': stop(); begin = time.perf_counter()
    elif name == 'memory': print(name, resident(), flush=True); continue
    elif name == 'interrupt':
        client = state['client']
        client.execute("while True: pass"); time.sleep(0.5)
        begin = time.perf_counter(); state['manager'].interrupt_kernel()
        while client.get_shell_msg(timeout=60)['msg_type'] != 'execute_reply': pass
    else: begin = timed({'cell': '1 + 1', 'large': "print('x' * 10_000_000)", 'prints': 'for i in range(100_000): print(i)'}[name])
    print(name, (time.perf_counter() - begin) * 1e3, flush=True)
"#;

#[derive(Serialize)]
struct Row {
    what: &'static str,
    unit: &'static str,
    haft: f64,
    peer: Option<f64>,
    target: &'static str,
    met: bool,
}

pub(crate) fn run(options: &Eval) -> Result<()> {
    let haft = if let Some(haft) = &options.haft {
        haft.clone()
    } else {
        repo::run(repo::cargo(["build", "--release", "--package", "haft"]))?;
        repo::target().join("release/haft")
    };
    let python = provision::program("python-kernels")?;
    let work = repo::target().join("provision/eval-bench");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot clear {}", work.display()))?;
    }
    fs::create_dir_all(work.join("project"))?;
    fs::write(work.join("project/small.txt"), "a line\n")?;
    let mut ours = Console::start(&haft, &python, &work)?;
    let mut theirs = Peer::start(&python)?;

    let (mut start, mut peer_start) = (Vec::new(), Vec::new());
    for _ in 0..options.runs {
        // `reset` would measure the end of the kernel before, too.
        ours.restart(&haft, &python, &work)?;
        ours.call("read", &json!({"path": "small.txt"}))?;
        start.push(ours.cell("1")?.0);
        peer_start.push(theirs.ask("start")?);
        theirs.ask("stop")?;
    }
    theirs.ask("start")?;
    let (mut cell, mut peer_cell) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        cell.push(ours.cell("1 + 1")?.0);
        peer_cell.push(theirs.ask("cell")?);
    }
    let idle = resident(ours.kernel()?, "VmRSS")?;
    let peer_idle = theirs.ask("memory")?;
    let (mut large, mut peer_large, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    let (mut prints, mut peer_prints) = (Vec::new(), Vec::new());
    // Once without counting: the first flood makes its buffers.
    ours.cell("print('x' * 10_000_000)")?;
    for _ in 0..options.runs {
        let before = resident(ours.child.id(), "VmRSS")?;
        // The peak from here on.
        let _ = fs::write(format!("/proc/{}/clear_refs", ours.child.id()), "5");
        large.push(ours.cell("print('x' * 10_000_000)")?.0);
        grown.push(resident(ours.child.id(), "VmHWM")? - before);
        peer_large.push(theirs.ask("large")?);
        prints.push(ours.cell("for i in range(100_000): print(i)")?.0);
        peer_prints.push(theirs.ask("prints")?);
    }
    let (mut interrupt, mut peer_interrupt, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.runs {
        let arguments =
            json!({"code": "while True: pass", "description": "never ends", "timeout_seconds": 1});
        interrupt.push(ours.call("eval", &arguments)?.0 - 1000.0);
        peer_interrupt.push(theirs.ask("interrupt")?);
        let kernel = ours.kernel()?;
        Command::new("kill").args(["-KILL", &kernel.to_string()]).status()?;
        while Path::new(&format!("/proc/{kernel}")).exists() {
            std::thread::yield_now();
        }
        again.push(ours.cell("1")?.0);
    }
    let mut direct = Vec::new();
    for _ in 0..200 {
        direct.push(ours.call("read", &json!({"path": "small.txt"}))?.1);
    }
    let code = "import time\nspent = []\nfor _ in range(200):\n    begin = time.perf_counter()\n    tool('read', {'path': 'small.txt'})\n    spent.append((time.perf_counter() - begin) * 1e3)\nsorted(spent)[100]";
    let bridged: f64 = ours.cell(code)?.1["structured"]["result"].as_str().unwrap_or_default().parse()?;

    let row = |what, unit, haft: f64, peer: Option<f64>, target, most: f64, times: f64| Row {
        what,
        unit,
        haft,
        peer,
        target,
        met: haft <= most && peer.is_none_or(|peer| haft * times <= peer),
    };
    let p50 = |values: &[f64]| percentile(values, 0.5);
    let rows = [
        row(
            "start, to the first answer",
            "ms",
            p50(&start),
            Some(p50(&peer_start)),
            "≤ 120, ≥ 6× faster",
            120.0,
            6.0,
        ),
        row(
            "trivial cell, p50 of 200",
            "ms",
            p50(&cell),
            Some(p50(&peer_cell)),
            "≤ 2, ≥ 4× faster",
            2.0,
            4.0,
        ),
        row(
            "trivial cell, p95 of 200",
            "ms",
            percentile(&cell, 0.95),
            Some(percentile(&peer_cell, 0.95)),
            "≤ 5",
            5.0,
            0.0,
        ),
        row("10 MB in one print", "ms", p50(&large), Some(p50(&peer_large)), "≤ 150", 150.0, 0.0),
        row("… more memory in Haft at its peak", "MiB", p50(&grown), None, "≤ 2", 2.0, 0.0),
        row("100,000 prints", "ms", p50(&prints), Some(p50(&peer_prints)), "≤ 300", 300.0, 0.0),
        row("interrupt of a busy loop", "ms", p50(&interrupt), Some(p50(&peer_interrupt)), "≤ 50", 50.0, 0.0),
        row("a killed kernel usable again", "ms", p50(&again), None, "≤ 200", 200.0, 0.0),
        row("bridged call beyond the tool", "ms", bridged - p50(&direct), None, "≤ 1", 1.0, 0.0),
        row("idle Python kernel", "MiB", idle, Some(peer_idle), "≤ 20", 20.0, 0.0),
    ];
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!(
        "| measure | Haft | jupyter_client + ipykernel | target | met |\n| --- | --- | --- | --- | --- |"
    );
    for row in &rows {
        let peer = row.peer.map_or_else(|| "–".to_owned(), |peer| format!("{peer:.2} {}", row.unit));
        println!(
            "| {} | {:.2} {} | {peer} | {} | {} |",
            row.what,
            row.haft,
            row.unit,
            row.target,
            if row.met { "yes" } else { "no" }
        );
    }
    Ok(())
}

fn percentile(values: &[f64], at: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(((values.len() - 1) as f64 * at).round() as usize).copied().unwrap_or(f64::NAN)
}

/// A line of a process's memory account, in MiB.
fn resident(pid: u32, line: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status
        .lines()
        .find_map(|found| found.strip_prefix(line)?.strip_prefix(':'))
        .context("no such line")?;
    Ok(value.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

struct Console {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
}

impl Console {
    fn start(haft: &Path, python: &Path, work: &Path) -> Result<Console> {
        // The interpreter of the environment, so that both run the same.
        let venv = python.parent().and_then(Path::parent).unwrap_or(python).to_path_buf();
        let path: PathBuf = std::env::var_os("PATH").unwrap_or_default().into();
        let mut child = Command::new(haft)
            .args(["console", "--approve", "all", "--dir"])
            .arg(work.join("project"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", work)
            .env("VIRTUAL_ENV", venv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", haft.display()))?;
        let (to, from) = (child.stdin.take().context("no stdin")?, child.stdout.take().context("no stdout")?);
        Ok(Console { child, to, from: BufReader::new(from), calls: 0 })
    }

    fn restart(&mut self, haft: &Path, python: &Path, work: &Path) -> Result<()> {
        *self = Console::start(haft, python, work)?;
        Ok(())
    }

    /// Milliseconds from the line out to the line in, and as Haft itself gives them, and the answer.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(f64, f64, Value)> {
        self.calls += 1;
        let line = format!("{}\n", json!({"id": self.calls, "tool": tool, "arguments": arguments}));
        let begin = Instant::now();
        self.to.write_all(line.as_bytes())?;
        let mut answer = String::new();
        if self.from.read_line(&mut answer)? == 0 {
            bail!("haft console ended");
        }
        let spent = begin.elapsed();
        let answer: Value = serde_json::from_str(&answer)?;
        Ok((milliseconds(spent), answer["ms"].as_f64().unwrap_or(f64::NAN), answer))
    }

    fn cell(&mut self, code: &str) -> Result<(f64, Value)> {
        let (spent, _, answer) =
            self.call("eval", &json!({"code": code, "description": "a cell of the benchmark"}))?;
        if answer["is_error"] != false {
            bail!("a cell failed: {answer}");
        }
        Ok((spent, answer))
    }

    fn kernel(&mut self) -> Result<u32> {
        let (_, answer) = self.cell("import os; os.getpid()")?;
        Ok(answer["structured"]["result"].as_str().unwrap_or_default().parse()?)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    fn start(python: &Path) -> Result<Peer> {
        let mut child = Command::new(python)
            .args(["-c", PEER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (to, from) = (child.stdin.take().context("no stdin")?, child.stdout.take().context("no stdout")?);
        Ok(Peer { child, to, from: BufReader::new(from) })
    }

    fn ask(&mut self, what: &str) -> Result<f64> {
        writeln!(self.to, "{what}")?;
        let mut answer = String::new();
        self.from.read_line(&mut answer)?;
        let number =
            answer.split_whitespace().nth(1).with_context(|| format!("the peer failed at `{what}`"))?;
        Ok(number.parse()?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = writeln!(self.to, "stop");
        let _ = self.from.read_line(&mut String::new());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
