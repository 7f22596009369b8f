//! Which contents of files a run has seen, so that `write` does not put an old idea over a file that changed in the meantime.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use haft_tool::ToolError;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::limits::READS_REMEMBERED;

/// The contents that one run has read or written. Cheap to clone; every tool of the run shares one.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    inner: Arc<Mutex<Inner>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    seen: HashMap<PathBuf, blake3::Hash>,
    order: VecDeque<PathBuf>,
}

/// What the run knows of a file's present content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// It has never read or written the file, or too long ago.
    Never,
    /// This is the content that it saw last.
    Current,
    /// The file has changed since.
    Outdated,
}

impl Reads {
    /// Nothing has been read yet.
    pub fn new() -> Self {
        Reads::default()
    }

    /// Waits for the turn to change files. A model may send several changes of one file at once: each has to see what the one before it did,
    /// so a run's changes are made one after another, in the order in which they came.
    pub(crate) async fn turn(&self, cancel: &CancellationToken) -> Result<OwnedMutexGuard<()>, ToolError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::Cancelled),
            turn = Arc::clone(&self.turn).lock_owned() => Ok(turn),
        }
    }

    /// Notes that the run has seen this content of the file at the canonical `path`.
    pub(crate) fn saw(&self, path: &Path, bytes: &[u8]) {
        let hash = blake3::hash(bytes);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.seen.insert(path.to_owned(), hash).is_none() {
            inner.order.push_back(path.to_owned());
            if inner.order.len() > READS_REMEMBERED
                && let Some(oldest) = inner.order.pop_front()
            {
                inner.seen.remove(&oldest);
            }
        }
    }

    /// Compares what the run saw with the content that is there now.
    pub(crate) fn knows(&self, path: &Path, bytes: &[u8]) -> Knowledge {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match inner.seen.get(path) {
            None => Knowledge::Never,
            Some(seen) if *seen == blake3::hash(bytes) => Knowledge::Current,
            Some(_) => Knowledge::Outdated,
        }
    }
}
