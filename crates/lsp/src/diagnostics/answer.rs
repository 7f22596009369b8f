//! `lsp` with action `diagnostics` and a file.

use std::{path::Path, sync::Arc};

use futures::future::join_all;
use haft_tool::{Output, ToolError};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Diagnostic,
    check::{self, Checked, Given},
    counted, listed, merge,
    rules::NOT_ANALYSED,
};
use crate::{
    limits::{FILE_COLD, FILE_WARM, STRUCTURED_DIAGNOSTICS},
    supervisor::{Checkout, Server},
};

/// What the servers of a file say about it as it is on the disk. "No problems" only when each of them has analysed exactly this text.
pub(crate) async fn of_file(checkout: &Checkout, path: &Path, shown: &str) -> Result<Output, ToolError> {
    let servers = checkout.servers_for(path).await?;
    let asked = servers.iter().map(|server| async move { (server, of_server(server, path, shown).await) });
    let mut lists: Vec<Vec<Diagnostic>> = Vec::new();
    let mut by: Vec<String> = Vec::new();
    let mut why_not: Vec<String> = Vec::new();
    for (server, checked) in join_all(asked).await {
        let id = server.id();
        match checked {
            Checked::Verified(list) => {
                lists.push(list.into_iter().filter(|one| one.severity.matters()).collect());
                // What it finds by other rules is worth knowing; what it does not find says nothing.
                match server.misread() {
                    Some(why) => why_not.push(format!("{id}: {why}")),
                    None => by.push(id.to_owned()),
                }
            }
            Checked::Not(why) => why_not.push(format!("{id}: {why}")),
        }
    }
    let found = merge(&lists);
    let mut text = match (found.is_empty(), by.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!("{} in `{shown}`:\n{}", capital(&counted(&found, "")), listed(&found)),
        (true, false) => format!("No problems in `{shown}` ({}).\n", by.join(", ")),
        (false, false) => {
            format!("{} in `{shown}` ({}):\n{}", capital(&counted(&found, "")), by.join(", "), listed(&found))
        }
    };
    if !why_not.is_empty() {
        text.push_str(&format!("Not verified by {}.\n", why_not.join("; ")));
        if by.is_empty() && found.is_empty() {
            let again = if why_not.iter().all(|why| why.contains(NOT_ANALYSED)) {
                "Use"
            } else {
                "Ask again, or use"
            };
            text.push_str(&format!(
                "Whether the file has problems is not known. {again} file \"*\" for the project's own checker.\n"
            ));
        }
    }
    let mut structured = json!({
        "diagnostics": found.iter().take(STRUCTURED_DIAGNOSTICS).collect::<Vec<_>>(),
        "total": found.len(),
        "verified": why_not.is_empty(),
        "servers": by,
    });
    if !why_not.is_empty()
        && let Some(fields) = structured.as_object_mut()
    {
        fields.insert("unverified_because".into(), json!(why_not.join("; ")));
    }
    Ok(Output::text(text.trim_end()).structured(structured))
}

async fn of_server(server: &Arc<Server>, path: &Path, shown: &str) -> Checked {
    let limit = if server.age() < FILE_COLD { FILE_COLD } else { FILE_WARM };
    match Given::from_disk(server, path, false) {
        Ok(given) => check::wait(server, given, shown, Instant::now() + limit).await,
        Err(error) => Checked::Not(error.to_string()),
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
