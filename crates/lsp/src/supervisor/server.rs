//! One running server.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use haft_system::{Exit, Process};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, sync::watch};
use tokio_util::sync::CancellationToken;

use super::{
    capabilities::static_capability,
    disk::DiskWatch,
    documents::{Document, DocumentError, Documents},
    heard::{Heard, Published, Work},
    silence::{Silence, Unanswered},
    told::Told,
};
use crate::{
    client::{Client, RequestError},
    limits::{RETRIES, RETRY_PAUSE, SHUTDOWN, STDERR_BYTES},
    position::PositionEncoding,
    servers::{Found, Readiness, ServerSpec},
};

/// One running server: a process that has answered `initialize`. When it dies it stays dead; the supervisor starts another.
pub struct Server {
    pub(super) spec: Arc<ServerSpec>,
    pub(super) root: PathBuf,
    pub(super) found: Found,
    pub(super) client: Client,
    pub(super) heard: Arc<Heard>,
    pub(super) documents: Mutex<Documents>,
    pub(super) disk: Mutex<Option<DiskWatch>>,
    pub(super) pid: u32,
    pub(super) version: Option<String>,
    pub(super) encoding: PositionEncoding,
    pub(super) started: Instant,
    /// When it had answered `initialize`.
    pub(super) initialized: Instant,
    /// Milliseconds after `started`.
    pub(super) used: AtomicU64,
    pub(super) stop: CancellationToken,
    pub(super) ended: watch::Receiver<Option<String>>,
    /// Documents whose new text the server may not have worked in yet, for a server of which that has to be asked.
    pub(super) unsettled: Mutex<Vec<PathBuf>>,
    /// Files that have come, for a server that knows such only while they are open.
    pub(super) arrived: Mutex<BTreeSet<PathBuf>>,
    /// Some of the files are in it because nothing says that they belong to the project.
    pub(super) lacks_index: bool,
    /// A file of each package that has come, for a server that loads such only when it is asked about them.
    pub(super) unloaded: Mutex<Vec<PathBuf>>,
    /// Of the files that it was told of and reads by itself the last one, if it may not have read it yet, and until when that is waited for.
    pub(super) unread: Mutex<Option<(PathBuf, tokio::time::Instant)>>,
    /// [`Server::serial`] when a save was last announced.
    pub(super) last_save: AtomicU64,
    /// When the first document was opened, in milliseconds after `started`; 0 while there is none.
    pub(super) opened: AtomicU64,
    /// How often others were seen to have changed files.
    pub(super) foreign: AtomicU64,
    pub(super) told: Mutex<Told>,
    pub(super) diagnosing: tokio::sync::Mutex<()>,
    pub(super) silence: Mutex<Silence>,
    pub(super) unanswered: Unanswered,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It has told that it is loading its project; the words are its own.
    Loading(String),
    /// It answers.
    Ready,
    /// It is gone, and how it went.
    Gone(String),
}

impl Server {
    /// Its name in the table.
    pub fn id(&self) -> &str {
        &self.spec.id
    }

    /// Its entry in the table.
    pub fn spec(&self) -> &Arc<ServerSpec> {
        &self.spec
    }

    /// Its root, canonical.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its program.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it says its version is.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// What it counts columns in.
    pub fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// How it is.
    pub fn state(&self) -> ServerState {
        if let Some(why) = self.gone() {
            return ServerState::Gone(why);
        }
        let state = self.heard.state();
        if state.quiescent == Some(false) {
            let doing = state.work.values().find(|work| work.is_active());
            return ServerState::Loading(
                doing.map_or_else(|| "the project".into(), |work| work.title.clone()),
            );
        }
        // pyright reports what it does in the background, and of a file that is gone it never says that it is done.
        let is_loading = |token: &str| self.spec.readiness != Readiness::None && !is_check(token);
        let loading = state.work.iter().find(|(token, work)| work.is_active() && is_loading(token));
        match loading {
            Some((_, work)) if state.quiescent.is_none() => ServerState::Loading(work.title.clone()),
            _ => ServerState::Ready,
        }
    }

    /// Why it is gone, if it is.
    pub fn gone(&self) -> Option<String> {
        if let Some(why) = self.ended.borrow().clone() {
            return Some(why);
        }
        self.client.is_over().then(|| self.client.why_over())
    }

    /// Warnings of the server about itself (`experimental/serverStatus`).
    pub fn health(&self) -> Option<String> {
        self.heard.state().health.clone()
    }

    /// The options with which the server offers a method, from its capabilities and from every registration since; empty where it does not
    /// offer it. A bare `true` is an empty object.
    pub fn offers(&self, method: &str) -> Vec<Value> {
        let state = self.heard.state();
        let mut offers = Vec::new();
        match static_capability(&state.capabilities, method) {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => offers.push(json!({})),
            Some(options) => offers.push(options.clone()),
        }
        let dynamic = state.registrations.iter().filter(|known| known.method == method);
        offers.extend(
            dynamic.map(|known| if known.options.is_null() { json!({}) } else { known.options.clone() }),
        );
        offers
    }

    /// Whether the server offers a method.
    pub fn can(&self, method: &str) -> bool {
        !self.offers(method).is_empty()
    }

    /// Its capabilities as it answered them, without what it registered later.
    pub fn capabilities(&self) -> Value {
        self.heard.state().capabilities.clone()
    }

    /// Makes the server's copy of a file what is on the disk now, and opens it if need be. What others have changed is told first. A changed
    /// text is followed by `didSave`, for it is on the disk. Does not wait for the server.
    ///
    /// The file's canonical path is the key everywhere.
    pub fn sync(&self, path: &Path) -> Result<Document, SyncError> {
        self.touch();
        self.tell_disk_changes()?;
        self.sync_one(path)
    }

    /// The server's copy of a file, as it was last synced.
    pub fn document(&self, path: &Path) -> Option<Document> {
        self.documents().peek(path).cloned()
    }

    /// The files that are open.
    pub fn open_documents(&self) -> Vec<PathBuf> {
        let mut paths = self.documents().paths();
        paths.sort();
        paths
    }

    /// Closes a file in the server, as for one that is gone.
    pub fn close(&self, path: &Path) -> Result<(), SyncError> {
        let mut documents = self.documents();
        if let Some(document) = documents.peek(path) {
            self.notify("textDocument/didClose", json!({ "textDocument": { "uri": &*document.uri } }))?;
            documents.remove(path);
        }
        Ok(())
    }

    /// Sends a request; see [`Client::request`]. The words of [`RequestError::Gone`] say how the server ended.
    pub async fn request(&self, method: &str, params: Value, limit: Duration) -> Result<Value, RequestError> {
        self.touch();
        let asked = self.asking();
        let answer = self.client.request(method, params, limit).await;
        self.touch();
        match &answer {
            Ok(_) | Err(RequestError::Refused { .. }) => self.answered(method),
            Err(RequestError::TimedOut(_)) => self.unanswered(method, asked, limit),
            Err(_) => {}
        }
        match answer {
            Err(RequestError::Gone(why)) => Err(RequestError::Gone(self.epitaph(why).await)),
            other => other,
        }
    }

    /// Sends a request, again where the server gave it up because something changed meanwhile. All tries together have `limit`.
    pub async fn ask(&self, method: &str, params: Value, limit: Duration) -> Result<Value, RequestError> {
        let until = tokio::time::Instant::now() + limit;
        let mut left = RETRIES;
        loop {
            let rest = until.saturating_duration_since(tokio::time::Instant::now());
            match self.request(method, params.clone(), rest).await {
                Err(error) if error.is_passing() && left > 0 => {
                    left -= 1;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(RequestError::TimedOut(_)) => return Err(RequestError::TimedOut(limit)),
                other => return other,
            }
        }
    }

    /// Sends a notification. Never waits.
    pub fn notify(&self, method: &str, params: Value) -> Result<(), RequestError> {
        self.client.notify(method, params)
    }

    /// Fires whenever the server has said something new: diagnostics, progress, registrations, its end. Look again after each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.heard.changes()
    }

    /// How much the server has said until now. Of two things that it says the later one has the higher number.
    pub fn serial(&self) -> u64 {
        self.heard.state().serial
    }

    /// The same, one higher than whatever came before.
    pub(crate) fn tick(&self) -> u64 {
        let mut state = self.heard.state();
        state.serial += 1;
        state.serial
    }

    /// The last diagnostics that it pushed for a file.
    pub fn published(&self, path: &Path) -> Option<Published> {
        self.heard.state().published.get(path).cloned()
    }

    /// Every file that it pushed diagnostics for after `serial`.
    pub fn published_since(&self, serial: u64) -> Vec<(PathBuf, Published)> {
        let state = self.heard.state();
        let mut list: Vec<(PathBuf, Published)> = state
            .published
            .iter()
            .filter(|(_, published)| published.serial > serial)
            .map(|(path, published)| (path.clone(), published.clone()))
            .collect();
        list.sort_by(|(one, _), (other, _)| one.cmp(other));
        list
    }

    /// Whether it has been heard to name versions when it publishes.
    pub(crate) fn names_versions(&self) -> bool {
        self.heard.state().names_versions
    }

    /// Work that it reports on, by token.
    pub fn work(&self) -> Vec<(String, Work)> {
        self.heard.state().work.iter().map(|(token, work)| (token.clone(), work.clone())).collect()
    }

    /// What `experimental/serverStatus` said last about being done with loading.
    pub fn quiescent(&self) -> Option<bool> {
        self.heard.state().quiescent
    }

    /// Why it could not run for a file, where it has said that it could not.
    pub(crate) fn failure(&self, path: &Path) -> Option<String> {
        let state = self.heard.state();
        let why = || state.complaint.clone().unwrap_or_else(|| "it does not say why".into());
        state.failing.iter().any(|failing| failing == path).then(why)
    }

    /// How often it has asked that pulled diagnostics be pulled again.
    pub fn refreshes(&self) -> u64 {
        self.heard.state().refreshes
    }

    /// When it last asked for that.
    pub(crate) fn refreshed(&self) -> Option<tokio::time::Instant> {
        self.heard.state().refreshed
    }

    /// The canonical path that a URI of the server names; `None` for what is no file.
    pub fn path_of(&self, uri: &str) -> Option<PathBuf> {
        self.heard.name_of(uri)
    }

    /// How long ago the server was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long ago it answered `initialize`.
    pub(crate) fn since_initialized(&self) -> Duration {
        self.initialized.elapsed()
    }

    /// How long ago its first document was opened.
    pub(crate) fn since_first_open(&self) -> Option<Duration> {
        match self.opened.load(Ordering::Relaxed) {
            0 => None,
            at => Some(self.started.elapsed().saturating_sub(Duration::from_millis(at))),
        }
    }

    pub(super) fn idle(&self) -> Duration {
        if self.client.in_flight() > 0 {
            return Duration::ZERO;
        }
        self.started.elapsed().saturating_sub(Duration::from_millis(self.used.load(Ordering::Relaxed)))
    }

    /// Whether only a part of its root is watched for changes of others.
    pub(crate) fn watches_in_part(&self) -> bool {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_none_or(|watch| watch.partial)
    }

    /// Ends it and waits until it and everything below it is dead.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        // An error means that the keeper is gone, and the process with it.
        let _ = ended.wait_for(Option::is_some).await;
    }

    fn touch(&self) {
        self.used.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    pub(super) fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, as well as it can be known soon.
    async fn epitaph(&self, why: String) -> String {
        let mut ended = self.ended.clone();
        let known = tokio::time::timeout(SHUTDOWN, ended.wait_for(Option::is_some)).await;
        match known {
            Ok(Ok(ended)) => ended.clone().unwrap_or(why),
            _ => why,
        }
    }

    /// [`Server::serial`] when a save was last announced: a checker that began before has not seen what was saved. 0 before the first.
    pub(crate) fn last_save(&self) -> u64 {
        self.last_save.load(Ordering::Relaxed)
    }

    /// How often it was noticed that others had changed files of its root, or files that are open here.
    pub(crate) fn foreign_changes(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }
}

/// Why the server's copy of a file could not be brought up to date.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SyncError {
    /// The file cannot be given to a server.
    #[error("`{}`: {error}", path.display())]
    Document {
        /// Which.
        path: PathBuf,
        /// Why.
        error: DocumentError,
    },
    /// The server cannot be told.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Progress of a project check, which says nothing about whether the server has loaded.
fn is_check(token: &str) -> bool {
    token.contains("flycheck") || token.contains("cargo check")
}

/// Reads a server's error output to its end, looks through it for errors that matter, and keeps the last of it.
pub(super) async fn drain_stderr(
    mut stderr: haft_system::ProcessStderr,
    ring: Arc<Mutex<Vec<u8>>>,
    heard: Arc<Heard>,
) {
    let mut buffer = [0; 4096];
    let mut line = Vec::new();
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        for part in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(&part[..part.len().min(STDERR_BYTES - line.len())]);
            if part.ends_with(b"\n") {
                let words = String::from_utf8_lossy(&line);
                if words.contains("ERROR ") {
                    heard.error(&words);
                }
                line.clear();
            }
        }
        let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.extend_from_slice(&buffer[..count]);
        let surplus = ring.len().saturating_sub(STDERR_BYTES);
        ring.drain(..surplus);
    }
}

/// The last lines of a server's error output, for people.
pub(super) fn stderr_tail(ring: &Mutex<Vec<u8>>) -> String {
    let ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&ring);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join("\n")
}

/// Owns the process of a server: notes its end, and ends it when it is told to or when its output is over.
pub(super) async fn keep(
    mut process: Process,
    client: Client,
    over: CancellationToken,
    stop: CancellationToken,
    stderr: Arc<Mutex<Vec<u8>>>,
    ended: watch::Sender<Option<String>>,
    heard: Arc<Heard>,
) {
    let exit = tokio::select! {
        exit = process.wait() => How::Died(exit),
        () = stop.cancelled() => {
            // `shutdown` without params: some servers reject `null` and stay.
            if client.request("shutdown", Value::Null, SHUTDOWN).await.is_ok() {
                let _ = client.notify("exit", Value::Null);
                let _ = tokio::time::timeout(SHUTDOWN, process.wait()).await;
            }
            client.close("it was stopped");
            process.terminate().await;
            How::Stopped
        }
        () = over.cancelled() => {
            let why = heard.state().closed.clone();
            match tokio::time::timeout(SHUTDOWN, process.wait()).await {
                Ok(exit) => How::Died(exit),
                Err(_) => {
                    process.terminate().await;
                    How::Broke(why.unwrap_or_else(|| "the connection to it broke".into()))
                }
            }
        }
    };
    let how = match exit {
        How::Stopped => "it was stopped".to_owned(),
        How::Died(exit) => format!("it ended ({exit})"),
        How::Broke(why) => format!("it was ended: {why}"),
    };
    let tail = stderr_tail(&stderr);
    let words = if tail.is_empty() || how == "it was stopped" {
        how
    } else {
        format!("{how}; its last error output:\n{tail}")
    };
    client.close(&words);
    ended.send_replace(Some(words.clone()));
    heard.note(|state| state.closed = Some(words));
}

enum How {
    Died(Exit),
    Broke(String),
    Stopped,
}
