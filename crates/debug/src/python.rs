//! Starting debugpy.

use std::path::{Path, PathBuf};

use haft_system::{Process, ProcessSpec, ProcessStderr, SpawnError, StdinMode, Supervisor};
use haft_tool::ToolError;
use serde_json::{Map, Value, json};
use tokio::{io::AsyncReadExt, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    adapters::{Pythons, import_failure},
    limits::{GRACE, PROBE, WORDS_BYTES},
    session::Transport,
};

/// Runs debugpy's adapter with two differences: before and after every read from the socket to the debugged program the kernel is told
/// to acknowledge at once (TCP_QUICKACK, which it forgets after a while and so has to be told again). debugpy writes small messages
/// with Nagle's algorithm on; with the kernel's delayed acknowledgement every step of a program waits 40 ms for nothing
/// (microsoft/debugpy#2054). And what is known of the program before it has reported back to the adapter is passed on at once: its number, its
/// output, its end. The adapter keeps all of it to itself for the minute that it waits, also where the program was killed or its
/// interpreter does not run. The program itself runs untouched.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// What the bootstrap writes to stderr once debugpy is imported.
const IMPORTED: &[u8] = b"haft: debugpy can be imported\n";

/// An adapter that has imported debugpy.
pub(crate) struct Started {
    pub(crate) transport: Transport,
    /// The project's own interpreter, where the adapter runs in another one.
    pub(crate) interpreter: Option<PathBuf>,
}

/// Starts the adapter in the first interpreter that has debugpy. No interpreter is asked beforehand: whether it can import debugpy, the
/// adapter itself has to find out in any case, and says so (a launch would take half as long again).
///
/// The error says of each interpreter why it was not that one.
pub(crate) async fn start(
    supervisor: &Supervisor,
    pythons: Pythons,
    directory: &Path,
    cancel: &CancellationToken,
) -> Result<Result<Started, String>, ToolError> {
    let mut tried = Vec::new();
    for python in &pythons.candidates {
        let spec = ProcessSpec::new(python, directory)
            .args(["-c", BOOTSTRAP])
            .stdin(StdinMode::Piped)
            .grace(GRACE)
            .label("debugpy");
        let announced = async {
            let mut process = supervisor.spawn(spec).await?;
            let announced = announcement(&mut process).await;
            Ok::<_, SpawnError>((process, announced))
        };
        let announced = tokio::select! {
            announced = timeout(PROBE, announced) => announced,
            () = cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        let why = match announced {
            Ok(Ok((process, Announcement::Imported { stderr, before }))) => {
                let interpreter = pythons.own.filter(|own| own != python);
                let transport = Transport::Announced { process, stderr, before };
                return Ok(Ok(Started { transport, interpreter }));
            }
            Ok(Ok((mut process, Announcement::Nothing { said }))) => {
                let exit = process.terminate().await;
                import_failure(&said, &exit)
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("did not start within {} seconds", PROBE.as_secs()),
        };
        tried.push((python.clone(), why));
    }
    Ok(Err(Pythons::none_of(&tried)))
}

/// What came over stderr until debugpy was imported, or instead of it.
enum Announcement {
    Imported { stderr: ProcessStderr, before: Vec<u8> },
    Nothing { said: String },
}

async fn announcement(process: &mut Process) -> Announcement {
    let mut said = Vec::new();
    if let Some(mut stderr) = process.take_stderr() {
        let mut buffer = vec![0; 4096];
        // More than that is not on the way to an import.
        while said.len() <= WORDS_BYTES {
            match stderr.read(&mut buffer).await {
                Ok(count) if count > 0 => said.extend_from_slice(&buffer[..count]),
                _ => break,
            }
            if let Some(at) = said.windows(IMPORTED.len()).position(|window| window == IMPORTED) {
                said.drain(at..at + IMPORTED.len());
                return Announcement::Imported { stderr, before: said };
            }
        }
    }
    Announcement::Nothing { said: String::from_utf8_lossy(&said).into_owned() }
}

/// What stands for the program: a file, or a module as with `python -m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Script<'a> {
    File(&'a Path),
    Module(&'a str),
}

/// The arguments of `launch`.
pub(crate) fn launch(
    script: &Script<'_>,
    arguments: &[String],
    directory: &Path,
    variables: &Map<String, Value>,
    interpreter: Option<&Path>,
) -> Value {
    let mut variables = variables.clone();
    // In the processes that the program starts debugpy would write a warning about frozen modules to the program's own stderr.
    variables.entry("PYDEVD_DISABLE_FILE_VALIDATION").or_insert_with(|| "1".into());
    let mut launch = json!({
        "name": "haft",
        "type": "python",
        "request": "launch",
        "args": arguments,
        "cwd": directory.display().to_string(),
        "env": variables,
        "console": "internalConsole",
        "redirectOutput": true,
        "justMyCode": true,
        // A child process waits until it is told what becomes of it: every `startDebugging` is answered.
        "subProcess": true,
    });
    match script {
        Script::File(path) => launch["program"] = path.display().to_string().into(),
        Script::Module(name) => launch["module"] = (*name).into(),
    }
    if let Some(interpreter) = interpreter {
        launch["python"] = json!([interpreter.display().to_string()]);
    }
    launch
}

/// The arguments of `attach` to what `debugpy --listen` opened.
pub(crate) fn attach() -> Value {
    // With an empty object pydevd fails over a missing positional argument.
    json!({"name": "haft", "type": "python", "request": "attach", "justMyCode": true, "redirectOutput": true, "subProcess": true})
}
