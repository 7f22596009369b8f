//! Asking a server what it thinks of the text it has.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::{Diagnostic, Severity, merge, rules::Exact};
use crate::{
    client::RequestError,
    limits::{DIAGNOSES, PULL},
    supervisor::{Document, Server, TSSERVER},
    uri,
};

/// Whether a server offers its peculiar way. Older versions do not.
pub(super) fn offers(server: &Server, exact: Exact) -> bool {
    match exact {
        Exact::TsServer => server.takes(TSSERVER),
    }
}

/// Asks for the diagnostics of an open document; all that the server pulls under different identifiers together.
pub(super) async fn pull(
    server: &Server,
    exact: Option<Exact>,
    document: &Document,
    shown: &str,
) -> Result<Vec<Diagnostic>, RequestError> {
    match exact {
        Some(Exact::TsServer) => tsserver(server, document, shown).await,
        None => protocol(server, document, shown).await,
    }
}

async fn protocol(
    server: &Server,
    document: &Document,
    shown: &str,
) -> Result<Vec<Diagnostic>, RequestError> {
    let mut identifiers: Vec<Option<String>> = Vec::new();
    for options in server.offers("textDocument/diagnostic") {
        let identifier = options.get("identifier").and_then(Value::as_str).map(str::to_owned);
        if !identifiers.contains(&identifier) {
            identifiers.push(identifier);
        }
    }
    let mut lists = Vec::new();
    for identifier in identifiers {
        // No previous result is named, so every report is a full one: what a server calls unchanged has been seen to be stale.
        let mut params = json!({ "textDocument": { "uri": &*document.uri } });
        if let (Some(identifier), Some(fields)) = (identifier, params.as_object_mut()) {
            fields.insert("identifier".into(), identifier.into());
        }
        let report = server.ask("textDocument/diagnostic", params, PULL).await?;
        let Some(items) = report.get("items").and_then(Value::as_array) else {
            let message = "it answered with no full report".to_owned();
            return Err(RequestError::Refused { code: 0, message, data: None });
        };
        lists.push(Diagnostic::list_from_lsp(shown, items));
    }
    Ok(merge(&lists))
}

/// tsserver's own requests. They are answered in turn with the changes, so the answer is about the text that was sent last.
async fn tsserver(
    server: &Server,
    document: &Document,
    shown: &str,
) -> Result<Vec<Diagnostic>, RequestError> {
    server.catch_up().await;
    let mut found = Vec::new();
    for command in ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"] {
        let arguments = json!([command, { "file": document.path.display().to_string() }, {}]);
        let params = json!({ "command": TSSERVER, "arguments": arguments });
        let answer = server.ask("workspace/executeCommand", params, PULL).await?;
        let Some(body) = answer.get("body").and_then(Value::as_array) else {
            let message = answer
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("it answered without a result")
                .to_owned();
            return Err(RequestError::Refused { code: 0, message, data: None });
        };
        found.extend(body.iter().filter_map(|one| from_tsserver(one, shown)));
    }
    Ok(merge(&[found]))
}

/// `{start: {line, offset}, end, text, code, category}`; both count from 1, columns in UTF-16 units.
fn from_tsserver(value: &Value, shown: &str) -> Option<Diagnostic> {
    let number = |pointer: &str| {
        value.pointer(pointer).and_then(Value::as_u64).map_or(0, |n| n.saturating_sub(1) as u32)
    };
    let span = [number("/start/line"), number("/start/offset"), number("/end/line"), number("/end/offset")];
    let severity = match value.get("category").and_then(Value::as_str) {
        Some("warning") => Severity::Warning,
        Some("suggestion") => Severity::Hint,
        Some("message") => Severity::Information,
        _ => Severity::Error,
    };
    Some(Diagnostic {
        file: shown.to_owned(),
        line: span[0] + 1,
        severity,
        code: value.get("code").and_then(Value::as_u64).map(|code| code.to_string()),
        message: value.get("text").and_then(Value::as_str)?.trim().to_owned(),
        source: Some(value.get("source").and_then(Value::as_str).unwrap_or("typescript").to_owned()),
        span,
    })
}

/// The same, with what no server knows: it is refused where messages are read, and waits for no work.
pub(super) async fn in_turn(server: &Server) -> Result<(), RequestError> {
    match server.request("haft/barrier", json!({}), PULL).await {
        Ok(_) | Err(RequestError::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A request whose answer shows that the server has read everything that was sent before it. Any answer will do, a refusal too.
pub(super) async fn barrier(server: &Server, document: &Document) -> Result<(), RequestError> {
    let uri = json!({ "uri": &*document.uri });
    let start = json!({ "line": 0, "character": 0 });
    let (method, params) = if server.can("textDocument/documentSymbol") {
        ("textDocument/documentSymbol", json!({ "textDocument": uri }))
    } else if server.can("textDocument/hover") {
        ("textDocument/hover", json!({ "textDocument": uri, "position": start }))
    } else if server.can("textDocument/codeAction") {
        let range = json!({ "start": start, "end": start });
        (
            "textDocument/codeAction",
            json!({ "textDocument": uri, "range": range, "context": { "diagnostics": [] } }),
        )
    } else {
        // The protocol wants an answer to every request, and this one is refused.
        ("haft/barrier", json!({}))
    };
    match server.request(method, params, PULL).await {
        Ok(_) | Err(RequestError::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// gopls looks at a changed package at once and at those that import it a moment later, without a word when that is done. It has a command that is answered when it is.
const DIAGNOSE: &str = "gopls.diagnose_files";

/// Whether a server can be asked to look at all of its root, and says when it has.
pub(crate) fn diagnoses(server: &Server) -> bool {
    server.takes(DIAGNOSE)
}

/// Has it look at the roots of these files, and publish what it has not said yet. `since`: a [`Server::tick`]; nothing is asked where it has looked at everything after that already.
pub(crate) async fn diagnose(
    server: &Server,
    files: &[&Path],
    since: u64,
    limit: Duration,
) -> Result<(), RequestError> {
    // One at a time, for one answer will do for all that wait.
    let _turn = server.diagnosing().lock().await;
    if server.diagnosed() >= since {
        return Ok(());
    }
    server.catch_up().await;
    let files: Vec<String> = files.iter().map(|file| uri::from_path(file)).collect();
    let params = json!({ "command": DIAGNOSE, "arguments": [{ "Files": files }] });
    for _ in 0..DIAGNOSES {
        let asked_at = server.tick();
        server.ask("workspace/executeCommand", params.clone(), limit).await?;
        server.has_diagnosed(asked_at);
        // What it was told of meanwhile makes what it found of other files outdated before it is published.
        if server.told_last() < asked_at {
            break;
        }
    }
    Ok(())
}
