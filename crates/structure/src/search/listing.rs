//! Which files a search is about.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    mem,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use haft_system::{PathState, ResolvedPath, Workdir};
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use super::{SearchError, Skipped};
use crate::languages::{self, Language};

/// A file to be searched.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    pub(crate) language: &'static Language,
}

/// What stands in the place that a search is about.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// In the order of the bytes of their paths.
    pub(crate) files: Vec<Listed>,
    /// Files of languages that were not asked for: id and number.
    pub(crate) others: BTreeMap<&'static str, usize>,
    /// Files of no known language.
    pub(crate) unknown: usize,
    /// Directories that could not be entered, and the like.
    pub(crate) skipped: Vec<Skipped>,
}

/// Lists what is in `scope`. A file is taken as `language` if one is given, whatever its name says; in a directory `language` selects.
pub(crate) fn list(
    workdir: &Workdir,
    scope: &ResolvedPath,
    language: Option<&'static Language>,
    threads: usize,
    cancel: &CancellationToken,
) -> Result<Listing, SearchError> {
    match scope.state {
        PathState::Missing => Err(SearchError::Missing { path: scope.shown.clone() }),
        PathState::Other(what) => Err(SearchError::NotAFile { path: scope.shown.clone(), what }),
        PathState::File => {
            let found = language.or_else(|| language_of(&scope.real));
            let Some(language) = found else {
                return Err(SearchError::UnknownLanguage { path: scope.shown.clone() });
            };
            Ok(Listing { files: vec![Listed { path: scope.real.clone(), language }], ..Listing::default() })
        }
        PathState::Directory => walk(workdir, &scope.real, language, threads, cancel),
    }
}

fn language_of(path: &Path) -> Option<&'static Language> {
    languages::for_path(path, None).or_else(|| {
        // A `#!` line is short; a kernel reads no more of it either.
        let mut first = [0; 256];
        let mut file = File::open(path).ok()?;
        let read = file.read(&mut first).ok()?;
        first[..read].starts_with(b"#!").then(|| languages::for_path(path, Some(&first[..read]))).flatten()
    })
}

fn walk(
    workdir: &Workdir,
    base: &Path,
    language: Option<&'static Language>,
    threads: usize,
    cancel: &CancellationToken,
) -> Result<Listing, SearchError> {
    let found = Mutex::new(Found::default());
    let mut builder = WalkBuilder::new(base);
    let jail = workdir.clone();
    builder
        // The same files on every machine: ignore files count outside of repositories too, a person's own configuration does not.
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .threads(threads)
        .filter_entry(move |entry| entry.file_name() != ".git" && !jail.withholds(entry.path()));
    builder.build_parallel().visit(&mut Visitors { found: &found, cancel });
    if cancel.is_cancelled() {
        return Err(SearchError::Cancelled);
    }
    let Found { mut files, unknown, errors } = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    headers(&mut files, language);
    let mut listing = Listing { unknown, ..Listing::default() };
    if let Some(wanted) = language {
        files.retain(|file| {
            let fits = file.language == wanted;
            if !fits {
                *listing.others.entry(file.language.id).or_default() += 1;
            }
            fits
        });
    }
    files.sort_unstable_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
    listing.files = files;
    listing.skipped = errors.iter().map(|error| skipped(workdir, error)).collect();
    listing.skipped.sort();
    Ok(listing)
}

/// `.h` is C by its name and C++ by its company: with `cpp` asked for, or more C++ than C files around it, it is read as C++.
fn headers(files: &mut [Listed], asked: Option<&'static Language>) {
    let Some(cpp) = languages::by_id("cpp") else { return };
    let is_header =
        |file: &Listed| file.language.id == "c" && file.path.extension().is_some_and(|ending| ending == "h");
    let as_cpp = match asked {
        Some(language) => language == cpp,
        None => {
            let sources = files.iter().filter(|file| file.language.id == "c" && !is_header(file)).count();
            files.iter().filter(|file| file.language == cpp).count() > sources
        }
    };
    if as_cpp {
        files.iter_mut().filter(|file| is_header(file)).for_each(|file| file.language = cpp);
    }
}

fn skipped(workdir: &Workdir, error: &ignore::Error) -> Skipped {
    fn path_of(error: &ignore::Error) -> Option<&Path> {
        match error {
            ignore::Error::WithPath { path, .. } => Some(path),
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
            ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
            _ => None,
        }
    }
    let reason = match error.io_error() {
        Some(error) => super::read::reason(error),
        None => error.to_string(),
    };
    let file = path_of(error).map_or_else(|| "?".to_owned(), |path| workdir.show(path));
    Skipped { file, reason }
}

#[derive(Default)]
struct Found {
    files: Vec<Listed>,
    unknown: usize,
    errors: Vec<ignore::Error>,
}

struct Visitors<'a> {
    found: &'a Mutex<Found>,
    cancel: &'a CancellationToken,
}

impl<'a> ParallelVisitorBuilder<'a> for Visitors<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(Visitor { shared: self.found, cancel: self.cancel, own: Found::default() })
    }
}

/// Collects without a lock, and hands everything over at its end.
struct Visitor<'a> {
    shared: &'a Mutex<Found>,
    cancel: &'a CancellationToken,
    own: Found,
}

impl ParallelVisitor for Visitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.cancel.is_cancelled() {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) => {
                if let Some(error) = entry.error() {
                    self.own.errors.push(error.clone());
                }
                if entry.file_type().is_some_and(|kind| kind.is_file()) {
                    match language_of(entry.path()) {
                        Some(language) => self.own.files.push(Listed { path: entry.into_path(), language }),
                        None => self.own.unknown += 1,
                    }
                }
            }
            Err(error) => self.own.errors.push(error),
        }
        WalkState::Continue
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        let own = mem::take(&mut self.own);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.files.extend(own.files);
        shared.unknown += own.unknown;
        shared.errors.extend(own.errors);
    }
}
