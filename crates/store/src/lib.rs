//! The durable record of conversations.
//!
//! A conversation is an append-only sequence of events; everything that is shown is a fold over it. Pictures and long
//! outputs are artifacts beside the events. Whoever writes a conversation holds its lease. The trait is shaped for one
//! machine (SQLite, [`SqliteStore`]) and for a fleet (SPEC H8) alike: append with the expected sequence, read from a sequence,
//! follow, artifacts, leases. The store does not look into events: their types belong to the `agent` crate.

#![deny(missing_docs)]

mod limits;
mod sqlite;

use std::{fmt, path::Path, pin::Pin, sync::Arc};

use async_trait::async_trait;
use futures::Stream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use sqlite::SqliteStore;

/// Names a conversation: a UUID version 7 in text, so that names sort by age.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConversationId(pub String);

impl ConversationId {
    /// A fresh name.
    pub fn new() -> Self {
        ConversationId(uuid::Uuid::now_v7().to_string())
    }
}

impl Default for ConversationId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Position of an event in its conversation: 1 for the first; 0 means "before everything".
pub type Sequence = u64;

/// An event to be appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewEvent {
    /// What kind of event; the writer's word.
    pub kind: String,
    /// Its fields.
    pub data: Value,
    /// When it happened, in milliseconds since 1970 (UTC); the writer's clock.
    pub at_ms: i64,
}

/// An event as it was stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    /// Its place.
    pub sequence: Sequence,
    /// The event.
    #[serde(flatten)]
    pub event: NewEvent,
}

/// What is known of a conversation without reading it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationRecord {
    /// Its name.
    pub id: ConversationId,
    /// The space in which people see it.
    pub space: String,
    /// The directory it works in, as an absolute path in text.
    pub directory: String,
    /// The conversation it is a worker or explorer of, or was forked from.
    pub parent: Option<ConversationId>,
    /// A line for lists; empty until somebody sets it.
    pub title: String,
    /// When it was created, in milliseconds since 1970 (UTC).
    pub created_at_ms: i64,
    /// When it was last appended to, in the same unit.
    pub updated_at_ms: i64,
    /// The last event's place; 0 when there is none.
    pub last_sequence: Sequence,
    /// Anything else that its creator wants to find again.
    pub extra: Map<String, Value>,
}

/// Names an artifact by the hash of its media type and bytes, so that the same picture is kept once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArtifactId(pub String);

/// A picture or a long output.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Media type.
    pub mime: String,
    /// The bytes.
    pub data: Vec<u8>,
}

/// The right to append to a conversation. Each taking of a lease has a higher revision than all before it, and an append
/// under an older one is refused: a node that was thought dead cannot write behind its successor's back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The conversation.
    pub conversation: ConversationId,
    /// Who holds it: the holder's own word, shown to whoever is refused.
    pub owner: String,
    /// Fences appends.
    pub revision: u64,
}

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else appended first.
    #[error("the conversation is at event {actual}, not {expected}: somebody else has written to it")]
    Conflict {
        /// What the caller thought.
        expected: Sequence,
        /// What is.
        actual: Sequence,
    },
    /// Somebody else holds the conversation.
    #[error("conversation {conversation} is in use by {owner}")]
    Held {
        /// Which.
        conversation: ConversationId,
        /// The holder's own word.
        owner: String,
    },
    /// The lease was given back, or somebody else took it after it had run out.
    #[error("the lease on conversation {0} is no longer ours")]
    LeaseLost(ConversationId),
    /// There is one of that name already.
    #[error("conversation {0} exists already")]
    Exists(ConversationId),
    /// The store was closed while its events were followed.
    #[error("the store was closed")]
    Closed,
    /// There is none of that name.
    #[error("no {what} `{name}`")]
    NotFound {
        /// Conversation, event or artifact.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The database was written by a newer Haft.
    #[error(
        "the database has format {found}, this Haft knows up to {known}: use the newer Haft that wrote it"
    )]
    TooNew {
        /// Its format.
        found: u32,
        /// The highest known.
        known: u32,
    },
    /// The machine did not do it: disk full, damaged file, no permission.
    #[error("the database at {path} failed: {message}")]
    Database {
        /// Where it is.
        path: String,
        /// What SQLite or the system said, and what to do about it where that is known.
        message: String,
    },
}

/// Result of store operations.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A conversation's events as they are appended, without gaps and without end.
pub type Follow = Pin<Box<dyn Stream<Item = Result<StoredEvent>> + Send>>;

/// Where conversations are kept. Every write but [`Store::append_soon`] is on the disk when it returns.
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates a conversation; `record.last_sequence` is 0.
    async fn create(&self, record: ConversationRecord) -> Result<()>;

    /// What is known of a conversation.
    async fn conversation(&self, id: &ConversationId) -> Result<ConversationRecord>;

    /// Conversations, the last used first; of one space if given; workers' and explorers' too.
    async fn conversations(&self, space: Option<&str>) -> Result<Vec<ConversationRecord>>;

    /// Changes the title.
    async fn set_title(&self, id: &ConversationId, title: &str) -> Result<()>;

    /// Appends events if the conversation stands at `expected` and the lease is the current one; returns where it stands then.
    /// All of the events or none. When the returned future is dropped before its end, the events may have been appended or not.
    ///
    /// A lease that has run out and that nobody else has taken since is still good: a machine that slept goes on.
    async fn append(&self, lease: &Lease, expected: Sequence, events: Vec<NewEvent>) -> Result<Sequence>;

    /// [`Store::append`] without waiting for the disk. The events outlive this process from the return on, and a power cut once any later
    /// write to the store has returned, or after a second. A power cut takes them from the end: never one before another.
    async fn append_soon(&self, lease: &Lease, expected: Sequence, events: Vec<NewEvent>)
    -> Result<Sequence>;

    /// Up to `limit` events after `after`.
    async fn read(&self, id: &ConversationId, after: Sequence, limit: usize) -> Result<Vec<StoredEvent>>;

    /// Creates the conversation `new` with the first `upto` events of `from` as its own (SPEC H7); its `last_sequence` becomes
    /// `upto`. Nobody's lease is needed: what has been appended never changes.
    async fn fork(&self, from: &ConversationId, upto: Sequence, new: ConversationRecord) -> Result<()>;

    /// All events after `after`, first those that are there, then those to come, whoever appends them. The stream ends only after an
    /// error; following again from the last event that came goes on where it stopped.
    async fn follow(&self, id: &ConversationId, after: Sequence) -> Result<Follow>;

    /// Keeps bytes; the same bytes of the same media type again get the same name.
    async fn put_artifact(&self, artifact: Artifact) -> Result<ArtifactId>;

    /// [`Store::put_artifact`] for what is in a file, which may be far larger than what one wants in memory. Nobody may write to the file
    /// afterwards: the artifact can be the same file under a second name. Answers the name and how many bytes there are.
    async fn put_file(&self, mime: &str, path: &Path) -> Result<(ArtifactId, u64)>;

    /// The bytes.
    async fn artifact(&self, id: &ArtifactId) -> Result<Artifact>;

    /// Takes the right to append, for `ttl` from now unless renewed. Refused with [`StoreError::Held`] while somebody alive has it,
    /// the same owner too: two runs of one process must not write the same conversation either.
    async fn acquire(&self, id: &ConversationId, owner: &str, ttl: std::time::Duration) -> Result<Lease>;

    /// Extends the lease to `ttl` from now.
    async fn renew(&self, lease: &Lease, ttl: std::time::Duration) -> Result<()>;

    /// Gives the right back. Giving back what was lost is not an error.
    async fn release(&self, lease: Lease) -> Result<()>;
}

/// A store, shared.
pub type SharedStore = Arc<dyn Store>;
