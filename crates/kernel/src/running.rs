//! The cell that a kernel runs, and the streams that it writes to.

use std::{collections::HashMap, future::pending};

use haft_system::ProcessStdout;
use tokio::{io::AsyncReadExt, sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    cell::{Cell, Ran, Why},
    display::Display,
    frames::{CellError, Status},
    limits::CHUNK,
    output::{Kept, Splitter},
};

pub(crate) struct Stream {
    pub(crate) pipe: Option<ProcessStdout>,
    pub(crate) splitter: Splitter,
    pub(crate) buffer: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(pipe: ProcessStdout, nonce: &str) -> Self {
        Stream { pipe: Some(pipe), splitter: Splitter::new(nonce), buffer: vec![0; CHUNK] }
    }

    /// Loses nothing when it is given up.
    pub(crate) async fn read(&mut self) -> usize {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or(0),
            None => pending().await,
        }
    }
}

pub(crate) struct Running {
    pub(crate) cell: Cell,
    pub(crate) answer: oneshot::Sender<Ran>,
    /// The worker has taken it up.
    pub(crate) started: bool,
    pub(crate) begin: Instant,
    pub(crate) alive: Instant,
    pub(crate) kept: [Kept; 2],
    /// What had come before the cell, from what earlier ones have left running.
    pub(crate) before: [Kept; 2],
    pub(crate) ended: [bool; 2],
    pub(crate) done: Option<(Status, Option<CellError>, String)>,
    pub(crate) displays: Vec<Display>,
    pub(crate) displays_dropped: usize,
    /// Where marks of displays stood in stdout.
    pub(crate) places: HashMap<u64, u64>,
    pub(crate) open_calls: usize,
    pub(crate) calls: u64,
    /// Cancelled with the cell, or when the cell has ended.
    pub(crate) cancel: CancellationToken,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) live: Vec<u8>,
    pub(crate) live_at: Option<Instant>,
    pub(crate) live_left_out: u64,
}

pub(crate) struct Interrupt {
    pub(crate) why: Why,
    pub(crate) at: Instant,
    pub(crate) step: u8,
}

impl Running {
    /// Passes on what has come, up to the last whole character.
    pub(crate) fn show_live(&mut self, last: bool) {
        self.live_at = None;
        let valid = match std::str::from_utf8(&self.live) {
            Ok(_) => self.live.len(),
            Err(error) if error.error_len().is_none() && !last => error.valid_up_to(),
            Err(_) => self.live.len(),
        };
        let rest = self.live.split_off(valid);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.live, rest)).into_owned();
        if !text.is_empty() {
            self.cell.context.progress.emit(text);
        }
        let left_out = std::mem::take(&mut self.live_left_out);
        if left_out > 0 {
            self.cell.context.progress.emit(format!("\n[{left_out} bytes too fast to be shown live]\n"));
        }
    }
}
