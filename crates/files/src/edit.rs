//! `edit`: one text in a file for another.

mod replace;

use std::path::PathBuf;

use haft_system::{Change, ChangeSet, Changes};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Reads, blocking, diff::Diffs, lines::count, reads::Knowledge, target};

/// The tool.
#[derive(Clone)]
pub struct Edit {
    changes: Changes,
    reads: Reads,
}

impl Edit {
    /// Writes through `changes`, and notes in `reads` what is there afterwards.
    pub fn new(changes: Changes, reads: Reads) -> Self {
        Edit { changes, reads }
    }
}

/// What to replace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArguments {
    /// The file, relative to the working directory.
    path: PathBuf,
    /// The text to replace, exactly as in the file, without line numbers.
    old: String,
    /// What to put in its place.
    new: String,
    /// Replace every occurrence; otherwise there must be exactly one.
    #[serde(default)]
    all: bool,
}

impl Tool for Edit {
    type Arguments = EditArguments;
    const NAME: &'static str = "edit";
    const TIER: Tier = Tier::Write;

    fn description(&self) -> String {
        "Replaces a text in a file. `old` must stand in the file exactly once (or pass `all`); add lines around it until it does. Line breaks fit \
         whatever ending the file has, which is kept."
            .into()
    }

    fn touches(&self, arguments: &EditArguments) -> Vec<Touch> {
        vec![Touch::Path(arguments.path.clone(), Access::Write)]
    }

    async fn call(&self, arguments: EditArguments, context: &Context) -> Result<Output, ToolError> {
        let EditArguments { path, old, new, all } = arguments;
        if old.is_empty() {
            return Err(ToolError::model(
                "`old` is empty. To create a file or replace all of it use `write`.",
            ));
        }
        let _turn = self.reads.turn(&context.cancel).await?;
        let target = target::text(&self.changes, &path).await?;
        let outdated = self.reads.knows(&target.captured.path.real, &target.bytes) == Knowledge::Outdated;
        let shown = target.captured.path.shown.clone();
        let via_symlink = target.captured.path.via_symlink;
        let real = target.captured.path.real.clone();
        let name = shown.clone();
        // Looking for the nearest text and comparing takes a while on a large file.
        let (text, after, change) = blocking(move || {
            let replaced = replace::replace(&target.file, &old, &new, all)
                .map_err(|why| ToolError::model(format!("Nothing was changed in `{name}`: {why}")))?;
            let after = target.encode(&replaced.text)?;
            if after[..] == target.bytes[..] {
                return Err(ToolError::model(format!(
                    "Nothing was changed in `{name}`: `old` and `new` come to the same text."
                )));
            }
            let mut text =
                format!("Changed `{name}`: {}.\n", count(replaced.places, "replacement", "replacements"));
            text.push_str(&Diffs::new().show(&target.file.text, &replaced.text));
            Ok((text, after.clone(), Change::Write { at: target.captured, after }))
        })
        .await?;
        let committed = self.changes.commit(ChangeSet { changes: vec![change] }, Self::NAME).await?;
        self.reads.saw(&real, &after);
        let link = if via_symlink {
            format!("\nThe path leads through a symbolic link to `{shown}`.")
        } else {
            String::new()
        };
        let outdated = if outdated {
            "\nThe file had changed since you last read it; the edit was made to what it says now."
        } else {
            ""
        };
        committed.answer(&(text + &link + outdated))
    }
}
