//! The file that a change is about: resolved, captured, and read as text.

use std::{path::Path, sync::Arc};

use haft_system::{Before, Captured, Changes, PathState, ResolvedPath, TextFile};
use haft_tool::{Access, ToolError};

use crate::{blocking, limits::EDIT_BYTES, lines::size, suggest};

/// A text file that exists.
pub(crate) struct Target {
    pub(crate) captured: Captured,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) file: TextFile,
}

/// Resolves a path for writing; a directory, a device or a file too large to hold is an error.
pub(crate) fn resolve(changes: &Changes, given: &Path) -> Result<ResolvedPath, ToolError> {
    let path = changes.workdir().resolve(given, Access::Write)?;
    match path.state {
        PathState::Missing => Ok(path),
        PathState::File => match std::fs::metadata(&path.real) {
            Ok(metadata) if metadata.len() > EDIT_BYTES => Err(ToolError::model(format!(
                "`{}` has {}; files above {} are not changed here. Use a program in the shell.",
                path.shown,
                size(metadata.len()),
                size(EDIT_BYTES)
            ))),
            // What is wrong with it is found out when it is captured.
            _ => Ok(path),
        },
        PathState::Directory => {
            Err(ToolError::model(format!("`{}` is a directory, not a file.", path.shown)))
        }
        PathState::Other(what) => {
            Err(ToolError::model(format!("`{}` is {what}, not a regular file.", path.shown)))
        }
    }
}

/// The error for a path at which nothing exists; looking for names like it takes a walk.
pub(crate) async fn missing(changes: &Changes, path: &ResolvedPath) -> ToolError {
    let (workdir, path) = (changes.workdir().clone(), path.clone());
    match blocking(move || Ok(suggest::missing(&workdir, &path))).await {
        Ok(error) | Err(error) => error,
    }
}

/// Captures the text file at `given`.
pub(crate) async fn text(changes: &Changes, given: &Path) -> Result<Target, ToolError> {
    let path = resolve(changes, given)?;
    if path.state == PathState::Missing {
        return Err(missing(changes, &path).await);
    }
    let captured = changes.capture(&path).await?;
    let Before::File { bytes, .. } = &captured.before else {
        return Err(missing(changes, &path).await);
    };
    let bytes = Arc::clone(bytes);
    let file = TextFile::parse(&bytes)
        .map_err(|not_text| ToolError::model(format!("`{}` is not text: {}.", path.shown, not_text.why)))?;
    Ok(Target { captured, bytes, file })
}

impl Target {
    /// The new text in the file's own encoding.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u8>, ToolError> {
        encode(&self.file, &self.captured.path, text)
    }
}

/// A new text in the encoding of `file`.
pub(crate) fn encode(file: &TextFile, path: &ResolvedPath, text: &str) -> Result<Vec<u8>, ToolError> {
    file.encode(text)
        .map_err(|error| ToolError::model(format!("Nothing was written to `{}`. {error}", path.shown)))
}
