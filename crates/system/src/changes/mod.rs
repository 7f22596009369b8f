//! Changes to files: captured, checked, committed all or nothing (SPEC C1).
//!
//! A tool captures what it is about to change ([`Changes::capture`]), works out the new contents in memory, and hands the whole set to
//! [`Changes::commit`]. The commit refuses if any file is no longer as captured; writes every new content beside its target, while observers look
//! at the old ones; keeps the old contents in a journal; renames everything into place; and takes it all back when a step fails. When the process dies in the
//! middle, the next [`Changes::open`] on the same journal finishes the job. Whoever needs to see every write (diagnostics, the
//! page's diff) is a [`ChangeObserver`]; no tool knows who watches.

mod disk;
mod error;
mod job;
mod journal;
mod plan;
mod recover;

use std::{
    fmt,
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;
use futures::{FutureExt, future::join_all};
use haft_tool::{Output, ToolError};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use disk::Disk;
pub use disk::{StepHook, is_temporary};
pub use error::ChangeError;
use job::Done;
use plan::Plan;

use crate::paths::{ResolvedPath, Workdir};

/// The one way in which files of a working directory are changed by this process: the write lock, the journal, the observers.
/// Cheap to clone.
#[derive(Clone)]
pub struct Changes {
    inner: Arc<Inner>,
    /// Observers of the commits that are made through this handle.
    own: Vec<Arc<dyn ChangeObserver>>,
}

struct Inner {
    engine: Arc<Engine>,
    /// One commit at a time, its observers included: a baseline taken by one must not see half of another.
    turn: Arc<Semaphore>,
    observers: RwLock<Vec<Arc<dyn ChangeObserver>>>,
}

/// The part that touches the disk, all of it blocking.
struct Engine {
    workdir: Workdir,
    journal_dir: PathBuf,
    disk: Disk,
}

/// A file as it was when a change was worked out.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// Which file.
    pub path: ResolvedPath,
    /// What was there.
    pub before: Before,
}

/// What a path held when it was captured.
#[derive(Clone, Debug, PartialEq)]
pub enum Before {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its whole content.
        bytes: Arc<[u8]>,
        /// What it was apart from its name.
        print: Fingerprint,
    },
}

impl Before {
    /// The content, if there was a file.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match self {
            Before::Absent => None,
            Before::File { bytes, .. } => Some(bytes),
        }
    }
}

/// Identifies one state of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The device that the file is on.
    pub device: u64,
    /// The inode on that device; two names with equal device and inode are one file.
    pub inode: u64,
    /// Type and permission bits, as `stat` gives them.
    pub mode: u32,
    /// In bytes.
    pub size: u64,
    /// Last modification, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// BLAKE3 of the content.
    pub blake3: [u8; 32],
}

/// Changes that belong together.
#[derive(Clone, Debug, Default)]
pub struct ChangeSet {
    /// In the order in which they are carried out.
    pub changes: Vec<Change>,
}

/// One change to one file (or, for a move, two).
#[derive(Clone, Debug)]
pub enum Change {
    /// Creates the file, its parent directories too, or replaces its content.
    Write {
        /// The file as it is expected to be.
        at: Captured,
        /// The new content.
        after: Vec<u8>,
    },
    /// Removes the file.
    Delete {
        /// The file as it is expected to be.
        at: Captured,
    },
    /// Gives the file another name, and perhaps another content.
    Move {
        /// The file as it is expected to be.
        from: Captured,
        /// The new place. Captured as a file, that file is replaced.
        to: Captured,
        /// The new content; `None` leaves it as it is.
        after: Option<Vec<u8>>,
    },
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It has a new content.
    Modified,
    /// It is gone.
    Deleted,
    /// It has a new name, and perhaps a new content.
    Moved,
}

/// A change that was made, as `structured` shows it (SPEC section 10, `files[]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// As shown to people: relative to the working directory.
    pub file: String,
    /// What happened.
    pub change: ChangeKind,
    /// The old name of a file that was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Committed {
    /// In the order of the change set.
    pub files: Vec<FileChange>,
    /// Files of the set whose new content is the old one; they were left alone and observers did not hear of them.
    pub unchanged: Vec<String>,
    /// What the observers had to say, in the order in which they were registered.
    pub notes: Vec<Note>,
    /// What a careful person would want to know: a file with several hard links was written in place, and the like.
    pub warnings: Vec<String>,
}

impl Committed {
    /// The answer of a tool that made the change (SPEC section 10): `files[] {file, change}`, `new_diagnostics[]`, `verified`; after `text`
    /// the warnings and what the observers had to say. `verified` stays false unless an observer says that it is true.
    pub fn answer(self, text: &str) -> Result<Output, ToolError> {
        let files = serde_json::to_value(&self.files)
            .map_err(|error| ToolError::Bug(format!("file changes do not serialise: {error}")))?;
        let mut text = text.trim_end().to_owned();
        for warning in &self.warnings {
            text.push_str("\nWarning: ");
            text.push_str(warning);
        }
        let mut structured = Map::new();
        structured.insert("files".into(), files);
        structured.insert("new_diagnostics".into(), json!([]));
        structured.insert("verified".into(), json!(false));
        structured.insert("unverified_because".into(), json!("no language server has checked this change"));
        for note in self.notes {
            if note.structured.get("verified") == Some(&Value::Bool(true)) {
                structured.remove("unverified_because");
            }
            structured.extend(note.structured);
            if let Some(said) = note.text {
                text.push_str("\n\n");
                text.push_str(said.trim_end());
            }
        }
        Ok(Output { structured, ..Output::text(text) })
    }
}

/// Something an observer adds to the result of the tool that made the change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    /// For the model.
    pub text: Option<String>,
    /// Fields for programs.
    pub structured: Map<String, Value>,
}

/// Sees every commit, before and after. It must not commit by itself through the same [`Changes`]: it would wait for its own turn to end.
#[async_trait]
pub trait ChangeObserver: Send + Sync {
    /// The files are still as they were, and stay so until it returns; new contents may lie beside them ([`is_temporary`]). The commit may yet be refused; then `after`
    /// is not called.
    async fn before(&self, planned: &[Planned]);

    /// All of it is in place. Called even when the caller of the commit has given up waiting.
    async fn after(&self, committed: &[Planned]) -> Option<Note>;
}

/// A change as an observer sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The file; for a move, its new place.
    pub file: ResolvedPath,
    /// What happens to it.
    pub kind: ChangeKind,
    /// The old place of a file that is moved.
    pub from: Option<ResolvedPath>,
    /// The old content; for a move, that of the file that is moved.
    pub before: Option<Arc<[u8]>>,
    /// The new content.
    pub after: Option<Arc<[u8]>>,
}

/// What was done about a change that an earlier process did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// In words: what was interrupted, what was put back, what a person has to look at.
    pub text: String,
    /// Whether something was left that a person has to look at.
    pub needs_attention: bool,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Changes {
    /// Opens the journal, which is created if need be, and puts right what earlier processes left half done in this working directory.
    /// Processes that are still alive are not disturbed. Processes that work in one directory should share one journal directory, for
    /// that is where they take turns. Blocks: a few system calls, more if there is something to put right.
    pub fn open(workdir: Workdir, journal_dir: PathBuf) -> Result<(Changes, Vec<Recovery>), ChangeError> {
        Self::open_on(workdir, journal_dir, Disk::default())
    }

    /// For tests of what happens when the machine fails: `hook` is called before every step that changes the disk, and may fail it, change
    /// something behind the commit's back, or end the process.
    #[doc(hidden)]
    pub fn open_with_hook(
        workdir: Workdir,
        journal_dir: PathBuf,
        hook: StepHook,
    ) -> Result<(Changes, Vec<Recovery>), ChangeError> {
        Self::open_on(workdir, journal_dir, Disk::with_hook(hook))
    }

    fn open_on(
        workdir: Workdir,
        journal_dir: PathBuf,
        disk: Disk,
    ) -> Result<(Changes, Vec<Recovery>), ChangeError> {
        let engine = Engine { workdir, journal_dir, disk };
        let recovered = engine.recover_at_start()?;
        let inner = Inner {
            engine: Arc::new(engine),
            turn: Arc::new(Semaphore::new(1)),
            observers: RwLock::default(),
        };
        Ok((Changes { inner: Arc::new(inner), own: Vec::new() }, recovered))
    }

    /// The working directory.
    pub fn workdir(&self) -> &Workdir {
        &self.inner.engine.workdir
    }

    /// Adds an observer; it sees the commits that begin from now on.
    pub fn observe(&self, observer: Arc<dyn ChangeObserver>) {
        self.inner.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// The same door, with an observer that sees the commits made through the returned handle and its clones, after the observers of all.
    #[must_use]
    pub fn observed_by(&self, observer: Arc<dyn ChangeObserver>) -> Changes {
        let mut own = self.own.clone();
        own.push(observer);
        Changes { inner: Arc::clone(&self.inner), own }
    }

    /// Reads what is at `path` now, so that a commit can tell whether it has changed since.
    pub async fn capture(&self, path: &ResolvedPath) -> Result<Captured, ChangeError> {
        let path = path.clone();
        blocking(move || plan::capture(path)).await
    }

    /// Carries out all of the changes or none. `by` names the tool, for the journal.
    ///
    /// Dropping the future before its turn has come means that nothing happens; later the commit goes on to its end, observers included.
    pub async fn commit(&self, set: ChangeSet, by: &str) -> Result<Committed, ChangeError> {
        let plan = Plan::new(set)?;
        let turn = Arc::clone(&self.inner.turn)
            .acquire_owned()
            .await
            .map_err(|_| ChangeError::Bug("the write lock is closed".to_owned()))?;
        let inner = Arc::clone(&self.inner);
        let (by, own) = (by.to_owned(), self.own.clone());
        tokio::spawn(async move { inner.commit(plan, by, own, turn).await })
            .await
            .map_err(|error| ChangeError::Bug(format!("a commit ended early: {error}")))?
    }
}

impl Inner {
    async fn commit(
        &self,
        plan: Plan,
        by: String,
        own: Vec<Arc<dyn ChangeObserver>>,
        _turn: OwnedSemaphorePermit,
    ) -> Result<Committed, ChangeError> {
        let mut observers = self.observers.read().unwrap_or_else(PoisonError::into_inner).clone();
        observers.extend(own);
        let planned: Arc<[Planned]> = plan.planned.clone().into();
        let mut committed =
            Committed { files: plan.files(), unchanged: plan.unchanged(), ..Committed::default() };
        let mut warnings = Vec::new();
        if planned.is_empty() {
            observers.clear();
        }
        // The new contents are written beside the files while the observers look at the old ones.
        let (go, gone) = oneshot::channel();
        let engine = Arc::clone(&self.engine);
        let commit = blocking(move || engine.commit(plan, &by, gone));
        let before = async {
            let calls =
                observers.iter().map(|observer| AssertUnwindSafe(observer.before(&planned)).catch_unwind());
            let calls = join_all(calls).await;
            // An error means that the commit was refused.
            let _ = go.send(());
            calls.into_iter().filter_map(|result| result.err().map(|_| failed())).collect::<Vec<_>>()
        };
        let (done, failed_before) = tokio::join!(commit, before);
        let Done { warnings: told, unsynced } = done?;
        warnings.extend(told);
        warnings.extend(failed_before);
        // And the directories are synced while the observers look at the new ones.
        let engine = Arc::clone(&self.engine);
        let synced = blocking(move || Ok(engine.sync(&unsynced)));
        let after = join_all(
            observers.iter().map(|observer| AssertUnwindSafe(observer.after(&planned)).catch_unwind()),
        );
        let (synced, after) = tokio::join!(synced, after);
        warnings.extend(synced?);
        for result in after {
            match result {
                Ok(note) => committed.notes.extend(note),
                Err(_) => warnings.push(failed()),
            }
        }
        committed.warnings = warnings;
        Ok(committed)
    }
}

/// What is said when an observer panics: the change stands all the same.
fn failed() -> String {
    "Something that watches changes (diagnostics, for one) failed with an internal error, so its part is missing here."
        .to_owned()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ChangeError> + Send + 'static,
) -> Result<T, ChangeError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ChangeError::Bug(format!("work on files ended early: {error}")))?
}
