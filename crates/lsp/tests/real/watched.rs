//! Projects whose writes are watched.

use std::{sync::Arc, time::Duration};

use haft_lsp::WriteDiagnostics;
use haft_system::{Change, ChangeSet, Note};
use haft_tool::Access;
use serde_json::Value;

use crate::support::Project;

/// A project whose writes are watched.
pub(crate) struct Watched {
    pub(crate) project: Project,
    pub(crate) watch: WriteDiagnostics,
}

/// `file:line` of every problem in a note, with whether it was verified.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) new: Vec<String>,
    pub(crate) verified: bool,
}

impl Watched {
    pub(crate) fn new(project: Project) -> Self {
        // Generous, so that a slow machine does not turn an answer into a late one; what comes late is tested with a server that can be told to.
        let watch = WriteDiagnostics::with_inline(project.checkout.clone(), Duration::from_secs(90));
        project.changes.observe(Arc::new(watch.clone()));
        Watched { project, watch }
    }

    pub(crate) async fn write(&self, files: &[(&str, &str)]) -> Note {
        let mut changes = Vec::new();
        for (file, text) in files {
            let path = self.project.changes.workdir().resolve(file, Access::Write).unwrap();
            let at = self.project.changes.capture(&path).await.unwrap();
            changes.push(Change::Write { at, after: text.as_bytes().to_vec() });
        }
        let committed = self.project.changes.commit(ChangeSet { changes }, "test").await.unwrap();
        committed.notes.into_iter().next().unwrap()
    }

    pub(crate) async fn said(&self, files: &[(&str, &str)]) -> Said {
        let note = self.write(files).await;
        let list = note.structured["new_diagnostics"].as_array().unwrap();
        let place = |one: &Value| format!("{}:{}", one["file"].as_str().unwrap(), one["line"]);
        let said =
            Said { new: list.iter().map(place).collect(), verified: note.structured["verified"] == true };
        assert!(said.verified, "{note:?}");
        said
    }
}

/// The project with some of the known servers switched off.
pub(crate) fn without(mut project: Project, servers: &[&str]) -> Project {
    project.switch_off(servers);
    project
}
