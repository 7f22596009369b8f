//! When a server was last told that something had changed. What it said before of a file is about the world before.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tokio::time::Instant;

/// Serials are those of [`super::Server::tick`].
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The file that changed last, `None` for some on the disk, and when.
    last: (Option<PathBuf>, u64),
    /// When another than that one changed last.
    other: u64,
    /// When others were last seen to have changed files.
    pub(super) foreign: u64,
    /// Up to when the server has looked at all of its root since.
    pub(super) diagnosed: u64,
    /// When files last came or went, and up to when the server has been made to look for such.
    pub(super) came_or_went: u64,
    pub(super) reloaded: u64,
    /// The same for work of its own that it does then.
    pub(super) rechecked: u64,
    /// When more files came than are opened in a server that takes in others only after a while.
    pub(super) flooded: Option<Instant>,
    /// Files that mark a root: when they changed last.
    pub(super) marked: BTreeMap<PathBuf, Instant>,
}

impl Told {
    /// Notes a change of the text of an open document, or (`None`) of files on the disk.
    pub(super) fn changed(&mut self, path: Option<&Path>, serial: u64) {
        if path.is_none() || self.last.0.as_deref() != path {
            self.other = self.last.1;
            self.last.0 = path.map(Path::to_owned);
        }
        self.last.1 = serial;
    }

    /// When anything changed last.
    pub(super) fn last(&self) -> u64 {
        self.last.1
    }

    /// When something else than this file changed last.
    pub(super) fn of_others(&self, path: &Path) -> u64 {
        if self.last.0.as_deref() == Some(path) { self.other } else { self.last.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn what_happens_to_a_file_itself_is_told_apart() {
        let (a, b) = (Path::new("/a"), Path::new("/b"));
        let mut told = Told::default();
        assert_eq!(told.of_others(a), 0);
        told.changed(Some(a), 3);
        told.changed(Some(a), 4);
        assert_eq!([told.of_others(a), told.of_others(b)], [0, 4]);
        told.changed(None, 5);
        assert_eq!([told.of_others(a), told.of_others(b)], [5, 5]);
        told.changed(Some(b), 6);
        told.changed(Some(b), 7);
        assert_eq!([told.of_others(a), told.of_others(b)], [7, 5]);
    }
}
