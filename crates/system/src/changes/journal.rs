//! What is written down about a change while it is carried out, so that a later process can finish the job.
//!
//! Each change has a folder in the journal directory: `journal.json`, the old contents as `N.before`, and at the end the marker
//! `committed`. Whoever holds the lock on the file `lock` may commit; a folder that is there while one holds the lock belongs to a process that
//! died (or to a rollback that failed).

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    time::Instant,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::{
    ChangeError,
    disk::{Disk, Dress},
};
use crate::{
    limits::{LOCK_POLL, LOCK_WAIT},
    paths::plain,
};

pub(super) const DOCUMENT: &str = "journal.json";
pub(super) const COMMITTED: &str = "committed";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) version: u32,
    /// Part of the names of the temporary files.
    pub(super) id: String,
    /// The tool that asked.
    pub(super) by: String,
    pub(super) started_ms: i64,
    /// The working directory; a journal is only ever worked on for its own.
    pub(super) root: Name,
    pub(super) state: State,
    /// Directories that were made for it, outermost first.
    pub(super) directories: Vec<Name>,
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// New contents are being written beside their targets. If there is one entry only, it may also have been put into place, which is
    /// one atomic step.
    Staging,
    /// Everything is on the disk, and putting into place has perhaps begun.
    Prepared,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) path: Name,
    pub(super) shown: String,
    pub(super) before: Option<Content>,
    pub(super) after: Option<Content>,
    pub(super) dress: Option<Dress>,
    /// The file is written over instead of being replaced, so it may be found half written. `N.after` is kept then.
    pub(super) in_place: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) size: u64,
    pub(super) blake3: String,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Content { size: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }

    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && *self == Content::of(bytes)
    }
}

/// A path, readable where it is UTF-8, and never changed by the way through JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl Name {
    pub(super) fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Name::Text(text.to_owned()),
            None => Name::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            Name::Text(text) => PathBuf::from(text),
            Name::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes.clone())),
        }
    }
}

/// The right to commit. It ends with the process, whatever way that ends.
pub(super) struct Lock(#[expect(dead_code, reason = "closing it gives the lock back")] File);

pub(super) fn unusable(directory: &Path, error: &io::Error) -> ChangeError {
    ChangeError::Journal { directory: directory.display().to_string(), why: plain(error) }
}

/// The journal holds contents of files, so it is nobody else's to read.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

pub(super) fn lock(directory: &Path) -> Result<Lock, ChangeError> {
    let open = || {
        make_private(directory)?;
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(directory.join("lock"))
    };
    let file = open().map_err(|error| unusable(directory, &error))?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < LOCK_WAIT => {
                std::thread::sleep(LOCK_POLL);
            }
            Err(Errno::WOULDBLOCK) => return Err(ChangeError::Busy(LOCK_WAIT.as_secs())),
            Err(error) => return Err(unusable(directory, &error.into())),
        }
    }
}

/// Writes a file of the journal. With `durable`, it survives a loss of power once the folder is synced too.
pub(super) fn put(
    disk: &Disk,
    folder: &Path,
    name: impl AsRef<OsStr>,
    bytes: &[u8],
    durable: bool,
) -> io::Result<()> {
    disk.step("write journal")?;
    let temp = folder.join("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
    file.write_all(bytes)?;
    if durable {
        disk.sync(&file)?;
    }
    disk.step("rename journal")?;
    fs::rename(&temp, folder.join(name.as_ref()))
}

impl Journal {
    pub(super) fn save(&self, disk: &Disk, folder: &Path, durable: bool) -> io::Result<()> {
        put(disk, folder, DOCUMENT, &serde_json::to_vec(self)?, durable)
    }
}

/// Takes the marker back.
pub(super) fn unmark(disk: &Disk, folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder.join(COMMITTED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => {
            disk.step("remove marker")?;
            fs::remove_file(folder.join(COMMITTED))
        }
    }
}

/// Removes a change's folder. The document goes first, for without it the rest means nothing.
pub(super) fn discard(disk: &Disk, folder: &Path) -> io::Result<()> {
    disk.step("remove journal")?;
    match fs::remove_file(folder.join(DOCUMENT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    disk.step("remove journal folder")?;
    fs::remove_dir_all(folder)
}
