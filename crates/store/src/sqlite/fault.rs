//! What went wrong with the database, in words for the person running Haft.

use std::{io, path::Path};

use rusqlite::ErrorCode;

use crate::StoreError;

/// Why a piece of work on the database did not succeed: the store's own answer, or the machine's.
#[derive(Debug)]
pub(super) enum Fault {
    /// The work was refused for a reason that the caller has to know.
    Refused(StoreError),
    /// SQLite failed.
    Sqlite(rusqlite::Error),
    /// A file operation failed.
    Io(&'static str, io::Error),
    /// Anything else, in complete sentences.
    Other(String),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sqlite(error)
    }
}

impl Fault {
    /// The error for the caller; `path` is the database, or the file that was being worked on.
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Fault::Refused(error) => error,
            other => StoreError::Database { path: path.display().to_string(), message: other.words() },
        }
    }

    /// What happened, and what to do about it where that is known.
    pub(super) fn words(&self) -> String {
        match self {
            Fault::Refused(error) => error.to_string(),
            Fault::Sqlite(error) => explain_sqlite(error),
            Fault::Io(doing, error) => explain_io(doing, error),
            Fault::Other(words) => words.clone(),
        }
    }
}

fn explain_sqlite(error: &rusqlite::Error) -> String {
    let what_to_do = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            "The disk is full. Free some space and go on: what had been stored before is kept, this write is not stored."
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "Check that the file and its directory exist and can be written by this user."
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "The file is damaged or is not a database. Keep a copy, restore it from a backup, or move it (and the `-wal` and `-shm` \
             files beside it) away to start with an empty one; `sqlite3 FILE .recover` may get conversations back."
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "Another process has kept the database locked for seconds. Look for a stopped or hung Haft and end it."
        }
        Some(ErrorCode::SystemIoFailure) => {
            "The system could not read or write the disk. Check free space and the disk's health; what had been stored before is kept."
        }
        Some(ErrorCode::TooBig) => {
            "The piece is larger than a database row can be (1 GB); keep it as an artifact."
        }
        _ => return error.to_string(),
    };
    format!("{error}. {what_to_do}")
}

fn explain_io(doing: &str, error: &io::Error) -> String {
    let what_to_do = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "The disk is full. Free some space and go on."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Check that the directory can be written by this user."
        }
        _ => return format!("{doing}: {error}"),
    };
    format!("{doing}: {error}. {what_to_do}")
}
