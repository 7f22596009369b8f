//! From a cargo package, binary, example or test to the program to debug.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use haft_system::{ProcessSpec, RunBounds, RunEnd, Supervisor};
use haft_tool::ToolError;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limits::{BUILD, BUILD_BYTES, CANDIDATES};

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// A package, target, or path of a source file or package directory. Anything if empty.
    pub(crate) name: &'a str,
    /// The same as a path.
    pub(crate) path: Option<&'a Path>,
    /// The tests of what is named.
    pub(crate) test: bool,
}

/// A program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) executable: PathBuf,
    /// What it is: `bin:demo`.
    pub(crate) label: String,
    /// The directory of its package.
    pub(crate) package: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Debug, Deserialize)]
struct Package {
    name: String,
    id: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    #[serde(default)]
    default_run: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
    /// Whether `cargo test` builds it.
    #[serde(default = "yes")]
    test: bool,
}

fn yes() -> bool {
    true
}

/// One thing that can be built and run.
#[derive(Clone, Debug)]
struct Candidate<'a> {
    package: &'a Package,
    target: &'a Target,
}

impl Candidate<'_> {
    fn kind(&self) -> &str {
        let kind = self.target.kind.first().map_or("", String::as_str);
        match kind {
            "bin" | "example" | "test" | "bench" => kind,
            _ => "lib",
        }
    }

    fn label(&self) -> String {
        format!("{}:{}", self.kind(), self.target.name)
    }

    fn described(&self) -> String {
        format!("`{}` (package {})", self.label(), self.package.name)
    }
}

/// Finds the target and builds it. The error lists candidates, or shows what the compiler said.
pub(crate) async fn build(
    supervisor: &Supervisor,
    directory: &Path,
    wish: Wish<'_>,
    cancel: &CancellationToken,
    progress: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Built, ToolError> {
    let metadata = metadata(supervisor, directory, cancel).await?;
    let chosen = choose(&metadata, wish).map_err(ToolError::model)?;
    let (kind, name) = (chosen.kind().to_owned(), chosen.target.name.clone());
    let mut words: Vec<OsString> = if wish.test || matches!(kind.as_str(), "test") {
        vec!["test".into(), "--no-run".into()]
    } else {
        vec!["build".into()]
    };
    words.extend(["--message-format=json-render-diagnostics".into(), "--package".into()]);
    words.push(chosen.package.id.clone().into());
    match kind.as_str() {
        "lib" => words.push("--lib".into()),
        kind => words.extend([format!("--{kind}").into(), name.clone().into()]),
    }
    let finished = run(supervisor, directory, &words, cancel, progress).await?;
    let stderr = finished.stderr.text();
    if !finished.exit.success() {
        return Err(ToolError::model(format!(
            "{} does not build, so it was not started:\n{}",
            chosen.described(),
            last_part(&stderr)
        )));
    }
    let stdout = finished.stdout.bytes();
    let executable = stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| {
            message["reason"] == "compiler-artifact"
                && message["target"]["name"] == name.as_str()
                && message["target"]["src_path"].as_str().map(Path::new) == Some(&*chosen.target.src_path)
                && message["profile"]["test"] == (wish.test || kind == "test")
        })
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back();
    let Some(executable) = executable else {
        return Err(ToolError::model(format!(
            "cargo built {} but named no program for it. A library has no program of its own: debug its tests with test: true, or \
             one of its binaries or examples.",
            chosen.described()
        )));
    };
    Ok(Built {
        executable,
        label: chosen.label(),
        package: chosen.package.manifest_path.parent().unwrap_or(directory).to_owned(),
    })
}

async fn metadata(
    supervisor: &Supervisor,
    directory: &Path,
    cancel: &CancellationToken,
) -> Result<Metadata, ToolError> {
    let words = ["metadata", "--no-deps", "--format-version", "1"].map(OsString::from);
    let finished = run(supervisor, directory, &words, cancel, &mut |_| {}).await?;
    if !finished.exit.success() {
        return Err(ToolError::model(format!(
            "cargo cannot read this workspace:\n{}",
            last_part(&finished.stderr.text())
        )));
    }
    serde_json::from_slice(&finished.stdout.bytes()).map_err(|error| {
        ToolError::model(format!("what `cargo metadata` answered is not understood: {error}"))
    })
}

async fn run(
    supervisor: &Supervisor,
    directory: &Path,
    words: &[OsString],
    cancel: &CancellationToken,
    progress: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<haft_system::Finished, ToolError> {
    let spec = ProcessSpec::new("cargo", directory)
        .args(words.iter().cloned())
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_TERM_PROGRESS_WHEN", "never")
        .label("cargo for debug");
    let bounds = RunBounds { time: Some(BUILD), capture_bytes: BUILD_BYTES };
    let finished = supervisor.run(spec, bounds, cancel, progress).await?;
    match finished.end {
        RunEnd::Exited => Ok(finished),
        RunEnd::Cancelled => Err(ToolError::Cancelled),
        RunEnd::TimedOut => Err(ToolError::model(format!(
            "cargo was stopped after {} minutes. Build the program with `shell` first.",
            BUILD.as_secs() / 60
        ))),
    }
}

/// The target that was meant, or words that list those that could have been.
fn choose<'a>(metadata: &'a Metadata, wish: Wish<'_>) -> Result<Candidate<'a>, String> {
    let all: Vec<Candidate<'_>> = metadata
        .packages
        .iter()
        .flat_map(|package| package.targets.iter().map(move |target| Candidate { package, target }))
        .filter(|candidate| {
            let kind = candidate.kind();
            if wish.test {
                candidate.target.test
                    && kind != "bench"
                    && candidate.target.kind.iter().all(|kind| kind != "custom-build")
            } else {
                matches!(kind, "bin" | "example" | "test")
            }
        })
        .collect();
    let list = |candidates: &[Candidate<'_>]| {
        let mut lines: Vec<String> = candidates
            .iter()
            .take(CANDIDATES)
            .map(|candidate| format!("- {}", candidate.described()))
            .collect();
        if candidates.len() > CANDIDATES {
            lines.push(format!("- and {} more", candidates.len() - CANDIDATES));
        }
        lines.join("\n")
    };
    if all.is_empty() {
        let hint = if wish.test { "" } else { " The tests of a library are debugged with test: true." };
        return Err(format!("This cargo workspace has nothing to run: no binary, example or test.{hint}"));
    }
    let label = |candidate: &Candidate<'_>| candidate.label() == wish.name;
    let source = |candidate: &Candidate<'_>| wish.path == Some(&*candidate.target.src_path);
    let name = |candidate: &Candidate<'_>| candidate.target.name == wish.name;
    let package = |candidate: &Candidate<'_>| {
        candidate.package.name == wish.name
            || wish.path.is_some_and(|path| candidate.package.manifest_path.parent() == Some(path))
    };
    // A plain name means the program before its examples and tests.
    let is_bin = |candidate: &&Candidate<'_>| wish.test || candidate.kind() == "bin";
    let tries: [&dyn Fn(&Candidate<'_>) -> bool; 4] = [&label, &source, &name, &package];
    let mut matching: Vec<Candidate<'_>> = Vec::new();
    if wish.name.is_empty() && wish.path.is_none() {
        matching.clone_from(&all);
    } else {
        for test in tries {
            matching = all.iter().filter(|candidate| test(candidate)).cloned().collect();
            if !matching.is_empty() {
                break;
            }
        }
    }
    if matching.len() > 1 {
        let bins: Vec<Candidate<'_>> = matching.iter().filter(is_bin).cloned().collect();
        if !wish.test && bins.len() == 1 {
            return Ok(bins[0].clone());
        }
        let default =
            bins.iter().find(|bin| bin.package.default_run.as_deref() == Some(bin.target.name.as_str()));
        if let (false, Some(default)) = (wish.test, default) {
            return Ok(default.clone());
        }
    }
    match matching.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let is_library = metadata.packages.iter().any(|found| found.name == wish.name);
            let hint = if is_library && !wish.test {
                " It is a library: its tests are debugged with test: true."
            } else {
                ""
            };
            Err(format!(
                "There is no cargo target `{}` to {}.{hint} There are:\n{}",
                wish.name,
                verb(wish),
                list(&all)
            ))
        }
        many => Err(format!("Several targets could be meant. Name one of them as program:\n{}", list(many))),
    }
}

fn verb(wish: Wish<'_>) -> &'static str {
    if wish.test { "test" } else { "run" }
}

fn last_part(text: &str) -> &str {
    const SHOWN: usize = 6_000;
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    &text[from..]
}

/// The lldb commands that make Rust's own types readable; none where the toolchain does not bring them.
pub(crate) async fn formatters(supervisor: &Supervisor, directory: &Path, project: &Path) -> Vec<String> {
    if !project.join("Cargo.toml").is_file() {
        return Vec::new();
    }
    let spec = ProcessSpec::new("rustc", directory).args(["--print", "sysroot"]).label("rustc sysroot");
    let bounds = RunBounds { time: Some(crate::limits::PROBE), capture_bytes: 4096 };
    let Ok(finished) = supervisor.run(spec, bounds, &CancellationToken::new(), &mut |_| {}).await else {
        return Vec::new();
    };
    let sysroot = String::from_utf8_lossy(&finished.stdout.bytes()).trim().to_owned();
    let etc = Path::new(&sysroot).join("lib/rustlib/etc");
    let (lookup, commands) = (etc.join("lldb_lookup.py"), etc.join("lldb_commands"));
    if sysroot.is_empty() || !lookup.is_file() || !commands.is_file() {
        return Vec::new();
    }
    vec![
        format!("command script import \"{}\"", lookup.display()),
        format!("command source -s 1 \"{}\"", commands.display()),
    ]
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn workspace() -> Metadata {
        serde_json::from_value(json!({"packages": [
            {"name": "tool", "id": "tool 0.1.0", "manifest_path": "/w/tool/Cargo.toml", "default_run": "tool", "targets": [
                {"name": "tool", "kind": ["lib"], "src_path": "/w/tool/src/lib.rs"},
                {"name": "tool", "kind": ["bin"], "src_path": "/w/tool/src/main.rs"},
                {"name": "extra", "kind": ["bin"], "src_path": "/w/tool/src/bin/extra.rs"},
                {"name": "show", "kind": ["example"], "src_path": "/w/tool/examples/show.rs", "test": false},
                {"name": "all", "kind": ["test"], "src_path": "/w/tool/tests/all.rs"},
                {"name": "build-script-build", "kind": ["custom-build"], "src_path": "/w/tool/build.rs", "test": false},
            ]},
            {"name": "core", "id": "core 0.1.0", "manifest_path": "/w/core/Cargo.toml", "targets": [
                {"name": "core", "kind": ["lib"], "src_path": "/w/core/src/lib.rs"},
            ]},
        ]}))
        .unwrap()
    }

    fn chosen(name: &str, path: Option<&str>, test: bool) -> String {
        let metadata = workspace();
        let chosen = choose(&metadata, Wish { name, path: path.map(Path::new), test });
        chosen.map_or_else(|error| error, |candidate| candidate.label())
    }

    #[test]
    fn a_name_finds_its_target() {
        assert_eq!(chosen("tool", None, false), "bin:tool");
        assert_eq!(chosen("extra", None, false), "bin:extra");
        assert_eq!(chosen("bin:extra", None, false), "bin:extra");
        assert_eq!(chosen("show", None, false), "example:show");
        assert_eq!(chosen("all", None, false), "test:all");
        assert_eq!(chosen("", None, false), "bin:tool");
        assert_eq!(chosen("core", None, true), "lib:core");
        assert_eq!(chosen("lib:tool", None, true), "lib:tool");
        assert_eq!(chosen("src/bin/extra.rs", Some("/w/tool/src/bin/extra.rs"), false), "bin:extra");
        assert_eq!(chosen("tool", Some("/w/tool"), false), "bin:tool");
    }

    #[test]
    fn what_is_not_clear_is_listed() {
        insta::assert_snapshot!(
            [
                chosen("nothing", None, false),
                chosen("core", None, false),
                chosen("tool", None, true),
                chosen("", None, true),
            ]
            .join("\n\n")
        );
    }
}
