//! `glob`: files by their names.

use std::path::PathBuf;

use haft_system::{PathState, Workdir};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    blocking,
    limits::{GLOB_PATHS, SKIPPED_NAMED},
    lines::{count, path_text},
    suggest,
    walk::{self, PathPattern, Rules},
};

/// The tool.
#[derive(Clone, Debug)]
pub struct Glob {
    workdir: Workdir,
}

impl Glob {
    /// Looks below `workdir`.
    pub fn new(workdir: Workdir) -> Self {
        Glob { workdir }
    }
}

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobArguments {
    /// Like `src/**/*.rs` or `*.{ts,tsx}`, relative to `path`. Without a slash it means a name at any depth.
    pattern: String,
    /// Directory to look in; the working directory by default.
    #[serde(default)]
    path: Option<PathBuf>,
}

impl Tool for Glob {
    type Arguments = GlobArguments;
    const NAME: &'static str = "glob";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Lists files whose path fits a pattern, sorted by path. Files that git ignores are left out, and hidden ones unless the pattern names them \
         (`.github/**`)."
            .into()
    }

    fn touches(&self, arguments: &GlobArguments) -> Vec<Touch> {
        vec![Touch::Path(arguments.path.clone().unwrap_or_else(|| ".".into()), Access::Read)]
    }

    async fn call(&self, arguments: GlobArguments, context: &Context) -> Result<Output, ToolError> {
        let tool = self.clone();
        let cancel = context.cancel.clone();
        blocking(move || tool.glob(&arguments, &cancel)).await
    }
}

impl Glob {
    fn glob(&self, arguments: &GlobArguments, cancel: &CancellationToken) -> Result<Output, ToolError> {
        let given = arguments.path.clone().unwrap_or_else(|| ".".into());
        let base = self.workdir.resolve(&given, Access::Read)?;
        match base.state {
            PathState::Directory => {}
            PathState::Missing => return Err(suggest::missing(&self.workdir, &base)),
            PathState::File | PathState::Other(_) => {
                return Err(ToolError::model(format!("`{}` is not a directory.", base.shown)));
            }
        }
        let pattern = PathPattern::parse(&arguments.pattern, &base.real, false).map_err(ToolError::model)?;
        let rules = Rules { hidden: pattern.names_hidden(), links: true };
        let walked = walk::files(&self.workdir, &base.real, rules, &|path| pattern.fits(path), cancel)
            .ok_or(ToolError::Cancelled)?;

        let total = walked.files.len();
        let files: Vec<String> =
            walked.files.iter().take(GLOB_PATHS).map(|path| self.workdir.show(path)).collect();
        let mut text = String::new();
        for file in &files {
            text.push_str(&path_text(file));
            text.push('\n');
        }
        if total == 0 {
            let hidden = if pattern.names_hidden() { "Ignored files" } else { "Hidden and ignored files" };
            text = format!(
                "No file fits `{}` in `{}`. {hidden} were left out.\n",
                arguments.pattern, base.shown
            );
            if !walked.directories.is_empty() {
                text.push_str(&format!(
                    "{} it; add `/**` for the files inside.\n",
                    if walked.directories.len() == 1 {
                        format!("The directory `{}` fits", self.workdir.show(&walked.directories[0]))
                    } else {
                        format!("{} directories fit", walked.directories.len())
                    }
                ));
            }
        } else if total > files.len() {
            text.push_str(&format!(
                "[{} of {total} files are shown; use a narrower pattern or `path`.]\n",
                files.len()
            ));
        }
        if !walked.errors.is_empty() {
            text.push_str(&format!("Could not be looked at: {}\n", named(&walked.errors)));
        }
        Ok(Output::text(text.trim_end()).structured(json!({
            "files": files,
            "total": total,
            "errors": walked.errors,
        })))
    }
}

/// The first few, and how many more.
pub(crate) fn named(all: &[String]) -> String {
    let mut text = all.iter().take(SKIPPED_NAMED).cloned().collect::<Vec<_>>().join("; ");
    if all.len() > SKIPPED_NAMED {
        text.push_str(&format!("; and {}", count(all.len() - SKIPPED_NAMED, "other", "others")));
    }
    text
}
