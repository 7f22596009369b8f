//! Starting delve.

use std::{net::Ipv4Addr, path::Path};

use haft_system::{Process, ProcessSpec, Supervisor};
use serde_json::{Map, Value, json};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::limits::{START, WORDS_BYTES};

/// What delve is to do with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Build a package and run it.
    Debug,
    /// Build a package's tests and run them.
    Test,
    /// Run a binary.
    Exec,
}

/// Starts delve and lets it dial in to a port of ours: a port that it opened could be taken by somebody else before we reach it.
pub(crate) async fn dial_in(
    supervisor: &Supervisor,
    delve: &Path,
    directory: &Path,
    arguments: &[&str],
) -> Result<(Process, TcpStream), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|error| error.to_string())?;
    let ours = listener.local_addr().map_err(|error| error.to_string())?;
    let spec = ProcessSpec::new(delve, directory)
        .args(arguments.iter().copied())
        .arg(format!("--client-addr={ours}"))
        .grace(crate::limits::GRACE)
        .label("dlv dap");
    let mut process = supervisor.spawn(spec).await.map_err(|error| error.to_string())?;
    let adapter = process.pid();
    let accepted = async {
        loop {
            let (stream, peer) = listener.accept().await.map_err(|error| error.to_string())?;
            // Anybody on this machine may have dialled.
            if haft_system::process::owns_connection(adapter, peer, ours) {
                return Ok(stream);
            }
            tracing::warn!(%peer, "somebody else dialled the port that was opened for delve");
        }
    };
    tokio::select! {
        stream = timeout(START, accepted) => match stream {
            Ok(Ok(stream)) => return Ok((process, stream)),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(format!("it did not dial in within {} seconds", START.as_secs())),
        },
        _exit = process.wait() => {}
    }
    let exit = process.wait().await;
    let mut said = Vec::new();
    if let Some(stderr) = process.take_stderr() {
        // What it wrote is there already; the limit is for the case that it is not the only writer.
        let _ = timeout(START, stderr.take(WORDS_BYTES as u64).read_to_end(&mut said)).await;
    }
    Err(format!("it ended ({exit}). {}", String::from_utf8_lossy(&said).trim()))
}

/// The arguments of `launch`. `output` is where the compiled program goes.
pub(crate) fn launch(
    mode: Mode,
    program: &Path,
    arguments: &[String],
    directory: &Path,
    variables: &Map<String, Value>,
    output: &Path,
) -> Value {
    let mut launch = json!({
        "name": "haft",
        "type": "go",
        "request": "launch",
        "mode": match mode {
            Mode::Debug => "debug",
            Mode::Test => "test",
            Mode::Exec => "exec",
        },
        "program": program.display().to_string(),
        "args": arguments,
        "cwd": directory.display().to_string(),
        "env": variables,
        "stopOnEntry": false,
        "outputMode": "remote",
        "hideSystemGoroutines": true,
    });
    if mode != Mode::Exec {
        launch["output"] = output.display().to_string().into();
    }
    launch
}

/// The arguments of `attach` to a `dlv … --headless --accept-multiclient`.
pub(crate) fn attach() -> Value {
    json!({"name": "haft", "type": "go", "request": "attach", "mode": "remote", "stopOnEntry": false})
}
