//! What tests and benchmarks need beside Rust, in one table. It is fetched through its registry into `target/provision` and used from
//! there; nothing is installed for the person.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::repo;

/// Programs that have to be there already, and what for.
const PROGRAMS: &[(&str, &str)] = &[("bash", "the `shell` tool and tests of processes run it")];

/// What can be fetched.
const TABLE: &[Item] = &[Item {
    id: "codex",
    source: Source::Npm { package: "@openai/codex", version: "0.171.0" },
    // The program itself and not its launcher, which would start Node first.
    program: &[
        "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        "node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
    ],
}];

/// What the tests need, by its id in the table.
const TESTS_NEED: &[&str] = &[];

struct Item {
    id: &'static str,
    source: Source,
    /// Where its program is below its directory, per kind of machine.
    program: &'static [&'static str],
}

enum Source {
    Npm { package: &'static str, version: &'static str },
}

/// Makes sure that everything is there that the tests need.
pub(crate) fn for_tests() -> Result<()> {
    for (program, why) in PROGRAMS {
        if repo::find_program(program).is_none() {
            bail!("`{program}` is not on PATH: {why}. Install it and try again.");
        }
    }
    for id in TESTS_NEED {
        program(id)?;
    }
    Ok(())
}

/// The program of an item of the table, fetched if it is not there yet.
pub(crate) fn program(id: &str) -> Result<PathBuf> {
    let item =
        TABLE.iter().find(|item| item.id == id).with_context(|| format!("`{id}` is not in the table"))?;
    let Source::Npm { package, version } = item.source;
    let place = repo::target().join("provision").join(format!("{id}-{version}"));
    if let Some(program) = item.find(&place) {
        return Ok(program);
    }
    // Fetched beside its place and renamed into it: what is at its place is whole.
    let beside = place.with_file_name(format!("{id}-{version}.part"));
    for left in [&place, &beside] {
        if left.exists() {
            fs::remove_dir_all(left).with_context(|| format!("cannot clear {}", left.display()))?;
        }
    }
    fs::create_dir_all(&beside).with_context(|| format!("cannot create {}", beside.display()))?;
    npm(package, version, &beside)?;
    if item.find(&beside).is_none() {
        bail!("{package} {version} brought no program for this kind of machine");
    }
    fs::rename(&beside, &place).with_context(|| format!("cannot put {} in its place", place.display()))?;
    item.find(&place).with_context(|| format!("{} went away", place.display()))
}

impl Item {
    fn find(&self, place: &Path) -> Option<PathBuf> {
        self.program.iter().map(|below| place.join(below)).find(|program| program.is_file())
    }
}

fn npm(package: &str, version: &str, directory: &Path) -> Result<()> {
    let npm = repo::find_program("npm").context("npm is not on PATH; Debian has it in the package `npm`")?;
    let mut command = Command::new(npm);
    command
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(directory)
        .arg(format!("{package}@{version}"))
        .current_dir(directory)
        .stdin(Stdio::null());
    repo::run(command)
}
