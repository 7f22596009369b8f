//! Limits of this crate, each with its reason.

use std::time::Duration;

/// A session's whole life (SPEC D1): a program that is held at a stop for longer has been forgotten.
pub(crate) const TIME_TO_LIVE: Duration = Duration::from_mins(30);

/// The largest message an adapter may send: a variable's value can be megabytes, a length beyond this is junk.
pub(crate) const MESSAGE_BYTES: usize = 64 << 20;

/// A header line; real ones are 25 bytes.
pub(crate) const HEADER_BYTES: usize = 4 << 10;

/// Bytes of junk between messages that are skipped in search of the next header, before the stream is given up.
pub(crate) const JUNK_BYTES: usize = 1 << 20;

/// Requests on the way to an adapter.
pub(crate) const OUTGOING: usize = 64;

/// How long an adapter may take for an answer that it has ready (threads, stack, variables): lldb needs up to a second for the
/// first stack of a large program.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

/// How long an adapter may take to start and answer `initialize`: Python on a busy machine needs seconds.
pub(crate) const START: Duration = Duration::from_secs(30);

/// How long `launch` may take until the adapter says `initialized`: delve compiles the program first.
pub(crate) const LAUNCH: Duration = Duration::from_mins(5);

/// How long `attach` may take: whoever listens answers at once, whoever does not never will.
pub(crate) const ATTACH: Duration = Duration::from_secs(10);

/// How long to wait for a stop after the program was let go, unless the call says otherwise.
pub(crate) const WAIT_DEFAULT: Duration = Duration::from_secs(30);

/// The longest wait that a call may ask for.
pub(crate) const WAIT_MOST: u64 = 600;

/// How long an adapter has to bring a running program to a stop: 110 ms is the slowest that was measured.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// After which a pause that has not shown is asked for again.
pub(crate) const PAUSE_AGAIN: Duration = Duration::from_secs(1);

/// How long an evaluation may take before the call answers that it goes on.
pub(crate) const EVALUATE: Duration = Duration::from_secs(10);

/// How long lldb lets a function run that an expression calls.
pub(crate) const LLDB_CALL: Duration = Duration::from_millis(500);

/// Between the end of a program and the adapter's last words about it.
pub(crate) const SETTLE: Duration = Duration::from_millis(400);

/// How long an adapter has to report by itself that its program is gone, before the watchdog does.
pub(crate) const WATCHDOG: Duration = Duration::from_millis(500);

/// How many times as long it has while it goes on talking: the output of a flood can lag behind the program's end by seconds.
pub(crate) const WATCHDOG_ROUNDS: u32 = 30;

/// How many times as long it has to be silent where a process that the program has started may be heard of only now: a Python process
/// needs a second until it has reported to debugpy.
pub(crate) const WATCHDOG_ANNOUNCED: u32 = 4;

/// How long an adapter has for a clean farewell before it is killed.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// Between TERM and KILL for an adapter that has had its farewell, and for the program below it.
pub(crate) const GRACE: Duration = Duration::from_millis(300);

/// The longest build.
pub(crate) const BUILD: Duration = Duration::from_mins(20);

/// Bytes of a build's output that are kept; cargo writes a line for every crate.
pub(crate) const BUILD_BYTES: usize = 16 << 20;

/// How long a probe of an interpreter may take.
pub(crate) const PROBE: Duration = Duration::from_secs(20);

/// Bytes of a program's output that are kept.
pub(crate) const OUTPUT_BYTES: usize = 256 << 10;

/// Bytes of an adapter's own words and of its stderr that are kept for error messages.
pub(crate) const WORDS_BYTES: usize = 8 << 10;

/// Bytes of new output shown with a stop.
pub(crate) const OUTPUT_WITH_STOP: usize = 2_000;

/// Bytes of output that one look shows.
pub(crate) const OUTPUT_SHOWN: usize = 16 << 10;

/// Frames that a stack shows (SPEC D3).
pub(crate) const FRAMES: usize = 30;

/// Children that a variable shows (SPEC D3).
pub(crate) const CHILDREN: usize = 50;

/// Locals shown with a stop.
pub(crate) const LOCALS: usize = 30;

/// Characters of a value that are shown (SPEC D3).
pub(crate) const VALUE_CHARACTERS: usize = 400;

/// Characters of an evaluation's result or error: it was asked for by name, so more than of a value in a list.
pub(crate) const RESULT_CHARACTERS: usize = 4_000;

/// Threads that are listed; Go programs have thousands of goroutines.
pub(crate) const THREADS: usize = 50;

/// Source lines before and after the line of a stop.
pub(crate) const CONTEXT_LINES: usize = 3;

/// Bytes of a source file that lines are taken from.
pub(crate) const SOURCE_BYTES: u64 = 8 << 20;

/// Candidates that an error lists.
pub(crate) const CANDIDATES: usize = 40;

/// Directories that are searched for root markers below the working directory, breadth first.
pub(crate) const MARKER_DIRECTORIES: usize = 400;

/// How deep below the working directory root markers are looked for.
pub(crate) const MARKER_DEPTH: usize = 3;

/// Processes that are debugged at once, besides the program itself: each is a connection and two tasks, and more than these nobody can
/// keep in view.
pub(crate) const PROCESSES: usize = 32;

/// Notices about processes that are kept for the next answer.
pub(crate) const NOTICES: usize = 5;

/// How long a process may take from the end of its session to its own: Python runs its exit handlers, and debugpy's.
pub(crate) const PROCESS_END: Duration = Duration::from_secs(3);

/// How long a step has before it gives way to a stop in another process: it is done in milliseconds, unless it waits for just that process.
pub(crate) const STEP_ALONE: Duration = Duration::from_secs(1);
