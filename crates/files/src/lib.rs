//! The general tools (SPEC H1).

#![deny(missing_docs)]

mod jobs;
mod limits;
mod shell;

pub use jobs::Jobs;
pub use shell::{Shell, ShellArguments};
