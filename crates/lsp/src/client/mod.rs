//! The thin client: one task reads, one writes, and a map holds who waits for which answer. Servers deviate from the protocol's types
//! in so many ways that messages stay JSON values; who reads them picks out what it needs and tolerates the rest.

pub(crate) mod framing;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::limits::{OUTGOING, REPLIES};

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// The server is gone; the words say how it went.
    #[error("the server is gone: {0}")]
    Gone(String),
    /// The server does not read what it is sent.
    #[error("the server has stopped reading its input")]
    Stuck,
    /// It took too long; the server was told to give it up.
    #[error("the server did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The server said no.
    #[error("{message} (error {code})")]
    Refused {
        /// The protocol's number.
        code: i64,
        /// The server's words.
        message: String,
        /// What it added.
        data: Option<Value>,
    },
}

impl RequestError {
    /// The document changed while the server was at it (`ContentModified`), or it gave up for a reason of its own (`ServerCancelled`,
    /// `RequestCancelled` that was not ours): asking again is right.
    pub fn is_passing(&self) -> bool {
        matches!(self, RequestError::Refused { code: -32802..=-32800, .. })
    }

    /// The server does not know the method, whatever its capabilities said.
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, RequestError::Refused { code: -32601, .. })
    }
}

/// Hears what a server says of its own accord. Called by the reading task, so it must not block.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// A notification.
    fn notification(&self, method: &str, params: Value);
    /// A request; what is returned is sent back at once. `Err` is a code and words.
    fn request(&self, method: &str, params: Value) -> Result<Value, (i64, String)>;
    /// The connection is over; called once.
    fn closed(&self, why: &str);
}

/// A connection to a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    outgoing: mpsc::Sender<Vec<u8>>,
    pending: Mutex<Pending>,
    next: AtomicU64,
    in_flight: AtomicUsize,
    /// Messages of the server.
    received: AtomicU64,
    /// Cancelled when the connection is over.
    over: CancellationToken,
}

#[derive(Default)]
struct Pending {
    waiting: HashMap<u64, oneshot::Sender<Result<Value, RequestError>>>,
    gone: Option<String>,
}

impl Client {
    /// Starts the tasks of a connection. They end when the server's output ends, when its input breaks, or at [`Client::close`].
    pub(crate) fn start<R, W>(reader: R, writer: W, inbound: Arc<dyn Inbound>) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let (replies, answers) = mpsc::channel(REPLIES);
        let inner = Arc::new(Inner {
            outgoing,
            pending: Mutex::default(),
            next: AtomicU64::new(1),
            in_flight: AtomicUsize::new(0),
            received: AtomicU64::new(0),
            over: CancellationToken::new(),
        });
        tokio::spawn(write_all(writer, queue, answers, Arc::downgrade(&inner), inner.over.clone()));
        tokio::spawn(read_all(reader, replies, Arc::downgrade(&inner), inner.over.clone(), inbound));
        Client { inner }
    }

    /// Sends a request and waits for the answer. `params` of `null` are left out, for servers reject `"params": null`. When the time is up,
    /// or the caller gives up waiting, the server is told with `$/cancelRequest`.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, RequestError> {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut pending = self.inner.pending();
            if let Some(why) = &pending.gone {
                return Err(RequestError::Gone(why.clone()));
            }
            pending.waiting.insert(id, sender);
        }
        self.inner.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut asked = Asked { inner: &self.inner, id, open: true, sent: false };
        self.send(&message(Some(id), method, params))?;
        asked.sent = true;
        let answer = match tokio::time::timeout(limit, receiver).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(RequestError::Gone(self.inner.why_gone())),
            Err(_) => return Err(RequestError::TimedOut(limit)),
        };
        asked.open = false;
        answer
    }

    /// Sends a notification. Never waits: it is on its way when this returns.
    pub(crate) fn notify(&self, method: &str, params: Value) -> Result<(), RequestError> {
        self.send(&message(None, method, params))
    }

    /// How many requests wait for their answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.inner.in_flight.load(Ordering::Relaxed)
    }

    /// How many messages of any kind have come.
    pub(crate) fn received(&self) -> u64 {
        self.inner.received.load(Ordering::Relaxed)
    }

    /// Ends the connection: whoever waits for an answer hears `why`.
    pub(crate) fn close(&self, why: &str) {
        self.inner.fail(why);
    }

    /// Whether the connection is over.
    pub(crate) fn is_over(&self) -> bool {
        self.inner.over.is_cancelled()
    }

    /// Why the connection is over.
    pub(crate) fn why_over(&self) -> String {
        self.inner.why_gone()
    }

    /// Fires when the connection is over.
    pub(crate) fn over(&self) -> CancellationToken {
        self.inner.over.clone()
    }

    fn send(&self, message: &Value) -> Result<(), RequestError> {
        use mpsc::error::TrySendError;
        if self.is_over() {
            return Err(RequestError::Gone(self.inner.why_gone()));
        }
        self.inner.outgoing.try_send(framing::frame(message.to_string().as_bytes())).map_err(|error| {
            match error {
                TrySendError::Full(_) => RequestError::Stuck,
                TrySendError::Closed(_) => RequestError::Gone(self.inner.why_gone()),
            }
        })
    }
}

impl Inner {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn why_gone(&self) -> String {
        self.pending().gone.clone().unwrap_or_else(|| "the connection was closed".to_owned())
    }

    fn fail(&self, why: &str) {
        let waiting = {
            let mut pending = self.pending();
            pending.gone.get_or_insert_with(|| why.to_owned());
            std::mem::take(&mut pending.waiting)
        };
        self.over.cancel();
        for sender in waiting.into_values() {
            let _ = sender.send(Err(RequestError::Gone(why.to_owned())));
        }
    }

    fn answer(&self, id: u64, answer: Result<Value, RequestError>) {
        // An answer to a request that was given up finds nobody.
        let waiting = self.pending().waiting.remove(&id);
        if let Some(sender) = waiting {
            let _ = sender.send(answer);
        }
    }
}

/// A request on its way; dropped while open, it is cancelled.
struct Asked<'a> {
    inner: &'a Inner,
    id: u64,
    open: bool,
    sent: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.inner.in_flight.fetch_sub(1, Ordering::Relaxed);
        if self.open {
            let was_waiting = self.inner.pending().waiting.remove(&self.id).is_some();
            if was_waiting && self.sent {
                let cancel = message(None, "$/cancelRequest", json!({ "id": self.id }));
                // A server that does not read will not read this either.
                let _ = self.inner.outgoing.try_send(framing::frame(cancel.to_string().as_bytes()));
            }
        }
    }
}

fn message(id: Option<u64>, method: &str, params: Value) -> Value {
    let mut message = Map::new();
    message.insert("jsonrpc".into(), "2.0".into());
    if let Some(id) = id {
        message.insert("id".into(), id.into());
    }
    message.insert("method".into(), method.into());
    if !params.is_null() {
        message.insert("params".into(), params);
    }
    Value::Object(message)
}

async fn write_all<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::Receiver<Vec<u8>>,
    mut answers: mpsc::Receiver<Vec<u8>>,
    inner: Weak<Inner>,
    over: CancellationToken,
) {
    loop {
        let framed = tokio::select! {
            biased;
            Some(framed) = answers.recv() => framed,
            Some(framed) = queue.recv() => framed,
            () = over.cancelled() => return,
            else => return,
        };
        let written = async {
            writer.write_all(&framed).await?;
            writer.flush().await
        };
        let result = tokio::select! {
            result = written => result,
            () = over.cancelled() => return,
        };
        if let Err(error) = result {
            // The reading task knows better why: the server's output ends too, and its exit code follows.
            tracing::debug!(%error, "a language server's input broke");
            if let Some(inner) = inner.upgrade() {
                tokio::time::sleep(crate::limits::RETRY_PAUSE).await;
                inner.fail("its input was closed");
            }
            return;
        }
    }
}

async fn read_all<R: AsyncRead + Unpin>(
    reader: R,
    replies: mpsc::Sender<Vec<u8>>,
    inner: Weak<Inner>,
    over: CancellationToken,
    inbound: Arc<dyn Inbound>,
) {
    let mut reader = BufReader::with_capacity(64 << 10, reader);
    let why = loop {
        let body = tokio::select! {
            body = framing::read(&mut reader) => body,
            () = over.cancelled() => {
                break inner.upgrade().map_or_else(|| "it was let go".to_owned(), |inner| inner.why_gone());
            }
        };
        let body = match body {
            Ok(body) => body,
            Err(error) => break error.to_string(),
        };
        let message = match parse(&body) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(%error, bytes = body.len(), "a language server sent what is no JSON; it is left out");
                continue;
            }
        };
        let Some(inner) = inner.upgrade() else { break "it was let go".to_owned() };
        inner.received.fetch_add(1, Ordering::Relaxed);
        match message {
            // Batches are not part of LSP; taking them apart costs nothing.
            Value::Array(several) => {
                for one in several {
                    if !take(one, &inner, &replies, &*inbound) {
                        inner.fail("it asks but does not read the answers");
                    }
                }
            }
            one => {
                if !take(one, &inner, &replies, &*inbound) {
                    inner.fail("it asks but does not read the answers");
                }
            }
        }
    };
    if let Some(inner) = inner.upgrade() {
        inner.fail(&why);
    }
    over.cancel();
    inbound.closed(&why);
}

/// Deals with one message; `false` when an answer to the server could not be queued.
fn take(message: Value, inner: &Inner, replies: &mpsc::Sender<Vec<u8>>, inbound: &dyn Inbound) -> bool {
    let Value::Object(mut message) = message else { return true };
    let id = message.remove("id");
    let params = message.remove("params").unwrap_or(Value::Null);
    match (message.remove("method"), id) {
        // The server's own ids have nothing to do with ours; they are sent back as they came, number or text.
        (Some(Value::String(method)), Some(id)) if !id.is_null() => {
            let reply = match inbound.request(&method, params) {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err((code, text)) => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
                }
            };
            replies.try_send(framing::frame(reply.to_string().as_bytes())).is_ok()
        }
        (Some(Value::String(method)), _) => {
            inbound.notification(&method, params);
            true
        }
        (_, Some(id)) => {
            let number = id.as_u64().or_else(|| id.as_str().and_then(|text| text.parse().ok()));
            if let Some(number) = number {
                inner.answer(number, outcome(message));
            }
            true
        }
        _ => true,
    }
}

fn outcome(mut message: Map<String, Value>) -> Result<Value, RequestError> {
    match message.remove("error") {
        None | Some(Value::Null) => Ok(message.remove("result").unwrap_or(Value::Null)),
        Some(error) => Err(RequestError::Refused {
            code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
            message: error.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned(),
            data: error.get("data").cloned(),
        }),
    }
}
/// A message. tsserver cuts long types short in the middle of a character, and the answer is not to be lost for that.
fn parse(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(body)
        .or_else(|error| serde_json::from_slice(&haft_system::without_halves(body)).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_message_with_half_a_character_is_read() {
        assert_eq!(parse(br#"{"message":"type \ud83d"}"#).unwrap()["message"], "type \u{fffd}");
        assert!(parse(br#"{"message":"#).is_err());
    }
}
