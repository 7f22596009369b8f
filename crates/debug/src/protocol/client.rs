//! Requests to an adapter and what comes back.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
};

use super::{
    framing,
    message::{self, Incoming},
};
use crate::limits::OUTGOING;

/// What happens to what an adapter says by itself. Events are handed over in the order in which they were sent, and before the
/// response that follows them is delivered: whoever has a response in hands knows every event before it.
pub(crate) trait Handler: Send + Sync + 'static {
    fn event(&self, name: &str, body: Value);
    /// A request by the adapter; the answer is the response's body, or words on why not.
    fn reverse(
        self: Arc<Self>,
        command: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<Value, String>>;
    /// Bytes that are no message.
    fn junk(&self, line: &[u8]);
    /// Nothing more will come.
    fn closed(&self, why: String);
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The adapter said no.
    #[error("{message}")]
    Failed { message: String },
    #[error("the debug adapter has not answered `{command}` within {} seconds", after.as_secs())]
    Silent { command: String, after: Duration },
    #[error("the connection to the debug adapter is closed: {0}")]
    Closed(String),
}

/// One end of a conversation with an adapter. All clones are one; the connection ends with the last of them.
#[derive(Clone)]
pub(crate) struct Client {
    outgoing: mpsc::Sender<Vec<u8>>,
    pending: Arc<Mutex<Pending>>,
    sequence: Arc<AtomicI64>,
}

#[derive(Default)]
struct Pending {
    waiting: HashMap<i64, oneshot::Sender<Result<Value, RequestError>>>,
    closed: Option<String>,
}

/// A request that was sent and not yet answered.
pub(crate) struct Sent {
    command: &'static str,
    sequence: i64,
    answer: oneshot::Receiver<Result<Value, RequestError>>,
    pending: Arc<Mutex<Pending>>,
}

impl Client {
    /// Starts talking. Must be called within a runtime.
    pub(crate) fn start(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        handler: Arc<dyn Handler>,
    ) -> Client {
        let (outgoing, messages) = mpsc::channel(OUTGOING);
        let pending = Arc::new(Mutex::new(Pending::default()));
        let client =
            Client { outgoing: outgoing.clone(), pending: Arc::clone(&pending), sequence: Arc::default() };
        tokio::spawn(write_all(writer, messages));
        // The reader answers the adapter's requests but does not keep the connection open by that.
        let answers = Answers { outgoing: outgoing.downgrade(), sequence: Arc::clone(&client.sequence) };
        tokio::spawn(read_all(reader, handler, pending, answers));
        client
    }

    /// Sends a request. The answer is waited for, or not, by the caller.
    pub(crate) async fn send(&self, command: &'static str, arguments: Value) -> Result<Sent, RequestError> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = lock(&self.pending);
            if let Some(why) = &pending.closed {
                return Err(RequestError::Closed(why.clone()));
            }
            pending.waiting.insert(sequence, sender);
        }
        let message = json!({"seq": sequence, "type": "request", "command": command, "arguments": arguments});
        let sent = Sent { command, sequence, answer, pending: Arc::clone(&self.pending) };
        if self.outgoing.send(framing::frame(message.to_string().as_bytes())).await.is_err() {
            return Err(RequestError::Closed("it takes no more requests".into()));
        }
        Ok(sent)
    }

    /// Sends a request and waits for the answer's body, for so long.
    pub(crate) async fn request(
        &self,
        command: &'static str,
        arguments: Value,
        within: Duration,
    ) -> Result<Value, RequestError> {
        // One deadline for both: an adapter that reads nothing must not hold the sender up either.
        let sent = tokio::time::timeout(within, self.send(command, arguments)).await;
        match sent {
            Ok(sent) => sent?.answer(within).await,
            Err(_) => Err(RequestError::Silent { command: command.to_owned(), after: within }),
        }
    }
}

impl Sent {
    /// Waits for the answer's body, for so long. An answer that comes later is dropped.
    pub(crate) async fn answer(mut self, within: Duration) -> Result<Value, RequestError> {
        match tokio::time::timeout(within, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(RequestError::Closed("it ended before it answered".into())),
            Err(_) => Err(RequestError::Silent { command: self.command.to_owned(), after: within }),
        }
    }

    /// Waits for the answer without giving up on it when the wait is dropped.
    pub(crate) async fn wait(&mut self) -> Result<Value, RequestError> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(RequestError::Closed("it ended before it answered".into())),
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        lock(&self.pending).waiting.remove(&self.sequence);
    }
}

struct Answers {
    outgoing: mpsc::WeakSender<Vec<u8>>,
    sequence: Arc<AtomicI64>,
}

impl Answers {
    fn answer(&self, handler: &Arc<dyn Handler>, request: Incoming) {
        let Some(outgoing) = self.outgoing.upgrade() else { return };
        let command = request.command.unwrap_or_default();
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let work = Arc::clone(handler).reverse(command.clone(), request.arguments);
        tokio::spawn(async move {
            let mut response = json!({
                "seq": sequence, "type": "response", "request_seq": request.seq, "command": command,
            });
            match work.await {
                Ok(body) => {
                    response["success"] = true.into();
                    response["body"] = body;
                }
                Err(why) => {
                    response["success"] = false.into();
                    response["message"] = why.into();
                }
            }
            // An error means that the connection is gone.
            let _ = outgoing.send(framing::frame(response.to_string().as_bytes())).await;
        });
    }
}

async fn write_all(mut writer: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if writer.write_all(&message).await.is_err() || writer.flush().await.is_err() {
            // The reading side sees the same end and says why.
            return;
        }
    }
    let _ = writer.shutdown().await;
}

async fn read_all(
    reader: impl AsyncRead + Unpin,
    handler: Arc<dyn Handler>,
    pending: Arc<Mutex<Pending>>,
    answers: Answers,
) {
    let mut reader = BufReader::with_capacity(64 << 10, reader);
    let why = loop {
        let body = match framing::read(&mut reader, &mut |line| handler.junk(line)).await {
            Ok(Some(body)) => body,
            Ok(None) => break "it closed the connection".to_owned(),
            Err(error) => break error.to_string(),
        };
        let message = match message::parse(&body) {
            Ok(message) => message,
            Err(error) => {
                tracing::debug!(%error, "an adapter sent something that is no message");
                handler.junk(&body);
                continue;
            }
        };
        match message.kind.as_str() {
            "response" => deliver(&pending, message),
            "event" => handler.event(message.event.as_deref().unwrap_or_default(), message.body),
            "request" => answers.answer(&handler, message),
            _ => handler.junk(&body),
        }
    };
    let waiting = {
        let mut pending = lock(&pending);
        pending.closed = Some(why.clone());
        std::mem::take(&mut pending.waiting)
    };
    handler.closed(why.clone());
    for sender in waiting.into_values() {
        let _ = sender.send(Err(RequestError::Closed(why.clone())));
    }
}

fn deliver(pending: &Mutex<Pending>, response: Incoming) {
    let Some(sender) = response.request_seq.and_then(|sequence| lock(pending).waiting.remove(&sequence))
    else {
        return;
    };
    let answer = if response.success.unwrap_or(true) { Ok(response.body) } else { Err(failure(&response)) };
    // An error means that nobody waits any more.
    let _ = sender.send(answer);
}

/// An adapter's words for why it failed. The long form stands in `body.error.format`, with its `{variables}` filled in.
fn failure(response: &Incoming) -> RequestError {
    let error = &response.body["error"];
    let mut long = error["format"].as_str().unwrap_or_default().to_owned();
    if let Some(variables) = error["variables"].as_object() {
        for (name, value) in variables {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            long = long.replace(&format!("{{{name}}}"), &value);
        }
    }
    let short = response.message.clone().unwrap_or_default();
    let message = match (short.trim(), long.trim()) {
        ("", "") => "the debug adapter gave no reason".to_owned(),
        (short, "") => short.to_owned(),
        ("", long) => long.to_owned(),
        (short, long) if long.contains(short) => long.to_owned(),
        (short, long) if short.contains(long) => short.to_owned(),
        (short, long) => format!("{short}: {long}"),
    };
    RequestError::Failed { message }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
