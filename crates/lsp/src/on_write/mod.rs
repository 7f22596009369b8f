//! Diagnostics on write (SPEC W1–W5): an observer of the change set that lets language servers look at every change and adds what is new to the result of
//! the tool that made it.
//!
//! Every commit is a [`job::Job`] in a task of its own, in two stages. Before: each server gets the *old* text of each file and says what it thinks of it. A server that is still
//! starting gets the old text when it is up, even if the new one is long on the disk. After: it gets the new text. The observer waits for the
//! task no longer than the inline time, so a server that hangs costs an edit that much and no more; what comes later is handed over by
//! [`WriteDiagnostics::late`] with the next tool result.
//!
//! The ledger moves only when a result is handed over: a result that nobody gets to see, because the file has changed again, changes nothing
//! of what counts as known.

mod dependants;
mod job;
mod report;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use haft_system::{ChangeObserver, Note, Planned};
use tokio::{sync::watch, time::Instant};

use self::{dependants::Searched, job::Job};
use crate::{
    diagnostics::ledger::{Ledger, Scope},
    limits::{BASELINE_SHARE, LATE_JOBS, WRITE_INLINE},
    supervisor::{Checkout, Server},
};

/// The diagnostics of one conversation's writes. Cheap to clone.
#[derive(Clone)]
pub struct WriteDiagnostics {
    inner: Arc<Inner>,
}

struct Inner {
    checkout: Checkout,
    inline: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    /// The commit that is going on.
    current: Option<Current>,
    /// The job before the current one.
    last: Option<Arc<Job>>,
    /// Counts the writes of each file, so that a result for an older text is known as such.
    writes: HashMap<PathBuf, u64>,
    /// Jobs that may still have something to say.
    late: Vec<Arc<Job>>,
    /// Per server the serial up to which its publications about other files were looked at.
    heard: HashMap<String, u64>,
    /// Per server how often others had changed files when it last said what it thinks of other files.
    undisturbed: HashMap<String, u64>,
    /// What a server has last looked at.
    verified: HashMap<Scope, Verified>,
    /// Who used what was changed in a file.
    searched: HashMap<Scope, Searched>,
    /// Reasons why nothing could be verified that were told already.
    told: HashSet<String>,
}

/// A text of a file of which a server has said what it thinks.
struct Verified {
    text: Arc<str>,
    /// [`Server::told_of_others`] when it was asked.
    others: u64,
}

struct Current {
    job: Arc<Job>,
    /// Dropped unsent, the commit was refused.
    committed: watch::Sender<Option<bool>>,
    spent: Duration,
}

impl WriteDiagnostics {
    /// Watches with the servers of `checkout`.
    pub fn new(checkout: Checkout) -> Self {
        Self::with_inline(checkout, WRITE_INLINE)
    }

    /// The same with another time that a write is held up at most.
    pub fn with_inline(checkout: Checkout, inline: Duration) -> Self {
        WriteDiagnostics { inner: Arc::new(Inner { checkout, inline, state: Mutex::default() }) }
    }

    /// What has come in since the last result: findings that were too late for the result of their write, and errors in other files that servers have reported since. To be added to
    /// the next tool result, whichever tool it is. Does not wait.
    pub fn late(&self) -> Option<Note> {
        report::late(&self.inner)
    }

    /// Waits until nothing is under way any more, at most `limit`; whether that was reached. For the end of a run and for tests.
    pub async fn settled(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let jobs = self.inner.state().late.clone();
        for job in jobs {
            if !job.finished_by(until).await {
                return false;
            }
        }
        true
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_current(&self, path: &Path, write: u64) -> bool {
        self.writes(path) == write
    }

    fn commits(&self, path: &Path) -> u64 {
        self.state().ledger.writes(path)
    }

    fn writes(&self, path: &Path) -> u64 {
        self.state().writes.get(path).copied().unwrap_or(0)
    }
}

/// Names a server's view of a file in the ledger.
fn scope(server: &Server, file: &Path) -> Scope {
    Scope { server: server_name(server), file: file.to_owned() }
}

fn server_name(server: &Server) -> String {
    format!("{} {}", server.id(), server.root().display())
}

#[async_trait]
impl ChangeObserver for WriteDiagnostics {
    async fn before(&self, planned: &[Planned]) {
        let begun = Instant::now();
        let (job, committed, previous) = {
            let mut state = self.inner.state();
            // A commit that was refused leaves its job behind; dropping the sender ends it.
            state.current = None;
            let job = Arc::new(Job::new(planned, &mut state));
            let (committed, receiver) = watch::channel(None);
            let previous = state.last.replace(job.clone());
            state.current = Some(Current { job: job.clone(), committed, spent: Duration::ZERO });
            (job, receiver, previous)
        };
        let is_free = previous.as_ref().is_none_or(|previous| previous.has_baseline());
        tokio::spawn(job::run(self.inner.clone(), job.clone(), previous, committed));
        // While an earlier job hangs there is nothing to wait for.
        if is_free {
            job.baseline_by(begun + self.inner.inline.mul_f64(BASELINE_SHARE)).await;
        }
        if let Some(current) = &mut self.inner.state().current {
            current.spent = begun.elapsed();
        }
    }

    async fn after(&self, _: &[Planned]) -> Option<Note> {
        let begun = Instant::now();
        let Current { job, committed, spent } = self.inner.state().current.take()?;
        {
            let mut state = self.inner.state();
            job.note_committed(&mut state);
            state.late.push(job.clone());
            let surplus = state.late.len().saturating_sub(LATE_JOBS);
            state.late.drain(..surplus);
        }
        committed.send_replace(Some(true));
        let until = begun + self.inner.inline.saturating_sub(spent);
        job.own_by(until).await;
        // Files that the change may have broken elsewhere: what is left of the time for those that use what changed, a moment for others that are open.
        let others = job.others_inline().map_or(until, |moment| until.min(Instant::now() + moment));
        job.finished_by(others).await;
        Some(report::inline(&self.inner, &job, begun.elapsed() + spent))
    }
}

#[cfg(test)]
mod tests;
