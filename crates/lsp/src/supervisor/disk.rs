//! Changes that others make to the files of a root: a shell, git, an editor (SPEC L5). The kernel queues them as they happen, and they are
//! taken from its queue right before a server is asked something, so an answer can never be older than the disk.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use haft_system::changes::is_temporary;
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

use crate::{
    limits::{KNOWN_FILES, WATCHED_DIRECTORIES},
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

impl DiskChanges {
    fn note(&mut self, path: PathBuf, change: DiskChange) {
        let change = match (self.files.get(&path), change) {
            // It was never there, as far as anybody could see. pyright looks at everything anew for a file that comes (20 ms).
            (Some(DiskChange::Created), DiskChange::Deleted) => {
                self.files.remove(&path);
                return;
            }
            // Created and then filled is one creation.
            (Some(DiskChange::Created), DiskChange::Changed) => DiskChange::Created,
            (Some(DiskChange::Deleted), DiskChange::Created) => DiskChange::Changed,
            (_, change) => change,
        };
        self.files.insert(path, change);
    }
}

/// A watch over the directories of a root but hidden ones and those with other people's code. What git ignores is watched too: generated code that a project uses is in such places.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    queue: OwnedFd,
    root: PathBuf,
    directories: HashMap<i32, PathBuf>,
    /// The files that are there. Those of a directory that is moved away make no events of their own.
    files: BTreeSet<PathBuf>,
    /// There are more directories than are watched.
    pub(crate) partial: bool,
}

impl DiskWatch {
    /// Starts to watch all of `root`, what is at and below `first` before the rest, where not all can be watched. Blocks while it walks the tree.
    pub(crate) fn start(root: &Path, first: &Path) -> std::io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut watch = DiskWatch {
            queue,
            root: root.to_owned(),
            directories: HashMap::new(),
            files: BTreeSet::new(),
            partial: false,
        };
        // What git ignores comes last.
        for (place, ignored) in [(first, false), (root, false), (root, true)] {
            for (path, is_directory) in walk(place, ignored) {
                watch.find(path, is_directory);
            }
        }
        Ok(watch)
    }

    /// The files that are there, in their order.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter()
    }

    /// Takes what has happened from the kernel's queue. Waits for nothing.
    pub(crate) fn take(&mut self) -> DiskChanges {
        let mut changes = DiskChanges::default();
        let mut created = Vec::new();
        let mut gone = Vec::new();
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
                let name = OsStr::from_bytes(name.to_bytes());
                // Not part of the project, and about to be another file.
                if is_temporary(name) {
                    continue;
                }
                let path = directory.join(name);
                let leaves = flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
                let comes = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
                match (flags.contains(ReadFlags::ISDIR), leaves, comes) {
                    (true, true, _) => gone.push(path),
                    (true, false, true) => created.push(path),
                    (true, false, false) => {}
                    (false, true, _) => {
                        self.files.remove(&path);
                        changes.note(path, DiskChange::Deleted);
                    }
                    (false, false, comes) => {
                        // One that was moved over another is a change of that.
                        let comes = comes && !self.files.contains(&path);
                        if comes && self.files.len() < KNOWN_FILES {
                            self.files.insert(path.clone());
                        }
                        changes.note(path, if comes { DiskChange::Created } else { DiskChange::Changed });
                    }
                }
            }
        }
        for directory in gone {
            self.forget(&directory, &mut changes);
        }
        // What was put into a new directory before it was watched has made no event.
        let is_ours = |directory: &&PathBuf| {
            let name = directory.file_name().unwrap_or_default();
            !name.as_bytes().starts_with(b".") && !is_foreign(name.to_str())
        };
        for directory in created.iter().filter(is_ours) {
            for (path, is_directory) in walk(directory, true) {
                if !is_directory {
                    changes.note(path.clone(), DiskChange::Created);
                }
                self.find(path, is_directory);
            }
        }
        if changes.lost {
            let before = std::mem::take(&mut self.files);
            for (path, is_directory) in walk(&self.root.clone(), true) {
                if !is_directory {
                    changes.files.entry(path.clone()).or_insert(DiskChange::Changed);
                }
                self.find(path, is_directory);
            }
            for path in before.difference(&self.files).filter(|path| !path.exists()) {
                changes.files.insert(path.clone(), DiskChange::Deleted);
            }
        }
        changes
    }

    /// Notes something that is there.
    fn find(&mut self, path: PathBuf, is_directory: bool) {
        if is_directory {
            self.add(path);
        } else if self.files.len() < KNOWN_FILES {
            self.files.insert(path);
        }
    }

    /// Notes that a directory is not there any more, and all that was in it.
    fn forget(&mut self, directory: &Path, changes: &mut DiskChanges) {
        let below = self.files.range(directory.to_owned()..).take_while(|path| path.starts_with(directory));
        for path in below.cloned().collect::<Vec<_>>() {
            self.files.remove(&path);
            changes.note(path, DiskChange::Deleted);
        }
        // One that was moved is watched still, and what happens there is not what happens here.
        let queue = &self.queue;
        self.directories.retain(|number, path| {
            let stays = !path.starts_with(directory);
            if !stays {
                // It may be gone already.
                let _ = inotify::remove_watch(queue, *number);
            }
            stays
        });
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
}

/// The directories (`true`) and files at and below a directory, in bounds; with those that git ignores, or without.
fn walk(from: &Path, ignored: bool) -> impl Iterator<Item = (PathBuf, bool)> + use<> {
    let mut builder = ignore::WalkBuilder::new(from);
    builder.standard_filters(!ignored).hidden(true).require_git(false).filter_entry(|entry| {
        !(entry.file_type().is_some_and(|kind| kind.is_dir()) && is_foreign(entry.file_name().to_str()))
    });
    let entries = builder.build().flatten();
    entries
        .filter_map(|entry| {
            let kind = entry.file_type()?;
            (kind.is_dir() || kind.is_file()).then(|| (entry.into_path(), kind.is_dir()))
        })
        .take(WATCHED_DIRECTORIES + KNOWN_FILES)
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
        let mut watch = DiskWatch::start(&root, &root).unwrap();
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
            ("out/product", DiskChange::Created),
            ("src/moved", DiskChange::Created),
        ];
        assert_eq!(files, expected.map(|(path, change)| (path.to_owned(), change)));

        fs::write(root.join("fresh/below/file"), "2").unwrap();
        let again: Vec<DiskChange> = watch.take().files.into_values().collect();
        assert_eq!(again, [DiskChange::Changed]);
    }

    #[test]
    fn a_directory_that_is_moved_takes_its_files_along() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let root = base.join("root");
        fs::create_dir_all(root.join("a/deep")).unwrap();
        fs::create_dir_all(root.join("ab")).unwrap();
        for file in ["a/one", "a/deep/two", "ab/three"] {
            fs::write(root.join(file), "").unwrap();
        }
        let mut watch = DiskWatch::start(&root, &root).unwrap();
        let mut taken = || -> Vec<(String, DiskChange)> {
            let shown = |path: PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            watch.take().files.into_iter().map(|(path, change)| (shown(path), change)).collect()
        };
        let told = |list: &[(&str, DiskChange)]| -> Vec<(String, DiskChange)> {
            list.iter().map(|(path, change)| ((*path).to_owned(), *change)).collect()
        };
        fs::rename(root.join("a"), root.join("b")).unwrap();
        let (gone, there) = (DiskChange::Deleted, DiskChange::Created);
        let moved = [("a/deep/two", gone), ("a/one", gone), ("b/deep/two", there), ("b/one", there)];
        assert_eq!(taken(), told(&moved));
        fs::write(root.join("b/deep/two"), "2").unwrap();
        assert_eq!(taken(), told(&[("b/deep/two", DiskChange::Changed)]));
        // Away, where nothing of it is ours.
        fs::rename(root.join("b"), base.join("elsewhere")).unwrap();
        assert_eq!(taken(), told(&[("b/deep/two", gone), ("b/one", gone)]));
        fs::write(base.join("elsewhere/one"), "2").unwrap();
        assert_eq!(taken(), told(&[]));
        // And back under the name that it had first.
        fs::rename(base.join("elsewhere"), root.join("a")).unwrap();
        assert_eq!(taken(), told(&[("a/deep/two", there), ("a/one", there)]));
        fs::remove_dir_all(root.join("a")).unwrap();
        assert_eq!(taken(), told(&[("a/deep/two", gone), ("a/one", gone)]));
    }
}
