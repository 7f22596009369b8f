//! Connections for reading, opened when they are first needed.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{fault::Fault, schema};
use crate::{Result, limits};

#[derive(Clone)]
pub(super) struct Readers {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    room: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Readers {
        let room = Arc::new(Semaphore::new(limits::READERS));
        Readers { inner: Arc::new(Inner { path, room, idle: Mutex::default() }) }
    }

    /// Runs `work` on a connection of its own, off the async threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> std::result::Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        let inner = self.inner.clone();
        let permit = inner.room.clone().acquire_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            // Kept until the connection is back in the pool, even when the caller has gone away.
            let _permit = permit;
            let connection = match inner.take() {
                Some(connection) => Ok(connection),
                None => schema::open_reader(&inner.path),
            };
            connection
                .and_then(|connection| {
                    let result = work(&connection);
                    // One that failed may have failed because of its own state; the next reader gets a fresh one.
                    if matches!(result, Ok(_) | Err(Fault::Refused(_))) {
                        inner.give_back(connection);
                    }
                    result
                })
                .map_err(|fault| fault.at(&inner.path))
        });
        match task.await {
            Ok(result) => result,
            Err(error) => {
                Err(Fault::Other(format!("A read did not come to its end: {error}.")).at(&self.inner.path))
            }
        }
    }
}

impl Inner {
    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
