//! What is peculiar about how a server delivers diagnostics: data, one constant per kind of server.

use std::time::Duration;

use super::{Diagnostic, Severity};
use crate::{
    limits::SYNTAX_ERRORS,
    servers::{ServerSpec, Settle as SettleBy},
};

/// How it is told that a server has said all it has to say about a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long nothing more may come after a publication that names the version.
    pub settle_versioned: Duration,
    /// How long nothing more may come after a publication without a version.
    pub settle_unversioned: Duration,
    /// A program that the server runs after a save, whose findings come by push.
    pub external: Option<External>,
    /// A way to ask for exactly what the server thinks of the current text, beside the protocol's own.
    pub exact: Option<Exact>,
    /// Whether the server publishes about files that are not open, so that one it has said nothing about has no problems.
    pub whole_workspace: bool,
    /// It says nothing of a text that it was given again and finds as before; there is a way to make it.
    pub silent_when_same: bool,
    /// It can be asked to look at everything ([`super::pull::diagnose`]), and has said all it has to say when it answers. Known once it runs.
    pub by_request: bool,
    /// While it reports work it may publish what it knew before, under the new version too.
    pub publishes_early: bool,
    /// Files of its configuration that it reads anew some time after it was told of a change; it answers from the old one until then, and asks for a refresh when it has.
    pub reconfigures_late: &'static [&'static str],
}

/// A checker that a server runs after a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct External {
    /// Its progress token begins with this.
    pub token: &'static str,
    /// For people: "cargo check".
    pub name: &'static str,
    /// If it has not begun this long after the save, it does not run.
    pub begin_within: Duration,
    /// The same for a server that has been seen to run it, or that has only just started. A busy machine is slow to begin.
    pub begin_surely_within: Duration,
    /// How long it is waited for in all.
    pub cap: Duration,
    /// How long after its end nothing that puts it in doubt may come.
    pub settle: Duration,
    /// The same after several saves at once: each breaks the check off that the one before began, and the next begins 50 ms later.
    pub settle_batch: Duration,
}

/// How to ask exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    /// `workspace/executeCommand` `typescript.tsserverRequest`: tsserver's own synchronous requests. The two servers around tsserver publish
    /// without a version and mix new syntax errors with old semantic ones while they wait.
    TsServer,
}

/// Servers that name versions, or answer pulls, and have nothing peculiar.
pub const PLAIN: Rules = Rules {
    settle_versioned: Duration::from_millis(5),
    settle_unversioned: Duration::from_millis(150),
    external: None,
    exact: None,
    whole_workspace: false,
    silent_when_same: false,
    by_request: false,
    publishes_early: false,
    reconfigures_late: &[],
};

/// gopls: publishes about every package of the workspace. What it finds by checking types comes at once, what its analyses find and what others have by it after its
/// `diagnosticsDelay` (the table's), under the same version; one that can be asked to look at everything (0.16 and later) is not waited for so long.
pub const GOPLS: Rules =
    Rules { whole_workspace: true, settle_versioned: Duration::from_millis(400), ..PLAIN };

/// clangd: publishes nothing for a version in which neither the text nor what it includes has changed, and otherwise once for each, as long as it has no old preamble (see
/// `Server::give`).
pub const CLANGD: Rules =
    Rules { silent_when_same: true, settle_versioned: Duration::from_millis(1), ..PLAIN };

/// pyrefly: publishes several times for a version, what it knew of other files first.
pub const PYREFLY: Rules =
    Rules { publishes_early: true, settle_versioned: Duration::from_millis(20), ..PLAIN };

/// pyright and basedpyright.
pub const PYRIGHT: Rules = Rules { reconfigures_late: &["pyrightconfig.json", "pyproject.toml"], ..PLAIN };

/// typescript-language-server and vtsls.
pub const TSSERVER: Rules = Rules { exact: Some(Exact::TsServer), ..PLAIN };

/// rust-analyzer: native errors by pull, those of cargo check by push. It publishes the results of the last check under the new version right
/// after a change, so a version proves nothing; the end of the check's progress does (measured: it begins 120 to 350 ms after the save).
pub const RUST_ANALYZER: Rules = Rules {
    external: Some(External {
        token: "rust-analyzer/flycheck",
        name: "cargo check",
        begin_within: Duration::from_millis(500),
        begin_surely_within: Duration::from_secs(10),
        cap: Duration::from_mins(1),
        settle: Duration::from_millis(10),
        settle_batch: Duration::from_millis(150),
    }),
    whole_workspace: true,
    ..PLAIN
};

/// The rules of a server of the table.
pub fn of(spec: &ServerSpec) -> Rules {
    match (spec.settle, spec.id.as_str()) {
        (SettleBy::Flycheck, _) if checks_are_off(spec) => Rules { external: None, ..RUST_ANALYZER },
        (SettleBy::Flycheck, _) => RUST_ANALYZER,
        (SettleBy::Generic, "gopls") => GOPLS,
        (SettleBy::Generic, "clangd") => CLANGD,
        (SettleBy::Generic, "pyrefly") => PYREFLY,
        (SettleBy::Generic, "pyright" | "basedpyright") => PYRIGHT,
        (SettleBy::Generic, "typescript-language-server" | "vtsls") => TSSERVER,
        (SettleBy::Generic, _) => PLAIN,
    }
}

/// How the reason begins that [`not_analysed`] gives.
pub(super) const NOT_ANALYSED: &str = "it has not analysed the file as part of the project";

/// What a server says, among its findings, when it has not looked at a file as a part of the project: its other findings are then of the syntax alone, which
/// are told along, and there being none says nothing.
pub fn not_analysed(spec: &ServerSpec, found: &[Diagnostic]) -> Option<String> {
    let says_so = |one: &&Diagnostic| match spec.id.as_str() {
        // No build has the file: the `go` command does not work, its build constraints leave it out, or its module is not of the workspace. Errors of `go list` itself
        // (an import that is not there) have the same source and are errors.
        "gopls" => one.source.as_deref() == Some("go list") && one.severity == Severity::Warning,
        // No `mod` names it, so no crate has it and `cargo check` passes it over.
        "rust-analyzer" => one.code.as_deref() == Some("unlinked-file"),
        _ => false,
    };
    let first = |text: &str| text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
    let reason = first(&found.iter().find(says_so)?.message);
    let mut words = format!("{NOT_ANALYSED}: {reason}");
    let rest: Vec<&Diagnostic> =
        found.iter().filter(|one| !says_so(one) && one.severity == Severity::Error).collect();
    for (index, one) in rest.iter().take(SYNTAX_ERRORS).enumerate() {
        let before = if index == 0 { "; what it finds all the same: " } else { ", " };
        words.push_str(&format!("{before}{}:{} {}", one.file, one.line, first(&one.message)));
    }
    if rest.len() > SYNTAX_ERRORS {
        words.push_str(&format!(", and {} more", rest.len() - SYNTAX_ERRORS));
    }
    Some(words)
}

/// Whether config has switched rust-analyzer's check off.
fn checks_are_off(spec: &ServerSpec) -> bool {
    let places =
        [spec.initialization_options.get("checkOnSave"), spec.settings.pointer("/rust-analyzer/checkOnSave")];
    places.into_iter().flatten().any(|set| *set == serde_json::Value::Bool(false))
}
