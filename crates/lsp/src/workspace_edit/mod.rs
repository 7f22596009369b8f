//! A server's workspace edit, turned into one change set (SPEC N2): text edits, file renames, creates and deletes, checked as a whole and worked out in memory
//! before anything is written.

mod ignored;
mod parse;
mod plan;
mod text;

use std::path::PathBuf;

use haft_tool::ToolError;

pub use parse::WorkspaceEdit;
pub use plan::{EditPlan, Open, PlannedFile, Planner};

use crate::position::Range;

/// One step of a workspace edit, as the server gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Edit { path: PathBuf, version: Option<i64>, edits: Vec<TextEdit> },
    Create { path: PathBuf, overwrite: bool, ignore_if_exists: bool },
    Rename { from: PathBuf, to: PathBuf, overwrite: bool, ignore_if_exists: bool },
    Delete { path: PathBuf, ignore_if_missing: bool },
}

/// New text for a stretch of old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) range: Range,
    pub(crate) text: String,
}

/// Why a server's edit is not carried out. Nothing has been changed. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The server's answer cannot be read as an edit.
    #[error("The server's edit cannot be carried out: {0}. Nothing was changed.")]
    Malformed(String),
    /// A target that must not be touched, so all of it is refused.
    #[error(
        "The server wants to change {file}, which {why}. The whole edit was refused and nothing was changed."
    )]
    Refused {
        /// As shown.
        file: String,
        /// Continues "which".
        why: String,
    },
    /// The server worked on another text than the one on disk.
    #[error(
        "The server's view of {file} is not what is on disk: {why}. Nothing was changed. Try again; if it stays so, use `reload`."
    )]
    Stale {
        /// As shown.
        file: String,
        /// In words.
        why: String,
    },
    /// Edits that contradict each other.
    #[error(
        "The server's edits of {file} overlap on line {line}, so they cannot be carried out. Nothing was changed."
    )]
    Overlap {
        /// As shown.
        file: String,
        /// 1-based.
        line: u32,
    },
    /// Something failed on the way.
    #[error("{0}")]
    Failed(String),
}

impl From<EditError> for ToolError {
    fn from(error: EditError) -> Self {
        ToolError::model(error.to_string())
    }
}

impl From<haft_system::ChangeError> for EditError {
    fn from(error: haft_system::ChangeError) -> Self {
        EditError::Failed(error.to_string())
    }
}
