//! A working directory with the three tools on it, called through the registry as everybody calls them.

#![allow(dead_code, reason = "every test file uses its own part of this")]

use std::{fs, path::PathBuf, sync::Arc};

use haft_structure::{AstEdit, AstGrep, Engine, Resolve, Staging};
use haft_system::{Changes, Workdir};
use haft_tool::{Call, Context, Family, Origin, Outcome, Registry, Surface};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) registry: Registry,
    pub(crate) staging: Arc<Staging>,
    pub(crate) changes: Changes,
    pub(crate) workdir: Workdir,
}

impl Bench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("work");
        fs::create_dir(&root).unwrap();
        let workdir = Workdir::new(&root).unwrap();
        let (changes, _) = Changes::open(workdir.clone(), directory.path().join("journal")).unwrap();
        let engine = Arc::new(Engine::new());
        let staging = Arc::new(Staging::new());
        let registry = Registry::builder()
            .tool(AstGrep::new(workdir.clone(), Arc::clone(&engine)), Family::Workshop)
            .tool(
                AstEdit::new(workdir.clone(), changes.clone(), engine, Arc::clone(&staging)),
                Family::Workshop,
            )
            .tool(Resolve::new(changes.clone(), Arc::clone(&staging)), Family::Workshop)
            .build();
        let bench = Bench { directory, registry, staging, changes, workdir };
        for (file, text) in files {
            bench.write(file, text.as_bytes());
        }
        bench
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join("work").join(file)
    }

    pub(crate) fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        String::from_utf8(self.bytes(file)).unwrap()
    }

    pub(crate) fn bytes(&self, file: &str) -> Vec<u8> {
        fs::read(self.path(file)).unwrap()
    }

    /// One call; a runtime of its own, so that tests need not be async.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let call = Call::new(tool, arguments, Origin::Console);
        runtime.block_on(self.registry.call(&Surface::agent(), call, Context::detached()))
    }

    /// A call that must work.
    pub(crate) fn ok(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.call(tool, arguments);
        assert!(!outcome.is_error, "{}", outcome.all_text());
        outcome
    }

    /// A call that must fail: what it says.
    pub(crate) fn fails(&self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments);
        assert!(outcome.is_error, "it worked: {}", outcome.all_text());
        outcome.all_text()
    }

    /// Rewrites and accepts; the file's new text.
    pub(crate) fn rewritten(&self, file: &str, pattern: &str, rewrite: &str) -> String {
        let arguments = serde_json::json!({"pattern": pattern, "rewrite": rewrite, "path": file});
        let staged = self.ok("ast_edit", arguments);
        let id = staged.structured["edit_id"].clone();
        self.ok("resolve", serde_json::json!({"edit_id": id, "action": "accept"}));
        String::from_utf8_lossy(&self.bytes(file)).into_owned()
    }
}

/// `file:line matched {bindings}` of every match.
pub(crate) fn matches(outcome: &Outcome) -> Vec<String> {
    let matches = outcome.structured["matches"].as_array().cloned().unwrap_or_default();
    matches
        .iter()
        .map(|found| {
            let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
            format!("{}:{} {} {}", text("file"), found["line"], text("matched"), found["bindings"])
        })
        .collect()
}
