//! The task that stands on Haft's side of one guard, from its start until it is reaped.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest, unix::AsyncFd},
    net::UnixStream,
    sync::{mpsc, oneshot, watch},
};
use tokio_util::sync::CancellationToken;

use super::{
    Exit, orphans,
    supervisor::{Ended, Ticket},
    wire::{self, Order, Report, Stage, Status},
};

pub(super) struct Monitor {
    pub(super) ticket: Ticket,
    pub(super) guard: Pid,
    pub(super) grace: Duration,
    pub(super) end: CancellationToken,
    pub(super) signals: mpsc::Receiver<i32>,
    pub(super) ended: watch::Sender<Option<Ended>>,
}

/// Why a program was not started.
pub(super) enum Refused {
    Setup(io::Error),
    Directory(io::Error),
    Exec(io::Error),
    /// The guard ended without a word.
    Lost(String),
}

impl Monitor {
    /// Sends the rest of the request, passes on how the start went, then serves the process until all of it is gone. Dropping
    /// this future closes the socket, which is an order to the guard to end everything.
    pub(super) async fn run(
        self,
        mut link: UnixStream,
        request: Vec<u8>,
        started: oneshot::Sender<Result<u32, Refused>>,
    ) {
        let outcome = match link.write_all(&request).await {
            Ok(()) => read_report(&mut link).await,
            // What the guard has to say is worth more than that it did not listen to the end.
            Err(error) => read_report(&mut link).await.map_err(|_| error),
        };
        let refused = match outcome {
            Ok(Report::Started(pid)) => {
                let pid = pid.cast_unsigned();
                self.ticket.started(pid);
                if started.send(Ok(pid)).is_err() {
                    self.end.cancel();
                }
                return self.serve(link).await;
            }
            Ok(Report::Failed { stage, errno }) => {
                let error = io::Error::from_raw_os_error(errno);
                match stage {
                    Stage::Setup => Refused::Setup(error),
                    Stage::Directory => Refused::Directory(error),
                    Stage::Exec => Refused::Exec(error),
                }
            }
            Ok(Report::Ended { .. }) => Refused::Lost("its guard is out of step".into()),
            Err(error) => {
                drop(link);
                let end = self.reap().await;
                let rest = after_sweep(&self.sweep().await);
                let why = format!("its guard ended early ({end}; {error}); {rest}");
                // An error means that nobody waits for the answer any more.
                let _ = started.send(Err(Refused::Lost(why)));
                return;
            }
        };
        drop(link);
        self.reap().await;
        // An error means that nobody waits for the answer any more.
        let _ = started.send(Err(refused));
    }

    async fn serve(mut self, link: UnixStream) {
        let (mut reader, mut writer) = link.into_split();
        let mut asked = false;
        let report = {
            let reading = read_report(&mut reader);
            tokio::pin!(reading);
            let end = self.end.clone();
            let grace = u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX);
            loop {
                // A failed write means that the guard is gone, which the reading side is about to see.
                tokio::select! {
                    report = &mut reading => break report,
                    () = end.cancelled(), if !asked => {
                        asked = true;
                        let _ = writer.write_all(&Order::Terminate(grace).encode()).await;
                    }
                    Some(number) = self.signals.recv() => {
                        let _ = writer.write_all(&Order::Signal(number).encode()).await;
                    }
                }
            }
        };
        match report {
            Ok(Report::Ended { status, leftovers, survivors }) => {
                let exit = match status {
                    Some(Status::Code(code)) => Exit::Code(code),
                    Some(Status::Signal(number)) => Exit::Signal(number),
                    None => Exit::Unknown(format!("it could not be killed ({})", survivors.join("; "))),
                };
                drop((reader, writer));
                // Before anybody hears of the end, so that a caller who then ends Haft leaves no zombie; but a guard with
                // something below it that cannot be killed stays with it.
                let stays = !survivors.is_empty();
                if stays {
                    tracing::warn!(?survivors, "processes could not be killed");
                }
                if !stays {
                    self.reap().await;
                }
                self.finish(Ended { exit, leftovers, survivors });
                if stays {
                    self.reap().await;
                }
            }
            Ok(_) | Err(_) => {
                drop((reader, writer));
                let end = self.reap().await;
                let survivors = self.sweep().await;
                let rest = after_sweep(&survivors);
                tracing::warn!(%end, %rest, "a guard was lost");
                let exit = Exit::Unknown(format!("its guard was lost ({end}); {rest}"));
                self.finish(Ended { exit, leftovers: Vec::new(), survivors });
            }
        }
    }

    fn finish(&self, ended: Ended) {
        self.ticket.ended();
        self.ended.send_replace(Some(ended));
    }

    async fn sweep(&self) -> Vec<String> {
        // An error is a panic or the runtime's end.
        tokio::task::spawn_blocking(orphans::sweep).await.unwrap_or_default()
    }

    /// Waits for the guard to end, and takes it out of the process table.
    async fn reap(&self) -> String {
        match self.wait_for_guard().await {
            Ok(end) => end,
            Err(error) => format!("its end is not known: {error}"),
        }
    }

    async fn wait_for_guard(&self) -> io::Result<String> {
        let handle: OwnedFd = rustix::process::pidfd_open(self.guard, PidfdFlags::empty())?;
        // SAFETY: the descriptor is owned by what is registered, and stays open until it is deregistered.
        let handle = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE)? };
        let _ready = handle.readable().await?;
        let status = rustix::process::waitid(WaitId::Pid(self.guard), WaitIdOptions::EXITED)?;
        Ok(match status {
            Some(status) if status.killed() || status.dumped() => {
                format!("it was killed by signal {}", status.terminating_signal().unwrap_or(0))
            }
            Some(status) => format!("exit code {}", status.exit_status().unwrap_or(-1)),
            None => "no status".to_owned(),
        })
    }
}

fn after_sweep(survivors: &[String]) -> String {
    if survivors.is_empty() {
        "everything below it was killed".to_owned()
    } else {
        format!("what could not be killed: {}", survivors.join("; "))
    }
}

async fn read_report(from: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Report> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix).await?;
    let mut body = vec![0; wire::length(prefix)?];
    from.read_exact(&mut body).await?;
    Report::decode(&body)
}
