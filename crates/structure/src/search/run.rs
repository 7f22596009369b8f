//! Goes through the files of a search with several threads, and comes to the same answer every time.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use tree_sitter::{ParseOptions, Parser, Tree};

use super::{
    Engine, SearchError,
    cache::Parsed,
    listing::Listed,
    read::{Buffer, Recode, is_binary, searched},
    sieve::Plan,
};
use crate::{
    languages::Language,
    limits::{EXACT_BYTES, LARGE_FILE, PARSE_MS},
};

/// How far a search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// In path order until the first results are final, and a little further; then the total is a lower bound.
    First,
    /// Through every file.
    All,
}

/// A file that was parsed, as a visitor gets it.
pub(crate) struct Visit<'a> {
    pub(crate) listed: &'a Listed,
    pub(crate) plan: usize,
    /// The bytes on the disk.
    pub(crate) bytes: &'a [u8],
    /// What was searched, and its tree.
    pub(crate) parsed: &'a Parsed,
    /// For a file that was searched in another form: how to write it back.
    pub(crate) recode: Option<&'a Recode>,
}

/// What a visitor found in a file.
pub(crate) struct Seen<T> {
    /// All matches.
    pub(crate) matches: usize,
    /// Of the matches, how many `keep` holds.
    pub(crate) kept: usize,
    pub(crate) keep: T,
    /// Places where the matcher gave up.
    pub(crate) gave_up: usize,
}

/// What came of going through the files.
pub(crate) struct Ran<T> {
    /// What was kept, by the index of the file.
    pub(crate) kept: BTreeMap<usize, T>,
    pub(crate) matches: usize,
    pub(crate) files_with_matches: usize,
    /// Matches by the id of the language.
    pub(crate) by_language: BTreeMap<&'static str, usize>,
    /// Files that were looked at, in path order from the first.
    pub(crate) searched: usize,
    /// Files that had to be parsed.
    pub(crate) candidates: usize,
    /// Their bytes.
    pub(crate) candidate_bytes: u64,
    /// By the index of the file, with the reason.
    pub(crate) skipped: Vec<(usize, String)>,
    /// By the index of the file: places where the matcher gave up.
    pub(crate) gave_up: Vec<(usize, usize)>,
}

/// What one file came to.
enum Came<T> {
    /// It lacks a token.
    Nothing,
    Skipped(String),
    Parsed {
        language: &'static str,
        bytes: u64,
        seen: Seen<T>,
    },
}

/// Files that a thread takes at once.
const BATCH: usize = 8;

struct Shared<'a, T> {
    engine: &'a Engine,
    files: &'a [Listed],
    plans: &'a [Plan<'a>],
    want: usize,
    cancel: &'a CancellationToken,
    next: AtomicUsize,
    stop: AtomicBool,
    /// Whether a thread has taken the large files.
    lane: AtomicBool,
    front: Mutex<Front<T>>,
}

/// Results in path order: those up to `done` are final.
struct Front<T> {
    ran: Ran<T>,
    /// How many results each kept entry holds.
    holds: BTreeMap<usize, usize>,
    held: usize,
    /// Batches that are finished before an earlier one is.
    waiting: BTreeMap<usize, Vec<Came<T>>>,
    done: usize,
    stopped: bool,
}

/// Goes through `files`. Of what `visit` keeps, at least the first `want` results in path order stay.
pub(crate) fn run<T: Send>(
    engine: &Engine,
    files: &[Listed],
    plans: &[Plan<'_>],
    want: usize,
    effort: Effort,
    visit: &(dyn Fn(Visit<'_>) -> Seen<T> + Sync),
    cancel: &CancellationToken,
) -> Result<Ran<T>, SearchError> {
    engine.cache().tick();
    let ran = Ran {
        kept: BTreeMap::new(),
        matches: 0,
        files_with_matches: 0,
        by_language: BTreeMap::new(),
        searched: 0,
        candidates: 0,
        candidate_bytes: 0,
        skipped: Vec::new(),
        gave_up: Vec::new(),
    };
    let front =
        Front { ran, holds: BTreeMap::new(), held: 0, waiting: BTreeMap::new(), done: 0, stopped: false };
    let shared = Shared {
        engine,
        files,
        plans,
        want,
        cancel,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        lane: AtomicBool::new(false),
        front: Mutex::new(front),
    };
    let threads = engine.threads.min(files.len().div_ceil(BATCH)).max(1);
    match effort {
        Effort::First => on_threads(threads, &|| shared.in_path_order(visit)),
        Effort::All => {
            let candidates = Mutex::new(Vec::new());
            on_threads(threads, &|| shared.sift(&candidates));
            let mut candidates = candidates.into_inner().unwrap_or_else(PoisonError::into_inner);
            // The largest first: a thread that gets a file of megabytes last works on alone.
            candidates.sort_unstable_by_key(|(index, size)| (std::cmp::Reverse(*size), *index));
            shared.next.store(0, Ordering::Relaxed);
            on_threads(threads.min(candidates.len()).max(1), &|| shared.by_size(&candidates, visit));
        }
    }
    if cancel.is_cancelled() {
        return Err(SearchError::Cancelled);
    }
    let front = shared.front.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut ran = front.ran;
    if effort == Effort::All {
        ran.searched = files.len();
    }
    ran.skipped.sort_unstable();
    ran.gave_up.sort_unstable();
    Ok(ran)
}

fn on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    if threads <= 1 {
        return work();
    }
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

impl<T: Send> Shared<'_, T> {
    fn front(&self) -> MutexGuard<'_, Front<T>> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn halted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    /// [`Effort::First`]: batches in path order, until enough is final.
    fn in_path_order(&self, visit: &(dyn Fn(Visit<'_>) -> Seen<T> + Sync)) {
        let mut worker = Worker::new(self.cancel);
        while !self.halted() {
            let begin = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if begin >= self.files.len() {
                return;
            }
            let end = (begin + BATCH).min(self.files.len());
            let mut batch = Vec::with_capacity(end - begin);
            for index in begin..end {
                if self.halted() {
                    return;
                }
                batch.push(self.look(&mut worker, index, visit));
            }
            let mut front = self.front();
            front.waiting.insert(begin, batch);
            if front.advance(self.want) {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// [`Effort::All`], first half: which files have to be parsed.
    fn sift(&self, candidates: &Mutex<Vec<(usize, usize)>>) {
        let mut buffer = Buffer::default();
        let mut own = Vec::new();
        let mut skipped = Vec::new();
        'batches: while !self.halted() {
            let begin = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if begin >= self.files.len() {
                break;
            }
            for index in begin..(begin + BATCH).min(self.files.len()) {
                if self.halted() {
                    break 'batches;
                }
                let plan = self.plan(index);
                let sifted = buffer.read(&self.files[index].path).and_then(|bytes| {
                    let (text, _) = searched(bytes)?;
                    Ok(plan.is_some_and(|plan| self.plans[plan].lets_pass(&text)).then_some(bytes.len()))
                });
                match sifted {
                    Ok(Some(size)) => own.push((index, size)),
                    Ok(None) => {}
                    Err(reason) => skipped.push((index, reason)),
                }
            }
        }
        candidates.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        self.front().ran.skipped.extend(skipped);
    }

    /// [`Effort::All`], second half.
    fn by_size(&self, candidates: &[(usize, usize)], visit: &(dyn Fn(Visit<'_>) -> Seen<T> + Sync)) {
        let (large, small) = candidates.split_at(candidates.partition_point(|(_, size)| *size >= LARGE_FILE));
        let mut worker = Worker::new(self.cancel);
        // One thread takes all the large files, since the tree of a file of megabytes takes fifty times its size and two of them at once would be the
        // peak of the whole search.
        if !self.lane.swap(true, Ordering::Relaxed) {
            for (index, _) in large {
                if self.halted() {
                    return;
                }
                let came = self.look(&mut worker, *index, visit);
                self.front().take(*index, came, self.want);
            }
        }
        while !self.halted() {
            let Some((index, _)) = small.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            let came = self.look(&mut worker, *index, visit);
            self.front().take(*index, came, self.want);
        }
    }

    fn plan(&self, index: usize) -> Option<usize> {
        let language = self.files[index].language;
        self.plans.iter().position(|plan| plan.language == language)
    }

    fn look(
        &self,
        worker: &mut Worker<'_>,
        index: usize,
        visit: &(dyn Fn(Visit<'_>) -> Seen<T> + Sync),
    ) -> Came<T> {
        let listed = &self.files[index];
        let Some(plan) = self.plan(index) else { return Came::Nothing };
        let Worker { buffer, reader } = worker;
        let bytes = match buffer.read(&listed.path) {
            Ok(bytes) => bytes,
            Err(reason) => return Came::Skipped(reason),
        };
        let (text, recode) = match searched(bytes) {
            Ok(searched) => searched,
            Err(reason) => return Came::Skipped(reason),
        };
        if !self.plans[plan].lets_pass(&text) {
            return Came::Nothing;
        }
        if is_binary(&text) {
            return Came::Skipped("not text: it holds NUL bytes".to_owned());
        }
        let kept = self.engine.cache().get(&listed.path, listed.language, &text);
        let parsed = match kept {
            Some(parsed) => parsed,
            None => match reader.parse(listed.language, &text) {
                Ok(tree) => {
                    let parsed = Arc::new(Parsed { text: text.into_owned(), tree });
                    self.engine.cache().put(&listed.path, listed.language, &parsed);
                    parsed
                }
                Err(reason) => return Came::Skipped(reason),
            },
        };
        let seen = visit(Visit { listed, plan, bytes, parsed: &parsed, recode: recode.as_ref() });
        Came::Parsed { language: listed.language.id, bytes: bytes.len() as u64, seen }
    }
}

impl<T> Front<T> {
    /// Takes over the batches whose turn has come; says whether that is enough.
    fn advance(&mut self, want: usize) -> bool {
        while !self.stopped {
            let Some(batch) = self.waiting.remove(&self.done) else { break };
            for came in batch {
                let index = self.done;
                self.done += 1;
                self.ran.searched += 1;
                self.take(index, came, want);
                if self.ran.matches >= want && self.ran.candidate_bytes >= EXACT_BYTES {
                    self.stopped = true;
                    break;
                }
            }
        }
        self.stopped
    }

    fn take(&mut self, index: usize, came: Came<T>, want: usize) {
        match came {
            Came::Nothing => {}
            Came::Skipped(reason) => self.ran.skipped.push((index, reason)),
            Came::Parsed { language, bytes, seen } => {
                self.ran.candidate_bytes += bytes;
                self.ran.candidates += 1;
                self.ran.matches += seen.matches;
                *self.ran.by_language.entry(language).or_default() += seen.matches;
                self.ran.files_with_matches += usize::from(seen.matches > 0);
                if seen.gave_up > 0 {
                    self.ran.gave_up.push((index, seen.gave_up));
                }
                if seen.kept > 0 {
                    self.held += seen.kept;
                    self.holds.insert(index, seen.kept);
                    self.ran.kept.insert(index, seen.keep);
                    self.let_go(want);
                }
            }
        }
    }

    /// Lets go of what lies behind the first `want` results.
    fn let_go(&mut self, want: usize) {
        while let Some((&last, &holds)) = self.holds.last_key_value() {
            if self.held - holds < want {
                break;
            }
            self.held -= holds;
            self.holds.remove(&last);
            self.ran.kept.remove(&last);
        }
    }
}

struct Worker<'a> {
    buffer: Buffer,
    reader: Reader<'a>,
}

impl<'a> Worker<'a> {
    fn new(cancel: &'a CancellationToken) -> Worker<'a> {
        Worker { buffer: Buffer::default(), reader: Reader::new(cancel) }
    }
}

/// A parser for one file after another.
pub(crate) struct Reader<'a> {
    parser: Parser,
    language: Option<&'static Language>,
    cancel: &'a CancellationToken,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cancel: &'a CancellationToken) -> Reader<'a> {
        Reader { parser: Parser::new(), language: None, cancel }
    }

    /// The tree of a text, or why there is none.
    pub(crate) fn parse(&mut self, language: &'static Language, text: &[u8]) -> Result<Tree, String> {
        if self.language != Some(language) {
            self.parser
                .set_language(&(language.grammar)())
                .map_err(|error| format!("the {} grammar cannot be used: {error}", language.id))?;
            self.language = Some(language);
        }
        let deadline = Instant::now() + Duration::from_millis(PARSE_MS);
        let cancel = self.cancel;
        let mut progress = |_: &tree_sitter::ParseState| {
            if cancel.is_cancelled() || Instant::now() > deadline {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = self.parser.parse_with_options(
            &mut |at, _| text.get(at..).unwrap_or_default(),
            None,
            Some(options),
        );
        if tree.is_none() {
            self.parser.reset();
        }
        tree.ok_or_else(|| format!("parse time-out: not done after {} s", PARSE_MS / 1_000))
    }
}

/// How many errors a tree has: places that the parser could not read, and tokens that it had to make up.
pub(crate) fn errors(tree: &Tree) -> usize {
    let mut count = 0;
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        count += usize::from(node.is_error() || node.is_missing());
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return count;
            }
        }
    }
}
