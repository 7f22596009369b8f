//! The bounds of a run, each with its reason.

use std::time::Duration;

/// How long a conversation stays ours without a word: long enough for a busy disk, short enough that nobody waits for a dead node.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// Live frames that a watcher may lag behind before it loses some: a long answer's deltas and a noisy command together.
pub(crate) const FRAMES: usize = 4096;
/// Events read at a time when a conversation is taken up.
pub(crate) const READ_EVENTS: usize = 512;
/// Model answers in one run, unless configured: far more than honest work takes, far less than a night.
pub(crate) const MAX_STEPS: u32 = 200;
/// The same calls with the same outcome in a row: from here on the model is told.
pub(crate) const LOOP_WARNING: usize = 4;
/// …and from here on the run is stopped.
pub(crate) const LOOP_STOP: usize = 8;
/// Bytes of text that one call may put into the model's context: about 12,000 tokens.
pub(crate) const MODEL_TEXT: usize = 48 * 1024;
/// Rows of a table that a model is given.
pub(crate) const MODEL_ROWS: usize = 200;
/// How long calls may take to clean up after a run was stopped, before they are dropped (dropping kills their processes).
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(4);
/// Share of the model's context from which a conversation is compacted before the next question: the answer needs room, and estimates of
/// new text are rough.
pub(crate) const COMPACT_AT: f64 = 0.8;
/// Bytes per token, for text that no provider has counted yet.
pub(crate) const BYTES_PER_TOKEN: f64 = 3.5;
/// Bytes of a tool result that the summary of a compaction is made from.
pub(crate) const SUMMARY_RESULT: usize = 2_000;
/// How often in a row a conversation that is still too long is compacted, before the run gives up.
pub(crate) const COMPACTIONS: u32 = 2;
/// How long a question waits for a person, unless configured: a lunch break is answered, a night is not waited through.
pub(crate) const QUESTION_TIMEOUT_SECONDS: u32 = 1_800;
/// Explorers of one conversation side by side; more wait for their turn.
pub(crate) const EXPLORERS: usize = 8;
/// Model answers of one explorer: a question that takes more was too wide.
pub(crate) const EXPLORER_STEPS: u32 = 40;
/// Tokens of one explorer, all its requests together: about what 40 steps in a conversation of moderate length take.
pub(crate) const EXPLORER_TOKENS: u64 = 1_500_000;
/// Workers of one conversation side by side; more are queued. Each may hold a build.
pub(crate) const WORKERS_AT_ONCE: usize = 4;
/// Workers of one conversation that are not killed: a director that wants more has lost the thread.
pub(crate) const WORKERS: usize = 100;
/// Characters of a worker's label, which stands on cards and in lists.
pub(crate) const WORKER_LABEL: usize = 60;
/// Characters of a worker's report that its director is given, about 4,000 tokens; the whole is in the worker's transcript.
pub(crate) const WORKER_REPORT: usize = 16_000;
/// Characters of a last result in a list.
pub(crate) const WORKER_LISTED: usize = 400;
/// How long `vibe_wait` waits unless told otherwise.
pub(crate) const WORKER_WAIT_SECONDS: u32 = 30;
/// How long it may be told to wait: longer than a test suite, shorter than a forgotten run.
pub(crate) const WORKER_WAIT_MOST_SECONDS: u32 = 1_800;
/// How long one git command for a worktree may take: a checkout of a large repository from a slow disk.
pub(crate) const GIT_TIME: Duration = Duration::from_mins(2);
/// Bytes that one git command may say: names and diffs of a worker's changes.
pub(crate) const GIT_OUTPUT: usize = 4 * 1024 * 1024;
/// Characters of the diff of a worktree in a worker's report.
pub(crate) const WORKTREE_DIFF: usize = 12_000;
/// Bytes of one file's content that is kept so that its change can be undone: far larger than source, small enough for a database.
pub(crate) const UNDO_BYTES: usize = 8 * 1024 * 1024;
/// Pieces of live output that may wait to be shown.
pub(crate) const PROGRESS: usize = 256;
/// Depth to which a shell line's grammar tree, and `sh -c` within `sh -c`, is followed; a deeper one is treated as not understood.
pub(crate) const SHELL_NESTING: usize = 200;
/// `sh -c 'sh -c …'`: deeper than this nobody writes by hand.
pub(crate) const SHELL_SCRIPTS: usize = 8;
/// Bytes of a shell line that is still analysed; a longer one is treated as not understood.
pub(crate) const SHELL_LINE: usize = 64 * 1024;
/// Words of a line that does not parse that are tried against deny rules, each as the beginning of a command.
pub(crate) const SHELL_CRUDE_WORDS: usize = 256;
/// Words of such a beginning; no rule is longer.
pub(crate) const SHELL_TAIL_WORDS: usize = 16;
/// Bytes of a `haft.toml`; a larger one is a mistake.
pub(crate) const CONFIG_FILE: u64 = 1024 * 1024;
/// Bytes of one instruction file that reach the model: about 8,000 tokens.
pub(crate) const INSTRUCTION_FILE: usize = 32 * 1024;
/// Bytes of all instruction files together.
pub(crate) const INSTRUCTIONS: usize = 96 * 1024;
