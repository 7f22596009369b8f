//! Every limit of the store, with its reason.

use std::time::Duration;

/// How long to wait for another process that is writing. Writes take milliseconds; whoever holds the database for longer is stuck or
/// stopped, and saying so is better than waiting on.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Writes that may wait for the writer; further callers wait for room.
pub(crate) const WRITE_QUEUE: usize = 64;

/// Writes that share one transaction, and so one wait for the disk. As many as can wait.
pub(crate) const WRITE_BATCH: usize = WRITE_QUEUE;

/// After so long without a write, what nobody waited for is brought to the disk, and the log into the database. What a power cut may take
/// is what happened in this time; waiting for the disk costs a call one to ten milliseconds, more than most calls take.
pub(crate) const SYNC: Duration = Duration::from_millis(200);

/// Where there is no such pause, it is brought to the disk after so many times [`SYNC`].
pub(crate) const SYNC_ROUNDS: u32 = 5;

/// Connections that read side by side. SQLite reads from memory in microseconds; more would only cost memory (2 MB of cache each).
pub(crate) const READERS: usize = 4;

/// Events that a follower takes at a time, so that a long conversation is never in memory as a whole.
pub(crate) const FOLLOW_PAGE: usize = 256;

/// How soon followers see what *other* processes append. Appends of this process are seen at once.
pub(crate) const FOREIGN_POLL: Duration = Duration::from_millis(250);

/// Up to this size an artifact is kept inside the database: below it one row is cheaper than a file, two names and two waits for the
/// disk (SQLite's own measurements put the break-even near 100 KB).
pub(crate) const INLINE_ARTIFACT: usize = 64 * 1024;

/// A temporary file this old belongs to no write in progress; it was left by a crash.
pub(crate) const STALE_TEMPORARY_MS: i64 = 60 * 60 * 1000;

/// The write-ahead log is cut back to this size after a burst of writes (bytes).
pub(crate) const LOG_BYTES: i64 = 16 * 1024 * 1024;

/// Pages (4 KiB each) in the write-ahead log at which a write takes the time to bring them into the database. As many as [`LOG_BYTES`]
/// holds: it is done when nobody waits ([`SYNC`]), and by a write only where there is no such moment.
pub(crate) const LOG_PAGES: i64 = LOG_BYTES / 4096;

/// Between two tries for a lock that SQLite does not wait for by itself.
pub(crate) const LOCK_RETRY: Duration = Duration::from_millis(2);

/// How much of a file that becomes an artifact is in memory at once (bytes).
pub(crate) const FILE_PIECE: usize = 128 * 1024;
