//! The walk through a directory that `glob` and `search` share: ignore files respected, `.git` never entered, symbolic links not followed.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use globset::{GlobBuilder, GlobMatcher};
use haft_system::Workdir;
use ignore::{WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::limits::{PATTERN_CHARS, SEARCH_THREADS};

/// A path pattern: `*` stays within a directory, `**` crosses them, `?`, `[…]` and `{a,b}` as usual. Without a slash it means a name at any depth.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    matcher: GlobMatcher,
    any_depth: bool,
    negated: bool,
    names_hidden: bool,
}

impl PathPattern {
    /// Reads a pattern for paths relative to `base`. With `negation`, a leading `!` turns it around. The error is in words for the model.
    pub(crate) fn parse(pattern: &str, base: &Path, negation: bool) -> Result<Self, String> {
        let bad = |why: &str| Err(format!("The pattern `{pattern}` cannot be used: {why}"));
        if pattern.len() > PATTERN_CHARS {
            return Err(format!("The pattern is too long: {} characters.", pattern.len()));
        }
        let negated = negation && pattern.starts_with('!');
        let mut rest = if negated { &pattern[1..] } else { pattern };
        if rest.starts_with('/') {
            let Some(inside) = base
                .to_str()
                .and_then(|base| rest.strip_prefix(base))
                .and_then(|rest| rest.strip_prefix('/'))
            else {
                return bad(&format!(
                    "it is absolute and not below `{}`. Write it relative to `path`.",
                    base.display()
                ));
            };
            rest = inside;
        }
        while let Some(inside) = rest.strip_prefix("./") {
            rest = inside;
        }
        if rest.is_empty() {
            return bad("it is empty. `**` stands for every file.");
        }
        if rest.split('/').any(|part| part == "..") {
            return bad("it contains `..`. Give the directory as `path`.");
        }
        let rest = if rest.ends_with('/') { format!("{rest}**") } else { rest.to_owned() };
        let glob = match GlobBuilder::new(&rest).literal_separator(true).backslash_escape(true).build() {
            Ok(glob) => glob,
            Err(error) => return bad(&format!("{}.", error.kind())),
        };
        let names_hidden = rest.starts_with('.') || ["/.", "{.", ",."].iter().any(|sign| rest.contains(sign));
        Ok(PathPattern {
            matcher: glob.compile_matcher(),
            any_depth: !rest.contains('/'),
            negated,
            names_hidden: names_hidden && !negated,
        })
    }

    /// Whether hidden files are meant.
    pub(crate) fn names_hidden(&self) -> bool {
        self.names_hidden
    }

    /// Whether a path relative to the base fits.
    pub(crate) fn fits(&self, relative: &Path) -> bool {
        let found = if self.any_depth {
            relative.file_name().is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(relative)
        };
        found != self.negated
    }
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Regular files, and symbolic links to such; sorted by their bytes.
    pub(crate) files: Vec<PathBuf>,
    /// Directories that fit the filter; sorted.
    pub(crate) directories: Vec<PathBuf>,
    /// What could not be entered, in words; sorted.
    pub(crate) errors: Vec<String>,
}

/// What a walk leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) hidden: bool,
    /// Whether links to files count as files.
    pub(crate) links: bool,
}

fn builder(workdir: &Workdir, base: &Path, hidden: bool) -> WalkBuilder {
    let workdir = workdir.clone();
    let mut builder = WalkBuilder::new(base);
    builder
        .hidden(!hidden)
        // Ignore files count in a directory that is not a repository too; those of the person's own configuration do not, so
        // that a run sees the same files on every machine.
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(move |entry| entry.file_name() != ".git" && !workdir.withholds(entry.path()));
    builder
}

/// Every path below `base` for which `fits` holds. `None` when cancelled.
pub(crate) fn files(
    workdir: &Workdir,
    base: &Path,
    rules: Rules,
    fits: &(dyn Fn(&Path) -> bool + Sync),
    cancel: &CancellationToken,
) -> Option<Walked> {
    let found = Mutex::new(Walked::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(SEARCH_THREADS);
    builder(workdir, base, rules.hidden).threads(threads).build_parallel().run(|| {
        Box::new(|entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    lock().errors.push(error.to_string());
                    return WalkState::Continue;
                }
            };
            let path = entry.path();
            let Ok(relative) = path.strip_prefix(base) else { return WalkState::Continue };
            let Some(kind) = entry.file_type() else { return WalkState::Continue };
            if relative.as_os_str().is_empty() || !fits(relative) {
                return WalkState::Continue;
            }
            if kind.is_dir() {
                lock().directories.push(path.to_owned());
            } else if kind.is_file() || (rules.links && kind.is_symlink() && path.is_file()) {
                lock().files.push(path.to_owned());
            }
            WalkState::Continue
        })
    });
    if cancel.is_cancelled() {
        return None;
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.files.sort_unstable();
    found.directories.sort_unstable();
    found.errors.sort_unstable();
    Some(found)
}

/// The first `most` files and directories, hidden ones too, for suggestions.
pub(crate) fn some_paths(workdir: &Workdir, most: usize) -> Vec<PathBuf> {
    builder(workdir, workdir.root(), true)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build()
        .filter_map(Result::ok)
        .take(most)
        .map(ignore::DirEntry::into_path)
        .collect()
}
