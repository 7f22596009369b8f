//! Limits of this crate, each with its reason.

use std::time::Duration;

/// Linux's PATH_MAX without the final NUL: longer paths cannot be opened in one call.
pub(crate) const MAX_PATH_BYTES: usize = 4095;

/// NAME_MAX on every usual Linux file system.
pub(crate) const MAX_NAME_BYTES: usize = 255;

/// The system gives up after this many symbolic links in one path, and so do we.
pub(crate) const MAX_SYMLINKS: usize = 40;

/// Contents are held in memory twice (before and after) while a change is made, so there has to be an end.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

/// How long a commit waits for another process that commits to the same journal. A commit takes milliseconds, a thousand files on a
/// slow disk some seconds.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(20);

/// How often it looks whether the other one is done.
pub(crate) const LOCK_POLL: Duration = Duration::from_millis(5);

/// Between TERM and KILL, unless a caller says otherwise: enough for a program to write down its state, short enough to wait for.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How long processes that outlive the program they belong to may take to end by themselves before they count as left over. The
/// `tee` of a process substitution ends a moment after its shell; a server started with `&` does not.
pub(crate) const LINGER: Duration = Duration::from_millis(100);

/// How long a guard waits for killed processes to be gone before it reports them as survivors (blocked in the kernel, or
/// owned by another user).
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How long a guard without a Haft goes on trying to kill what cannot be killed.
pub(crate) const LAST_PATIENCE: Duration = Duration::from_secs(15);

/// Left-over processes named in a report; a fork loop may leave thousands.
pub(crate) const PROCESSES_LISTED: usize = 20;

/// Characters of a command line that are shown.
pub(crate) const COMMAND_LINE_SHOWN: usize = 200;

/// Read from a pipe at once: the size of a pipe's buffer.
pub(crate) const PIPE_CHUNK: usize = 64 << 10;

/// Chunks drained from a pipe after everything that could write to it is dead. More than any pipe holds (1 MiB by default
/// at most), so that a process that could not be killed cannot keep a caller reading.
pub(crate) const DRAINED_CHUNKS: usize = 64;

/// Signals that a caller may have on the way to one program; more at once is a caller gone wild.
pub(crate) const QUEUED_SIGNALS: usize = 64;

/// How often a watched process is looked at for dead threads that its tracer has not noticed, which nothing announces.
pub(crate) const WATCH_POLL: Duration = Duration::from_millis(100);
