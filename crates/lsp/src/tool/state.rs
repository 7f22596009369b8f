//! status and reload.

use haft_tool::{Output, ToolError};
use serde_json::json;

use super::{Lsp, LspArguments};
use crate::{ServerStatus, servers::Role};

impl Lsp {
    pub(super) async fn status(&self) -> Output {
        let list = self.checkout.status().await;
        let mut text = words(&list);
        for why in self.checkout.table().broken().values() {
            text.push_str(&format!("\n{why}."));
        }
        Output::text(text).structured(json!({ "servers": list }))
    }

    pub(super) async fn reload(&self, arguments: &LspArguments) -> Result<Output, ToolError> {
        let file = match &arguments.file {
            None => None,
            Some(_) => Some(self.file(arguments)?),
        };
        let before = self.checkout.running();
        let stopped = self.checkout.reload(file.as_ref().map(|(path, _)| path.as_path())).await;
        let mut lines = vec![match stopped {
            0 => "No server ran here. What had failed before is forgotten.".to_owned(),
            1 => "1 server was stopped.".to_owned(),
            count => format!("{count} servers were stopped."),
        }];
        let mut started = Vec::new();
        if let Some((path, _)) = &file {
            for server in self.checkout.servers_for(path).await? {
                started.push(server);
            }
        } else {
            for old in before.iter().filter(|old| old.gone().is_some() && old.spec().role == Role::Language) {
                let Some(file) = self.checkout.any_file(old.spec(), old.root()).await else { continue };
                match self.checkout.servers_for(&file).await {
                    Ok(servers) => started.extend(servers),
                    Err(why) => lines.push(why.to_string()),
                }
            }
        }
        for server in &started {
            let version = server.version().map(|version| format!(" {version}")).unwrap_or_default();
            lines.push(format!(
                "{}{version} runs in `{}`.",
                server.id(),
                self.checkout.workdir().show(server.root())
            ));
        }
        let list = self.checkout.status().await;
        Ok(Output::text(lines.join("\n")).structured(json!({ "servers": list })))
    }
}

/// The servers that have to do with this checkout, each with what is the matter; the others by name only.
fn words(list: &[ServerStatus]) -> String {
    let mut text = String::new();
    let mut elsewhere = Vec::new();
    for server in list {
        let (Some(root), Some(marker)) = (&server.root, &server.marker) else {
            elsewhere.push(server);
            continue;
        };
        let mut facts = vec![format!("marker {marker}")];
        match &server.binary {
            Some(binary) => facts.push(format!("program {binary}")),
            None => facts.push("no program".into()),
        }
        if let Some(version) = &server.version {
            facts.push(format!("version {version}"));
        }
        if let Some(pid) = server.pid {
            facts.push(format!("pid {pid}"));
        }
        if let Some(bytes) = server.rss_bytes {
            facts.push(format!("{} MiB", bytes >> 20));
        }
        let state = if server.state == "stopped" { "starts when first asked" } else { &server.state };
        text.push_str(&format!("{} in {root}: {state} ({})", server.id, facts.join(", ")));
        if let Some(why) = &server.why_not {
            text.push_str(&format!("\n  {}", why.replace('\n', "\n  ")));
        }
        if let Some(install) = &server.install {
            text.push_str(&format!("\n  to get it: {install}"));
        }
        text.push('\n');
    }
    // The places are the same for all but for the project's own folders, so they are said once.
    let mut places: Vec<&str> = Vec::new();
    for place in list.iter().filter(|server| server.root.is_some()).flat_map(|server| &server.looked_in) {
        if !places.contains(&place.as_str()) && !place.contains("/haft/servers/") {
            places.push(place);
        }
    }
    if !places.is_empty() {
        text.push_str(&format!(
            "Programs were looked for in: {}, and where `haft doctor --install` puts them.\n",
            places.join(", ")
        ));
    }
    if text.is_empty() {
        text.push_str("No known language server has a project root in this working directory.\n");
    }
    let (with, without): (Vec<&ServerStatus>, Vec<&ServerStatus>) =
        elsewhere.into_iter().partition(|server| server.binary.is_some());
    let names =
        |list: &[&ServerStatus]| list.iter().map(|server| server.id.as_str()).collect::<Vec<_>>().join(", ");
    if !with.is_empty() {
        text.push_str(&format!("Installed, but no root marker here: {}.\n", names(&with)));
    }
    if !without.is_empty() {
        text.push_str(&format!(
            "Known, but neither root marker nor program (or switched off): {}.\n",
            names(&without)
        ));
    }
    text.truncate(text.trim_end().len());
    text
}
