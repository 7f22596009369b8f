//! Real code to search: what any machine that can build Haft has, and some npm packages. It is copied, file by file by its ending, so that every
//! program sees the same files and no ignore rule of anybody.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::repo;

/// A corpus is cut off at this size; a search of more only takes longer.
const MOST_BYTES: u64 = 150 << 20;

pub(crate) struct Corpus {
    pub(crate) name: &'static str,
    /// The language's id, for Haft and for ast-grep.
    pub(crate) language: &'static str,
    pub(crate) peer_language: &'static str,
    endings: &'static [&'static str],
    source: Source,
}

enum Source {
    PythonLibrary,
    CargoRegistry,
    Npm(&'static [&'static str]),
}

const PACKAGES: &[&str] = &[
    "typescript@5.9.2",
    "eslint@9.35.0",
    "webpack@5.101.3",
    "rxjs@7.8.2",
    "prettier@3.6.2",
    "lodash@4.17.21",
    "@babel/core@7.28.4",
];

pub(crate) const CORPORA: &[Corpus] = &[
    Corpus {
        name: "python",
        language: "python",
        peer_language: "python",
        endings: &["py"],
        source: Source::PythonLibrary,
    },
    Corpus {
        name: "rust",
        language: "rust",
        peer_language: "rust",
        endings: &["rs"],
        source: Source::CargoRegistry,
    },
    Corpus {
        name: "c",
        language: "c",
        peer_language: "c",
        endings: &["c", "h"],
        source: Source::CargoRegistry,
    },
    Corpus {
        name: "javascript",
        language: "javascript",
        peer_language: "javascript",
        endings: &["js", "mjs", "cjs"],
        source: Source::Npm(PACKAGES),
    },
    Corpus {
        name: "typescript",
        language: "typescript",
        peer_language: "typescript",
        endings: &["ts", "mts", "cts"],
        source: Source::Npm(PACKAGES),
    },
];

/// A corpus on the disk.
pub(crate) struct Ready {
    pub(crate) directory: PathBuf,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Corpus {
    pub(crate) fn fetch(&self) -> Result<Ready> {
        let directory = repo::target().join("provision/corpora").join(self.name);
        let receipt = directory.with_extension("receipt");
        if let Ok(text) = fs::read_to_string(&receipt)
            && let Some((files, bytes)) = text.trim().split_once(' ')
        {
            return Ok(Ready { directory, files: files.parse()?, bytes: bytes.parse()? });
        }
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        eprintln!("copying the {} corpus", self.name);
        let source = self.source.place()?;
        let mut ready = Ready { directory, files: 0, bytes: 0 };
        self.copy(&source, &ready.directory.clone(), &mut ready)?;
        if ready.files == 0 {
            bail!("no {} files below {}", self.name, source.display());
        }
        fs::write(receipt, format!("{} {}\n", ready.files, ready.bytes))?;
        Ok(ready)
    }

    fn copy(&self, from: &Path, to: &Path, ready: &mut Ready) -> Result<()> {
        let mut entries: Vec<_> = fs::read_dir(from)
            .with_context(|| format!("cannot list {}", from.display()))?
            .collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if name.to_string_lossy().starts_with('.') || ready.bytes > MOST_BYTES {
                continue;
            }
            let (path, target) = (entry.path(), to.join(&name));
            if kind.is_dir() {
                self.copy(&path, &target, ready)?;
            } else if kind.is_file()
                && path.extension().is_some_and(|ending| self.endings.iter().any(|known| ending == *known))
            {
                if skipped_by_ast_grep(&path)? {
                    continue;
                }
                fs::create_dir_all(to)?;
                ready.bytes +=
                    fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
                ready.files += 1;
            }
        }
        Ok(())
    }
}

/// ast-grep leaves out files of more than 3 MB *and* 200,000 lines without a word (the SQLite amalgamation is one). Haft searches them; to
/// compare the same work they are in no corpus.
fn skipped_by_ast_grep(path: &Path) -> Result<bool> {
    if path.metadata()?.len() < 3_000_000 {
        return Ok(false);
    }
    Ok(fs::read(path)?.split(|byte| *byte == b'\n').count() > 200_000)
}

impl Source {
    fn place(&self) -> Result<PathBuf> {
        match self {
            Source::PythonLibrary => {
                let python = repo::find_program("python3").context("python3 is not on PATH")?;
                let said = Command::new(python)
                    .args(["-c", "import sysconfig; print(sysconfig.get_paths()['stdlib'])"])
                    .stdin(Stdio::null())
                    .output()?;
                Ok(PathBuf::from(String::from_utf8(said.stdout)?.trim()))
            }
            Source::CargoRegistry => {
                let home = std::env::var_os("CARGO_HOME")
                    .map(PathBuf::from)
                    .or_else(|| Some(std::env::home_dir()?.join(".cargo")));
                Ok(home.context("no home directory")?.join("registry/src"))
            }
            Source::Npm(packages) => {
                let place = repo::target().join("provision/corpora/npm");
                if !place.join("done").exists() {
                    fs::create_dir_all(&place)?;
                    let npm = repo::find_program("npm").context("npm is not on PATH")?;
                    let mut command = Command::new(npm);
                    command
                        .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                        .arg(&place)
                        .args(*packages)
                        .current_dir(&place)
                        .stdin(Stdio::null());
                    repo::run(command)?;
                    fs::write(place.join("done"), "")?;
                }
                Ok(place.join("node_modules"))
            }
        }
    }
}
