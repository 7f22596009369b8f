use std::{
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use haft_store::{ConversationId, ConversationRecord, Lease, Sequence, SharedStore, StoreError, StoredEvent};
use haft_system::clock;
use haft_tool::CallId;
use tokio::{
    sync::{Mutex, broadcast},
    task::JoinHandle,
};

use super::{Event, Transcript, pictures};
use crate::limits::{FRAMES, LEASE, READ_EVENTS};

/// What those who watch a conversation get: events as they are recorded, and the live pieces between them, which are not kept.
#[derive(Clone, Debug)]
pub enum Frame {
    /// Recorded.
    Event(Arc<(Sequence, Event)>),
    /// More words of the answer that is being written.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The answer that is being written has begun a call.
    CallBegun {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
    },
    /// Live output of a running call.
    Progress {
        /// The call.
        id: CallId,
        /// A piece of output.
        text: String,
    },
    /// The model is asked again; what was streamed of the answer is void.
    Retry {
        /// Why, in words.
        why: String,
        /// Which attempt comes next.
        attempt: u32,
        /// How long it waits before that.
        after: Duration,
    },
}

/// Why something could not be recorded. A run that cannot be recorded stops.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record holds an event that this version does not read.
    #[error("the transcript of {conversation} cannot be used: {message}")]
    Unreadable {
        /// Which.
        conversation: ConversationId,
        /// What.
        message: String,
    },
}

/// Appends a conversation's events, keeps what they add up to, and shows both to those who watch. Holds the conversation's lease.
pub struct Journal {
    store: SharedStore,
    record: ConversationRecord,
    lease: Lease,
    /// The place of the last event; held while appending, so that events are recorded, folded and shown in one order.
    end: Mutex<Sequence>,
    transcript: StdMutex<Transcript>,
    frames: broadcast::Sender<Frame>,
    renewal: JoinHandle<()>,
}

impl Journal {
    /// Starts a new conversation.
    pub async fn create(
        store: SharedStore,
        record: ConversationRecord,
        owner: &str,
    ) -> Result<Self, JournalError> {
        let lease = {
            store.create(record.clone()).await?;
            store.acquire(&record.id, owner, LEASE).await?
        };
        Ok(Self::assemble(store, record, lease, 0, Transcript::default()))
    }

    /// Takes up a conversation, and closes what a dead process left open.
    pub async fn resume(store: SharedStore, id: &ConversationId, owner: &str) -> Result<Self, JournalError> {
        let lease = store.acquire(id, owner, LEASE).await?;
        match Self::read(&store, id).await {
            Ok((record, end, transcript)) => {
                let closing = transcript.closing();
                let journal = Self::assemble(store, record, lease, end, transcript);
                journal.append(closing).await?;
                Ok(journal)
            }
            Err(error) => {
                store.release(lease).await?;
                Err(error)
            }
        }
    }

    /// What a conversation adds up to, without taking it up.
    pub async fn read(
        store: &SharedStore,
        id: &ConversationId,
    ) -> Result<(ConversationRecord, Sequence, Transcript), JournalError> {
        let record = store.conversation(id).await?;
        let mut transcript = Transcript::default();
        let mut end = 0;
        loop {
            let events = store.read(id, end, READ_EVENTS).await?;
            if events.is_empty() {
                return Ok((record, end, transcript));
            }
            for mut stored in events {
                end = stored.sequence;
                let event = Self::decode(store, id, &mut stored).await?;
                transcript.apply(&event);
            }
        }
    }

    /// An event of the store with its pictures put back.
    pub async fn decode(
        store: &SharedStore,
        id: &ConversationId,
        stored: &mut StoredEvent,
    ) -> Result<Event, JournalError> {
        pictures::put_back(store.as_ref(), &mut stored.event.data).await?;
        Event::from_stored(stored)
            .map_err(|message| JournalError::Unreadable { conversation: id.clone(), message })
    }

    fn assemble(
        store: SharedStore,
        record: ConversationRecord,
        lease: Lease,
        end: Sequence,
        transcript: Transcript,
    ) -> Self {
        let renewal = tokio::spawn({
            let (store, lease) = (store.clone(), lease.clone());
            async move {
                loop {
                    tokio::time::sleep(LEASE / 3).await;
                    // A lease that is lost shows at the next append, which is refused.
                    if let Err(error) = store.renew(&lease, LEASE).await {
                        tracing::warn!(%error, "the conversation's lease was not renewed");
                        if matches!(error, StoreError::LeaseLost(_)) {
                            return;
                        }
                    }
                }
            }
        });
        Journal {
            store,
            record,
            lease,
            end: Mutex::new(end),
            transcript: StdMutex::new(transcript),
            frames: broadcast::channel(FRAMES).0,
            renewal,
        }
    }

    /// Records events: all or none, in this order. They are on the disk when this returns.
    pub async fn append(&self, events: Vec<Event>) -> Result<(), JournalError> {
        self.write(events, false).await
    }

    /// Records events without waiting for the disk ([`Store::append_soon`](haft_store::Store::append_soon)): a power cut may take them,
    /// and with them the knowledge of what the last calls came to, until a later event is appended or a second has passed.
    pub async fn append_soon(&self, events: Vec<Event>) -> Result<(), JournalError> {
        self.write(events, true).await
    }

    async fn write(&self, events: Vec<Event>, is_soon: bool) -> Result<(), JournalError> {
        if events.is_empty() {
            return Ok(());
        }
        let at_ms = clock::now_ms();
        let mut new = Vec::with_capacity(events.len());
        for event in &events {
            let mut event = event.to_new(at_ms);
            pictures::take_out(self.store.as_ref(), &mut event.data).await?;
            new.push(event);
        }
        let mut end = self.end.lock().await;
        let first = *end + 1;
        *end = if is_soon {
            self.store.append_soon(&self.lease, *end, new).await?
        } else {
            self.store.append(&self.lease, *end, new).await?
        };
        for (offset, event) in events.into_iter().enumerate() {
            self.transcript.lock().unwrap_or_else(PoisonError::into_inner).apply(&event);
            self.show(Frame::Event(Arc::new((first + offset as u64, event))));
        }
        Ok(())
    }

    /// The place of the last event.
    pub async fn end(&self) -> Sequence {
        *self.end.lock().await
    }

    /// Shows a live piece to those who watch; nobody may.
    pub fn show(&self, frame: Frame) {
        // An error says that nobody watches.
        drop(self.frames.send(frame));
    }

    /// Everything from now on. A watcher that is too slow is told how many frames it lost and can read the events again.
    pub fn watch(&self) -> broadcast::Receiver<Frame> {
        self.frames.subscribe()
    }

    /// Looks at what the events add up to.
    pub fn with_transcript<T>(&self, look: impl FnOnce(&Transcript) -> T) -> T {
        look(&self.transcript.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The conversation as it was when it was created or taken up.
    pub fn record(&self) -> &ConversationRecord {
        &self.record
    }

    /// The store behind it.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Gives the conversation back, so that another process can take it up at once.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.renewal.abort();
        self.store.release(self.lease.clone()).await
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}
