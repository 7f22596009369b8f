//! Every limit of this crate, with its reason.

use std::time::Duration;

/// How long a cell may go without output, frame or answered call before it is interrupted (SPEC E5).
pub const INACTIVITY_SECONDS: u32 = 300;
/// The longest budget that a caller may ask for, unless configured.
pub const INACTIVITY_MOST_SECONDS: u32 = 3600;
/// How long a kernel may be idle before it is stopped: an hour's pause is somebody who has gone on to something else, and frames in memory
/// are large.
pub(crate) const IDLE: Duration = Duration::from_hours(1);
/// From the first interrupt to the second.
pub(crate) const SECOND_INTERRUPT: Duration = Duration::from_millis(1500);
/// From the first interrupt to the kill.
pub(crate) const KILL_AFTER: Duration = Duration::from_secs(5);
/// Between TERM and KILL: the worker has nothing to put in order.
pub(crate) const GRACE: Duration = Duration::from_millis(100);
/// How long an interpreter may take to start; a cold disk takes seconds.
pub(crate) const START: Duration = Duration::from_secs(30);
/// Bytes that are kept of each stream's beginning, and of its end; a file takes the rest.
pub(crate) const KEPT: usize = 32 * 1024;
/// Bytes of one stream of one cell that are written to a file. Output beyond it is counted, and no longer a sign of life.
pub(crate) const SPOOLED: u64 = 64 * 1024 * 1024;
/// Bytes of stdout in an answer, half of them from each end.
pub(crate) const SHOWN_OUT: usize = 20 * 1024;
/// Bytes of stderr in an answer.
pub(crate) const SHOWN_ERR: usize = 6 * 1024;
/// Bytes of one display's text in an answer.
pub(crate) const SHOWN_TEXT: usize = 12 * 1024;
/// Bytes of a traceback in an answer.
pub(crate) const SHOWN_TRACEBACK: usize = 8 * 1024;
/// Displays that one cell may show; a loop that shows pictures must end somewhere.
pub(crate) const DISPLAYS: usize = 40;
/// Bytes of HTML that the fields for programs hold per display.
pub(crate) const HTML: usize = 256 * 1024;
/// Long edge, in pixels, that model providers scale pictures down to anyway.
pub(crate) const IMAGE_EDGE: u32 = 1568;
/// Encoded bytes of a picture in an answer; base64 adds a third, and providers refuse above 5 MB.
pub(crate) const IMAGE_BYTES: usize = 3_700_000;
/// Memory that a picture's decoder may take.
pub(crate) const IMAGE_DECODE_BYTES: u64 = 512 * 1024 * 1024;
/// Bytes of one frame; the worker bounds what it sends far below.
pub(crate) const FRAME: usize = 64 * 1024 * 1024;
/// Read from a pipe at once.
pub(crate) const CHUNK: usize = 64 * 1024;
/// Calls of tools that may be open at once in one kernel.
pub(crate) const CALLS: usize = 64;
/// Frames that may wait to be written to a worker: an answer for every open call, a cell and an interrupt.
pub(crate) const QUEUED_FRAMES: usize = CALLS + 8;
/// Live output is passed on this often.
pub(crate) const LIVE_EVERY: Duration = Duration::from_millis(50);
/// Bytes of live output passed on at once.
pub(crate) const LIVE_BYTES: usize = 16 * 1024;
/// How long calls of a cell that has ended may take to end, when their kernel ends.
pub(crate) const CALL_GRACE: Duration = Duration::from_secs(2);
/// What is kept of the output of an interpreter that did not start.
pub(crate) const START_OUTPUT: usize = 2000;
/// Bytes of a cell's source.
pub(crate) const SOURCE: usize = 1024 * 1024;
