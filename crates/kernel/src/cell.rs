//! A cell on its way through a kernel, and what comes of it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_system::Exit;
use haft_tool::Context;

use crate::{bridge::Bridge, display::Display, frames::CellError, output::Stored};

/// Which language a kernel speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Language {
    #[default]
    Python,
    JavaScript,
}

impl Language {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::Python => "Python",
            Language::JavaScript => "JavaScript",
        }
    }
}

/// A cell to be run.
pub(crate) struct Cell {
    pub(crate) number: u32,
    pub(crate) source: String,
    pub(crate) code: String,
    pub(crate) quiet: bool,
    /// How long it may go without a sign of life.
    pub(crate) budget: Duration,
    /// Where its output goes once it is more than is kept: stdout, stderr.
    pub(crate) files: Option<[PathBuf; 2]>,
    pub(crate) context: Context,
    pub(crate) bridge: Arc<dyn Bridge>,
}

/// Why a cell was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Inactive(Duration),
    Cancelled,
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with or without an error.
    Finished,
    /// By an interrupt; the state is kept.
    Interrupted(Why),
    /// It was interrupted, and ended in its own way before or instead: the state is kept.
    FinishedLate(Why),
    /// It did not heed interrupts and was killed; the state is lost.
    Killed(Why),
    /// The kernel died under it; the state is lost.
    Died(Exit),
    /// What came over the channel was not understood, and the kernel was ended.
    Broken(String),
}

impl End {
    pub(crate) fn state_kept(&self) -> bool {
        matches!(self, End::Finished | End::Interrupted(_) | End::FinishedLate(_))
    }
}

/// What came of a cell.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) error: Option<CellError>,
    pub(crate) out: Stored,
    pub(crate) err: Stored,
    pub(crate) displays: Vec<Display>,
    pub(crate) displays_dropped: usize,
    pub(crate) background: Option<(Stored, Stored)>,
    pub(crate) leftovers: Vec<String>,
    pub(crate) cwd: String,
    pub(crate) calls: u64,
    pub(crate) elapsed: Duration,
}
