//! What the store promises to one process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use common::{all, event, open, record, stored};
use haft_store::{
    Artifact, ArtifactId, ConversationId, ConversationRecord, Lease, NewEvent, SqliteStore, Store, StoreError,
};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const TTL: Duration = Duration::from_secs(15);

fn said<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test]
async fn a_conversation_comes_back_as_it_was_created_and_appended_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let created = ConversationRecord {
        parent: Some(ConversationId("parent".to_owned())),
        title: "Größe".to_owned(),
        extra: Map::from_iter([("z".to_owned(), json!([1, {"a": null}])), ("a".to_owned(), json!("x"))]),
        ..record("a")
    };
    {
        let store = open(&path);
        store.create(created.clone()).await.unwrap();
        assert_eq!(store.conversation(&created.id).await.unwrap(), created);
        let lease = store.acquire(&created.id, "me", TTL).await.unwrap();
        assert_eq!(store.append(&lease, 0, vec![event(1), event(2)]).await.unwrap(), 2);
        assert_eq!(store.append(&lease, 2, vec![]).await.unwrap(), 2);
        assert_eq!(store.append(&lease, 2, vec![event(3)]).await.unwrap(), 3);
        store.set_title(&created.id, "Renamed").await.unwrap();
    }
    let store = open(&path);
    let now = ConversationRecord {
        title: "Renamed".to_owned(),
        last_sequence: 3,
        updated_at_ms: common::frozen(),
        ..created.clone()
    };
    assert_eq!(store.conversation(&created.id).await.unwrap(), now);
    assert_eq!(all(&store, &created.id).await, stored(1..=3));
    assert_eq!(store.read(&created.id, 1, 1).await.unwrap(), stored(2..=2));
    assert_eq!(store.read(&created.id, u64::MAX, 9).await.unwrap(), []);
}

/// The database itself grows only when the log is brought into it, and the log is on the disk before that.
#[tokio::test]
async fn what_nobody_waits_for_reaches_the_disk_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = open(&path);
    let record = record("a");
    store.create(record.clone()).await.unwrap();
    let lease = store.acquire(&record.id, "me", TTL).await.unwrap();
    let bytes = || std::fs::metadata(&path).unwrap().len();
    let before = bytes();
    let long = NewEvent { data: json!("x".repeat(200_000)), ..event(1) };
    assert_eq!(store.append_soon(&lease, 0, vec![long]).await.unwrap(), 1);
    assert_eq!(store.append_soon(&lease, 1, vec![event(2)]).await.unwrap(), 2);
    assert_eq!(all(&store, &record.id).await.len(), 2);
    tokio::time::timeout(Duration::from_secs(30), async {
        while bytes() < before + 200_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("it is still in the log");
}

#[tokio::test]
async fn conversations_are_listed_last_used_first() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    for (id, space, used) in [("a", "home", 5), ("b", "work", 9), ("c", "home", 7), ("d", "home", 7)] {
        let record = ConversationRecord { space: space.to_owned(), updated_at_ms: used, ..record(id) };
        store.create(record).await.unwrap();
    }
    let ids =
        |records: Vec<ConversationRecord>| records.into_iter().map(|record| record.id.0).collect::<Vec<_>>();
    assert_eq!(ids(store.conversations(None).await.unwrap()), ["b", "d", "c", "a"]);
    assert_eq!(ids(store.conversations(Some("home")).await.unwrap()), ["d", "c", "a"]);
    assert_eq!(ids(store.conversations(Some("nowhere")).await.unwrap()), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_not_there_or_there_already_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    store.create(record("a")).await.unwrap();
    let nobody = ConversationId("nobody".to_owned());
    let lease = Lease { conversation: nobody.clone(), owner: "me".to_owned(), revision: 1 };
    assert_eq!(
        [
            said(store.create(record("a")).await),
            said(store.conversation(&nobody).await),
            said(store.set_title(&nobody, "x").await),
            said(store.read(&nobody, 0, 1).await),
            said(store.follow(&nobody, 0).await.map(drop)),
            said(store.acquire(&nobody, "me", TTL).await),
            said(store.renew(&lease, TTL).await),
            said(store.append(&lease, 0, vec![event(1)]).await),
            said(store.artifact(&ArtifactId("../../etc/passwd".to_owned())).await),
            said(store.fork(&nobody, 0, record("b")).await),
            said(store.fork(&record("a").id, 1, record("b")).await),
            said(store.fork(&record("a").id, 0, record("a")).await),
        ],
        [
            "conversation a exists already",
            "no conversation `nobody`",
            "no conversation `nobody`",
            "no conversation `nobody`",
            "no conversation `nobody`",
            "no conversation `nobody`",
            "no conversation `nobody`",
            "no conversation `nobody`",
            "no artifact `../../etc/passwd`",
            "no conversation `nobody`",
            "no event `1 of conversation a, which stands at 0`",
            "conversation a exists already",
        ]
    );
    store.release(lease).await.unwrap();
    assert_eq!(store.conversations(None).await.unwrap(), [record("a")]);
}

#[tokio::test]
async fn an_append_at_the_wrong_place_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let id = record("a").id;
    store.create(record("a")).await.unwrap();
    let lease = store.acquire(&id, "me", TTL).await.unwrap();
    store.append(&lease, 0, vec![event(1)]).await.unwrap();
    for expected in [0, 2, u64::MAX] {
        match store.append(&lease, expected, vec![event(9)]).await {
            Err(StoreError::Conflict { expected: said, actual: 1 }) => assert_eq!(said, expected),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(all(&store, &id).await, stored(1..=1));
}

#[tokio::test]
async fn a_lease_is_one_holders_until_it_is_given_back_runs_out_or_its_holder_dies() {
    static NOW: AtomicI64 = AtomicI64::new(0);
    fn clock() -> i64 {
        NOW.load(Ordering::SeqCst)
    }
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("haft.db"), clock)
        .unwrap()
        .with_liveness(|owner| !owner.starts_with("dead"));
    let id = record("a").id;
    store.create(record("a")).await.unwrap();

    let first = store.acquire(&id, "first", TTL).await.unwrap();
    assert_eq!(first, Lease { conversation: id.clone(), owner: "first".to_owned(), revision: 1 });
    for who in ["second", "first"] {
        assert_eq!(said(store.acquire(&id, who, TTL).await), "conversation a is in use by first");
    }

    // Renewing counts from now.
    NOW.store(10_000, Ordering::SeqCst);
    store.renew(&first, TTL).await.unwrap();
    NOW.store(24_999, Ordering::SeqCst);
    assert_eq!(said(store.acquire(&id, "second", TTL).await), "conversation a is in use by first");

    // It has run out, nobody took it: it is still good. Then somebody takes it.
    NOW.store(25_000, Ordering::SeqCst);
    assert_eq!(store.append(&first, 0, vec![event(1)]).await.unwrap(), 1);
    let second = store.acquire(&id, "second", TTL).await.unwrap();
    assert_eq!(second.revision, 2);
    let lost = "the lease on conversation a is no longer ours";
    assert_eq!(said(store.append(&first, 1, vec![event(2)]).await), lost);
    assert_eq!(said(store.renew(&first, TTL).await), lost);
    // Giving back what was lost takes nothing from its new holder.
    store.release(first).await.unwrap();
    assert_eq!(store.append(&second, 1, vec![event(2)]).await.unwrap(), 2);

    store.release(second.clone()).await.unwrap();
    assert_eq!(said(store.append(&second, 2, vec![event(3)]).await), lost);
    let third = store.acquire(&id, "dead third", TTL).await.unwrap();
    // The same word again is another holding, and ends the one before it.
    let again = store.acquire(&id, "dead third", TTL).await.unwrap();
    assert_eq!((third.revision, again.revision), (3, 4));
    assert_eq!(said(store.append(&third, 2, vec![event(3)]).await), lost);
    store.release(third).await.unwrap();
    assert_eq!(store.append(&again, 2, vec![event(3)]).await.unwrap(), 3);
    store.acquire(&id, "fourth", Duration::MAX).await.unwrap();
    assert_eq!(said(store.append(&again, 3, vec![event(4)]).await), lost);
    NOW.store(i64::MAX - 1, Ordering::SeqCst);
    assert_eq!(said(store.acquire(&id, "fifth", TTL).await), "conversation a is in use by fourth");
    assert_eq!(all(&store, &id).await, stored(1..=3));
}

#[tokio::test]
async fn a_fork_has_the_prefix_and_goes_its_own_way() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let (from, to) = (record("a").id, record("b").id);
    store.create(record("a")).await.unwrap();
    let lease = store.acquire(&from, "me", TTL).await.unwrap();
    store.append(&lease, 0, (1..=5).map(event).collect()).await.unwrap();

    let new = ConversationRecord { parent: Some(from.clone()), last_sequence: 77, ..record("b") };
    store.fork(&from, 3, new.clone()).await.unwrap();
    assert_eq!(store.conversation(&to).await.unwrap(), ConversationRecord { last_sequence: 3, ..new });
    assert_eq!(all(&store, &to).await, stored(1..=3));
    let other = store.acquire(&to, "me", TTL).await.unwrap();
    store.append(&other, 3, vec![event(40)]).await.unwrap();
    store.append(&lease, 5, vec![event(6)]).await.unwrap();
    assert_eq!(all(&store, &from).await, stored(1..=6));
    assert_eq!(all(&store, &to).await.last().unwrap().event, event(40));
}

#[tokio::test]
async fn artifacts_small_and_large_come_back_and_are_kept_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = open(&path);
    let small = Artifact { mime: "image/png".to_owned(), data: vec![7; 100] };
    let edge = Artifact { mime: "text/plain".to_owned(), data: vec![b'x'; 64 * 1024] };
    let large = Artifact { mime: "text/plain".to_owned(), data: vec![b'x'; 64 * 1024 + 1] };
    let typed = Artifact { mime: "image/jpeg".to_owned(), ..small.clone() };
    let empty = Artifact { mime: String::new(), data: Vec::new() };
    let mut ids = Vec::new();
    for artifact in [&small, &edge, &large, &typed, &empty] {
        let id = store.put_artifact(artifact.clone()).await.unwrap();
        assert_eq!(store.put_artifact(artifact.clone()).await.unwrap(), id);
        assert_eq!(&store.artifact(&id).await.unwrap(), artifact);
        ids.push(id);
    }
    let file = |id: &ArtifactId| directory.path().join("artifacts").join(&id.0[..2]).join(&id.0[2..]);
    assert_eq!(
        ids.iter().map(|id| file(id).exists()).collect::<Vec<_>>(),
        [false, false, true, false, false]
    );
    ids.sort_by(|a, b| a.0.cmp(&b.0));
    ids.dedup();
    assert_eq!(ids.len(), 5);
    assert_eq!(std::fs::read_dir(directory.path().join("artifacts/tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_becomes_the_artifact_that_its_bytes_are() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    for size in [0, 1000, 64 * 1024, 64 * 1024 + 1, 300_000] {
        let artifact =
            Artifact { mime: "text/plain".into(), data: (0..size).map(|n| n as u8).collect::<Vec<u8>>() };
        let from = directory.path().join("output.txt");
        let _ = std::fs::remove_file(&from);
        std::fs::write(&from, &artifact.data).unwrap();
        let (id, bytes) = store.put_file("text/plain", &from).await.unwrap();
        assert_eq!(bytes, size as u64);
        assert_eq!(store.put_file("text/plain", &from).await.unwrap(), (id.clone(), bytes));
        std::fs::remove_file(&from).unwrap();
        assert_eq!(store.artifact(&id).await.unwrap(), artifact);
        assert_eq!(store.put_artifact(artifact).await.unwrap(), id);
    }
    assert_eq!(std::fs::read_dir(directory.path().join("artifacts/tmp")).unwrap().count(), 0);
    // A damaged one is healed by the same bytes.
    let artifact = Artifact { mime: "text/plain".into(), data: vec![7; 100_000] };
    let id = store.put_artifact(artifact.clone()).await.unwrap();
    let file = directory.path().join("artifacts").join(&id.0[..2]).join(&id.0[2..]);
    std::fs::write(&file, vec![8; 100_000]).unwrap();
    let from = directory.path().join("output.txt");
    std::fs::write(&from, &artifact.data).unwrap();
    assert_eq!(store.put_file("text/plain", &from).await.unwrap(), (id.clone(), 100_000));
    assert_eq!(store.artifact(&id).await.unwrap(), artifact);
    assert!(
        said(store.put_file("text/plain", std::path::Path::new("/nowhere")).await)
            .contains("reading a file to be kept")
    );
}

#[tokio::test]
async fn a_damaged_artifact_is_refused_and_healed_by_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let large = Artifact { mime: "text/plain".to_owned(), data: vec![b'x'; 100_000] };
    let id = store.put_artifact(large.clone()).await.unwrap();
    let file = directory.path().join("artifacts").join(&id.0[..2]).join(&id.0[2..]);

    std::fs::write(&file, "other").unwrap();
    let error = said(store.artifact(&id).await);
    assert!(error.contains("its bytes do not match its name"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = said(store.artifact(&id).await);
    assert!(error.contains("The artifact's file cannot be read"), "{error}");

    assert_eq!(store.put_artifact(large.clone()).await.unwrap(), id);
    assert_eq!(store.artifact(&id).await.unwrap(), large);
}

#[tokio::test]
async fn temporary_files_of_an_old_crash_are_removed_and_young_ones_kept() {
    static NOW: AtomicI64 = AtomicI64::new(0);
    fn clock() -> i64 {
        NOW.load(Ordering::SeqCst)
    }
    let directory = tempfile::tempdir().unwrap();
    let waiting = directory.path().join("artifacts/tmp");
    std::fs::create_dir_all(&waiting).unwrap();
    let leave = |name: &str, at_secs: u64| {
        let file = std::fs::File::create(waiting.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(at_secs)).unwrap();
    };
    leave("old", 1_000);
    leave("young", 9_000);
    NOW.store(10_000_000, Ordering::SeqCst);
    let store = SqliteStore::open(directory.path().join("haft.db"), clock).unwrap();
    store.put_artifact(Artifact { mime: String::new(), data: vec![0; 70_000] }).await.unwrap();
    let left: Vec<_> = std::fs::read_dir(&waiting).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["young"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let garbage = directory.path().join("garbage.db");
    std::fs::write(&garbage, [b'#'; 5000]).unwrap();
    let error = said(SqliteStore::open(&garbage, common::frozen));
    assert!(error.contains("garbage.db") && error.contains("is damaged or is not a database"), "{error}");
    assert_eq!(std::fs::read(&garbage).unwrap(), [b'#'; 5000]);

    let error = said(SqliteStore::open(directory.path(), common::frozen));
    assert!(error.contains("Check that the file and its directory exist and can be written"), "{error}");

    let error = said(SqliteStore::open(garbage.join("below.db"), common::frozen));
    assert!(error.contains("creating its directory"), "{error}");
}

#[tokio::test]
async fn a_hole_in_the_events_is_an_error_and_not_a_shorter_story() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = open(&path);
    store.create(record("a")).await.unwrap();
    let lease = store.acquire(&record("a").id, "me", TTL).await.unwrap();
    store.append(&lease, 0, (1..=4).map(event).collect()).await.unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("DELETE FROM events WHERE sequence = 2", []).unwrap();
    let error = said(store.read(&lease.conversation, 0, 9).await);
    assert!(error.contains("Event 2 of conversation a is missing"), "{error}");
}

#[tokio::test]
async fn ten_thousand_events_of_many_writers_are_all_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(open(&directory.path().join("haft.db")));
    let writers = (0..20).map(|number| {
        let store = store.clone();
        async move {
            let id = ConversationId(format!("c{number}"));
            store.create(record(&id.0)).await.unwrap();
            let lease = store.acquire(&id, "me", TTL).await.unwrap();
            for first in (0..500).step_by(10) {
                store.append(&lease, first, (first + 1..=first + 10).map(event).collect()).await.unwrap();
            }
            all(&store, &id).await
        }
    });
    for events in futures::future::join_all(writers).await {
        assert_eq!(events, stored(1..=500));
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Byte for byte: what a model said is sent to it again after a restart, and a changed byte would cost the cached prefix.
    #[test]
    fn event_data_comes_back_byte_for_byte(data in proptest::collection::vec(json_value(), 1..6)) {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let text = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
        let back = runtime.block_on(async {
            let store = open(&directory.path().join("haft.db"));
            store.create(record("a")).await.unwrap();
            let lease = store.acquire(&record("a").id, "me", TTL).await.unwrap();
            let events = data.iter().map(|data| NewEvent { kind: "k".to_owned(), data: data.clone(), at_ms: 0 });
            store.append(&lease, 0, events.collect()).await.unwrap();
            all(&store, &lease.conversation).await.into_iter().map(|stored| stored.event.data).collect::<Vec<_>>()
        });
        prop_assert_eq!(text(&back), text(&data));
    }
}
