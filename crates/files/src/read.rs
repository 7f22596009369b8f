//! `read`: a file's text under line numbers, a picture as a picture, a directory as a list.

mod image;
mod text;

use std::{fs, path::PathBuf};

use haft_system::{PathState, ResolvedPath, Workdir};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    Reads, blocking,
    limits::{DIRECTORY_ENTRIES, IMAGE_FILE_BYTES, READ_LINES, SNIFF_BYTES, WHOLE_FILE_BYTES},
    lines::{count, size},
    suggest,
};

/// The tool.
#[derive(Clone, Debug)]
pub struct Read {
    workdir: Workdir,
    reads: Reads,
}

impl Read {
    /// Reads below `workdir` and notes in `reads` what was seen.
    pub fn new(workdir: Workdir, reads: Reads) -> Self {
        Read { workdir, reads }
    }
}

/// What to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// File or directory, relative to the working directory.
    path: PathBuf,
    /// First line, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// Number of lines; 2000 by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

impl Tool for Read {
    type Arguments = ReadArguments;
    const NAME: &'static str = "read";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Reads a file. Text comes as lines of `number<tab>text`; the number and the tab are not part of the file. PNG, JPEG, GIF and WebP come as \
         pictures, a directory as the list of its entries. What was left out is said at the end, with how to read it."
            .into()
    }

    fn touches(&self, arguments: &ReadArguments) -> Vec<Touch> {
        vec![Touch::Path(arguments.path.clone(), Access::Read)]
    }

    async fn call(&self, arguments: ReadArguments, context: &Context) -> Result<Output, ToolError> {
        let tool = self.clone();
        let cancel = context.cancel.clone();
        blocking(move || tool.read(&arguments, &cancel)).await
    }
}

/// A piece of a file, as the caller asked for it.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// 1-based.
    offset: u64,
    limit: u64,
}

impl Read {
    fn read(&self, arguments: &ReadArguments, cancel: &CancellationToken) -> Result<Output, ToolError> {
        let path = self.workdir.resolve(&arguments.path, Access::Read)?;
        let range = Range {
            offset: arguments.offset.unwrap_or(1).max(1),
            limit: arguments.limit.unwrap_or(READ_LINES).max(1),
        };
        match path.state {
            PathState::Missing => Err(suggest::missing(&self.workdir, &path)),
            PathState::Other(what) => Err(ToolError::model(format!(
                "`{}` is {what}; only files and directories can be read.",
                path.shown
            ))),
            PathState::Directory => directory(&path),
            PathState::File => self.file(&path, range, cancel),
        }
    }

    fn file(
        &self,
        path: &ResolvedPath,
        range: Range,
        cancel: &CancellationToken,
    ) -> Result<Output, ToolError> {
        let unreadable =
            |error: std::io::Error| ToolError::model(format!("`{}` cannot be read: {error}", path.shown));
        let mut file = path.open().map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        if length > WHOLE_FILE_BYTES {
            let head = text::head(&mut file, SNIFF_BYTES).map_err(unreadable)?;
            if image::looks_like(&head) && length <= IMAGE_FILE_BYTES {
                let bytes = text::whole(file, head, IMAGE_FILE_BYTES).map_err(unreadable)?;
                return image::show(path, &bytes);
            }
            return text::streamed(path, file, head, length, range, cancel);
        }
        // A file that grows while it is read is read up to the limit for pictures, and no further.
        let bytes = text::whole(file, Vec::new(), IMAGE_FILE_BYTES).map_err(unreadable)?;
        if image::looks_like(&bytes) {
            let output = image::show(path, &bytes)?;
            self.reads.saw(&path.real, &bytes);
            return Ok(output);
        }
        let output = text::shown(path, &bytes, range)?;
        self.reads.saw(&path.real, &bytes);
        Ok(output)
    }
}

fn directory(path: &ResolvedPath) -> Result<Output, ToolError> {
    let unreadable =
        |error: std::io::Error| ToolError::model(format!("`{}` cannot be listed: {error}", path.shown));
    let mut entries = Vec::new();
    for entry in fs::read_dir(&path.real).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(unreadable)?;
        entries.push(if kind.is_dir() {
            format!("{name}/")
        } else if kind.is_symlink() {
            match fs::read_link(entry.path()) {
                Ok(target) => format!("{name} -> {}", target.to_string_lossy()),
                Err(_) => name,
            }
        } else {
            name
        });
    }
    entries.sort_unstable();
    let total = entries.len();
    let mut text = format!("`{}` is a directory with {}.", path.shown, count(total, "entry", "entries"));
    entries.truncate(DIRECTORY_ENTRIES);
    for entry in &entries {
        text.push('\n');
        text.push_str(entry);
    }
    if total > entries.len() {
        text.push_str(&format!(
            "\n[{} more not shown; list them with `glob` and a pattern.]",
            count(total - entries.len(), "entry", "entries")
        ));
    }
    Ok(Output::text(text).structured(json!({
        "file": path.shown,
        "directory": true,
        "entries": entries,
        "total": total,
    })))
}

/// The error for a file that is neither text nor a picture.
fn binary(path: &ResolvedPath, why: &str, mime: Option<&str>, length: u64) -> ToolError {
    let kind = mime.map_or_else(String::new, |mime| format!(", {mime}"));
    ToolError::model(format!(
        "`{}` is not text: {why} ({}{kind}). Nothing of it is shown.",
        path.shown,
        size(length)
    ))
    .with_structured(json!({ "file": path.shown, "binary": true, "mime": mime, "bytes": length }))
}
