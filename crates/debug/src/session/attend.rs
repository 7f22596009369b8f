//! The task that stands by a session from its beginning to its end: it owns the adapter's process, watches the program, and sees to it
//! that nothing is left.

use std::{sync::Arc, time::Duration};

use haft_system::{Process, ProcessStderr, ProcessWatch};
use serde_json::json;
use tokio::{io::AsyncReadExt, sync::watch, time::sleep};

use super::{
    Transport,
    shared::Shared,
    state::{End, Phase, State},
};
use crate::{
    limits::{FAREWELL, PROCESS_END, WATCHDOG, WATCHDOG_ANNOUNCED, WATCHDOG_ROUNDS},
    protocol::{Client, Handler},
};

/// Connects the client and the drains of what the adapter writes beside the protocol.
pub(super) fn connect(transport: Transport, shared: &Arc<Shared>) -> (Client, Option<Process>) {
    let handler = || -> Arc<dyn Handler> { Arc::clone(shared) as Arc<dyn Handler> };
    match transport {
        Transport::Stdio(mut process) => {
            let stderr = process.take_stderr();
            over_pipes(process, stderr, shared, handler())
        }
        Transport::Announced { process, stderr, before } => {
            shared.with(|state| state.stderr.push(&before));
            over_pipes(process, Some(stderr), shared, handler())
        }
        Transport::DialledIn(mut process, stream) => {
            drain(process.take_stdout(), shared, |state, piece| state.output.push(piece));
            drain(process.take_stderr(), shared, |state, piece| {
                state.stderr.push(piece);
                for line in piece.split_inclusive(|byte| *byte == b'\n') {
                    // delve's own log: "2026-01-31T10:00:00Z error layer=dap …".
                    if !String::from_utf8_lossy(line).contains(" layer=") {
                        state.output.push(line);
                    }
                }
            });
            (over_tcp(stream, handler()), Some(process))
        }
        Transport::Connected(stream) => (over_tcp(stream, handler()), None),
    }
}

fn over_pipes(
    mut process: Process,
    stderr: Option<ProcessStderr>,
    shared: &Arc<Shared>,
    handler: Arc<dyn Handler>,
) -> (Client, Option<Process>) {
    drain(stderr, shared, |state, piece| state.stderr.push(piece));
    let client = match (process.take_stdout(), process.take_stdin()) {
        (Some(stdout), Some(stdin)) => Client::start(stdout, stdin, handler),
        // A bug of the caller's, which shows as a connection that is closed at once.
        _ => Client::start(tokio::io::empty(), tokio::io::sink(), handler),
    };
    (client, Some(process))
}

fn over_tcp(stream: tokio::net::TcpStream, handler: Arc<dyn Handler>) -> Client {
    // Without it small requests wait for the acknowledgement of earlier ones. An error costs speed and nothing else.
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    Client::start(reader, writer, handler)
}

fn drain(
    pipe: Option<tokio::net::unix::pipe::Receiver>,
    shared: &Arc<Shared>,
    keep: impl Fn(&mut State, &[u8]) + Send + 'static,
) {
    let Some(mut pipe) = pipe else { return };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count) = pipe.read(&mut buffer).await {
            if count == 0 {
                return;
            }
            shared.with(|state| keep(state, &buffer[..count]));
        }
    });
}

/// How long things may take that differ from session to session.
pub(super) struct Times {
    /// The session's life.
    pub(super) live: Duration,
    /// Between the end of the program and the adapter's last words, if it says them unasked.
    pub(super) settle: Duration,
}

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The program's. With it, those of all processes below it end.
    Leader,
    /// That of a process which the program has started.
    Child,
}

/// Stands by until the session is over, and ends what is left of it.
pub(super) async fn attend(
    shared: Arc<Shared>,
    client: Client,
    mut process: Option<Process>,
    role: Role,
    times: Times,
    done: watch::Sender<bool>,
) {
    let launched = shared.company.launched;
    // `process` ends with everything below it, which can be later than the program by more than a moment.
    let adapter = process.as_ref().and_then(|process| ProcessWatch::open(process.pid()).ok());
    let adapter_is_dead = || adapter.as_ref().is_some_and(ProcessWatch::has_ended);
    tokio::select! {
        biased;
        () = shared.when(|state| matches!(state.phase, Phase::Ended(_)).then_some(())) => {}
        () = shared.end.cancelled() => {}
        () = adapter_end(&mut process) => shared.with(State::closed),
        () = sleep(times.live) => {
            let why = format!("the session was ended at its time limit ({} s)", times.live.as_secs());
            shared.with(|state| state.end(End::Terminated { why }));
        }
        () = vanished(&shared, launched) => {
            // The adapter may know more than that it is gone, and may have much to say before it says so: output that has piled up.
            // One that takes the program for stopped knows nothing.
            let mut heard = shared.events();
            let (mut rounds, mut quiet) = (0, 0);
            let patience = if role == Role::Leader && shared.company.adapter.announces_processes {
                WATCHDOG_ANNOUNCED
            } else {
                1
            };
            loop {
                // debugpy says that the program has ended once nobody holds its output any more: those that it has started go on being
                // debugged, also one that is heard of only now.
                if role == Role::Leader {
                    shared.when(|state| {
                        let known = state.settled.closed || matches!(state.phase, Phase::Ended(_));
                        (known || !shared.company.goes_on()).then_some(())
                    })
                    .await;
                }
                // It may also be that the adapter has died first, and its program of that.
                let known = |state: &State| {
                    (state.settled.closed || matches!(state.phase, Phase::Ended(_))).then_some(())
                };
                if shared.when_within(WATCHDOG, known).await.is_some() {
                    break;
                }
                if adapter_is_dead() {
                    break;
                }
                if role == Role::Leader && shared.company.goes_on() {
                    continue;
                }
                rounds += 1;
                let now = shared.events();
                let stands = shared.look(|state| matches!(state.phase, Phase::Stopped(_)));
                quiet = if now == heard { quiet + 1 } else { 0 };
                if stands || quiet >= patience || rounds >= WATCHDOG_ROUNDS {
                    shared.with(|state| state.end(End::Vanished));
                }
                heard = now;
            }
        }
    }
    if role == Role::Leader {
        // At once: debugpy ends by itself, a moment later, what it finds there.
        shared.company.close("the program has ended");
    }
    let (phase, closed) = shared.look(|state| (state.phase.clone(), state.settled.closed));
    if matches!(phase, Phase::Ended(End::Exited { .. })) {
        // Its last words: the exit code, the rest of the output.
        shared.when_within(times.settle, |state| state.settled.is_final().then_some(())).await;
    }
    if !closed && !adapter_is_dead() {
        // Every adapter answers differently, delve sometimes with an error and lldb-dap by aborting: what counts is that it is
        // gone afterwards.
        let arguments = json!({"restart": false, "terminateDebuggee": launched});
        let _ = client.request("disconnect", arguments, FAREWELL).await;
    }
    drop(client);
    if let Some(process) = &mut process {
        let exit = process.terminate().await;
        shared.with(|state| state.end(End::AdapterDied { how: exit.to_string() }));
    } else {
        shared.with(|state| state.end(End::Disconnected { why: "the session was given up".into() }));
    }
    shared.end_terminals().await;
    if role == Role::Leader {
        shared.company.dissolve().await;
    }
    shared.end.cancel();
    if role == Role::Child && launched {
        // Its session ends before the process does, and the program's output is not at its end as long as somebody holds it.
        shared.until_dead(PROCESS_END).await;
    }
    done.send_replace(true);
    shared.with(State::closed);
}

async fn adapter_end(process: &mut Option<Process>) {
    match process {
        Some(process) => {
            process.wait().await;
        }
        None => std::future::pending().await,
    }
}

/// Answers when the program is gone, whether or not the adapter has noticed: gdb and delve do not when it is killed at a stop.
async fn vanished(shared: &Shared, launched: bool) {
    let pid = shared.when(|state| state.pid).await;
    match ProcessWatch::open(pid) {
        Ok(watch) => shared.watch.get_or_init(|| watch).ended().await,
        // It has ended before it could be watched. (The number of a program that was attached to may be of another machine.)
        Err(error) if launched && error.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) => std::future::pending().await,
    }
}
