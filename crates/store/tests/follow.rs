//! Following: every event once, in order, whoever appends it and whenever.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{event, open, record, stored};
use futures::{FutureExt, StreamExt};
use haft_store::{Follow, Lease, SqliteStore, Store, StoreError, StoredEvent};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(15);

async fn take(follow: Follow, count: usize) -> Vec<StoredEvent> {
    let taken = follow.take(count).map(Result::unwrap).collect();
    tokio::time::timeout(Duration::from_mins(1), taken).await.unwrap()
}

async fn begin(store: &SqliteStore) -> Lease {
    store.create(record("a")).await.unwrap();
    store.acquire(&record("a").id, "me", TTL).await.unwrap()
}

#[tokio::test]
async fn a_follower_that_has_seen_everything_waits_for_more() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let lease = begin(&store).await;
    store.append(&lease, 0, vec![event(1)]).await.unwrap();
    let mut follow = store.follow(&lease.conversation, 1).await.unwrap();
    assert!(follow.next().now_or_never().is_none());
    store.append(&lease, 1, vec![event(2), event(3)]).await.unwrap();
    assert_eq!(take(follow, 2).await, stored(2..=3));
}

#[tokio::test]
async fn many_pages_come_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let lease = begin(&store).await;
    store.append(&lease, 0, (1..=1_000).map(event).collect()).await.unwrap();
    let follow = store.follow(&lease.conversation, 0).await.unwrap();
    assert_eq!(take(follow, 1_000).await, stored(1..=1_000));
}

#[tokio::test]
async fn followers_get_their_own_conversations_events_only() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let lease = begin(&store).await;
    store.create(record("b")).await.unwrap();
    let other = store.follow(&record("b").id, 0).await.unwrap();
    store.append(&lease, 0, vec![event(7), event(8)]).await.unwrap();
    let lease = store.acquire(&record("b").id, "me", TTL).await.unwrap();
    store.append(&lease, 0, vec![event(1)]).await.unwrap();
    assert_eq!(take(other, 1).await, stored(1..=1));
}

#[tokio::test]
async fn a_follower_outlives_its_store_by_one_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("haft.db"));
    let lease = begin(&store).await;
    let mut follow = store.follow(&lease.conversation, 0).await.unwrap();
    drop(store);
    assert!(matches!(follow.next().await, Some(Err(StoreError::Closed))));
    assert!(follow.next().await.is_none());
}

#[tokio::test]
async fn what_another_store_appends_is_seen_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let (here, there) = (open(&path), open(&path));
    let lease = begin(&there).await;
    let mut follow = here.follow(&lease.conversation, 0).await.unwrap();
    for last in 0..3 {
        assert!(follow.next().now_or_never().is_none());
        there.append(&lease, last, vec![event(last + 1)]).await.unwrap();
        let next = tokio::time::timeout(Duration::from_mins(1), follow.next()).await.unwrap();
        assert_eq!(next.unwrap().unwrap(), stored(last + 1..=last + 1)[0]);
    }
}

#[test]
fn following_goes_on_working_after_the_runtime_that_polled_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("haft.db");
    let (here, there) = (open(&path), open(&path));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lease = runtime().block_on(async {
        let lease = begin(&there).await;
        drop(here.follow(&lease.conversation, 0).await.unwrap());
        lease
    });
    let events = runtime().block_on(async {
        let follow = here.follow(&lease.conversation, 0).await.unwrap();
        let append = async {
            there.append(&lease, 0, vec![event(1)]).await.unwrap();
        };
        futures::join!(take(follow, 1), append).0
    });
    assert_eq!(events, stored(1..=1));
}

/// How the events are cut into appends, through which of two open stores each goes, and where followers begin.
fn story() -> impl Strategy<Value = (Vec<(u64, bool)>, Vec<u64>)> {
    (proptest::collection::vec((1_u64..40, any::<bool>()), 1..30), proptest::collection::vec(0_u64..60, 1..5))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_gap_and_no_duplicate_while_two_stores_append((appends, starts) in story()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("haft.db");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let total: u64 = appends.iter().map(|(count, _)| count).sum();
        let starts: Vec<u64> = starts.into_iter().filter(|start| *start < total).collect();
        let followed = runtime.block_on(async {
            let here = Arc::new(open(&path));
            let lease = begin(&here).await;
            let followers: Vec<_> = starts
                .iter()
                .map(|start| {
                    let (here, id, start) = (here.clone(), lease.conversation.clone(), *start);
                    tokio::spawn(async move { take(here.follow(&id, start).await.unwrap(), (total - start) as usize).await })
                })
                .collect();
            let there = open(&path);
            let mut last = 0;
            for (count, elsewhere) in appends {
                let store = if elsewhere { &there } else { &*here };
                last = store.append(&lease, last, (last + 1..=last + count).map(event).collect()).await.unwrap();
            }
            futures::future::join_all(followers).await.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        });
        for (start, events) in starts.iter().zip(followed) {
            prop_assert_eq!(events, stored(start + 1..=total));
        }
    }
}
