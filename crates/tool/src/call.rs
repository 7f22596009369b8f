use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Names a call within its conversation. A model's calls keep the id that the model gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who issued a call. All go through the same door; the record says which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The model of the run.
    Model,
    /// A kernel cell of the run.
    Cell,
    /// A background worker.
    Worker,
    /// An outside client: HTTP, MCP, an editor.
    Api,
    /// `haft console` or `haft tool`.
    Console,
}

/// A wish to have a tool do something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Unique in the conversation.
    pub id: CallId,
    /// The tool's name as the caller wrote it.
    pub tool: String,
    /// Not yet validated.
    pub arguments: Value,
    /// Who asks.
    pub origin: Origin,
}

impl Call {
    /// A call with an id that is unique in this process.
    pub fn new(tool: impl Into<String>, arguments: Value, origin: Origin) -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(1);
        let id = CallId(format!("call_{}", COUNTER.fetch_add(1, Ordering::Relaxed)));
        Call { id, tool: tool.into(), arguments, origin }
    }
}

/// What a tool may use while a call runs.
#[derive(Clone)]
pub struct Context {
    /// The call's id, for records.
    pub call: CallId,
    /// Cancelled when the caller gives up; a tool returns [`crate::ToolError::Cancelled`] soon after and leaves nothing running.
    pub cancel: CancellationToken,
    /// Live output for those who watch.
    pub progress: Progress,
}

impl Context {
    /// A context that nobody watches or cancels, for tests and calls by hand. The registry sets the call's id.
    pub fn detached() -> Self {
        Context::new(CancellationToken::new(), Progress::silent())
    }

    /// A context with a cancellation and somebody who watches. The registry sets the call's id.
    pub fn new(cancel: CancellationToken, progress: Progress) -> Self {
        Context { call: CallId(String::new()), cancel, progress }
    }
}

/// Where a running call puts its live output. Showing it is a courtesy: when the watcher is slower than the tool,
/// pieces are left out of the live view. The call's result is complete all the same.
#[derive(Clone)]
pub struct Progress {
    sender: Option<mpsc::Sender<(CallId, String)>>,
    call: CallId,
    dropped: Arc<AtomicU64>,
}

impl Progress {
    /// Nobody watches.
    pub fn silent() -> Self {
        Progress { sender: None, call: CallId(String::new()), dropped: Arc::default() }
    }

    /// Pieces go to `sender`, marked with the id of the call that they belong to.
    pub fn to(sender: mpsc::Sender<(CallId, String)>) -> Self {
        Progress { sender: Some(sender), call: CallId(String::new()), dropped: Arc::default() }
    }

    /// Shows a piece of output. Never waits.
    pub fn emit(&self, piece: impl Into<String>) {
        if let Some(sender) = &self.sender
            && sender.try_send((self.call.clone(), piece.into())).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many pieces the watcher did not get.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn for_call(&self, call: CallId) -> Self {
        Progress { call, ..self.clone() }
    }
}
