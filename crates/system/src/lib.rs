//! The only door to the machine.
//!
//! Processes, paths, text files, changes to files, the clock and the environment live here and nowhere else; clippy's
//! `disallowed-methods` keeps the other crates honest.

#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is the door that the other crates are kept from going around"
)]

mod beneath;
pub mod changes;
pub mod clock;
mod environment;
mod halves;
mod identity;
mod limits;
pub mod paths;
pub mod process;
pub mod text;

pub use changes::{
    Before, Captured, Change, ChangeError, ChangeKind, ChangeObserver, ChangeSet, Changes, Committed,
    FileChange, Fingerprint, Note, Planned, Recovery,
};
pub use environment::Environment;
pub use halves::without_halves;
pub use identity::{identity_is_alive, own_identity};
pub use paths::{PathError, PathState, ResolvedPath, Workdir};
pub use process::{
    CapturedOutput, Exit, Finished, OutputMode, Process, ProcessChannel, ProcessGlimpse, ProcessInfo,
    ProcessSpec, ProcessStderr, ProcessStdin, ProcessStdout, ProcessWatch, RunBounds, RunEnd, SpawnError,
    StderrMode, StdinMode, Supervisor,
};
pub use text::{EncodeError, Encoding, LineEnding, NotText, TextFile};

/// Ends this process at once, without unwinding. What it started ends with it: every guard sees its pipe close.
#[expect(clippy::exit, reason = "the one place where a process may end without unwinding")]
pub fn end_now(code: u8) -> ! {
    std::process::exit(i32::from(code))
}
