//! The general tools (SPEC H1): what a model does with files, and the shell.
//!
//! Each tool is made from the resources it stands on and registered by the wiring of a run:
//!
//! | tool | made by | answers |
//! | --- | --- | --- |
//! | `read` | [`Read::new`] | text under line numbers, pictures, directories |
//! | `glob` | [`Glob::new`] | files by name |
//! | `search` | [`Search::new`] | lines by regular expression |
//! | `write` | [`Write::new`] | creates or replaces a file |
//! | `edit` | [`Edit::new`] | replaces a text that stands in the file once |
//! | `apply_patch` | [`ApplyPatch::new`] | several files, all or nothing |
//! | `shell` | [`Shell::new`] | a command's output and exit code, background jobs |
//!
//! Looking goes through [`haft_system::Workdir`], changing through [`haft_system::Changes`], so that every write can be observed and none can
//! leave the working directory. What the tools of a run have seen of files is kept in one [`Reads`].

#![deny(missing_docs)]
#![allow(clippy::format_push_string, reason = "answers are put together from pieces; none of them is hot")]

mod answer;
mod apply_patch;
mod diff;
mod edit;
mod glob;
mod jobs;
mod limits;
mod lines;
mod nearest;
mod patch;
mod read;
mod reads;
mod search;
mod shell;
mod suggest;
mod target;
mod walk;
mod write;

use haft_tool::{Tier, Tool, ToolError};

pub use apply_patch::{ApplyPatch, ApplyPatchArguments};
pub use edit::{Edit, EditArguments};
pub use glob::{Glob, GlobArguments};
pub use jobs::Jobs;
pub use read::{Read, ReadArguments};
pub use reads::Reads;
pub use search::{Search, SearchArguments};
pub use shell::{Shell, ShellArguments};
pub use write::{Write, WriteArguments};

/// The tools of this crate that work on files, in the order in which they are registered. (The shell is registered by its own name and tier.)
pub fn known() -> [(&'static str, Tier); 6] {
    [
        (Read::NAME, Read::TIER),
        (Glob::NAME, Glob::TIER),
        (Search::NAME, Search::TIER),
        (Write::NAME, Write::TIER),
        (Edit::NAME, Edit::TIER),
        (ApplyPatch::NAME, ApplyPatch::TIER),
    ]
}

/// Runs file work beside the runtime's own threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Err(_) => Err(ToolError::Cancelled),
    }
}
