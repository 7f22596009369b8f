//! Every limit of this crate, with its reason.

/// Bytes of a pattern. A longer one is a file, not a fragment.
pub(crate) const PATTERN_BYTES: usize = 32 * 1024;
/// Nodes and tokens of a pattern. The matcher recurses on the *pattern* (never on the file), so this bounds its stack.
pub(crate) const PATTERN_ELEMENTS: usize = 1000;
/// Depth of a pattern's tree; the compiler and the matcher recurse on it.
pub(crate) const PATTERN_DEPTH: usize = 200;
/// Steps that one place of a file may cost before the search gives up on it and says so. Only several `$$$` in one
/// list together with a repeated name come near it.
pub(crate) const MATCH_STEPS: u64 = 2_000_000;
/// Parses that trying other shapes for the variables may cost on one rung.
pub(crate) const SHAPE_TRIES: usize = 96;
/// Variables of a pattern that are tried as something else, where two things look alike. More stand in no pattern that a person writes.
pub(crate) const TWINS: usize = 8;

// Staging and resolving.

/// Staged proposals of a conversation. A model that stages more without resolving any has forgotten the early ones.
pub(crate) const MAX_STAGED: usize = 32;
/// Old and new content of all staged proposals together, in bytes. They live in memory: this is room for several million
/// lines, and still fits a small machine.
pub(crate) const MAX_STAGED_BYTES: usize = 256 << 20;
/// How many resolved ids are remembered, so that a second accept can be told what became of the first.
pub(crate) const MAX_FATES: usize = 1_000;
/// A diff for the model, in bytes: about 4,000 tokens. The whole one is in `structured`.
pub(crate) const DIFF_TEXT_BYTES: usize = 16 << 10;
/// A line of a diff for the model, in characters; minified files have lines of megabytes.
pub(crate) const DIFF_LINE_CHARS: usize = 300;
/// The whole diff in `structured`, in bytes; a rewrite of a minified file repeats all of it twice.
pub(crate) const DIFF_WHOLE_BYTES: usize = 1 << 20;
/// How long a file's diff may look for the smallest form, in milliseconds.
pub(crate) const DIFF_TIME_MS: u64 = 500;

// Searching.

/// Files larger than this are not parsed but named: a tree takes 10 to 60 times the file.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// Trees (with the bytes that they belong to) that are kept between searches, in bytes as far as that can be told. An agent
/// repeats searches, and `ast_edit` follows `ast_grep`.
pub(crate) const CACHE_BYTES: usize = 128 << 20;
/// What a node of a tree takes, in bytes, for the account of the cache: measured at 98 (C) to 127 (Python), 23 times the source.
pub(crate) const NODE_BYTES: usize = 120;
/// How long one file may be parsed, in milliseconds. A 2.6 MB table takes 600; what takes this long is no program.
pub(crate) const PARSE_MS: u64 = 10_000;
/// Threads of one search. More only fight over the memory allocator.
pub(crate) const MAX_THREADS: usize = 8;
/// A search that has its first results goes on until it has parsed this many bytes, so that small searches have an exact total.
pub(crate) const EXACT_BYTES: u64 = 1 << 20;
/// `max_results` when none is given (SPEC A2).
pub(crate) const DEFAULT_RESULTS: usize = 50;
/// The most `max_results` that are taken. More belongs into a program that reads the files itself.
pub(crate) const MOST_RESULTS: usize = 10_000;
/// An excerpt around a hit, in characters (SPEC A10: a minified file stays small).
pub(crate) const EXCERPT_CHARS: usize = 200;
/// Lines of a match of several lines that are shown.
pub(crate) const EXCERPT_LINES: usize = 12;
/// What a variable stands for, in characters, as shown.
pub(crate) const BINDING_CHARS: usize = 200;
/// The whole text of an answer, in bytes. Matches past it are counted and their places are in `structured`.
pub(crate) const ANSWER_BYTES: usize = 48 << 10;
/// Skipped files that are named; the others are counted.
pub(crate) const NAMED_SKIPPED: usize = 50;

// Rewriting.

/// A file after a rewrite, in bytes: nested matches whose variable stands twice in the template double with every level.
pub(crate) const MAX_REWRITTEN_BYTES: usize = 64 << 20;
/// Bytes from which a file is parsed only by the one thread that takes large files: trees take up to about sixty times the size of their file.
pub(crate) const LARGE_FILE: usize = 512 * 1024;
