//! Which interpreter a kernel runs, and its start. A start is the test: what does not say that it is ready is not believed (SPEC E7).

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use haft_system::{ProcessSpec, ProcessStdout, Supervisor, Workdir};
use serde_json::json;
use tokio::{io::AsyncReadExt, time::timeout};

use crate::{
    Enclosure, Settings,
    cell::Language,
    frames::{self, Frame, Reader},
    limits::{GRACE, START, START_OUTPUT},
    worker::{self, Handle, Parts},
};

const PYTHON_BOOT: &str = include_str!("python/boot.py");
const PYTHON_WORKER: &str = concat!(include_str!("python/worker.py"), "\n", include_str!("python/tools.py"));
const PYTHON_DISPLAYS: &str = include_str!("python/displays.py");
const PYTHON_PROCESSES: &str = include_str!("python/processes.py");
const PYTHON_MAGICS: &str = concat!(
    include_str!("python/magics/core.py"),
    "\n",
    include_str!("python/magics/names.py"),
    "\n",
    include_str!("python/magics/timing.py"),
    "\n",
    include_str!("python/magics/scripts.py"),
    "\n",
    include_str!("python/magics/modules.py"),
);
const JAVASCRIPT_WORKER: &str = include_str!("javascript/worker.cjs");

/// Whether a command line, cut and with its white space made one, is a kernel's own.
pub(crate) fn is_boot(command: &str) -> bool {
    command.contains(" -c import os,sys,types def r(n):")
}

/// An interpreter that could be used.
struct Candidate {
    program: PathBuf,
    /// The root of its virtual environment.
    venv: Option<PathBuf>,
}

/// A started kernel, and what was tried before.
pub(crate) struct Started {
    pub(crate) handle: Handle,
    /// Interpreters of the project that could not be used, in words.
    pub(crate) passed_over: Vec<String>,
}

/// Why there is no kernel: what was tried and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoKernel(String);

/// Starts a kernel with the first interpreter that works.
pub(crate) async fn start(
    supervisor: &Supervisor,
    workdir: &Workdir,
    language: Language,
    settings: &Settings,
) -> Result<Started, NoKernel> {
    let enclosure = settings.enclosure.as_ref();
    let (candidates, mut tried) = candidates(supervisor, workdir.root(), language, enclosure.is_some());
    for candidate in candidates {
        match try_start(supervisor, workdir.root(), language, settings, &candidate).await {
            Ok(handle) => return Ok(Started { handle, passed_over: tried }),
            Err(why) => tried.push(format!("{}: {why}", candidate.program.display())),
        }
    }
    let way_out = match language {
        Language::Python => {
            "Python 3.8 or newer is needed. Make an environment for the project (`python3 -m venv .venv`, or `uv venv`), or put a python3 on the PATH."
        }
        Language::JavaScript => {
            "Node.js 18 or newer is needed on the PATH (Debian: `apt-get install nodejs`; or nvm, fnm, volta)."
        }
    };
    let place = if enclosure.is_some() { " in the conversation's enclosure" } else { "" };
    Err(NoKernel(format!(
        "There is no {} that a kernel could run{place}. Tried:\n- {}\n{way_out}",
        language.name(),
        tried.join("\n- ")
    )))
}

fn candidates(
    supervisor: &Supervisor,
    root: &Path,
    language: Language,
    enclosed: bool,
) -> (Vec<Candidate>, Vec<String>) {
    let environment = supervisor.environment();
    let mut found = Vec::new();
    let mut missing = Vec::new();
    if language == Language::Python {
        let mut venvs: Vec<PathBuf> = [".venv", "venv"].iter().map(|name| root.join(name)).collect();
        if let Some(active) = environment.get("VIRTUAL_ENV").filter(|_| !enclosed) {
            venvs.push(PathBuf::from(active));
        }
        for venv in venvs {
            let program = venv.join("bin/python");
            if program.symlink_metadata().is_ok() {
                found.push(Candidate { program, venv: Some(venv) });
            } else if venv.symlink_metadata().is_ok() {
                missing.push(format!("{}: there is no bin/python in it", venv.display()));
            }
        }
    }
    let names: &[&str] = match language {
        Language::Python => &["python3", "python"],
        Language::JavaScript => &["node"],
    };
    for name in names {
        if enclosed {
            // Its PATH is its own.
            found.push(Candidate { program: PathBuf::from(name), venv: None });
        } else if let Some(program) = environment.find_program(name) {
            found.push(Candidate { program, venv: None });
        } else {
            missing.push(format!("{name}: not on the PATH"));
        }
    }
    (found, missing)
}

async fn try_start(
    supervisor: &Supervisor,
    root: &Path,
    language: Language,
    settings: &Settings,
    candidate: &Candidate,
) -> Result<Handle, String> {
    let enclosure = settings.enclosure.as_ref();
    let spec = spec(supervisor, root, language, enclosure, candidate);
    let mut process = supervisor.spawn(spec).await.map_err(|error| error.to_string())?;
    let pipes = (process.take_channel(), process.take_stdout(), process.take_stderr());
    let (Some(channel), Some(mut out), Some(mut err)) = pipes else {
        return Err("its pipes are missing".into());
    };
    let nonce = uuid::Uuid::now_v7().simple().to_string();
    let begin = async {
        process.meet(&channel).await?;
        let (read, write) = channel.into_split();
        let mut reader = Reader::new(read);
        let writer = frames::writer(write);
        if language == Language::Python {
            let _ = writer.send(frames::encode(PYTHON_WORKER.as_bytes())).await;
        }
        let init = json!({
            "op": "init", "nonce": nonce,
            "parts": {"displays": PYTHON_DISPLAYS, "magics": PYTHON_MAGICS, "processes": PYTHON_PROCESSES},
        });
        let _ = writer.send(frames::encode(init.to_string().as_bytes())).await;
        match reader.next().await? {
            Some(Frame::Ready { version, program }) => Ok((reader, writer, version, program)),
            _ => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)),
        }
    };
    match timeout(START, begin).await {
        Ok(Ok((reader, writer, version, program))) => Ok(worker::attend(Parts {
            language,
            process,
            reader,
            writer,
            out,
            err,
            nonce,
            version,
            program,
            idle: settings.idle,
            outputs: settings.outputs.clone(),
        })),
        Ok(Err(_)) => {
            let exit = process.terminate().await;
            let words = last_words(&mut out, &mut err).await;
            Err(format!("it did not start ({exit}){words}"))
        }
        Err(_) => {
            process.terminate().await;
            let words = last_words(&mut out, &mut err).await;
            Err(format!("it was not ready after {} s{words}", START.as_secs()))
        }
    }
}

async fn last_words(out: &mut ProcessStdout, err: &mut ProcessStdout) -> String {
    let mut bytes = Vec::new();
    for pipe in [err, out] {
        let mut buffer = vec![0; 64 * 1024];
        if let Ok(Ok(count)) = timeout(Duration::from_millis(100), pipe.read(&mut buffer)).await {
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(START_OUTPUT));
    if text.is_empty() { String::new() } else { format!(": {}", &text[from..]) }
}

fn spec(
    supervisor: &Supervisor,
    root: &Path,
    language: Language,
    enclosure: Option<&Enclosure>,
    candidate: &Candidate,
) -> ProcessSpec {
    let environment = supervisor.environment();
    let mut words: Vec<OsString> =
        enclosure.map(|enclosure| enclosure.command_prefix.clone()).unwrap_or_default();
    words.push(candidate.program.clone().into());
    let mut set: Vec<(OsString, OsString)> = vec![("TERM".into(), "dumb".into())];
    match language {
        Language::Python => {
            words.extend(["-c".into(), PYTHON_BOOT.into()]);
            set.push(("PYTHONIOENCODING".into(), "utf-8".into()));
            // For Python programs that a cell starts.
            set.push(("PYTHONUNBUFFERED".into(), "1".into()));
            if environment.get("MPLBACKEND").is_none() {
                set.push(("MPLBACKEND".into(), "Agg".into()));
            }
        }
        Language::JavaScript => {
            words.extend(["--no-warnings".into(), "-e".into(), JAVASCRIPT_WORKER.into()]);
        }
    }
    if let Some(venv) = &candidate.venv {
        // As after `activate`, so that `!pip` and console scripts are the environment's.
        let mut path = venv.join("bin").into_os_string();
        if let Some(rest) = environment.get("PATH") {
            path.push(":");
            path.push(rest);
        }
        set.push(("VIRTUAL_ENV".into(), venv.clone().into()));
        set.push(("PATH".into(), path));
    }
    if let Some(enclosure) = enclosure {
        set.extend(enclosure.environment.iter().cloned());
    }
    let mut words = words.into_iter();
    let mut spec = ProcessSpec::new(words.next().unwrap_or_default(), root).args(words);
    for (name, value) in set {
        spec = spec.env(name, value);
    }
    for name in ["PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHOME", "NODE_OPTIONS", "NODE_CHANNEL_FD"] {
        spec = spec.without_env(name);
    }
    spec.channel().grace(GRACE).label(format!("{} kernel", language.name()))
}
