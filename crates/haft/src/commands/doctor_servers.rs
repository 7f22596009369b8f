//! The language servers of a checkout, for `haft doctor`.

use std::path::Path;

use haft_agent::config::Config;
use haft_lsp::{
    Checkout, ServerStatus, Servers,
    servers::{InstallStep, Table, install},
};
use haft_system::{Environment, Supervisor, Workdir};

use crate::output::out;

/// A language server that has a root in the checkout.
pub(crate) struct Line {
    /// Whether it can be started.
    pub(crate) usable: bool,
    /// Where, and with which program or why not.
    pub(crate) detail: String,
    /// The command that brings it, where it is missing.
    pub(crate) remedy: Option<String>,
}

/// Looks for the language servers that this checkout could use. With `fetch`, those that are missing are installed into Haft's own folder first,
/// where that is a way to have them.
pub(crate) async fn servers(
    environment: &Environment,
    config: &Config,
    directory: &Path,
    fetch: bool,
) -> anyhow::Result<Vec<Line>> {
    let processes = Supervisor::new(environment.clone());
    let table = Table::shipped()?.with_what_fits(config.language_servers());
    let servers = Servers::new(environment.clone(), processes.clone());
    let checkout = Checkout::new(servers, Workdir::new(directory)?, table);
    let mut status = relevant(&checkout).await;
    if fetch {
        let mut tried = Vec::new();
        for server in status.iter().filter(|server| is_missing(server)) {
            if !tried.contains(&server.id) {
                tried.push(server.id.clone());
                fetch_one(&checkout, &processes, &server.id).await?;
            }
        }
        checkout.servers().resolver().forget();
        status = relevant(&checkout).await;
    }
    processes.shutdown().await;
    let mut lines: Vec<Line> = status.into_iter().map(|server| line(server, checkout.table())).collect();
    for (id, why) in checkout.table().broken() {
        lines.push(Line { usable: false, detail: format!("{id}: {why}"), remedy: None });
    }
    Ok(lines)
}

/// The servers with a root here. Of alternatives only the one that is used, or, where there is none, one that could be had.
/// Servers without a file of their languages below the root are left out: `package.json` marks a root for half a dozen of them.
async fn relevant(checkout: &Checkout) -> Vec<ServerStatus> {
    let table = checkout.table();
    let mut list = Vec::new();
    for server in checkout.status().await {
        let (Some(spec), Some(root)) = (table.get(&server.id), &server.root) else { continue };
        if checkout.any_file(spec, &checkout.workdir().root().join(root)).await.is_some() {
            list.push(server);
        }
    }
    let group = |server: &ServerStatus| table.get(&server.id).and_then(|spec| spec.group);
    let is_own = |server: &ServerStatus| {
        let steps = table.get(&server.id).map(|spec| spec.install.steps()).unwrap_or_default();
        matches!(steps.first(), Some(InstallStep::Own(_)))
    };
    let mut kept: Vec<ServerStatus> = Vec::new();
    for server in &list {
        let rivals =
            || list.iter().filter(|other| group(other) == group(server) && other.root == server.root);
        let best = rivals()
            .find(|other| other.state == "stopped")
            .or_else(|| rivals().find(|other| is_own(other)))
            .or_else(|| rivals().next());
        if group(server).is_none() || best.is_some_and(|best| best.id == server.id) {
            kept.push(server.clone());
        }
    }
    kept
}

fn is_missing(server: &ServerStatus) -> bool {
    server.binary.is_none() && server.install.is_some()
}

async fn fetch_one(checkout: &Checkout, processes: &Supervisor, id: &str) -> anyhow::Result<()> {
    let Some(spec) = checkout.table().get(id) else { return Ok(()) };
    let Some(place) = checkout.servers().resolver().own_place(id) else {
        out(format_args!("{id} is not installed: there is no cache folder; set HOME or XDG_CACHE_HOME"))?;
        return Ok(());
    };
    let own = spec.install.steps().into_iter().find_map(|step| match step {
        InstallStep::Own(commands) => Some(commands),
        InstallStep::System(_) | InstallStep::See(_) => None,
    });
    let Some(commands) = own else {
        out(format_args!("{id} is not installed: it comes with the system or its language's own tools"))?;
        return Ok(());
    };
    let mut told = Ok(());
    let result = install(processes, &commands, &place, &mut |command| {
        if told.is_ok() {
            told = out(format_args!("installing {id}: {command}"));
        }
    })
    .await;
    told?;
    if let Err(why) = result {
        out(format_args!("{id} could not be installed: {why}"))?;
    }
    Ok(())
}

fn line(server: ServerStatus, table: &Table) -> Line {
    let root = server.root.clone().unwrap_or_default();
    let marker = server.marker.clone().unwrap_or_default();
    let usable = server.state == "stopped";
    let program = match &server.binary {
        Some(binary) => format!(", {binary}"),
        None => String::new(),
    };
    let why = server.why_not.map(|why| format!(": {why}")).unwrap_or_default();
    let steps = table.get(&server.id).map(|spec| spec.install.steps()).unwrap_or_default();
    let is_own = steps.iter().any(|step| matches!(step, InstallStep::Own(_)));
    let also = if is_own { " (or `haft doctor --install`, into Haft's own folder)" } else { "" };
    let remedy = (!usable).then_some(server.install).flatten().map(|command| format!("{command}{also}"));
    Line { detail: format!("{} in {root} ({marker}{program}){why}", server.id), usable, remedy }
}
