//! A small tree of files, and what it looks like.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use haft_system::{
    Captured, Change, ChangeError, ChangeSet, Changes, Committed, Recovery, Workdir, changes::StepHook,
};
use haft_tool::Access;

/// Everything below a directory, to compare whole trees.
pub type Tree = BTreeMap<String, Node>;

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Directory { mode: u32 },
    File { text: String, mode: u32, links: u64 },
    Symlink(PathBuf),
}

pub fn tree(root: &Path) -> Tree {
    fn walk(root: &Path, at: &Path, tree: &mut Tree) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let mode = metadata.permissions().mode() & 0o7777;
            if metadata.is_symlink() {
                tree.insert(name, Node::Symlink(path.read_link().unwrap()));
            } else if metadata.is_dir() {
                tree.insert(name, Node::Directory { mode });
                walk(root, &path, tree);
            } else {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                tree.insert(name, Node::File { text, mode, links: metadata.nlink() });
            }
        }
    }
    let mut result = Tree::new();
    walk(root, root, &mut result);
    result
}

/// A working directory and a journal beside it, gone at the end of the test.
pub struct Place {
    scratch: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Place { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir(place.root()).unwrap();
        place
    }

    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub fn root(&self) -> PathBuf {
        root_in(self.scratch.path())
    }

    pub fn journal(&self) -> PathBuf {
        journal_in(self.scratch.path())
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub fn tree(&self) -> Tree {
        tree(&self.root())
    }

    pub fn open(&self) -> (Changes, Vec<Recovery>) {
        Changes::open(self.workdir(), self.journal()).unwrap()
    }

    pub fn changes(&self) -> Changes {
        let (changes, recovered) = self.open();
        assert_eq!(recovered, []);
        changes
    }

    pub fn hooked(&self, hook: StepHook) -> Changes {
        Changes::open_with_hook(self.workdir(), self.journal(), hook).unwrap().0
    }

    pub fn workdir(&self) -> Workdir {
        Workdir::new(self.root()).unwrap()
    }

    /// What is left in the journal directory apart from its lock.
    pub fn journal_left(&self) -> Vec<String> {
        let names = fs::read_dir(self.journal()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "lock").collect()
    }
}

pub fn root_in(scratch: &Path) -> PathBuf {
    scratch.join("work")
}

pub fn journal_in(scratch: &Path) -> PathBuf {
    scratch.join("journal")
}

pub async fn capture(changes: &Changes, path: impl AsRef<Path>) -> Captured {
    let path = changes.workdir().resolve(path, Access::Write).unwrap();
    changes.capture(&path).await.unwrap()
}

pub async fn write(changes: &Changes, path: &str, after: &str) -> Change {
    Change::Write { at: capture(changes, path).await, after: after.into() }
}

pub async fn delete(changes: &Changes, path: &str) -> Change {
    Change::Delete { at: capture(changes, path).await }
}

pub async fn rename(changes: &Changes, from: &str, to: &str, after: Option<&str>) -> Change {
    Change::Move {
        from: capture(changes, from).await,
        to: capture(changes, to).await,
        after: after.map(|text| text.as_bytes().to_vec()),
    }
}

pub async fn commit(changes: &Changes, set: Vec<Change>) -> Result<Committed, ChangeError> {
    changes.commit(ChangeSet { changes: set }, "a test").await
}

/// Fails the step with this number, or also all that follow.
pub fn failing(at: usize, and_later: bool) -> StepHook {
    Arc::new(move |step, _| {
        if step == at || (and_later && step > at) {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
        }
        Ok(())
    })
}

/// Counts steps without disturbing them.
pub fn counting() -> (Arc<AtomicUsize>, StepHook) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let hook: StepHook = Arc::new(move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    (count, hook)
}

/// Does something once, before the first step of this name.
pub fn before_step(name: &'static str, act: impl Fn() + Send + Sync + 'static) -> StepHook {
    let done = AtomicUsize::new(0);
    Arc::new(move |_, step| {
        if step == name && done.fetch_add(1, Ordering::Relaxed) == 0 {
            act();
        }
        Ok(())
    })
}

pub fn plain(text: &str) -> Node {
    Node::File { text: text.to_owned(), mode: 0o644, links: 1 }
}

pub fn text_of(result: Result<Committed, ChangeError>) -> String {
    result.unwrap_err().to_string()
}
