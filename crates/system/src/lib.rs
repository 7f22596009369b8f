//! The only door to the machine.
//!
//! Processes, paths, text files, changes to files, the clock and the environment live here and nowhere else; clippy's
//! `disallowed-methods` keeps the other crates honest.

#![deny(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is the door that the other crates are kept from going around"
)]

pub mod clock;
mod environment;
pub mod process;

pub use environment::Environment;
pub use process::{
    CapturedOutput, Exit, Finished, OutputMode, Process, ProcessInfo, ProcessSpec, ProcessStderr, ProcessStdin,
    ProcessStdout, RunBounds, RunEnd, SpawnError, StderrMode, StdinMode, Supervisor,
};
