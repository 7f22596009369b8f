//! The supervisor's limits.

use std::time::Duration;

/// Between TERM and KILL, unless a caller says otherwise: enough for a program to write down its state, short enough to wait for.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How long processes that outlive the program they belong to may take to end by themselves before they count as left over. The
/// `tee` of a process substitution ends a moment after its shell; a server started with `&` does not.
pub(super) const LINGER: Duration = Duration::from_millis(100);

/// How long a guard waits for killed processes to be gone before it reports them as survivors (blocked in the kernel, or
/// owned by another user).
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How long a guard without a Haft goes on trying to kill what cannot be killed.
pub(super) const LAST_PATIENCE: Duration = Duration::from_secs(15);

/// Left-over processes named in a report; a fork loop may leave thousands.
pub(super) const LISTED: usize = 20;

/// Characters of a command line that are shown.
pub(super) const COMMAND_LINE_SHOWN: usize = 200;

/// Read from a pipe at once: the size of a pipe's buffer.
pub(super) const CHUNK: usize = 64 << 10;

/// Chunks drained from a pipe after everything that could write to it is dead. More than any pipe holds (1 MiB by default
/// at most), so that a process that could not be killed cannot keep a caller reading.
pub(super) const DRAINED_CHUNKS: usize = 64;

/// Signals that a caller may have on the way to one program; more at once is a caller gone wild.
pub(super) const QUEUED_SIGNALS: usize = 64;
