//! What `status` tells (SPEC L1): for every known server both halves, the marker and the program, and how those that run are.

use std::{path::Path, sync::Arc};

use serde::Serialize;

use super::{Checkout, Place, Server, ServerState};
use crate::servers::{Role, RootFound, ServerSpec};

/// One server at one root, or a known server without a root here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerStatus {
    /// Its name.
    pub id: String,
    /// Its root, as shown.
    pub root: Option<String>,
    /// The marker that was found, as shown.
    pub marker: Option<String>,
    /// Its program.
    pub binary: Option<String>,
    /// `ready`, `loading`, `stopped` (it starts when first asked), `failed`, `unavailable`, `disabled`.
    pub state: String,
    /// What keeps it from running, or what is the matter with it.
    pub why_not: Option<String>,
    /// What it says its version is.
    pub version: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Memory of its processes together.
    pub rss_bytes: Option<u64>,
    /// How it can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Where its program was looked for in vain, as shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looked_in: Vec<String>,
}

impl Checkout {
    /// Every known server: those with a root below the working directory at each of their roots, the others once.
    pub async fn status(&self) -> Vec<ServerStatus> {
        let roots = self.scan().await;
        let mut list = Vec::new();
        for spec in self.table().servers() {
            if spec.disabled {
                let broken = self.table().broken().get(&spec.id).cloned();
                list.push(ServerStatus {
                    state: "disabled".into(),
                    why_not: Some(broken.unwrap_or_else(|| "switched off in haft.toml".into())),
                    ..blank(spec)
                });
                continue;
            }
            let here: Vec<&RootFound> =
                roots.iter().filter(|(known, _)| known.id == spec.id).map(|(_, root)| root).collect();
            if here.is_empty() {
                list.push(self.rootless(spec).await);
            }
            for root in here {
                list.push(self.rooted(spec, root, &roots).await);
            }
        }
        for (id, why) in self.table().broken().iter().filter(|(id, _)| self.table().get(id).is_none()) {
            list.push(ServerStatus { state: "disabled".into(), why_not: Some(why.clone()), ..unknown(id) });
        }
        list
    }

    async fn rootless(&self, spec: &Arc<ServerSpec>) -> ServerStatus {
        let here = self.workdir().root();
        let found = self.servers().resolver().find(spec, here, here).await;
        let no_marker =
            format!("no root marker ({}) in or below the working directory", spec.markers.join(", "));
        let status = ServerStatus { state: "unavailable".into(), ..blank(spec) };
        match found {
            Ok(found) => ServerStatus {
                binary: Some(found.program.display().to_string()),
                why_not: Some(no_marker),
                ..status
            },
            Err(why) => ServerStatus {
                why_not: Some(format!("{no_marker}; {why}")),
                install: spec.install.hint(),
                looked_in: why.places.iter().map(|place| self.workdir().show(place)).collect(),
                ..status
            },
        }
    }

    async fn rooted(
        &self,
        spec: &Arc<ServerSpec>,
        root: &RootFound,
        roots: &[(Arc<ServerSpec>, RootFound)],
    ) -> ServerStatus {
        let base = ServerStatus {
            root: Some(self.workdir().show(&root.root)),
            marker: Some(self.workdir().show(&root.marker)),
            ..blank(spec)
        };
        let found = match self.servers().resolver().find(spec, &root.root, self.workdir().root()).await {
            Ok(found) => found,
            Err(why) => {
                let looked_in = match why.condition {
                    None => why.places.iter().map(|place| self.workdir().show(place)).collect(),
                    Some(_) => Vec::new(),
                };
                let other = self.alternative(spec, root, roots).await;
                let (why_not, install) = match other {
                    Some(other) => (format!("{why}; {other} is used here"), None),
                    None => (why.to_string(), spec.install.hint()),
                };
                return ServerStatus {
                    state: "unavailable".into(),
                    why_not: Some(why_not),
                    install,
                    looked_in,
                    ..base
                };
            }
        };
        let place = Place { spec: spec.clone(), root: root.clone(), found };
        let passed_over: Vec<String> = place
            .found
            .passed_over
            .iter()
            .map(|(path, said)| format!("`{}` was passed over, it does not run: {said}", path.display()))
            .collect();
        let base = ServerStatus {
            binary: Some(place.found.program.display().to_string()),
            version: place.found.version.clone(),
            why_not: (!passed_over.is_empty()).then(|| passed_over.join("; ")),
            ..base
        };
        if let Some(server) = self.peek(&place) {
            // What may come again, and explains why a first answer was slow.
            let again = self.deaths(&place).last().map(|why| format!("it was started again: {why}"));
            let why_not = [base.why_not.clone(), again].into_iter().flatten().collect::<Vec<_>>().join("; ");
            return running(
                ServerStatus { why_not: (!why_not.is_empty()).then_some(why_not), ..base },
                &server,
            );
        }
        if let Some(why) = self.deaths(&place).last() {
            return ServerStatus { state: "failed".into(), why_not: Some(why.clone()), ..base };
        }
        if let Some(other) = self.alternative(spec, root, roots).await {
            return ServerStatus {
                state: "unavailable".into(),
                why_not: Some(format!("{other} is used here instead")),
                ..base
            };
        }
        ServerStatus { state: "stopped".into(), ..base }
    }

    /// The server that is taken in place of this one at a root.
    async fn alternative(
        &self,
        spec: &Arc<ServerSpec>,
        root: &RootFound,
        roots: &[(Arc<ServerSpec>, RootFound)],
    ) -> Option<String> {
        let group = spec.group?;
        if spec.role == Role::Linter || !roots.iter().any(|(other, _)| other.group == Some(group)) {
            return None;
        }
        // Any file name of the language in that root leads to the same choice.
        let extension = spec.languages.keys().next()?;
        let places = self.places(&root.root.join(format!("x.{extension}"))).await.ok()?;
        let taken = places.iter().find(|place| place.spec.group == Some(group))?;
        (taken.spec.id != spec.id).then(|| taken.spec.id.clone())
    }
}

fn blank(spec: &ServerSpec) -> ServerStatus {
    unknown(&spec.id)
}

fn unknown(id: &str) -> ServerStatus {
    ServerStatus {
        id: id.to_owned(),
        root: None,
        marker: None,
        binary: None,
        state: String::new(),
        why_not: None,
        version: None,
        pid: None,
        rss_bytes: None,
        install: None,
        looked_in: Vec::new(),
    }
}

fn running(base: ServerStatus, server: &Server) -> ServerStatus {
    let mut matters: Vec<String> = base.why_not.clone().into_iter().collect();
    matters.extend(server.health());
    matters.extend(server.misread());
    if server.watches_in_part() {
        matters.push("only a part of its files is watched for changes by others; open files are compared with the disk all the same".into());
    }
    let state = match server.state() {
        ServerState::Ready => "ready".to_owned(),
        ServerState::Loading(what) => {
            matters.push(format!("loading: {what}"));
            "loading".to_owned()
        }
        ServerState::Gone(why) => {
            matters.push(why);
            "failed".to_owned()
        }
    };
    ServerStatus {
        state,
        why_not: (!matters.is_empty()).then(|| matters.join("; ")),
        version: server.version().map(str::to_owned),
        pid: Some(server.pid()),
        rss_bytes: memory_of(server.pid()),
        ..base
    }
}

/// Resident memory of a process and everything below it, in bytes. Shared pages count for each.
fn memory_of(pid: u32) -> Option<u64> {
    let mut sum = None;
    let mut left = vec![pid];
    let mut seen = 0;
    while let Some(pid) = left.pop() {
        seen += 1;
        if seen > 256 {
            break;
        }
        let directory = Path::new("/proc").join(pid.to_string());
        let status = std::fs::read_to_string(directory.join("status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB"));
        if let Some(kibibytes) = resident.and_then(|text| text.trim().parse::<u64>().ok()) {
            sum = Some(sum.unwrap_or(0) + kibibytes * 1024);
        }
        let tasks = std::fs::read_dir(directory.join("task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            left.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    sum
}
