//! Starting one server: process, handshake, watch over the disk.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Instant,
};

use haft_system::{OutputMode, ProcessSpec, StderrMode, StdinMode, Supervisor};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    Server,
    disk::DiskWatch,
    documents::Documents,
    heard::{Heard, folders},
    server::{drain_stderr, keep},
};
use crate::{
    client::{Client, RequestError},
    limits::{INITIALIZE, UNINDEXED},
    position::PositionEncoding,
    servers::{Found, ServerSpec, initialization_options, settings, unindexed},
    uri,
};

/// Starts a server and waits until it has answered `initialize`. The words of the error say what happened, its last error output included.
pub(super) async fn start(
    processes: &Supervisor,
    spec: Arc<ServerSpec>,
    found: Found,
    root: PathBuf,
    workdir: &Path,
) -> Result<Server, String> {
    let begun = Instant::now();
    let mut process_spec = ProcessSpec::new(&found.program, &root)
        .args(&found.arguments)
        .stdin(StdinMode::Piped)
        .stdout(OutputMode::Piped)
        .stderr(StderrMode::Piped)
        .label(format!("language server {} in {}", spec.id, root.display()));
    for (name, value) in &spec.env {
        process_spec = process_spec.env(name, value);
    }
    // The walk over the tree and the server's own start go on side by side.
    let watching = {
        // What the files of a root use may be in another one beside it.
        let place = if root.starts_with(workdir) { workdir.to_owned() } else { root.clone() };
        let root = root.clone();
        tokio::task::spawn_blocking(move || DiskWatch::start(&place, &root))
    };
    let mut process = processes.spawn(process_spec).await.map_err(|error| error.to_string())?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (process.take_stdin(), process.take_stdout(), process.take_stderr())
    else {
        return Err("its pipes are missing".into());
    };
    let pid = process.pid();
    let settings = settings(&spec, &root, workdir);
    let heard = Arc::new(Heard::new(root.clone(), settings.clone(), spec.misread.clone()));
    let client = Client::start(stdout, stdin, heard.clone());
    let ring = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(drain_stderr(stderr, ring.clone(), heard.clone()));
    let stop = CancellationToken::new();
    let (ending, ended) = watch::channel(None);
    tokio::spawn(keep(process, client.clone(), client.over(), stop.clone(), ring, ending, heard.clone()));

    let mut params = json!({
        "processId": null,
        "clientInfo": { "name": "haft", "version": env!("CARGO_PKG_VERSION") },
        "rootPath": root.display().to_string(),
        "rootUri": uri::from_path(&root),
        "workspaceFolders": folders(&root),
        "capabilities": client_capabilities(),
    });
    // What it is told at the start may depend on which files there are; others are not held up by the walk.
    let (early, late) = if spec.indexed_by.is_empty() {
        (None, Some(watching))
    } else {
        (watch_of(watching, &root).await, None)
    };
    let files = || early.iter().flat_map(DiskWatch::files);
    let options = initialization_options(&spec, &found, files());
    if !options.is_null()
        && let Some(fields) = params.as_object_mut()
    {
        fields.insert("initializationOptions".into(), options);
    }
    let answer = match client.request("initialize", params, INITIALIZE).await {
        Ok(answer) => answer,
        Err(error) => {
            let why = match error {
                RequestError::Gone(why) => wait_for_end(ended, why).await,
                RequestError::TimedOut(limit) => {
                    stop.cancel();
                    format!("it did not answer `initialize` within {} s", limit.as_secs())
                }
                other => {
                    stop.cancel();
                    format!("it refused `initialize`: {other}")
                }
            };
            return Err(why);
        }
    };
    let capabilities = answer.get("capabilities").cloned().unwrap_or(Value::Null);
    let Some(encoding) = PositionEncoding::chosen(&capabilities) else {
        stop.cancel();
        return Err(format!(
            "it chose a position encoding that was not offered: {}",
            capabilities.get("positionEncoding").cloned().unwrap_or_default()
        ));
    };
    let info = |field: &str| {
        let text = answer.get("serverInfo")?.get(field)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let version = info("version").or_else(|| found.version.clone());
    heard.note(|state| state.capabilities = capabilities);
    let initialized = Instant::now();
    // Some servers stay silent until they have been given their settings.
    client
        .notify("initialized", json!({}))
        .and_then(|()| client.notify("workspace/didChangeConfiguration", json!({ "settings": settings })))
        .map_err(|error| error.to_string())?;
    let inside = files().filter(|path| path.starts_with(&root));
    let arrived: BTreeSet<PathBuf> = unindexed(&spec, inside, UNINDEXED).into_iter().collect();
    let disk = match late {
        Some(watching) => watch_of(watching, &root).await,
        None => early,
    };
    Ok(Server {
        lacks_index: !arrived.is_empty(),
        spec,
        root,
        found,
        client,
        heard,
        documents: Mutex::new(Documents::default()),
        disk: Mutex::new(disk),
        pid,
        version,
        encoding,
        started: begun,
        initialized,
        used: AtomicU64::new(begun.elapsed().as_millis() as u64),
        stop,
        ended,
        unsettled: Mutex::default(),
        unloaded: Mutex::default(),
        unread: Mutex::default(),
        arrived: Mutex::new(arrived),
        last_save: AtomicU64::new(0),
        opened: AtomicU64::new(0),
        foreign: AtomicU64::new(0),
        told: Mutex::default(),
        diagnosing: tokio::sync::Mutex::default(),
        silence: Mutex::default(),
        unanswered: Arc::default(),
    })
}

/// The watch over a root, where one could be begun.
async fn watch_of(watching: JoinHandle<std::io::Result<DiskWatch>>, root: &Path) -> Option<DiskWatch> {
    match watching.await {
        Ok(Ok(watch)) => Some(watch),
        Ok(Err(error)) => {
            tracing::warn!(%error, root = %root.display(), "changes of others cannot be watched for; open files are still compared with the disk");
            None
        }
        Err(_) => None,
    }
}

async fn wait_for_end(mut ended: watch::Receiver<Option<String>>, why: String) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(ended) => ended.clone().unwrap_or(why),
        Err(_) => why,
    }
}

/// What Haft can take. What is not here is not sent by servers that keep to the protocol, and tolerated from the others.
fn client_capabilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-8", "utf-32", "utf-16"] },
        "workspace": {
            "applyEdit": false,
            "configuration": true,
            "workspaceFolders": true,
            "didChangeConfiguration": { "dynamicRegistration": true },
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
            "symbol": { "dynamicRegistration": true },
            "diagnostics": { "refreshSupport": true },
            "workspaceEdit": {
                "documentChanges": true,
                "resourceOperations": ["create", "rename", "delete"],
                "failureHandling": "transactional",
            },
        },
        "textDocument": {
            "synchronization": { "didSave": true, "dynamicRegistration": true },
            "definition": { "linkSupport": true, "dynamicRegistration": true },
            "typeDefinition": { "linkSupport": true, "dynamicRegistration": true },
            "implementation": { "linkSupport": true, "dynamicRegistration": true },
            "references": { "dynamicRegistration": true },
            "hover": { "contentFormat": ["markdown", "plaintext"], "dynamicRegistration": true },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true, "dynamicRegistration": true },
            "callHierarchy": { "dynamicRegistration": true },
            "rename": { "prepareSupport": true, "dynamicRegistration": true },
            "codeAction": {
                "dynamicRegistration": true,
                "dataSupport": true,
                "isPreferredSupport": true,
                "disabledSupport": true,
                "resolveSupport": { "properties": ["edit"] },
                "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [
                    "quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite", "source", "source.organizeImports",
                ] } },
            },
            "publishDiagnostics": {
                "relatedInformation": true, "versionSupport": true, "codeDescriptionSupport": true, "dataSupport": true,
            },
            "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": true },
        },
        "window": { "workDoneProgress": true, "showMessage": {} },
        "experimental": { "serverStatusNotification": true },
    })
}
