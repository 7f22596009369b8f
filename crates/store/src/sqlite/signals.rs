//! Wakes followers when there is something new.
//!
//! What this process appends is announced by its writer. What other processes append is noticed by looking at SQLite's change counter
//! (`data_version`) every [`limits::FOREIGN_POLL`], and only while somebody follows. A wake-up is a hint to read and carries nothing:
//! followers read on from their own place, so a wake-up too many or two in one does no harm.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use rusqlite::{Connection, OptionalExtension};
use tokio::sync::watch;

use super::{fault::Fault, schema};
use crate::{ConversationId, Sequence, limits};

#[derive(Default)]
pub(super) struct Signals {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Per followed conversation the last event that followers have been told of.
    followed: HashMap<ConversationId, watch::Sender<Sequence>>,
    polling: bool,
}

impl Signals {
    /// From now on every append to the conversation marks the receiver as changed. Call it before the first read.
    pub(super) fn subscribe(self: &Arc<Self>, id: &ConversationId, path: &Path) -> watch::Receiver<Sequence> {
        let mut state = self.state();
        let receiver = state.followed.entry(id.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe();
        if !state.polling {
            state.polling = true;
            tokio::spawn(poll(Polling { signals: Arc::downgrade(self), over: false }, path.to_owned()));
        }
        receiver
    }

    /// The conversation stands at `last` now.
    pub(super) fn appended(&self, id: &ConversationId, last: Sequence) {
        if let Some(sender) = self.state().followed.get(id) {
            sender.send_if_modified(|known| {
                let newer = last > *known;
                *known = last.max(*known);
                newer
            });
        }
    }

    /// Something is wrong: followers read, and find out what.
    fn alarm(&self) {
        for sender in self.state().followed.values() {
            sender.send_modify(|_| ());
        }
    }

    /// Whether polling is to go on; forgets conversations that nobody follows any more.
    fn still_followed(&self) -> bool {
        let mut state = self.state();
        state.followed.retain(|_, sender| sender.receiver_count() > 0);
        state.polling = !state.followed.is_empty();
        state.polling
    }

    fn followed(&self) -> Vec<ConversationId> {
        self.state().followed.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that polling is over when its task is dropped, with its runtime for instance, so that the next follower starts it again.
struct Polling {
    signals: Weak<Signals>,
    /// It has been said already, and another may have begun since.
    over: bool,
}

impl Drop for Polling {
    fn drop(&mut self) {
        if !self.over
            && let Some(signals) = self.signals.upgrade()
        {
            signals.state().polling = false;
        }
    }
}

async fn poll(mut polling: Polling, path: PathBuf) {
    let mut watcher: Option<Watcher> = None;
    loop {
        tokio::time::sleep(limits::FOREIGN_POLL).await;
        let Some(signals) = polling.signals.upgrade() else { return };
        if !signals.still_followed() {
            polling.over = true;
            return;
        }
        let path = path.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut watcher = match watcher {
                Some(watcher) => watcher,
                None => Watcher { connection: schema::open_reader(&path)?, version: None },
            };
            watcher.look(&signals).inspect_err(|_| signals.alarm())?;
            Ok::<_, Fault>(watcher)
        });
        match looked.await {
            Ok(Ok(kept)) => watcher = Some(kept),
            Ok(Err(fault)) => {
                tracing::warn!(?fault, "looking for appends of other processes failed");
                watcher = None;
            }
            Err(_) => return,
        }
    }
}

/// A connection that is only ever compared with itself: `data_version` means nothing across connections.
struct Watcher {
    connection: Connection,
    version: Option<i64>,
}

impl Watcher {
    /// The order matters. The counter is read before the list of followers, and a follower subscribes before its first read: what a
    /// follower that is missing in the list did not read was then appended after the counter was read, and changes it again.
    fn look(&mut self, signals: &Signals) -> Result<(), Fault> {
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if self.version == Some(version) {
            return Ok(());
        }
        let mut statement =
            self.connection.prepare_cached("SELECT last_sequence FROM conversations WHERE id = ?1")?;
        for id in signals.followed() {
            let last: Option<i64> = statement.query_row([&id.0], |row| row.get(0)).optional()?;
            signals.appended(&id, last.unwrap_or(0) as Sequence);
        }
        self.version = Some(version);
        Ok(())
    }
}
