//! Changes that others make to the files of a root: a shell, git, an editor (SPEC L5). The kernel queues them as they happen, and they are
//! taken from its queue right before a server is asked something, so an answer can never be older than the disk.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use ignore::gitignore::Gitignore;
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

use crate::{
    limits::{RESCANNED_FILES, WATCHED_DIRECTORIES},
    servers::is_foreign,
};

/// What happened to a file, by the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskChange {
    Created = 1,
    Changed = 2,
    Deleted = 3,
}

/// What has happened since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskChanges {
    /// Every file once, with the last thing that happened to it.
    pub(crate) files: BTreeMap<PathBuf, DiskChange>,
    /// The kernel lost events; `files` then has everything that may have changed.
    pub(crate) lost: bool,
}

/// A watch over the directories of a root, ignored ones left out.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    queue: OwnedFd,
    root: PathBuf,
    ignored: Gitignore,
    directories: HashMap<i32, PathBuf>,
    /// There are more directories than are watched.
    pub(crate) partial: bool,
}

impl DiskWatch {
    /// Starts to watch. Blocks while it walks the tree.
    pub(crate) fn start(root: &Path) -> std::io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let (ignored, _) = Gitignore::new(root.join(".gitignore"));
        let mut watch =
            DiskWatch { queue, root: root.to_owned(), ignored, directories: HashMap::new(), partial: false };
        for directory in watch.walk(root, true) {
            watch.add(directory);
        }
        Ok(watch)
    }

    /// Takes what has happened from the kernel's queue. Waits for nothing.
    pub(crate) fn take(&mut self) -> DiskChanges {
        let mut changes = DiskChanges::default();
        let mut created = Vec::new();
        {
            let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
            let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::INTR) => continue,
                    Err(_) => break,
                };
                let flags = event.events();
                if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                    changes.lost = true;
                    continue;
                }
                if flags.contains(ReadFlags::IGNORED) {
                    self.directories.remove(&event.wd());
                    continue;
                }
                let Some(directory) = self.directories.get(&event.wd()) else { continue };
                let Some(name) = event.file_name() else { continue };
                let path = directory.join(OsStr::from_bytes(name.to_bytes()));
                if flags.contains(ReadFlags::ISDIR) {
                    if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                        created.push(path);
                    }
                    continue;
                }
                let change = if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
                    DiskChange::Deleted
                } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    DiskChange::Created
                } else {
                    DiskChange::Changed
                };
                let before = changes.files.get(&path).copied();
                let change = match (before, change) {
                    // Created and then filled is one creation.
                    (Some(DiskChange::Created), DiskChange::Changed) => DiskChange::Created,
                    (Some(DiskChange::Deleted), DiskChange::Created) => DiskChange::Changed,
                    (_, change) => change,
                };
                changes.files.insert(path, change);
            }
        }
        // What was put into a new directory before it was watched has made no event.
        for directory in created {
            for below in self.walk(&directory, true) {
                self.add(below);
            }
            for file in self.walk(&directory, false) {
                changes.files.entry(file).or_insert(DiskChange::Created);
            }
        }
        if changes.lost {
            for file in self.walk(&self.root.clone(), false) {
                changes.files.entry(file).or_insert(DiskChange::Changed);
            }
        }
        changes
    }

    fn add(&mut self, directory: PathBuf) {
        if self.directories.len() >= WATCHED_DIRECTORIES {
            self.partial = true;
            return;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.queue, &directory, flags) {
            Ok(number) => drop(self.directories.insert(number, directory)),
            // It may be gone again; anything else means that it is not watched.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(_) => self.partial = true,
        }
    }

    /// The directories, or the files, at and below a directory, in bounds.
    fn walk(&self, from: &Path, directories: bool) -> Vec<PathBuf> {
        if self.is_ignored(from) {
            return Vec::new();
        }
        let walk = ignore::WalkBuilder::new(from)
            .hidden(true)
            .require_git(false)
            .filter_entry(|entry| {
                !(entry.file_type().is_some_and(|kind| kind.is_dir())
                    && is_foreign(entry.file_name().to_str()))
            })
            .build();
        let most = if directories { WATCHED_DIRECTORIES + 1 } else { RESCANNED_FILES };
        walk.flatten()
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir() == directories))
            .map(ignore::DirEntry::into_path)
            .take(most)
            .collect()
    }

    fn is_ignored(&self, directory: &Path) -> bool {
        if directory == self.root {
            return false;
        }
        let name = directory.file_name().and_then(OsStr::to_str);
        is_foreign(name)
            || name.is_some_and(|name| name.starts_with('.'))
            || self.ignored.matched_path_or_any_parents(directory, true).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::fs;

    #[test]
    fn what_others_do_is_seen_without_waiting() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::write(root.join(".gitignore"), "out/\n").unwrap();
        fs::write(root.join("old"), "1").unwrap();
        fs::write(root.join("gone"), "1").unwrap();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::create_dir_all(root.join("out")).unwrap();
        let mut watch = DiskWatch::start(&root).unwrap();
        assert_eq!(watch.take(), DiskChanges::default());

        fs::write(root.join("old"), "2").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        fs::write(root.join("src/deep/new"), "").unwrap();
        fs::rename(root.join("src/deep/new"), root.join("src/moved")).unwrap();
        fs::write(root.join("out/product"), "").unwrap();
        // A whole tree that appears before anybody could watch it.
        fs::create_dir_all(root.join("fresh/below")).unwrap();
        fs::write(root.join("fresh/below/file"), "").unwrap();
        fs::create_dir_all(root.join("node_modules/x")).unwrap();
        fs::write(root.join("node_modules/x/index.js"), "").unwrap();

        let files: Vec<(String, DiskChange)> = watch
            .take()
            .files
            .into_iter()
            .map(|(path, change)| (path.strip_prefix(&root).unwrap().display().to_string(), change))
            .collect();
        let expected = [
            ("fresh/below/file", DiskChange::Created),
            ("gone", DiskChange::Deleted),
            ("old", DiskChange::Changed),
            ("src/deep/new", DiskChange::Deleted),
            ("src/moved", DiskChange::Created),
        ];
        assert_eq!(files, expected.map(|(path, change)| (path.to_owned(), change)));

        fs::write(root.join("fresh/below/file"), "2").unwrap();
        let again: Vec<DiskChange> = watch.take().files.into_values().collect();
        assert_eq!(again, [DiskChange::Changed]);
    }
}
