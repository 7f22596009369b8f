//! Taking back what a run did to files.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use haft_store::{Artifact, ArtifactId, Store, StoreError};
use haft_system::{
    Change, ChangeError, ChangeObserver, ChangeSet, Changes, Note, PathError, PathState, Planned,
};
use haft_tool::Access;
use serde::{Deserialize, Serialize};

use crate::{
    limits::UNDO_BYTES,
    transcript::{Event, Journal, JournalError},
};

/// A change to a file with its contents before and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// As shown to people; for a move, the new place.
    pub file: String,
    /// The old place of a file that was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it held before; for a move, what the moved file held.
    pub before: Content,
    /// What it held after.
    pub after: Content,
    /// Whether a move took the place of another file, whose content is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
}

/// What a file held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// There was no file.
    Absent,
    /// These bytes.
    Kept(ArtifactId),
    /// Bytes that were not kept: too many, or not known.
    Lost,
}

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// It may be changing files at this moment.
    #[error("a run is going on: stop it first")]
    Busy,
    /// There is nothing.
    #[error("the last run changed no files, apart from what its shell commands may have done")]
    Nothing,
    /// Too large, or replaced by a move.
    #[error("nothing was undone: what these files held before was not kept: {}", .0.join(", "))]
    Lost(Vec<String>),
    /// Somebody else has changed them since.
    #[error("nothing was undone: these files have been changed since the run: {}", .0.join(", "))]
    Changed(Vec<String>),
    /// A path that was inside the working directory no longer is.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The files could not be changed.
    #[error(transparent)]
    Files(#[from] ChangeError),
    /// The contents could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files are as before, and that could not be recorded.
    #[error("the files were put back, but that could not be recorded: {0}")]
    Journal(#[from] JournalError),
}

/// Keeps what the commits of a conversation change.
pub(crate) struct Keeper {
    pub(crate) journal: Arc<Journal>,
}

#[async_trait]
impl ChangeObserver for Keeper {
    async fn before(&self, _: &[Planned]) {}

    async fn after(&self, committed: &[Planned]) -> Option<Note> {
        let Err(error) = self.keep(committed).await else { return None };
        tracing::error!(%error, "a change was not kept for undoing");
        Some(Note {
            text: Some(format!("The change was made, but it could not be kept for undoing: {error}")),
            ..Note::default()
        })
    }
}

impl Keeper {
    async fn keep(&self, committed: &[Planned]) -> Result<(), JournalError> {
        let mut files = Vec::with_capacity(committed.len());
        for planned in committed {
            files.push(FileRecord {
                file: planned.file.shown.clone(),
                from: planned.from.as_ref().map(|from| from.shown.clone()),
                before: self.content(planned.before.as_ref()).await?,
                // A file that is only moved keeps its content.
                after: self
                    .content(
                        planned.after.as_ref().or(planned.before.as_ref().filter(|_| planned.from.is_some())),
                    )
                    .await?,
                replaced: planned.from.is_some() && planned.file.state != PathState::Missing,
            });
        }
        // Not waited for until it is on the disk: what a power cut takes is the end of the record, the call's outcome included.
        self.journal.append_soon(vec![Event::FilesChanged { files }]).await
    }

    async fn content(&self, bytes: Option<&Arc<[u8]>>) -> Result<Content, StoreError> {
        Ok(match bytes {
            None => Content::Absent,
            Some(bytes) if bytes.len() > UNDO_BYTES => Content::Lost,
            Some(bytes) => {
                let artifact = Artifact { mime: MIME.to_owned(), data: bytes.to_vec() };
                Content::Kept(self.journal.store().put_artifact(artifact).await?)
            }
        })
    }
}

const MIME: &str = "application/octet-stream";

/// Puts back what `changed` says, through `changes`; returns the files.
pub(crate) async fn undo(
    changed: &[FileRecord],
    changes: &Changes,
    store: &dyn Store,
) -> Result<Vec<String>, UndoError> {
    let net = net(changed);
    if net.is_empty() {
        return Err(UndoError::Nothing);
    }
    let lost = |content: &Content| *content == Content::Lost;
    let not_kept: Vec<String> = net
        .iter()
        .filter(|(_, (before, after))| lost(before) || lost(after))
        .map(|(file, _)| file.clone())
        .collect();
    if !not_kept.is_empty() {
        return Err(UndoError::Lost(not_kept));
    }
    let (mut set, mut stale) = (ChangeSet::default(), Vec::new());
    for (file, (before, after)) in &net {
        let path = changes.workdir().resolve(file, Access::Write)?;
        // An error says that it is not a regular file any more.
        let Ok(at) = changes.capture(&path).await else {
            stale.push(file.clone());
            continue;
        };
        if at.before.bytes().map(AsRef::as_ref) != bytes(after, store).await?.as_deref() {
            stale.push(file.clone());
            continue;
        }
        set.changes.push(match bytes(before, store).await? {
            Some(after) => Change::Write { at, after },
            None => Change::Delete { at },
        });
    }
    if !stale.is_empty() {
        return Err(UndoError::Changed(stale));
    }
    changes.commit(set, "undo").await.map_err(|error| match error {
        ChangeError::Stale { files } => UndoError::Changed(files.into_iter().map(|(file, _)| file).collect()),
        error => UndoError::Files(error),
    })?;
    Ok(net.into_keys().collect())
}

async fn bytes(content: &Content, store: &dyn Store) -> Result<Option<Vec<u8>>, StoreError> {
    match content {
        Content::Kept(id) => Ok(Some(store.artifact(id).await?.data)),
        Content::Absent | Content::Lost => Ok(None),
    }
}

/// For each file what it held at first and at last, without those that are as they were.
fn net(changed: &[FileRecord]) -> BTreeMap<String, (Content, Content)> {
    let mut net: BTreeMap<String, (Content, Content)> = BTreeMap::new();
    let mut note = |file: &str, before: &Content, after: &Content| {
        net.entry(file.to_owned())
            .and_modify(|(_, last)| last.clone_from(after))
            .or_insert_with(|| (before.clone(), after.clone()));
    };
    for FileRecord { file, from, before, after, replaced } in changed {
        match from {
            Some(from) => {
                note(from, before, &Content::Absent);
                note(file, if *replaced { &Content::Lost } else { &Content::Absent }, after);
            }
            None => note(file, before, after),
        }
    }
    net.retain(|_, (before, after)| before != after || *before == Content::Lost);
    net
}
