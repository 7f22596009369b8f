//! Whether a file is as it was.

use std::{fs::Metadata, os::unix::fs::MetadataExt};

/// What tells in one system call that a file or a directory is probably as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of what was looked at.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// When it last changed, in milliseconds since 1970. No program can set this time.
    pub(crate) fn changed_ms(self) -> i64 {
        self.changed.0 * 1000 + self.changed.1 / 1_000_000
    }
}
