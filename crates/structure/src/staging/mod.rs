//! Changes that were worked out and shown, and wait for a yes or a no (SPEC A5, A7, A9).
//!
//! Nothing here touches a file. A proposal holds the content of every file as it was captured and as it would become, so accepting it
//! later means comparing bytes and committing one change set, never doing the work again on files that may have changed.

mod diff;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_system::{Change, ChangeSet};
use haft_tool::ToolError;

pub use diff::{change_diff, cut_for_model, unified};

use crate::limits::{MAX_FATES, MAX_STAGED, MAX_STAGED_BYTES};

/// The staging area of a conversation.
#[derive(Debug, Default)]
pub struct Staging {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    staged: BTreeMap<u64, Proposal>,
    bytes: usize,
    fates: BTreeMap<u64, Fate>,
}

#[derive(Clone, Debug)]
struct Proposal {
    set: Arc<ChangeSet>,
    origin: String,
    bytes: usize,
}

/// What became of a proposal that is not staged any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Being accepted at this moment.
    Committing,
    /// Its change is in the files.
    Accepted,
    /// Given up by whoever asked for it.
    Discarded,
    /// The oldest one when room was needed.
    Dropped,
    /// Refused on accept, because a file was no longer as captured.
    Refused,
    /// Broke off half-way and could not be taken back.
    Failed,
}

/// A receipt for a staged proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// `edit_1`, `edit_2`, … in the order of staging.
    pub edit_id: String,
    /// Older proposals that had to go to make room: id and origin.
    pub dropped: Vec<(String, String)>,
}

/// A proposal that waits, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its id.
    pub edit_id: String,
    /// What it is, in words.
    pub origin: String,
    /// The files that it would change, as shown.
    pub files: Vec<String>,
}

/// Why a change was not staged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// There is nothing in it.
    #[error("The change is empty, so there is nothing to stage.")]
    Empty,
    /// It is bigger than the whole staging area.
    #[error(
        "The change holds {bytes} bytes of old and new text, and at most {MAX_STAGED_BYTES} can be staged. Do it in parts, with a narrower `path`."
    )]
    TooLarge {
        /// Old and new content together.
        bytes: usize,
    },
}

/// Why an id could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Never given out, or so long ago that nothing is known of it.
    #[error("There is no staged edit `{id}`. {}", known_words(known))]
    Unknown {
        /// As the caller wrote it.
        id: String,
        /// What is staged.
        known: Vec<Waiting>,
    },
    /// It was there once.
    #[error("`{id}` {}", fate_words(*fate))]
    Gone {
        /// The id.
        id: String,
        /// What became of it.
        fate: Fate,
    },
}

fn known_words(known: &[Waiting]) -> String {
    if known.is_empty() {
        return "Nothing is staged at the moment.".to_owned();
    }
    let names: Vec<String> =
        known.iter().map(|waiting| format!("`{}` ({})", waiting.edit_id, waiting.origin)).collect();
    format!("Staged are: {}.", names.join(", "))
}

fn fate_words(fate: Fate) -> &'static str {
    match fate {
        Fate::Committing => "is being accepted by another call at this moment. Wait for that call's answer.",
        Fate::Accepted => "was accepted before; its change is in the files already. Nothing was done now.",
        Fate::Discarded => "was discarded. To make the change after all, stage it again.",
        Fate::Dropped => {
            "was dropped to make room for newer edits. To make the change after all, stage it again."
        }
        Fate::Refused => {
            "was refused because files had changed since it was staged, and is gone. To make the change after all, stage it again."
        }
        Fate::Failed => {
            "broke off half-way and could not be taken back; the answer to that call names the files. Nothing was done now."
        }
    }
}

impl From<StageError> for ToolError {
    fn from(error: StageError) -> Self {
        ToolError::model(error.to_string())
    }
}

impl From<ResolveError> for ToolError {
    fn from(error: ResolveError) -> Self {
        ToolError::model(error.to_string())
    }
}

impl Staging {
    /// An empty staging area.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a change until it is accepted or discarded. `origin` says in a few words where it comes from, for lists.
    ///
    /// The area is bounded in number and bytes; the oldest proposals make room, and the receipt names them.
    pub fn stage(&self, set: ChangeSet, origin: impl Into<String>) -> Result<Staged, StageError> {
        if set.changes.is_empty() {
            return Err(StageError::Empty);
        }
        let bytes = set.changes.iter().map(held_bytes).sum();
        if bytes > MAX_STAGED_BYTES {
            return Err(StageError::TooLarge { bytes });
        }
        let mut inner = self.lock();
        let mut dropped = Vec::new();
        while inner.staged.len() >= MAX_STAGED || inner.bytes + bytes > MAX_STAGED_BYTES {
            let Some((number, oldest)) = inner.staged.pop_first() else { break };
            inner.bytes -= oldest.bytes;
            inner.note(number, Fate::Dropped);
            dropped.push((name(number), oldest.origin));
        }
        inner.last += 1;
        inner.bytes += bytes;
        let number = inner.last;
        inner.staged.insert(number, Proposal { set: Arc::new(set), origin: origin.into(), bytes });
        Ok(Staged { edit_id: name(number), dropped })
    }

    /// What waits, oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.lock().waiting()
    }

    /// The files that accepting `edit_id` would change, as absolute paths; empty for an id that is not staged.
    pub fn paths(&self, edit_id: &str) -> Vec<PathBuf> {
        let inner = self.lock();
        let staged = number(edit_id).and_then(|number| inner.staged.get(&number));
        staged.map(|proposal| proposal.set.changes.iter().flat_map(real_paths).collect()).unwrap_or_default()
    }

    /// Takes a proposal out in order to commit it. Until the claim is settled, other calls hear that it is being accepted; a claim that is
    /// dropped unsettled puts the proposal back.
    pub fn claim(self: &Arc<Self>, edit_id: &str) -> Result<Claim, ResolveError> {
        let mut inner = self.lock();
        let number = inner.find(edit_id)?;
        let Some(proposal) = inner.staged.remove(&number) else {
            return Err(inner.unknown(edit_id));
        };
        // Its bytes stay counted: a claim can come back.
        inner.note(number, Fate::Committing);
        Ok(Claim { staging: Arc::clone(self), number, proposal: Some(proposal) })
    }

    /// Gives a proposal up. Doing it twice is as good as once; `Ok(false)` says that it was gone before without having been accepted.
    pub fn discard(&self, edit_id: &str) -> Result<bool, ResolveError> {
        let mut inner = self.lock();
        match inner.find(edit_id) {
            Ok(number) => {
                if let Some(proposal) = inner.staged.remove(&number) {
                    inner.bytes -= proposal.bytes;
                }
                inner.note(number, Fate::Discarded);
                Ok(true)
            }
            Err(ResolveError::Gone { fate: Fate::Discarded | Fate::Dropped | Fate::Refused, .. }) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn find(&self, edit_id: &str) -> Result<u64, ResolveError> {
        let Some(number) = number(edit_id) else { return Err(self.unknown(edit_id)) };
        if self.staged.contains_key(&number) {
            return Ok(number);
        }
        match self.fates.get(&number) {
            Some(fate) => Err(ResolveError::Gone { id: name(number), fate: *fate }),
            None => Err(self.unknown(edit_id)),
        }
    }

    fn unknown(&self, edit_id: &str) -> ResolveError {
        ResolveError::Unknown { id: edit_id.to_owned(), known: self.waiting() }
    }

    fn waiting(&self) -> Vec<Waiting> {
        let list = self.staged.iter().map(|(number, proposal)| Waiting {
            edit_id: name(*number),
            origin: proposal.origin.clone(),
            files: proposal.set.changes.iter().map(shown_path).collect(),
        });
        list.collect()
    }

    fn note(&mut self, number: u64, fate: Fate) {
        self.fates.insert(number, fate);
        while self.fates.len() > MAX_FATES {
            self.fates.pop_first();
        }
    }
}

/// A proposal on its way into the files.
#[derive(Debug)]
pub struct Claim {
    staging: Arc<Staging>,
    number: u64,
    proposal: Option<Proposal>,
}

impl Claim {
    /// The id that was claimed.
    pub fn edit_id(&self) -> String {
        name(self.number)
    }

    /// Where the proposal comes from, in words.
    pub fn origin(&self) -> &str {
        self.proposal.as_ref().map_or("", |proposal| &proposal.origin)
    }

    /// The change set.
    pub fn set(&self) -> ChangeSet {
        self.proposal.as_ref().map(|proposal| ChangeSet::clone(&proposal.set)).unwrap_or_default()
    }

    /// Notes what became of it. The proposal is gone.
    pub fn settle(mut self, fate: Fate) {
        let mut inner = self.staging.lock();
        if let Some(proposal) = self.proposal.take() {
            inner.bytes -= proposal.bytes;
        }
        inner.note(self.number, fate);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(proposal) = self.proposal.take() {
            let mut inner = self.staging.lock();
            inner.fates.remove(&self.number);
            inner.staged.insert(self.number, proposal);
        }
    }
}

fn name(number: u64) -> String {
    format!("edit_{number}")
}

fn number(edit_id: &str) -> Option<u64> {
    let digits = edit_id.strip_prefix("edit_")?;
    let number = digits.parse().ok()?;
    (name(number) == edit_id).then_some(number)
}

fn held_bytes(change: &Change) -> usize {
    let old = |captured: &haft_system::Captured| captured.before.bytes().map_or(0, |bytes| bytes.len());
    match change {
        Change::Write { at, after } => old(at) + after.len(),
        Change::Delete { at } => old(at),
        Change::Move { from, to, after } => old(from) + old(to) + after.as_ref().map_or(0, Vec::len),
    }
}

fn shown_path(change: &Change) -> String {
    match change {
        Change::Write { at, .. } | Change::Delete { at } => at.path.shown.clone(),
        Change::Move { to, .. } => to.path.shown.clone(),
    }
}

fn real_paths(change: &Change) -> Vec<PathBuf> {
    match change {
        Change::Write { at, .. } | Change::Delete { at } => vec![at.path.real.clone()],
        Change::Move { from, to, .. } => vec![from.path.real.clone(), to.path.real.clone()],
    }
}
