//! Goes through files: the ones that could hold a match are found by their bytes, parsed, and matched (SPEC A2, A10).

mod cache;
mod excerpt;
mod hints;
mod listing;
mod read;
mod run;
mod sieve;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use haft_system::{ResolvedPath, Workdir};
use tokio_util::sync::CancellationToken;

use self::{cache::Cache, hints::Clues};
pub(crate) use self::{
    cache::Parsed,
    excerpt::cut,
    listing::Listing,
    read::{Recode, searched},
    run::{Effort, Reader, Seen, Visit, errors, run},
    sieve::Plan,
};
use crate::{
    languages::Language,
    limits::{CACHE_BYTES, MAX_THREADS},
    lines::Lines,
    matcher::find,
    pattern::{Compiled, PatternError, compile},
};

/// The syntax parser as a resource of a run: its threads, and the trees of earlier searches.
#[derive(Debug)]
pub struct Engine {
    cache: Mutex<Cache>,
    threads: usize,
    prefilter: bool,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new()
    }
}

impl Engine {
    /// An engine that uses the machine's processors and keeps trees within a bound. Cheap; nothing runs between searches.
    pub fn new() -> Engine {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        Engine { cache: Mutex::new(Cache::new(CACHE_BYTES)), threads, prefilter: true }
    }

    /// Keeps no trees: for a process that searches once.
    pub fn once() -> Engine {
        Engine { cache: Mutex::new(Cache::new(0)), ..Engine::new() }
    }

    /// Parses every file, even one that lacks a token of the pattern. Gives the same results, slowly: for checking the prefilter.
    pub fn without_prefilter(self) -> Engine {
        Engine { prefilter: false, ..self }
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to search for, and where.
#[derive(Clone, Debug)]
pub struct Query {
    /// The fragment with `$NAME` and `$$$NAME` in it.
    pub pattern: String,
    /// A file or directory, resolved.
    pub scope: ResolvedPath,
    /// One language only; else every one that is present.
    pub language: Option<&'static Language>,
    /// How many matches are wanted in full.
    pub max_results: usize,
    /// Counts all matches, however many there are. Else the search ends early when it has its results, and says so.
    pub count_all: bool,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// The first matches in the order of path and position.
    pub matches: Vec<FileHit>,
    /// How many there are.
    pub total: usize,
    /// There may be more than `total`: the search ended when it had its results.
    pub total_is_lower_bound: bool,
    /// Files with a match among those searched.
    pub files_with_matches: usize,
    /// Files of the languages in question that were looked at.
    pub files_searched: usize,
    /// Files of the languages in question.
    pub files_listed: usize,
    /// Of the files that were looked at, how many hold every token of the pattern, in its order as far as the bytes tell, and were parsed.
    pub candidates: usize,
    /// The size of those.
    pub candidate_bytes: u64,
    /// The languages in which the pattern was read, in the order of their ids.
    pub read: Vec<LanguageRead>,
    /// The languages that are present and cannot read the pattern, with what the parser said.
    pub not_read: Vec<(&'static str, String)>,
    /// Files that were left out, and why.
    pub skipped: Vec<Skipped>,
    /// What would help somebody who found nothing, in words.
    pub hints: Vec<String>,
}

/// How a language read the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageRead {
    /// The language's id.
    pub language: &'static str,
    /// The context, as the language's table names it.
    pub context: String,
    /// The other contexts in which the pattern has another shape.
    pub other_contexts: Vec<String>,
    /// Files of the language.
    pub files: usize,
    /// Matches in them, as far as the search went.
    pub matches: usize,
}

/// A match, and the file it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHit {
    /// As shown: relative to the working directory.
    pub file: String,
    /// The match.
    pub hit: Hit,
}

/// A match, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// In bytes of the text that was searched: the file's own bytes, unless it is UTF-16.
    pub range: Range<usize>,
    /// From 1.
    pub line: usize,
    /// The line it ends on.
    pub end_line: usize,
    /// The matching lines; a long line is cut around the match.
    pub text: String,
    /// Per line of `text`, which bytes of it belong to the match.
    pub marks: Vec<Range<usize>>,
    /// The match itself; a long one is cut.
    pub matched: String,
    /// What the variables stand for; a long text is cut.
    pub bindings: Vec<(String, String)>,
}

/// Where something is, in lines from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) end_line: usize,
}

/// A file or directory that was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Skipped {
    /// As shown.
    pub file: String,
    /// "too large: …", "unreadable: …", "parse time-out: …", "not text: …".
    pub reason: String,
}

/// Why nothing could be searched. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The pattern cannot be read in the language in question.
    #[error("The pattern cannot be searched for: {0}.")]
    Pattern(#[from] PatternError),
    /// None of the languages that are present reads the pattern.
    #[error(
        "None of the languages in `{path}` reads the pattern:\n{}",
        refusals.iter().map(|(language, why)| format!("- {language}: {why}")).collect::<Vec<_>>().join("\n")
    )]
    NoLanguageReads {
        /// What was to be searched.
        path: String,
        /// Each language and what the parser said.
        refusals: Vec<(&'static str, String)>,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist.{}", glob_hint(path))]
    Missing {
        /// As shown.
        path: String,
    },
    /// Neither a file nor a directory.
    #[error("`{path}` is {what}; it cannot be searched.")]
    NotAFile {
        /// As shown.
        path: String,
        /// In words.
        what: &'static str,
    },
    /// A file whose language its name does not tell.
    #[error(
        "The language of `{path}` cannot be told from its name. Give `language`, one of: {}.",
        language_ids()
    )]
    UnknownLanguage {
        /// As shown.
        path: String,
    },
    /// No file of a language that is known, or of the one that was asked for.
    #[error("There is nothing to search in `{path}`: {why}")]
    NothingThere {
        /// As shown.
        path: String,
        /// What is there instead.
        why: String,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
}

/// What to say to somebody who gave a pattern of names for a path.
fn glob_hint(path: &str) -> &'static str {
    if path.contains(['*', '?', '{']) {
        " `path` is one file or directory; give the directory, and `language` to select."
    } else {
        ""
    }
}

/// The ids of all languages, for messages and schemas.
pub(crate) fn language_ids() -> String {
    crate::languages::all().iter().map(|language| language.id).collect::<Vec<_>>().join(", ")
}

/// What is to be searched, and what for: the files, and the pattern as each language reads it.
pub(crate) struct Prepared {
    pub(crate) listing: Listing,
    pub(crate) compiled: Vec<Compiled>,
    pub(crate) not_read: Vec<(&'static str, String)>,
}

/// Lists the files and compiles the pattern for the languages that are there.
pub(crate) fn prepare(
    engine: &Engine,
    workdir: &Workdir,
    query: &Query,
    cancel: &CancellationToken,
) -> Result<Prepared, SearchError> {
    // A language that was named reads the pattern or not, whatever files there are.
    let asked = query.language.map(|language| compile(language, &query.pattern)).transpose()?;
    let mut listing = listing::list(workdir, &query.scope, query.language, engine.threads, cancel)?;
    if listing.files.is_empty() {
        let why = hints::nothing_there(&listing, query.language);
        return Err(SearchError::NothingThere { path: query.scope.shown.clone(), why });
    }
    if let Some(compiled) = asked {
        return Ok(Prepared { listing, compiled: vec![compiled], not_read: Vec::new() });
    }
    let present: BTreeMap<&str, &'static Language> =
        listing.files.iter().map(|file| (file.language.id, file.language)).collect();
    let mut compiled = Vec::new();
    let mut refused = Vec::new();
    for language in present.values() {
        match compile(language, &query.pattern) {
            Ok(read) => compiled.push(read),
            Err(error) => refused.push((language.id, error)),
        }
    }
    if compiled.is_empty() {
        return Err(match <[_; 1]>::try_from(refused) {
            Ok([(_, error)]) => SearchError::Pattern(error),
            Err(refused) => SearchError::NoLanguageReads {
                path: query.scope.shown.clone(),
                refusals: refused.into_iter().map(|(id, error)| (id, error.to_string())).collect(),
            },
        });
    }
    let readers: BTreeSet<&str> = compiled.iter().map(|read| read.language.id).collect();
    listing.files.retain(|file| readers.contains(file.language.id));
    let not_read = refused.into_iter().map(|(id, error)| (id, error.to_string())).collect();
    Ok(Prepared { listing, compiled, not_read })
}

impl Prepared {
    /// Per language, what it takes to search for the reading in force.
    pub(crate) fn plans(&self, engine: &Engine) -> Vec<Plan<'_>> {
        self.compiled
            .iter()
            .map(|read| Plan::new(read.language, &read.readings[..1], engine.prefilter))
            .collect()
    }

    /// How each language read the pattern.
    pub(crate) fn reads<T>(&self, ran: &run::Ran<T>) -> Vec<LanguageRead> {
        let read = self.compiled.iter().map(|compiled| LanguageRead {
            language: compiled.language.id,
            context: compiled.readings[0].rung().to_owned(),
            other_contexts: compiled.readings[1..].iter().map(|reading| reading.rung().to_owned()).collect(),
            files: self.listing.files.iter().filter(|file| file.language == compiled.language).count(),
            matches: ran.by_language.get(compiled.language.id).copied().unwrap_or_default(),
        });
        read.collect()
    }

    /// What was left out: directories, files, and places where the matcher gave up.
    pub(crate) fn skipped<T>(&self, workdir: &Workdir, ran: &run::Ran<T>) -> Vec<Skipped> {
        let show = |index: usize| workdir.show(&self.listing.files[index].path);
        let files =
            ran.skipped.iter().map(|(index, reason)| Skipped { file: show(*index), reason: reason.clone() });
        let gave_up = ran.gave_up.iter().map(|(index, places)| Skipped {
            file: show(*index),
            reason: format!("too many ways to fit at {places} place(s), which were given up; the rest of the file was searched"),
        });
        let mut skipped: Vec<Skipped> =
            self.listing.skipped.iter().cloned().chain(files).chain(gave_up).collect();
        skipped.sort();
        skipped
    }
}

/// Searches. Blocks; meant for a thread of its own.
pub fn search(
    engine: &Engine,
    workdir: &Workdir,
    query: &Query,
    cancel: &CancellationToken,
) -> Result<Results, SearchError> {
    let prepared = prepare(engine, workdir, query, cancel)?;
    let plans = prepared.plans(engine);
    let want = query.max_results.max(1);
    let visit = |visit: Visit<'_>| {
        let Parsed { text, tree } = visit.parsed;
        let found = find(&prepared.compiled[visit.plan].readings[0], tree, text);
        let shown = found.matches.len().min(want);
        let lines = if shown > 0 { Lines::of(text) } else { Lines::of(b"") };
        let keep: Vec<Hit> =
            found.matches[..shown].iter().map(|found| excerpt::hit(text, &lines, found)).collect();
        Seen { matches: found.matches.len(), kept: shown, keep, gave_up: found.gave_up }
    };
    let effort = if query.count_all { Effort::All } else { Effort::First };
    let ran = run(engine, &prepared.listing.files, &plans, want, effort, &visit, cancel)?;
    let hits = ran.kept.iter().flat_map(|(index, hits)| {
        let file = workdir.show(&prepared.listing.files[*index].path);
        hits.iter().map(move |hit| FileHit { file: file.clone(), hit: hit.clone() })
    });
    let mut results = Results {
        matches: hits.take(query.max_results).collect(),
        total: ran.matches,
        total_is_lower_bound: ran.searched < prepared.listing.files.len(),
        files_with_matches: ran.files_with_matches,
        // A file that was left out is no file that was searched.
        files_searched: ran.searched.saturating_sub(ran.skipped.len()),
        files_listed: prepared.listing.files.len(),
        candidates: ran.candidates,
        candidate_bytes: ran.candidate_bytes,
        read: prepared.reads(&ran),
        not_read: prepared.not_read.clone(),
        skipped: prepared.skipped(workdir, &ran),
        hints: Vec::new(),
    };
    if results.total == 0 {
        let unseen =
            plans.iter().filter_map(|plan| Some((plan.language.id, plan.never_seen()?.to_vec()))).collect();
        let scattered: usize = plans.iter().map(Plan::scattered).sum();
        let clues = Clues { query, prepared: &prepared, holders: ran.candidates + scattered, unseen };
        results.hints = hints::nothing_found(engine, workdir, &clues, cancel)?;
    }
    Ok(results)
}
