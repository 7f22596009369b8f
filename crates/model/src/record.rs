//! Recordings of what went over the wire: JSON Lines, written while it happens, played by `replay:FILE`.
//!
//! | line | fields |
//! | --- | --- |
//! | `recording` | `version` |
//! | `request` | `exchange` (number of the attempt), `model`, `base`, `profile`, `hash`, `body` |
//! | `response` | `exchange`, `status`, `retry_after_ms` |
//! | `frame` | `exchange`, `event`, `data` |
//! | `error_body` | `exchange`, `text` |
//! | `end` | `exchange`, `fault` (why the stream broke off, else null) |
//!
//! Headers are not recorded, so that no key is; where a key turns up in a body all the same, it is replaced.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Profile,
    content::short_hash,
    fault::Fault,
    transport::{HttpCall, Reply, ReplyBody, Transport},
};

/// The version of the format that this Haft writes and reads.
pub(crate) const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Line {
    Recording { version: u32 },
    Request { exchange: u64, model: String, base: String, profile: Profile, hash: String, body: Value },
    Response { exchange: u64, status: u16, retry_after_ms: Option<u64> },
    Frame { exchange: u64, event: Option<String>, data: String },
    ErrorBody { exchange: u64, text: String },
    End { exchange: u64, fault: Option<String> },
}

/// Writes a recording. Several models and conversations may share it.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    file: Mutex<File>,
    exchanges: AtomicU64,
    problem: Mutex<Option<String>>,
}

impl Recorder {
    /// Begins a recording; a file that is there is replaced. Only its owner can read it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let recorder = Recorder(Arc::new(Inner {
            file: Mutex::new(file),
            exchanges: AtomicU64::new(1),
            problem: Mutex::new(None),
        }));
        recorder.write(&Line::Recording { version: VERSION }, None);
        Ok(recorder)
    }

    /// Why the recording is not complete, if something could not be written. The run itself goes on.
    pub fn problem(&self) -> Option<String> {
        self.0.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, line: &Line, secret: Option<&str>) {
        let written = serde_json::to_string(line).map_err(io::Error::other).and_then(|mut text| {
            text = redact(text, secret);
            text.push('\n');
            let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(text.as_bytes())
        });
        if let Err(error) = written {
            tracing::warn!(%error, "the recording is not complete");
            let mut problem = self.0.problem.lock().unwrap_or_else(PoisonError::into_inner);
            problem.get_or_insert_with(|| error.to_string());
        }
    }
}

fn redact(text: String, secret: Option<&str>) -> String {
    // A very short key would hit ordinary words.
    match secret.filter(|secret| secret.len() >= 8) {
        Some(secret) if text.contains(secret) => text.replace(secret, "[key]"),
        _ => text,
    }
}

/// A transport that writes down what passes through it.
pub(crate) struct Recording {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) recorder: Recorder,
    pub(crate) model: String,
    pub(crate) base: String,
    pub(crate) profile: Profile,
    pub(crate) secret: Option<String>,
}

#[async_trait]
impl Transport for Recording {
    async fn send(&self, call: &HttpCall) -> Result<Reply, Fault> {
        let exchange = self.recorder.0.exchanges.fetch_add(1, Ordering::Relaxed);
        let secret = self.secret.clone();
        let body = redact(String::from_utf8_lossy(&call.body).into_owned(), secret.as_deref());
        let line = Line::Request {
            exchange,
            model: self.model.clone(),
            base: self.base.clone(),
            profile: self.profile,
            hash: short_hash(body.as_bytes()),
            body: serde_json::from_str(&body).unwrap_or(Value::Null),
        };
        self.recorder.write(&line, secret.as_deref());
        let reply = match self.inner.send(call).await {
            Ok(reply) => reply,
            Err(fault) => {
                let line = Line::End { exchange, fault: Some(fault.message.clone()) };
                self.recorder.write(&line, secret.as_deref());
                return Err(fault);
            }
        };
        let retry_after_ms = reply.retry_after.map(|wait| wait.as_millis() as u64);
        self.recorder
            .write(&Line::Response { exchange, status: reply.status, retry_after_ms }, secret.as_deref());
        let body = match reply.body {
            ReplyBody::Text(text) => {
                self.recorder.write(&Line::ErrorBody { exchange, text: text.clone() }, secret.as_deref());
                self.recorder.write(&Line::End { exchange, fault: None }, secret.as_deref());
                ReplyBody::Text(text)
            }
            ReplyBody::Frames(frames) => {
                let recorder = self.recorder.clone();
                let watch = Watch { recorder, exchange, secret, ended: false };
                ReplyBody::Frames(
                    futures::stream::unfold((frames, watch), |(mut frames, mut watch)| async move {
                        let next = frames.next().await;
                        watch.saw(next.as_ref());
                        next.map(|next| (next, (frames, watch)))
                    })
                    .fuse()
                    .boxed(),
                )
            }
        };
        Ok(Reply { body, ..reply })
    }
}

struct Watch {
    recorder: Recorder,
    exchange: u64,
    secret: Option<String>,
    ended: bool,
}

impl Watch {
    fn saw(&mut self, next: Option<&Result<crate::frames::Frame, Fault>>) {
        let exchange = self.exchange;
        let line = match next {
            Some(Ok(frame)) => Line::Frame { exchange, event: frame.event.clone(), data: frame.data.clone() },
            Some(Err(fault)) => Line::End { exchange, fault: Some(fault.message.clone()) },
            None => Line::End { exchange, fault: None },
        };
        if self.ended {
            return;
        }
        self.ended = matches!(line, Line::End { .. });
        self.recorder.write(&line, self.secret.as_deref());
    }
}

/// Readers stop at the frame that closes the answer; what was read until then is whole.
impl Drop for Watch {
    fn drop(&mut self) {
        self.saw(None);
    }
}
