//! Several processes, some of them killed. The other process is this test program again: [`child`] is what it does there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the other process is this test program, started anew")]

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use common::{all, event, frozen, open, record, stored};
use futures::StreamExt;
use haft_store::{NewEvent, SqliteStore, Store};
use pretty_assertions::assert_eq;
use serde_json::json;

const TTL: Duration = Duration::from_secs(15);

/// Appends batches of one to four events until it is killed or an append fails, and says after each how far it has got.
#[tokio::test]
#[ignore = "what the other process does; the tests here start it"]
async fn child() {
    let path = std::env::var_os("HAFT_STORE_TEST").unwrap();
    let stop: u64 = std::env::var("HAFT_STORE_TEST_STOP").unwrap().parse().unwrap();
    let store = open(Path::new(&path));
    let id = record("a").id;
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
    };
    let lease = store.acquire(&id, &format!("process {}", std::process::id()), TTL).await.unwrap();
    let mut last = store.conversation(&id).await.unwrap().last_sequence;
    say(format!("\nat {last}"));
    while last < stop {
        let size = last % 4 + 1;
        let batch = (1..=size).map(|place| NewEvent {
            data: json!({ "place": place, "size": size, "filler": "x".repeat(500) }),
            ..event(last)
        });
        match store.append(&lease, last, batch.collect()).await {
            Ok(now) => last = now,
            Err(error) => {
                say(format!("failed {error}"));
                return;
            }
        }
        say(format!("at {last}"));
    }
    // Until the one who started it ends it.
    say("done".to_owned());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn start(path: &Path, stop: u64, limit_blocks: Option<u32>) -> (Child, impl Iterator<Item = String>) {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit_blocks {
        None => Command::new(program),
        Some(blocks) => {
            // A file that may not grow fails a write as a full disk does, without needing one.
            let mut shell = Command::new("bash");
            shell
                .args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; exec \"$0\" \"${@:2}\""])
                .arg(program)
                .arg(blocks.to_string());
            shell
        }
    };
    let mut child = command
        .args(["--ignored", "--exact", "child", "--nocapture"])
        .env("HAFT_STORE_TEST", path)
        .env("HAFT_STORE_TEST_STOP", stop.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

fn at(line: &str) -> Option<u64> {
    line.strip_prefix("at ").map(|number| number.parse().unwrap())
}

/// Every batch whole, none missing, at least up to what was acknowledged.
async fn assert_whole(store: &SqliteStore, acknowledged: u64) -> u64 {
    let id = record("a").id;
    let events = all(store, &id).await;
    let last = events.len() as u64;
    assert!(last >= acknowledged, "{acknowledged} events were acknowledged, {last} are there");
    assert_eq!(store.conversation(&id).await.unwrap().last_sequence, last);
    let mut rest = events.as_slice();
    while let Some(first) = rest.first() {
        let size = first.event.data["size"].as_u64().unwrap() as usize;
        let places: Vec<u64> =
            rest[..size].iter().map(|event| event.event.data["place"].as_u64().unwrap()).collect();
        assert_eq!(places, (1..=size as u64).collect::<Vec<_>>());
        rest = &rest[size..];
    }
    last
}

#[tokio::test]
async fn a_writer_killed_in_mid_append_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    open(&path).create(record("a")).await.unwrap();
    let mut last = 0;
    for appends in [1, 2, 7, 20, 60, 200] {
        let (mut child, lines) = start(&path, u64::MAX, None);
        let acknowledged = lines.filter_map(|line| at(&line)).nth(appends).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        // The dead writer's lease has not run out, and does not stand in the way.
        let held = open(&path).acquire(&record("a").id, "me", TTL).await.unwrap_err().to_string();
        assert_eq!(held, format!("conversation a is in use by process {}", child.id()));
        let dead = format!("process {}", child.id());
        let store = SqliteStore::open(&path, frozen).unwrap().with_liveness(move |owner| owner != dead);
        assert!(acknowledged > last);
        last = assert_whole(&store, acknowledged).await;
        let lease = store.acquire(&record("a").id, "me", TTL).await.unwrap();
        store.release(lease).await.unwrap();
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_conversation_is_refused_and_may_follow() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = open(&path);
    let id = record("a").id;
    store.create(record("a")).await.unwrap();
    let follow = store.follow(&id, 0).await.unwrap();

    let (mut child, mut lines) = start(&path, 300, None);
    lines.find(|line| at(line).is_some()).unwrap();
    let refused = store.acquire(&id, "me", TTL).await.unwrap_err().to_string();
    assert_eq!(refused, format!("conversation a is in use by process {}", child.id()));
    let seen = follow.map(|event| event.unwrap().sequence).take(300).collect::<Vec<_>>();
    let seen = tokio::time::timeout(Duration::from_mins(1), seen).await.unwrap();
    assert_eq!(seen, (1..=300).collect::<Vec<_>>());

    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn a_holder_that_lost_its_lease_cannot_write_behind_its_successors_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let store = SqliteStore::open(&path, frozen).unwrap().with_liveness(|_| false);
    let id = record("a").id;
    store.create(record("a")).await.unwrap();
    let (mut child, mut lines) = start(&path, u64::MAX, None);
    lines.by_ref().find(|line| at(line).is_some_and(|last| last > 0)).unwrap();
    let lease = store.acquire(&id, "me", TTL).await.unwrap();
    let stood = store.conversation(&id).await.unwrap().last_sequence;
    let failed = lines.find(|line| line.starts_with("failed ")).unwrap();
    assert_eq!(failed, "failed the lease on conversation a is no longer ours");
    assert!(child.wait().unwrap().success());
    assert_eq!(store.append(&lease, stood, vec![event(stood + 1)]).await.unwrap(), stood + 1);
}

#[tokio::test]
async fn a_disk_that_takes_no_more_fails_the_append_and_keeps_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    open(&path).create(record("a")).await.unwrap();
    // 300 KiB: a few hundred events into the write-ahead log.
    let (mut child, lines) = start(&path, u64::MAX, Some(300));
    let lines: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success());
    let acknowledged = lines.iter().filter_map(|line| at(line)).next_back().unwrap();
    let failed: Vec<&String> = lines.iter().filter(|line| line.starts_with("failed ")).collect();
    let [failed] = failed.as_slice() else { panic!("{failed:?}") };
    assert!(
        failed.contains("haft.db failed: ") && failed.contains("what had been stored before is kept"),
        "{failed}"
    );

    assert!(acknowledged > 0);
    let store = SqliteStore::open(&path, frozen).unwrap().with_liveness(|_| false);
    let last = assert_whole(&store, acknowledged).await;
    let lease = store.acquire(&record("a").id, "me", TTL).await.unwrap();
    assert_eq!(store.append(&lease, last, vec![event(last + 1)]).await.unwrap(), last + 1);
    assert_eq!(store.read(&record("a").id, last, 9).await.unwrap(), stored(last + 1..=last + 1));
}
