//! `write`: a whole file.

use std::path::PathBuf;

use haft_system::{Before, Change, ChangeSet, Changes, Encoding, LineEnding, TextFile};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Reads, answer, diff,
    lines::{count, size, split},
    reads::Knowledge,
    target,
};

/// The tool.
#[derive(Clone)]
pub struct Write {
    changes: Changes,
    reads: Reads,
}

impl Write {
    /// Writes through `changes`, and refuses to write over what changed since `reads` saw it.
    pub fn new(changes: Changes, reads: Reads) -> Self {
        Write { changes, reads }
    }
}

/// What to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArguments {
    /// The file, relative to the working directory. Missing directories are made.
    path: PathBuf,
    /// The whole content.
    content: String,
}

impl Tool for Write {
    type Arguments = WriteArguments;
    const NAME: &'static str = "write";
    const TIER: Tier = Tier::Write;

    fn description(&self) -> String {
        "Creates a file, or replaces the whole content of one; an existing file keeps its encoding, line endings and mode. To change part of a file use \
         `edit`. Refused when the file has changed since it was last read."
            .into()
    }

    fn touches(&self, arguments: &WriteArguments) -> Vec<Touch> {
        vec![Touch::Path(arguments.path.clone(), Access::Write)]
    }

    async fn call(&self, arguments: WriteArguments, context: &Context) -> Result<Output, ToolError> {
        let _turn = self.reads.turn(&context.cancel).await?;
        let path = target::resolve(&self.changes, &arguments.path)?;
        let captured = self.changes.capture(&path).await?;
        let shown = path.shown.clone();
        let mut said = Vec::new();
        if path.via_symlink {
            said.push(format!("The path leads through a symbolic link to `{shown}`."));
        }
        let lines = count(split(&arguments.content).len(), "line", "lines");
        let (headline, after) = match &captured.before {
            Before::Absent => {
                let after = arguments.content.into_bytes();
                (format!("Created `{shown}`: {lines}, {}.", size(after.len() as u64)), after)
            }
            Before::File { bytes, .. } => {
                let knowledge = self.reads.knows(&path.real, bytes);
                if knowledge == Knowledge::Outdated {
                    return Err(ToolError::model(format!(
                        "`{shown}` has changed since you last read it. Nothing was written. Read it again, then decide what to write."
                    )));
                }
                let (text, after, before) = match TextFile::parse(bytes) {
                    Ok(file) => {
                        let text = file.with_endings(&arguments.content);
                        // All of the content is new, so nothing is lost by another encoding; `edit` cannot do that.
                        let (after, stays) = match file.encode(&text) {
                            Ok(after) => (after, true),
                            Err(error) => {
                                let characters: String = error.characters.iter().collect();
                                said.push(format!(
                                    "The file was stored as {}, which cannot hold `{characters}`; it is UTF-8 now.",
                                    error.encoding.as_str()
                                ));
                                (text.clone().into_bytes(), false)
                            }
                        };
                        said.extend(kept(&file, &arguments.content, &text, stays));
                        (text, after, Some(file.text))
                    }
                    Err(not_text) => {
                        said.push(format!("The old content was not text: {}.", not_text.why));
                        let after = arguments.content.clone().into_bytes();
                        (arguments.content, after, None)
                    }
                };
                if after[..] == bytes[..] {
                    self.reads.saw(&path.real, bytes);
                    return Ok(answer::unchanged(format!(
                        "`{shown}` already has this content; nothing was written."
                    )));
                }
                if knowledge == Knowledge::Never && !bytes.is_empty() {
                    said.push(format!(
                        "You had not read the old content ({}), which is replaced.",
                        size(bytes.len() as u64)
                    ));
                }
                let tally = before.map_or_else(String::new, |before| diff::tally(&before, &text));
                let tally = if tally.is_empty() { tally } else { format!(" ({tally})") };
                (
                    format!(
                        "Replaced the content of `{shown}`: {lines}, {}{tally}.",
                        size(after.len() as u64)
                    ),
                    after,
                )
            }
        };
        let set = ChangeSet { changes: vec![Change::Write { at: captured, after: after.clone() }] };
        let committed = self.changes.commit(set, Self::NAME).await?;
        self.reads.saw(&path.real, &after);
        let text = std::iter::once(headline).chain(said).collect::<Vec<_>>().join("\n");
        committed.answer(&text)
    }
}

/// What of the old file's form was kept, where the content did not already have it.
fn kept(file: &TextFile, content: &str, text: &str, encoding: bool) -> Option<String> {
    let mut kept = Vec::new();
    if content != text {
        kept.push(match file.line_ending {
            LineEnding::CrLf => "its line endings, CRLF".to_owned(),
            LineEnding::Cr => "its line endings, CR".to_owned(),
            _ => "its most frequent line ending".to_owned(),
        });
    }
    if encoding && !matches!(file.encoding, Encoding::Utf8 { bom: false }) {
        kept.push(format!("its encoding, {}", file.encoding.as_str()));
    }
    (!kept.is_empty()).then(|| format!("The file keeps {}.", kept.join(", and ")))
}
