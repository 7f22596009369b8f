//! Bounds of this crate, each with its reason.

use std::time::Duration;

/// How often a request is tried. With the waits below that is about a minute, the length of an ordinary overload; a person who
/// waits longer than that wants to be told.
pub(crate) const ATTEMPTS: u32 = 8;

/// How often a server that cannot be reached at all is tried. A refused connection rarely heals by itself.
pub(crate) const CONNECT_ATTEMPTS: u32 = 3;

/// The first wait before a repetition; each next one is twice as long.
pub(crate) const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest wait that Haft chooses by itself.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The longest wait that a provider may ask for. Per-minute rate limits ask for up to 60 s.
pub(crate) const RETRY_AFTER_CAP: Duration = Duration::from_mins(2);

/// For a TCP connection and its TLS handshake.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// From the request to the first byte of the response. A local server may load a model and read a long prompt before it says anything.
pub(crate) const FIRST_BYTE_TIMEOUT: Duration = Duration::from_mins(10);

/// Between two frames of a stream. Models that think without showing it are silent for minutes.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// One frame of a stream. The largest known are OpenAI's closing events, which repeat the whole answer.
pub(crate) const FRAME_BYTES: usize = 32 * 1024 * 1024;

/// How much of an error's body is read.
pub(crate) const ERROR_BODY_BYTES: usize = 256 * 1024;

/// How many characters of a provider's words are shown.
pub(crate) const MESSAGE_CHARS: usize = 1_000;

/// How long an idle connection is kept: longer than most tool calls, shorter than most servers' patience.
pub(crate) const POOL_IDLE: Duration = Duration::from_secs(90);

/// How long the rest of a body is read after the answer is whole, so that its connection can be used again.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest tool name that every provider takes.
pub(crate) const TOOL_NAME_CHARS: usize = 64;

/// The longest call id that every provider takes (OpenAI: 64).
pub(crate) const CALL_ID_CHARS: usize = 64;

/// How much of two requests is shown on each side of their first difference.
pub(crate) const DIFFERENCE_CONTEXT: usize = 80;
