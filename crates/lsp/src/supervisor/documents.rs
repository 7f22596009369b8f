//! The copies of files that a server has open. Bounded: the ones used last stay.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_system::TextFile;

use crate::{
    limits::{DOCUMENT_BYTES, OPEN_DOCUMENTS},
    position::Lines,
    stamp::Stamp,
};

/// A file as a server has it open.
#[derive(Clone, Debug)]
pub struct Document {
    /// Absolute and canonical.
    pub path: PathBuf,
    /// What the server calls it; sent by us, and never compared.
    pub uri: Arc<str>,
    /// Counts the texts that this server was given, over all documents: no two texts have the same.
    pub version: i64,
    /// The text, without byte order mark, line ends as they are.
    pub lines: Lines,
    /// The version under which the server was first given this text, if it was given it again since.
    pub(crate) since: i64,
    /// [`super::Server::serial`] when this version was given.
    pub(crate) given_at: u64,
    /// Something that it may include has changed since it was opened.
    pub(super) outdated: bool,
    stamp: Option<Stamp>,
    used: u64,
}

/// Why a file cannot be opened in a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// There is none.
    #[error("it does not exist")]
    Missing,
    /// A directory or something else.
    #[error("it is not a regular file")]
    NotAFile,
    /// Larger than servers are given.
    #[error("it is larger than {} MiB, and such files are not given to language servers", DOCUMENT_BYTES >> 20)]
    TooLarge,
    /// Not text.
    #[error("it is no text: {0}")]
    NotText(String),
    /// The system said no.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// The open documents of one server.
#[derive(Debug, Default)]
pub(super) struct Documents {
    open: HashMap<PathBuf, Document>,
    versions: i64,
    clock: u64,
}

impl Documents {
    pub(super) fn get(&mut self, path: &Path) -> Option<&Document> {
        self.clock += 1;
        let document = self.open.get_mut(path)?;
        document.used = self.clock;
        Some(document)
    }

    pub(super) fn peek(&self, path: &Path) -> Option<&Document> {
        self.open.get(path)
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.open.keys().cloned().collect()
    }

    /// The number that the next text will have.
    pub(super) fn next_version(&self) -> i64 {
        self.versions + 1
    }

    /// Notes that the server was given a text under [`Documents::next_version`]. `changed`: as a change of the document that it had, which was not opened anew. `serial`: of the
    /// server, when it was given.
    pub(super) fn put(
        &mut self,
        path: &Path,
        uri: Arc<str>,
        lines: Lines,
        stamp: Option<Stamped>,
        (changed, serial): (bool, u64),
    ) -> Document {
        self.versions += 1;
        self.clock += 1;
        let before = self.open.get(path).filter(|_| changed);
        let same = before.filter(|open| open.lines.text() == lines.text());
        let document = Document {
            path: path.to_owned(),
            uri,
            version: self.versions,
            since: same.map_or(self.versions, |open| open.since),
            given_at: serial,
            outdated: before.is_some_and(|open| open.outdated),
            lines,
            stamp: stamp.map(|stamp| stamp.0),
            used: self.clock,
        };
        self.open.insert(path.to_owned(), document.clone());
        document
    }

    pub(super) fn remove(&mut self, path: &Path) -> Option<Document> {
        self.open.remove(path)
    }

    /// Notes that a file was looked at and has the text that is open.
    pub(super) fn seen(&mut self, path: &Path, stamp: Stamped) {
        if let Some(document) = self.open.get_mut(path) {
            document.stamp = Some(stamp.0);
        }
    }

    /// Notes that files have changed which documents may include, other than themselves; those documents.
    pub(super) fn outdate(&mut self, included: &[&PathBuf]) -> Vec<PathBuf> {
        let mut outdated = Vec::new();
        for (path, document) in &mut self.open {
            if included.iter().any(|included| *included != path) {
                document.outdated = true;
                outdated.push(path.clone());
            }
        }
        outdated
    }

    /// The documents that have to go, the longest unused first.
    pub(super) fn surplus(&self) -> Vec<PathBuf> {
        let count = self.open.len().saturating_sub(OPEN_DOCUMENTS);
        if count == 0 {
            return Vec::new();
        }
        let mut by_use: Vec<(&u64, &PathBuf)> =
            self.open.values().map(|document| (&document.used, &document.path)).collect();
        by_use.sort();
        by_use.into_iter().take(count).map(|(_, path)| path.clone()).collect()
    }

    /// The open documents whose files are not as they were when last looked at.
    pub(super) fn doubtful(&self) -> Vec<PathBuf> {
        let doubtful = self.open.values().filter(|document| {
            let now = document.path.symlink_metadata().ok().map(|metadata| Stamp::of(&metadata));
            now.is_none() || now != document.stamp
        });
        doubtful.map(|document| document.path.clone()).collect()
    }
}

/// An opaque stamp, so that only this module compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamped(Stamp);

/// Reads a file as text, with a stamp from before it was read.
pub(super) fn read(path: &Path) -> Result<(String, Stamped), DocumentError> {
    let metadata = path.metadata().map_err(|error| explain(&error))?;
    if !metadata.is_file() {
        return Err(DocumentError::NotAFile);
    }
    if metadata.len() > DOCUMENT_BYTES {
        return Err(DocumentError::TooLarge);
    }
    let bytes = std::fs::read(path).map_err(|error| explain(&error))?;
    let text = TextFile::parse(&bytes).map_err(|not| DocumentError::NotText(not.why))?.text;
    Ok((text, Stamped(Stamp::of(&metadata))))
}

fn explain(error: &io::Error) -> DocumentError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => DocumentError::Missing,
        _ => DocumentError::Unreadable(error.to_string()),
    }
}
