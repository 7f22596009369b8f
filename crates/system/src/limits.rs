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
