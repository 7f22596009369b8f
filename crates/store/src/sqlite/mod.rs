//! The store of one machine.

mod artifacts;
mod fault;
mod follow;
mod readers;
mod rows;
mod schema;
mod signals;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use self::{
    artifacts::Files,
    readers::Readers,
    signals::Signals,
    writer::{Durability, Writer},
};
use crate::{
    Artifact, ArtifactId, ConversationId, ConversationRecord, Follow, Lease, NewEvent, Result, Sequence,
    Store, StoreError, StoredEvent, limits,
};

/// Conversations in an SQLite file, with large artifacts in an `artifacts` directory beside it. Any number of processes of one
/// machine may have the file open; it must be on a local disk.
///
/// The file, and directories that are made for it, can be read by their owner only. Every write but [`Store::append_soon`] is on
/// the disk (`fsync`) when it returns. Methods need a tokio runtime.
pub struct SqliteStore {
    writer: Writer,
    readers: Readers,
    files: Arc<Files>,
    signals: Arc<Signals>,
    path: PathBuf,
    clock: fn() -> i64,
    is_alive: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, creating it and its directory where they are missing. Blocks for a few milliseconds at most, longer only while
    /// another process creates it or a newer Haft brings it up to date.
    ///
    /// `clock` gives milliseconds since 1970 (UTC) and decides when leases run out.
    pub fn open(path: impl AsRef<Path>, clock: fn() -> i64) -> Result<SqliteStore> {
        let path = path.as_ref().to_owned();
        let connection = schema::open_writer(&path).map_err(|fault| fault.at(&path))?;
        Ok(SqliteStore {
            writer: Writer::start(connection, path.clone())?,
            readers: Readers::new(path.clone()),
            files: Arc::new(Files::beside(&path)),
            signals: Arc::default(),
            path,
            clock,
            is_alive: Arc::new(|_| true),
        })
    }

    /// Lets a lease be taken over at once when its holder is dead, rather than when it has run out. `is_alive` gets the owner's word
    /// as it was given to [`Store::acquire`] and must answer quickly: true unless the holder is certainly gone.
    pub fn with_liveness(self, is_alive: impl Fn(&str) -> bool + Send + Sync + 'static) -> SqliteStore {
        SqliteStore { is_alive: Arc::new(is_alive), ..self }
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> std::result::Result<T, fault::Fault> + Send + 'static,
    ) -> Result<T> {
        self.writer.run(Durability::Disk, work, |_| ()).await
    }

    async fn add(
        &self,
        lease: &Lease,
        expected: Sequence,
        events: Vec<NewEvent>,
        durability: Durability,
    ) -> Result<Sequence> {
        let (lease, clock, signals) = (lease.clone(), self.clock, self.signals.clone());
        let id = lease.conversation.clone();
        self.writer
            .run(
                durability,
                move |connection| rows::append(connection, &lease, expected, &events, clock()),
                move |last| signals.appended(&id, *last),
            )
            .await
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, record: ConversationRecord) -> Result<()> {
        self.write(move |connection| rows::create(connection, &record)).await
    }

    async fn conversation(&self, id: &ConversationId) -> Result<ConversationRecord> {
        let id = id.clone();
        self.readers.run(move |connection| rows::conversation(connection, &id)).await
    }

    async fn conversations(&self, space: Option<&str>) -> Result<Vec<ConversationRecord>> {
        let space = space.map(str::to_owned);
        self.readers.run(move |connection| rows::conversations(connection, space.as_deref())).await
    }

    async fn set_title(&self, id: &ConversationId, title: &str) -> Result<()> {
        let (id, title) = (id.clone(), title.to_owned());
        self.write(move |connection| rows::set_title(connection, &id, &title)).await
    }

    async fn append(&self, lease: &Lease, expected: Sequence, events: Vec<NewEvent>) -> Result<Sequence> {
        self.add(lease, expected, events, Durability::Disk).await
    }

    async fn append_soon(
        &self,
        lease: &Lease,
        expected: Sequence,
        events: Vec<NewEvent>,
    ) -> Result<Sequence> {
        self.add(lease, expected, events, Durability::Process).await
    }

    async fn read(&self, id: &ConversationId, after: Sequence, limit: usize) -> Result<Vec<StoredEvent>> {
        let id = id.clone();
        self.readers.run(move |connection| rows::events(connection, &id, after, limit)).await
    }

    async fn fork(&self, from: &ConversationId, upto: Sequence, new: ConversationRecord) -> Result<()> {
        let from = from.clone();
        self.write(move |connection| rows::fork(connection, &from, upto, &new)).await
    }

    async fn follow(&self, id: &ConversationId, after: Sequence) -> Result<Follow> {
        let news = self.signals.subscribe(id, &self.path);
        self.conversation(id).await?;
        Ok(follow::stream(self.readers.clone(), id.clone(), after, news))
    }

    async fn put_artifact(&self, artifact: Artifact) -> Result<ArtifactId> {
        let (files, now_ms) = (self.files.clone(), (self.clock)());
        if artifact.data.len() <= limits::INLINE_ARTIFACT {
            return self
                .write(move |connection| {
                    let id = artifacts::name(&artifact);
                    artifacts::insert(
                        connection,
                        &id,
                        &artifact.mime,
                        artifact.data.len(),
                        Some(&artifact.data),
                    )?;
                    Ok(id)
                })
                .await;
        }
        let path = self.path.clone();
        let size = artifact.data.len();
        let kept = tokio::task::spawn_blocking(move || {
            let id = artifacts::name(&artifact);
            files.keep(&id, &artifact, now_ms).map(|()| (id, artifact.mime)).map_err(|fault| fault.at(&path))
        });
        let (id, mime) = kept.await.map_err(|error| StoreError::Database {
            path: self.path.display().to_string(),
            message: format!("An artifact was not written to its end: {error}."),
        })??;
        self.write(move |connection| {
            artifacts::insert(connection, &id, &mime, size, None)?;
            Ok(id)
        })
        .await
    }

    async fn put_file(&self, mime: &str, from: &Path) -> Result<(ArtifactId, u64)> {
        let (files, now_ms, path) = (self.files.clone(), (self.clock)(), self.path.clone());
        let (mime, from) = (mime.to_owned(), from.to_owned());
        let kept = tokio::task::spawn_blocking(move || {
            artifacts::keep_file(&files, mime, &from, now_ms).map_err(|fault| fault.at(&path))
        });
        let kept = kept.await.map_err(|error| StoreError::Database {
            path: self.path.display().to_string(),
            message: format!("An artifact was not written to its end: {error}."),
        })??;
        match kept {
            artifacts::Held::Small(artifact) => {
                let bytes = artifact.data.len() as u64;
                Ok((self.put_artifact(artifact).await?, bytes))
            }
            artifacts::Held::File { id, mime, bytes } => {
                self.write(move |connection| {
                    artifacts::insert(connection, &id, &mime, bytes as usize, None)?;
                    Ok((id, bytes))
                })
                .await
            }
        }
    }

    async fn artifact(&self, id: &ArtifactId) -> Result<Artifact> {
        let (id, files) = (id.clone(), self.files.clone());
        self.readers.run(move |connection| artifacts::read(connection, &files, &id)).await
    }

    async fn acquire(&self, id: &ConversationId, owner: &str, ttl: Duration) -> Result<Lease> {
        let (id, owner, clock, is_alive) = (id.clone(), owner.to_owned(), self.clock, self.is_alive.clone());
        self.write(move |connection| rows::acquire(connection, &id, &owner, clock(), millis(ttl), &*is_alive))
            .await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()> {
        let (lease, clock) = (lease.clone(), self.clock);
        self.write(move |connection| rows::renew(connection, &lease, clock(), millis(ttl))).await
    }

    async fn release(&self, lease: Lease) -> Result<()> {
        self.write(move |connection| rows::release(connection, &lease)).await
    }
}
