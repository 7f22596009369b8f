//! Every limit of this crate, with its reason.

use std::time::Duration;

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
