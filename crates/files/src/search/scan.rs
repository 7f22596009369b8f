//! Searches files side by side and keeps the first hits in path order.
//!
//! Files are handed out in order, and a file that is handed out after enough hits are known to stand before it is only counted: the
//! answer is the same on every run, the total is true, and memory stays bounded however much matches.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use grep_searcher::{MmapChoice, SinkFinish};
use haft_system::TextFile;
use tokio_util::sync::CancellationToken;

use crate::limits::{SEARCH_LINE_BYTES, SEARCH_LINE_CHARS, SEARCH_THREADS, WHOLE_FILE_BYTES};

/// Files that one thread should have before a second is worth its start.
const FILES_PER_THREAD: usize = 16;

/// How much of what matches is wanted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Hits to keep; the others are counted.
    pub(super) rows: usize,
    /// Lines around each hit.
    pub(super) context: usize,
    pub(super) time: Duration,
}

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Hit {
        line: u64,
        text: String,
    },
    Context {
        line: u64,
        text: String,
    },
    /// Lines between two groups of context.
    Gap,
}

#[derive(Default)]
pub(super) struct Found {
    /// Files with hits that were kept, in order.
    pub(super) files: Vec<FileHits>,
    /// Matching lines in all files.
    pub(super) total: u64,
    pub(super) files_with_hits: usize,
    /// Files that were looked at; fewer than there are when the time was up.
    pub(super) searched: usize,
    /// Index and reason.
    pub(super) skipped: Vec<(usize, String)>,
}

pub(super) struct FileHits {
    pub(super) index: usize,
    pub(super) rows: Vec<Row>,
}

#[derive(Default)]
struct Shared {
    next: usize,
    found: Found,
}

/// Searches `files`. `None` when cancelled.
pub(super) fn run(
    files: &[PathBuf],
    matcher: &RegexMatcher,
    wanted: Wanted,
    cancel: &CancellationToken,
) -> Option<Found> {
    let shared = Mutex::new(Shared::default());
    let start = Instant::now();
    let work = || {
        let mut searcher = SearcherBuilder::new()
            // The matcher's own: `$` stands before CRLF too.
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(wanted.context)
            .after_context(wanted.context)
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never())
            .heap_limit(Some(SEARCH_LINE_BYTES))
            .build();
        let mut buffer = Vec::new();
        loop {
            if cancel.is_cancelled() || start.elapsed() > wanted.time {
                return;
            }
            // The index and what is known about the files before it are taken together: every file counted so far has a lower index.
            let (index, keep) = {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if shared.next == files.len() {
                    return;
                }
                let index = shared.next;
                shared.next += 1;
                (index, (shared.found.total as usize) < wanted.rows)
            };
            let mut sink = Collect {
                matcher,
                rows: Vec::new(),
                hits: 0,
                keep: if keep { wanted.rows } else { 0 },
                context: wanted.context as u64,
                last_kept: 0,
                not_text: None,
                cancel,
            };
            let result = search(&mut searcher, matcher, &files[index], &mut buffer, &mut sink);
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let found = &mut shared.found;
            found.searched += 1;
            let left_out = match result {
                Err(error) => Some(why(&error)),
                Ok(()) => sink.not_text,
            };
            match left_out {
                Some(why) => found.skipped.push((index, why)),
                None => {
                    found.total += sink.hits;
                    found.files_with_hits += usize::from(sink.hits > 0);
                    if !sink.rows.is_empty() {
                        found.files.push(FileHits { index, rows: sink.rows });
                    }
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(SEARCH_THREADS);
    let threads = threads.min(1 + files.len() / FILES_PER_THREAD);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    if cancel.is_cancelled() {
        return None;
    }
    let mut found = shared.into_inner().unwrap_or_else(PoisonError::into_inner).found;
    found.files.sort_by_key(|file| file.index);
    found.skipped.sort();
    let mut left = wanted.rows;
    for file in &mut found.files {
        truncate(&mut file.rows, &mut left, wanted.context as u64);
    }
    found.files.retain(|file| !file.rows.is_empty());
    Some(found)
}

/// Searches one file as `read` would show it: in its own encoding, or not at all where it is not text.
fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    buffer: &mut Vec<u8>,
    sink: &mut Collect<'_>,
) -> io::Result<()> {
    let mut file = std::fs::File::open(path)?;
    if file.metadata()?.len() > WHOLE_FILE_BYTES {
        return searcher.search_file(matcher, &file, sink);
    }
    buffer.clear();
    (&mut file).take(WHOLE_FILE_BYTES + 1).read_to_end(buffer)?;
    let plain = std::str::from_utf8(buffer).is_ok() && memchr::memchr(0, buffer).is_none();
    if plain {
        let text = buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(buffer);
        return searcher.search_slice(matcher, text, sink);
    }
    match TextFile::parse(buffer) {
        Ok(file) => searcher.search_slice(matcher, file.text.as_bytes(), sink),
        Err(not_text) => {
            sink.not_text = Some(not_text.why);
            Ok(())
        }
    }
}

fn why(error: &io::Error) -> String {
    let text = error.to_string();
    if text.contains("allocation limit") { "a line is too long".into() } else { text }
}

/// Keeps the first `left` hits and the lines around them.
fn truncate(rows: &mut Vec<Row>, left: &mut usize, context: u64) {
    let mut last = None;
    let mut hits = 0;
    let end = rows.iter().position(|row| {
        if let Row::Hit { line, .. } = row {
            if hits == *left {
                return true;
            }
            hits += 1;
            last = Some(*line);
        }
        false
    });
    *left -= hits;
    let Some(end) = end else { return };
    rows.truncate(end);
    // What stands above the first hit that is left out.
    let beyond = |row: &Row| match row {
        Row::Hit { .. } => false,
        Row::Gap => true,
        Row::Context { line, .. } => last.is_none_or(|last| *line > last + context),
    };
    while rows.last().is_some_and(beyond) {
        rows.pop();
    }
}

struct Collect<'a> {
    matcher: &'a RegexMatcher,
    rows: Vec<Row>,
    hits: u64,
    keep: usize,
    context: u64,
    last_kept: u64,
    /// Why the file turned out not to be text.
    not_text: Option<String>,
    cancel: &'a CancellationToken,
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.hits += 1;
        if self.hits as usize <= self.keep {
            let line = found.line_number().unwrap_or(0);
            self.last_kept = line;
            let bytes = trimmed(found.bytes());
            let hit = self.matcher.find(bytes).ok().flatten().map_or(0, |hit| hit.start());
            self.rows.push(Row::Hit { line, text: around(bytes, hit) });
        }
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let line = context.line_number().unwrap_or(0);
        let wanted = match context.kind() {
            SinkContextKind::Before => (self.hits as usize) < self.keep,
            SinkContextKind::After => {
                self.keep > 0 && self.last_kept > 0 && line <= self.last_kept + self.context
            }
            SinkContextKind::Other => false,
        };
        if wanted {
            self.rows.push(Row::Context { line, text: around(trimmed(context.bytes()), 0) });
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if (self.hits as usize) < self.keep && !self.rows.is_empty() {
            self.rows.push(Row::Gap);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.not_text = Some("it is binary".into());
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        if finish.binary_byte_offset().is_some() {
            self.not_text = Some("it is binary".into());
        }
        Ok(())
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// The part of a line around the byte `hit`, with marks where it was cut. Bytes that are not UTF-8 become `�`.
fn around(bytes: &[u8], hit: usize) -> String {
    // Four bytes are the longest character: this much holds what is shown, whatever it is made of.
    let from = hit.saturating_sub(SEARCH_LINE_CHARS * 4);
    let to = (hit + SEARCH_LINE_CHARS * 8).min(bytes.len());
    let before = String::from_utf8_lossy(&bytes[from..hit]);
    let after = String::from_utf8_lossy(&bytes[hit..to]);
    let (lead, length) = (before.chars().count(), before.chars().count() + after.chars().count());
    let complete = from == 0 && to == bytes.len();
    if complete && length <= SEARCH_LINE_CHARS {
        return format!("{before}{after}");
    }
    // A third of the room goes to what stands before the hit.
    let start = lead.saturating_sub(SEARCH_LINE_CHARS / 3);
    let shown: String = before.chars().chain(after.chars()).skip(start).take(SEARCH_LINE_CHARS).collect();
    let left = if start > 0 || from > 0 { "…" } else { "" };
    let right = if to < bytes.len() || length > start + SEARCH_LINE_CHARS { "…" } else { "" };
    format!("{left}{shown}{right}")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_hit() {
        let line = format!("{}needle{}", "a".repeat(5000), "b".repeat(5000));
        let shown = around(line.as_bytes(), 5000);
        assert_eq!(shown, format!("…{}needle{}…", "a".repeat(100), "b".repeat(194)));
        assert_eq!(around("ä needle".as_bytes(), 3), "ä needle");
    }

    #[test]
    fn only_wanted_hits_and_their_lines_stay() {
        let hit = |line| Row::Hit { line, text: String::new() };
        let mut rows = vec![hit(1), Row::Gap, hit(5), Row::Gap, hit(9)];
        let mut left = 2;
        truncate(&mut rows, &mut left, 0);
        assert_eq!((rows, left), (vec![hit(1), Row::Gap, hit(5)], 0));
    }
}
