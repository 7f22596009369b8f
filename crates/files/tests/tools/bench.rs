use std::{fs, path::PathBuf};

use haft_files::{ApplyPatch, Edit, Glob, Read, Reads, Search, Write};
use haft_system::{Changes, Workdir};
use haft_tool::{Call, Content, Context, Family, Origin, Outcome, Registry, Surface};
use serde_json::Value;
use tempfile::TempDir;

/// A working directory with the tools over it.
pub(crate) struct Bench {
    pub(crate) root: PathBuf,
    pub(crate) changes: Changes,
    registry: Registry,
    directory: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("work");
        fs::create_dir(&root).unwrap();
        let workdir = Workdir::new(&root).unwrap();
        let (changes, recovered) = Changes::open(workdir.clone(), directory.path().join("journal")).unwrap();
        assert_eq!(recovered, vec![]);
        let reads = Reads::new();
        let registry = Registry::builder()
            .tool(Read::new(workdir.clone(), reads.clone()), Family::General)
            .tool(Glob::new(workdir.clone()), Family::General)
            .tool(Search::new(workdir.clone()), Family::General)
            .tool(Write::new(changes.clone(), reads.clone()), Family::General)
            .tool(Edit::new(changes.clone(), reads.clone()), Family::General)
            .tool(ApplyPatch::new(changes.clone(), reads), Family::General)
            .build();
        Bench { root: workdir.root().to_owned(), changes, registry, directory }
    }

    /// A directory beside the working directory.
    pub(crate) fn outside(&self) -> PathBuf {
        self.directory.path().to_owned()
    }

    /// Puts files there, with their directories.
    pub(crate) fn with<'a>(self, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        for (path, content) in files {
            self.put(path, content.as_bytes());
        }
        self
    }

    pub(crate) fn put(&self, path: &str, content: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.root.join(path)).unwrap()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    /// Every file below the working directory with its content, in order.
    pub(crate) fn tree(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&self.root).unwrap().to_string_lossy().into_owned();
                    found.push((name, String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()));
                }
            }
        }
        found.sort();
        found
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = Call::new(tool, arguments, Origin::Console);
        self.registry.call(&Surface::agent(), call, Context::detached()).await
    }

    /// A call's outcome for a snapshot: what the model sees, then the fields for programs.
    pub(crate) async fn said(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        let mut text = if outcome.is_error { "ERROR\n".to_owned() } else { String::new() };
        for piece in &outcome.content {
            match piece {
                Content::Text { text: piece } => text.push_str(piece),
                Content::Image { mime, .. } => text.push_str(&format!("\n<{mime}>")),
                Content::Table { .. } => text.push_str("\n<table>"),
            }
        }
        text.push_str(&format!("\n--- {}", Value::Object(outcome.structured)));
        text.replace(&self.root.to_string_lossy().into_owned(), "[root]")
            .replace(&self.directory.path().to_string_lossy().into_owned(), "[outside]")
    }
}

/// Snapshots of several outcomes in one.
pub(crate) fn joined(said: impl IntoIterator<Item = String>) -> String {
    said.into_iter().collect::<Vec<_>>().join("\n\n==========\n")
}
