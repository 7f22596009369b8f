//! Those who watch a commit, and those who give up waiting for it.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![expect(unreachable_pub, reason = "the module is shared by several tests")]
#![allow(dead_code, reason = "not every test uses every helper")]

mod tree;

use std::{
    fs,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use haft_system::{ChangeObserver, ChangeSet, Note, Planned};
use pretty_assertions::assert_eq;
use serde_json::json;
use tree::*;

#[derive(Default)]
struct Watcher {
    seen: Mutex<Vec<String>>,
    note: Option<Note>,
    root: std::path::PathBuf,
}

impl Watcher {
    fn tell(&self, when: &str, planned: &[Planned]) {
        let text = |bytes: &Option<Arc<[u8]>>| {
            bytes.as_ref().map_or("-".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        for planned in planned {
            let on_disk = fs::read_to_string(&planned.file.real).unwrap_or("-".to_owned());
            let from = planned.from.as_ref().map_or(String::new(), |from| format!(" from {}", from.shown));
            self.seen.lock().unwrap().push(format!(
                "{when}: {}{from} {:?} {} -> {}, on disk {on_disk}",
                planned.file.shown,
                planned.kind,
                text(&planned.before),
                text(&planned.after),
            ));
        }
    }
}

#[async_trait]
impl ChangeObserver for Watcher {
    async fn before(&self, planned: &[Planned]) {
        self.tell("before", planned);
    }

    async fn after(&self, committed: &[Planned]) -> Option<Note> {
        self.tell("after", committed);
        self.note.clone()
    }
}

struct Faulty;

#[async_trait]
impl ChangeObserver for Faulty {
    async fn before(&self, _: &[Planned]) {}

    async fn after(&self, _: &[Planned]) -> Option<Note> {
        panic!("a bug in an observer");
    }
}

fn note(text: &str) -> Note {
    Note { text: Some(text.to_owned()), structured: json!({"verified": true}).as_object().unwrap().clone() }
}

#[tokio::test]
async fn observers_see_all_files_at_once_and_their_notes_come_back() {
    let place = Place::new();
    for name in ["a", "b", "c", "same"] {
        place.file(name, "old", 0o644);
    }
    let changes = place.changes();
    let first = Arc::new(Watcher { note: Some(note("first")), root: place.root(), ..Watcher::default() });
    let second = Arc::new(Watcher { note: Some(note("second")), ..Watcher::default() });
    let silent = Arc::new(Watcher::default());
    changes.observe(first.clone());
    changes.observe(silent);
    changes.observe(Arc::new(Faulty));
    changes.observe(second);
    let set = vec![
        write(&changes, "same", "old").await,
        write(&changes, "a", "new").await,
        delete(&changes, "b").await,
        rename(&changes, "c", "d", Some("moved")).await,
        write(&changes, "e", "created").await,
    ];
    let committed = commit(&changes, set).await.unwrap();
    assert_eq!(committed.notes, [note("first"), note("second")]);
    insta::assert_snapshot!(committed.warnings.join("\n"));
    let seen = std::mem::take(&mut *first.seen.lock().unwrap());
    assert_eq!(
        seen,
        [
            "before: a Modified old -> new, on disk old",
            "before: b Deleted old -> -, on disk old",
            "before: d from c Moved old -> moved, on disk -",
            "before: e Created - -> created, on disk -",
            "after: a Modified old -> new, on disk new",
            "after: b Deleted old -> -, on disk -",
            "after: d from c Moved old -> moved, on disk moved",
            "after: e Created - -> created, on disk created",
        ]
    );
    // Nothing to see where nothing changes, and no `after` for what was refused.
    commit(&changes, vec![write(&changes, "same", "old").await]).await.unwrap();
    assert_eq!(*first.seen.lock().unwrap(), [""; 0]);
    let set = vec![write(&changes, "a", "newer").await];
    fs::write(place.root().join("a"), "by somebody").unwrap();
    commit(&changes, set).await.unwrap_err();
    assert_eq!(*first.seen.lock().unwrap(), ["before: a Modified new -> newer, on disk by somebody"]);
}

/// Holds a commit before it begins until it is let go.
struct Gate {
    reached: tokio::sync::Notify,
    open: tokio::sync::Notify,
    done: tokio::sync::Notify,
}

#[async_trait]
impl ChangeObserver for Gate {
    async fn before(&self, _: &[Planned]) {
        self.reached.notify_one();
        self.open.notified().await;
    }

    async fn after(&self, _: &[Planned]) -> Option<Note> {
        self.done.notify_one();
        None
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_leave_half_a_commit() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.file(name, "old", 0o644);
    }
    let changes = place.changes();
    let gate = Arc::new(Gate {
        reached: tokio::sync::Notify::new(),
        open: tokio::sync::Notify::new(),
        done: tokio::sync::Notify::new(),
    });
    changes.observe(gate.clone());
    let set = vec![write(&changes, "a", "new").await, write(&changes, "b", "new").await];
    let task = {
        let changes = changes.clone();
        tokio::spawn(async move { changes.commit(ChangeSet { changes: set }, "a test").await })
    };
    gate.reached.notified().await;
    // One that has not had its turn yet does nothing at all once it is dropped.
    let waiting = {
        let set = vec![write(&changes, "c", "never").await];
        let changes = changes.clone();
        tokio::spawn(async move { changes.commit(ChangeSet { changes: set }, "a test").await })
    };
    tokio::task::yield_now().await;
    waiting.abort();
    task.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert!(task.await.unwrap_err().is_cancelled());
    gate.open.notify_one();
    gate.done.notified().await;
    assert_eq!(
        place.tree(),
        [("a", "new"), ("b", "new")].map(|(name, text)| (name.to_owned(), plain(text))).into()
    );
    // The turn was given back.
    let last = vec![write(&changes, "a", "newer").await];
    gate.open.notify_one();
    commit(&changes, last).await.unwrap();
}
