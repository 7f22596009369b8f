//! Every limit of this crate, with its reason.

use std::time::Duration;

/// Lines that `read` gives when the caller names no limit: enough for nearly every source file in one call.
pub(crate) const READ_LINES: u64 = 2000;
/// Bytes of text in one answer of `read`; about 16 thousand tokens.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Characters of one line that `read` shows; longer ones are minified or data.
pub(crate) const READ_LINE_CHARS: usize = 2000;
/// Files up to this size are read whole, which tells their encoding and lets `write` notice later changes; larger ones are streamed.
pub(crate) const WHOLE_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Once `read` has what it shows, it goes on counting lines up to this position of a streamed file, about a second's work.
pub(crate) const COUNT_BYTES: u64 = 1024 * 1024 * 1024;
/// Bytes at the start of a streamed file that decide whether it is text.
pub(crate) const SNIFF_BYTES: usize = 8 * 1024;
/// Entries that `read` lists of a directory.
pub(crate) const DIRECTORY_ENTRIES: usize = 300;
/// File names that a missing path's error suggests.
pub(crate) const SUGGESTIONS: usize = 5;
/// Directory entries looked at for suggestions: a courtesy must stay cheap.
pub(crate) const SUGGESTION_SCAN: usize = 20_000;

/// Encoded size of a picture that is read at all.
pub(crate) const IMAGE_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Pixels of a picture that is decoded: 50 million take 200 MB as RGBA. The header is looked at before any is.
pub(crate) const IMAGE_PIXELS: u64 = 50_000_000;
/// Longest side of a picture in pixels; also a guard against headers that lie.
pub(crate) const IMAGE_SIDE: u32 = 30_000;
/// Memory that a decoder may take beyond the header check.
pub(crate) const IMAGE_DECODE_BYTES: u64 = 512 * 1024 * 1024;
/// Long edge, in pixels, that model providers scale pictures down to anyway.
pub(crate) const IMAGE_EDGE: u32 = 1568;
/// Encoded bytes of a picture in an answer; base64 adds a third, and providers refuse above 5 MB.
pub(crate) const IMAGE_ANSWER_BYTES: usize = 3_700_000;

/// Paths that `glob` lists.
pub(crate) const GLOB_PATHS: usize = 500;
/// Characters of a path shown: Linux allows more only piecewise.
pub(crate) const PATTERN_CHARS: usize = 4096;

/// Lines with a hit that `search` shows when the caller names no number.
pub(crate) const SEARCH_RESULTS: usize = 100;
/// The most that a caller may ask for.
pub(crate) const SEARCH_RESULTS_MOST: usize = 1000;
/// Lines of context at most on each side of a hit.
pub(crate) const SEARCH_CONTEXT: usize = 20;
/// Characters of a line that `search` shows, cut around the hit.
pub(crate) const SEARCH_LINE_CHARS: usize = 300;
/// Bytes of text in one answer of `search`.
pub(crate) const SEARCH_BYTES: usize = 48 * 1024;
/// The longest line that the searcher holds in memory; a file with a longer one is named as skipped.
pub(crate) const SEARCH_LINE_BYTES: usize = 64 * 1024 * 1024;
/// After this long a search stops, and its total is said to be a lower bound.
pub(crate) const SEARCH_TIME: Duration = Duration::from_mins(1);
/// Threads of a walk or a search.
pub(crate) const SEARCH_THREADS: usize = 8;
/// Skipped files that an answer names; the rest are counted.
pub(crate) const SKIPPED_NAMED: usize = 10;

/// Lines of a diff in an answer, over all files.
pub(crate) const DIFF_LINES: usize = 80;
/// Characters of a line in a diff or an excerpt.
pub(crate) const DIFF_LINE_CHARS: usize = 200;
/// Larger texts get line counts instead of a diff: comparing them costs more than it tells.
pub(crate) const DIFF_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// How long a diff may look for its shortest form.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(500);

/// Lines of the nearest text that an error quotes.
pub(crate) const NEAREST_LINES: usize = 25;
/// Lines of a file that are compared for the nearest text when no line is equal.
pub(crate) const NEAREST_SCAN: usize = 20_000;
/// Places that an error about an ambiguous text lists.
pub(crate) const PLACES_LISTED: usize = 10;

/// Bytes of a patch: a model cannot write more in one answer.
pub(crate) const PATCH_BYTES: usize = 16 * 1024 * 1024;
/// Files whose content is remembered as read in one run; beyond it the oldest count as never read.
pub(crate) const READS_REMEMBERED: usize = 10_000;
/// Largest file that `edit` and `apply_patch` change: it is held in memory several times over.
pub(crate) const EDIT_BYTES: u64 = 64 * 1024 * 1024;
/// Files whose trouble with a patch one error tells of.
pub(crate) const MISFITS_LISTED: usize = 5;

/// How long a command may run when the caller names no time: longer than most builds' steps, shorter than patience.
pub(crate) const SHELL_TIME: Duration = Duration::from_mins(2);
/// The longest that a caller may ask for; what runs for longer belongs in the background.
pub(crate) const SHELL_TIME_MOST: Duration = Duration::from_hours(1);
/// Bytes of a command's output in one answer, half of them from its beginning and half from its end; about 10 thousand tokens.
pub(crate) const SHELL_BYTES: usize = 32 * 1024;
/// Live output is passed on this often: quicker than the eye, slower than a program that writes byte by byte.
pub(crate) const SHELL_LIVE_EVERY: Duration = Duration::from_millis(50);
/// Bytes of live output passed on at once; nobody reads faster, and the answer is complete without it.
pub(crate) const SHELL_LIVE_BYTES: usize = 64 * 1024;
/// Background jobs that run at the same time in one conversation.
pub(crate) const RUNNING_JOBS: usize = 16;
/// Ended jobs whose output is kept; the oldest are forgotten first.
pub(crate) const ENDED_JOBS: usize = 32;
/// Bytes of a job's newest output that wait to be looked at.
pub(crate) const JOB_OUTPUT_BYTES: usize = 256 * 1024;
/// Skipped files in the fields for programs; a tree full of pictures has thousands.
pub(crate) const SKIPPED_STRUCTURED: usize = 100;
