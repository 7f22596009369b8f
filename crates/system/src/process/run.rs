use std::{future::pending, io, time::Duration};

use tokio::{io::AsyncReadExt, net::unix::pipe, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{CapturedOutput, Exit, Process, ProcessSpec, SpawnError, Supervisor, capture::Capture};
use crate::limits::{DRAINED_CHUNKS, PIPE_CHUNK};

/// How far a program may go in [`Supervisor::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBounds {
    /// How long it may run; `None` for as long as it likes.
    pub time: Option<Duration>,
    /// How many bytes are kept of each output: half of them from its beginning, half from its end.
    pub capture_bytes: usize,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The program ended, in whatever way.
    Exited,
    /// Its time was up, and it was ended with everything below it.
    TimedOut,
    /// The caller gave up, and it was ended with everything below it.
    Cancelled,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How the program ended; after a time-out or a cancellation usually by SIGTERM or SIGKILL.
    pub exit: Exit,
    /// Why.
    pub end: RunEnd,
    /// Its stdout, or both outputs where they are merged.
    pub stdout: CapturedOutput,
    /// Its stderr.
    pub stderr: CapturedOutput,
    /// Processes that it had left running when it ended by itself and that were killed: `PID command line`.
    pub leftovers: Vec<String>,
    /// Processes that could not be killed (of another user, or blocked in the kernel).
    pub survivors: Vec<String>,
    /// From the start to the end of the last process.
    pub elapsed: Duration,
}

impl Supervisor {
    /// Runs a program to its end with bounded capture. `on_output` gets the pieces of both outputs as they come, all of them.
    /// When the time is up or `cancel` fires the whole tree is ended, and [`Finished::end`] says so. A piped stdin is empty.
    pub async fn run(
        &self,
        spec: ProcessSpec,
        bounds: RunBounds,
        cancel: &CancellationToken,
        on_output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Finished, SpawnError> {
        Ok(self.spawn(spec).await?.run_to_end(bounds, cancel, on_output).await)
    }
}

impl Process {
    /// What [`Supervisor::run`] does, for a process that is started already. Time counts from this call. Outputs that were
    /// taken are not read, and a stdin that was not taken is closed.
    pub async fn run_to_end(
        mut self,
        bounds: RunBounds,
        cancel: &CancellationToken,
        on_output: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Finished {
        let begin = Instant::now();
        drop(self.take_stdin());
        let mut stdout = Stream::new(self.take_stdout(), bounds.capture_bytes);
        let mut stderr = Stream::new(self.take_stderr(), bounds.capture_bytes);
        let deadline = bounds.time.map(|time| begin + time);
        let mut end = RunEnd::Exited;
        let ended = loop {
            let running = end == RunEnd::Exited;
            tokio::select! {
                biased;
                ended = self.end_of_tree() => break ended,
                () = cancel.cancelled(), if running => {
                    end = RunEnd::Cancelled;
                    self.start_termination();
                }
                () = until(deadline), if running => {
                    end = RunEnd::TimedOut;
                    self.start_termination();
                }
                // In random order: a flood on one of them must not keep the other from being read.
                () = async {
                    tokio::select! {
                        count = stdout.read() => stdout.keep(count, on_output),
                        count = stderr.read() => stderr.keep(count, on_output),
                    }
                } => {}
            }
        };
        stdout.drain(on_output);
        stderr.drain(on_output);
        Finished {
            exit: ended.exit,
            end,
            stdout: stdout.capture.finish(),
            stderr: stderr.capture.finish(),
            leftovers: ended.leftovers,
            survivors: ended.survivors,
            elapsed: begin.elapsed(),
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => pending().await,
    }
}

struct Stream {
    pipe: Option<pipe::Receiver>,
    capture: Capture,
    buffer: Vec<u8>,
}

impl Stream {
    fn new(pipe: Option<pipe::Receiver>, limit: usize) -> Self {
        let buffer = if pipe.is_some() { vec![0; PIPE_CHUNK] } else { Vec::new() };
        Stream { pipe, capture: Capture::new(limit), buffer }
    }

    /// Reads one piece into the buffer; never ready once the pipe has come to its end. Loses nothing when it is dropped.
    async fn read(&mut self) -> usize {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        pipe.read(&mut self.buffer).await.unwrap_or(0)
    }

    fn keep(&mut self, count: usize, on_output: &mut (dyn FnMut(&[u8]) + Send)) {
        if count == 0 {
            self.pipe = None;
            return;
        }
        self.capture.push(&self.buffer[..count]);
        on_output(&self.buffer[..count]);
    }

    /// Takes what the dead have left in the pipe. Waits for nothing: whoever could still write has been killed.
    fn drain(&mut self, on_output: &mut (dyn FnMut(&[u8]) + Send)) {
        let Some(pipe) = &self.pipe else { return };
        for _ in 0..DRAINED_CHUNKS {
            match rustix::io::read(pipe, &mut self.buffer).map_err(io::Error::from) {
                Ok(0) => return,
                Ok(count) => {
                    self.capture.push(&self.buffer[..count]);
                    on_output(&self.buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}
