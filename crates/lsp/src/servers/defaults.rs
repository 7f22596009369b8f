//! Settings that depend on the checkout.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Found, ServerSpec, table::merge};

/// The settings of a server for a root: the table's, with what the checkout adds.
pub(crate) fn settings(spec: &ServerSpec, root: &Path, workdir: &Path) -> Value {
    let mut settings = json!({});
    if matches!(spec.id.as_str(), "pyright" | "basedpyright" | "pyrefly")
        && let Some(interpreter) = interpreter(root, workdir)
    {
        merge(&mut settings, &json!({ "python": { "pythonPath": interpreter.display().to_string() } }));
    }
    if !spec.settings.is_null() {
        merge(&mut settings, &spec.settings);
    }
    settings
}

/// The `initializationOptions` of a server: the table's, with what the machine and the files of the project add. `null` where there are none.
pub(crate) fn initialization_options<'a>(
    spec: &ServerSpec,
    found: &Found,
    files: impl Iterator<Item = &'a PathBuf>,
) -> Value {
    let mut options = Value::Null;
    // clangd takes a header of which nothing is known for C++, and then what it declares for something else than what a file in C defines.
    if spec.id == "clangd" && is_in_c(files) {
        options = json!({ "fallbackFlags": ["-xc"] });
    }
    if spec.id == "rust-analyzer"
        && let Some(sources) = debian_rust_sources(found)
    {
        options = json!({ "cargo": { "sysrootSrc": sources.display().to_string() } });
    }
    if !spec.initialization_options.is_null() {
        merge_or_set(&mut options, &spec.initialization_options);
    }
    options
}

fn merge_or_set(under: &mut Value, over: &Value) {
    if under.is_null() { *under = over.clone() } else { merge(under, over) }
}

/// Whether there are sources in C, and none in another language of the family.
fn is_in_c<'a>(files: impl Iterator<Item = &'a PathBuf>) -> bool {
    let mut is_c = false;
    for extension in files.filter_map(|path| path.extension()?.to_str()) {
        match extension {
            "c" => is_c = true,
            "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "m" | "mm" | "cu" => return false,
            _ => {}
        }
    }
    is_c
}

/// The project's own Python: a virtual environment at the root or above it.
fn interpreter(root: &Path, workdir: &Path) -> Option<PathBuf> {
    root.ancestors()
        .take_while(|directory| directory.starts_with(workdir))
        .flat_map(|directory| [directory.join(".venv/bin/python"), directory.join("venv/bin/python")])
        .find(|path| path.exists())
}

/// Debian's analyzer comes without rustup's sources of the standard library; Debian packs them under `/usr/src`.
fn debian_rust_sources(found: &Found) -> Option<PathBuf> {
    if !found.program.starts_with("/usr/bin") {
        return None;
    }
    let mut sources: Vec<PathBuf> = std::fs::read_dir("/usr/src")
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("rustc-")))
        .map(|entry| entry.path().join("library"))
        .filter(|path| path.is_dir())
        .collect();
    sources.sort();
    sources.pop()
}
