use std::{io, path::PathBuf};

use haft_tool::ToolError;
use rustix::io::Errno;
use serde_json::json;

use crate::paths::{PathError, plain};

/// Why a change was not made. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Files are no longer as they were captured. Nothing was changed.
    #[error(
        "Nothing was changed, because files are no longer as they were read:\n{}\nRead them again and repeat the change.",
        files.iter().map(|(file, why)| format!("- {file}: {why}")).collect::<Vec<_>>().join("\n")
    )]
    Stale {
        /// Each file with the reason: "its content has changed".
        files: Vec<(String, String)>,
    },
    /// A file that cannot be changed that way. Nothing was changed.
    #[error("Nothing was changed: {file} {why}.")]
    Refused {
        /// As shown.
        file: String,
        /// Continues the sentence: "is read-only (mode 444)".
        why: String,
    },
    /// A path that is not allowed. Nothing was changed.
    #[error("Nothing was changed. {0}")]
    Path(#[from] PathError),
    /// The system failed before anything was put into place. Nothing was changed.
    #[error("Nothing was changed: {doing} {file} failed: {}.", plain(source))]
    Io {
        /// As shown.
        file: String,
        /// "writing", "renaming".
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed in the middle; what had been done was taken back.
    #[error(
        "{} {file} failed: {}. The files that had been changed before it were put back, so nothing is changed.",
        capital(doing),
        plain(source)
    )]
    RolledBack {
        /// The file at which it failed.
        file: String,
        /// "writing", "renaming".
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed in the middle, and again when it was to be taken back.
    #[error(
        "{}. What had been done was to be taken back, but not for these files:\n{}\nAll other files of the change are as before. \
         Tell the person, who has to look at these by hand.",
        capital(why),
        files.iter().map(lost).collect::<Vec<_>>().join("\n")
    )]
    RollbackFailed {
        /// What went wrong first.
        why: String,
        /// Each file that could not be put back.
        files: Vec<LostFile>,
    },
    /// Another Haft process is committing to the same journal for unusually long.
    #[error("Nothing was changed: another Haft process has been changing files for {0} seconds. Try again.")]
    Busy(u64),
    /// The journal cannot be used. Nothing was changed.
    #[error("Nothing was changed: the journal of changes in `{directory}` cannot be used: {why}.")]
    Journal {
        /// Where it is.
        directory: String,
        /// What the system said.
        why: String,
    },
    /// A mistake in Haft.
    #[error("{0}")]
    Bug(String),
}

/// A file that could not be put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostFile {
    /// As shown.
    pub file: String,
    /// Why.
    pub why: String,
    /// Where its old content lies. `None` if there was none, or it could not be saved.
    pub backup: Option<PathBuf>,
}

fn capital(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

fn lost(file: &LostFile) -> String {
    let LostFile { file, why, backup } = file;
    match backup {
        Some(backup) => format!("- {file}: {why}; its old content is in {}", backup.display()),
        None => format!("- {file}: {why}"),
    }
}

impl From<ChangeError> for ToolError {
    fn from(error: ChangeError) -> Self {
        let text = error.to_string();
        match error {
            ChangeError::Stale { files } => {
                let stale: Vec<_> =
                    files.iter().map(|(file, why)| json!({"file": file, "why": why})).collect();
                ToolError::model(text).with_structured(json!({"stale": stale}))
            }
            ChangeError::Io { source, .. } | ChangeError::RolledBack { source, .. }
                if of_the_machine(&source) =>
            {
                ToolError::operator(text)
            }
            ChangeError::Refused { .. }
            | ChangeError::Path(_)
            | ChangeError::Io { .. }
            | ChangeError::RolledBack { .. }
            | ChangeError::RollbackFailed { .. }
            | ChangeError::Busy(_) => ToolError::model(text),
            ChangeError::Journal { .. } => ToolError::operator(text),
            ChangeError::Bug(_) => ToolError::Bug(text),
        }
    }
}

/// Failures that no other call by the model can get around.
fn of_the_machine(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::ROFS, Errno::MFILE, Errno::NFILE];
    full.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}
