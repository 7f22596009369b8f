//! A server whose other end is a test: no process, no pipe, and a clock that can be stopped.

use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Instant,
};

use serde_json::Value;
use tokio::{
    io::{DuplexStream, ReadHalf, WriteHalf},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use super::{Checkout, Server, SlotState, checkout::key_of, documents::Documents, heard::Heard};
use crate::{
    client::Client,
    position::PositionEncoding,
    servers::{Found, ServerSpec},
};

/// The server's own end of its pipes.
pub(crate) struct FarEnd {
    pub(crate) reader: ReadHalf<DuplexStream>,
    pub(crate) writer: WriteHalf<DuplexStream>,
    /// Kept, or the server counts as ended. What is sent is how it ended.
    pub(crate) ended: watch::Sender<Option<String>>,
}

/// A server that has answered `initialize` with these capabilities.
pub(crate) fn server(spec: Arc<ServerSpec>, root: &Path, capabilities: Value) -> (Server, FarEnd) {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(near);
    let heard = Arc::new(Heard::new(root.to_owned(), Value::Null, Vec::new()));
    let client = Client::start(reader, writer, heard.clone());
    let encoding = PositionEncoding::chosen(&capabilities).unwrap();
    heard.note(|state| state.capabilities = capabilities);
    let (ending, ended) = watch::channel(None);
    let found =
        Found { program: "/fake".into(), arguments: Vec::new(), version: None, passed_over: Vec::new() };
    let server = Server {
        spec,
        root: root.to_owned(),
        found,
        client,
        heard,
        documents: Mutex::new(Documents::default()),
        disk: Mutex::new(None),
        pid: 0,
        version: None,
        encoding,
        started: Instant::now(),

        initialized: std::time::Instant::now(),
        used: AtomicU64::new(0),
        stop: CancellationToken::new(),
        ended,
        unsettled: Mutex::default(),
        unloaded: Mutex::default(),
        lacks_index: false,
        unread: Mutex::default(),
        arrived: Mutex::default(),
        last_save: AtomicU64::new(0),
        opened: AtomicU64::new(0),
        foreign: AtomicU64::new(0),
        told: Mutex::default(),
        diagnosing: tokio::sync::Mutex::default(),
        silence: Mutex::default(),
        unanswered: Arc::default(),
    };
    let (reader, writer) = tokio::io::split(far);
    (server, FarEnd { reader, writer, ended: ending })
}

impl Checkout {
    /// Has `server` run for `file`, as if it had been started. The program that the table names has to be there, but is not run.
    pub(crate) async fn put_server(&self, file: &Path, server: Arc<Server>) {
        let places = self.places(file).await.unwrap();
        let place = places.iter().find(|place| place.spec.id == server.id()).unwrap();
        self.servers.hub.slot(&key_of(place)).state.send_replace(SlotState::Up(server));
    }
}
