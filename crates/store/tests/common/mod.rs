//! What the store's tests share.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;

use haft_store::{ConversationId, ConversationRecord, NewEvent, SqliteStore, Store, StoredEvent};
use serde_json::{Map, json};

pub(crate) fn frozen() -> i64 {
    1_000
}

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, frozen).unwrap()
}

pub(crate) fn record(id: &str) -> ConversationRecord {
    ConversationRecord {
        id: ConversationId(id.to_owned()),
        space: "home".to_owned(),
        directory: "/project".to_owned(),
        parent: None,
        title: String::new(),
        created_at_ms: 1,
        updated_at_ms: 1,
        last_sequence: 0,
        extra: Map::new(),
    }
}

pub(crate) fn event(number: u64) -> NewEvent {
    NewEvent { kind: "said".to_owned(), data: json!({ "number": number }), at_ms: number as i64 }
}

pub(crate) fn stored(sequences: std::ops::RangeInclusive<u64>) -> Vec<StoredEvent> {
    sequences.map(|sequence| StoredEvent { sequence, event: event(sequence) }).collect()
}

pub(crate) async fn all(store: &SqliteStore, id: &ConversationId) -> Vec<StoredEvent> {
    store.read(id, 0, usize::MAX).await.unwrap()
}
