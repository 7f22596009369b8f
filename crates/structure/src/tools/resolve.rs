//! `resolve`: accepts or discards what was staged (SPEC A7).

use std::{path::Path, sync::Arc};

use haft_system::{ChangeError, Changes, Committed};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::staging::{Claim, Fate, Staging};

/// Accepts or discards a staged change, whoever staged it.
pub struct Resolve {
    changes: Changes,
    staging: Arc<Staging>,
}

/// What `resolve` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveArguments {
    /// The id that the proposal came with, such as `edit_1`.
    edit_id: String,
    /// `accept` writes the change; `discard` gives it up.
    action: Action,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Discard,
}

impl Resolve {
    /// Commits what `staging` holds through `changes`.
    pub fn new(changes: Changes, staging: Arc<Staging>) -> Self {
        Resolve { changes, staging }
    }
}

impl Tool for Resolve {
    type Arguments = ResolveArguments;
    const NAME: &'static str = "resolve";
    const TIER: Tier = Tier::Write;

    fn description(&self) -> String {
        "Accepts or discards a change that was proposed and staged (by `ast_edit`, or a code action): nothing of it is in the files until it \
         is accepted. On accept all files are written together, or none: if any of them has changed since it was staged, everything is refused \
         and each such file is named. Several edits may be staged at the same time. Discarding twice does no harm; accepting twice is an error."
            .into()
    }

    fn touches(&self, arguments: &ResolveArguments) -> Vec<Touch> {
        match arguments.action {
            Action::Accept => {
                let root = self.changes.workdir().root();
                let paths = self.staging.paths(arguments.edit_id.trim()).into_iter();
                let relative = paths.map(|path| path.strip_prefix(root).map(Path::to_owned).unwrap_or(path));
                relative.map(|path| Touch::Path(path, Access::Write)).collect()
            }
            Action::Discard => Vec::new(),
        }
    }

    async fn call(&self, arguments: ResolveArguments, _: &Context) -> Result<Output, ToolError> {
        let id = arguments.edit_id.trim();
        match arguments.action {
            Action::Discard => discard(&self.staging, id),
            Action::Accept => {
                let claim = self.staging.claim(id)?;
                let changes = self.changes.clone();
                // A commit that has begun runs to its end, and what became of it is noted, even when the caller has gone.
                tokio::spawn(accept(claim, changes))
                    .await
                    .map_err(|error| ToolError::Bug(format!("accepting an edit ended early: {error}")))?
            }
        }
    }
}

fn discard(staging: &Staging, id: &str) -> Result<Output, ToolError> {
    let was_staged = staging.discard(id)?;
    let text = if was_staged {
        format!("Discarded `{id}`. No file was changed.")
    } else {
        format!("`{id}` was not staged any more. No file was changed.")
    };
    Ok(Output::text(text).structured(json!({
        "files": [],
        "new_diagnostics": [],
        "verified": false,
        "unverified_because": "nothing was written",
    })))
}

async fn accept(claim: Claim, changes: Changes) -> Result<Output, ToolError> {
    let id = claim.edit_id();
    let origin = claim.origin().to_owned();
    match changes.commit(claim.set(), "resolve").await {
        Ok(committed) => {
            claim.settle(Fate::Accepted);
            accepted(&id, &origin, committed)
        }
        Err(error) => {
            let (fate, sequel) = match &error {
                ChangeError::Stale { .. } => (
                    Some(Fate::Refused),
                    format!(
                        "`{id}` is gone: stage it again to see what it would do to the files as they are now."
                    ),
                ),
                ChangeError::RollbackFailed { .. } => (Some(Fate::Failed), format!("`{id}` is gone.")),
                _ => (
                    None,
                    format!(
                        "`{id}` stays staged and can be accepted once the cause is removed, or discarded."
                    ),
                ),
            };
            match fate {
                Some(fate) => claim.settle(fate),
                None => drop(claim),
            }
            Err(with_sequel(error.into(), &sequel))
        }
    }
}

fn with_sequel(error: ToolError, sequel: &str) -> ToolError {
    match error {
        ToolError::Model { text, structured } => {
            ToolError::Model { text: format!("{}\n{sequel}", text.trim_end()), structured }
        }
        ToolError::Operator(text) => ToolError::Operator(format!("{}\n{sequel}", text.trim_end())),
        other => other,
    }
}

fn accepted(id: &str, origin: &str, committed: Committed) -> Result<Output, ToolError> {
    let count = committed.files.len();
    let mut text =
        format!("Accepted `{id}` ({origin}): {count} file{} written.", if count == 1 { "" } else { "s" });
    for file in &committed.files {
        let kind = serde_json::to_value(file.change)
            .map_err(|error| ToolError::Bug(format!("a kind of change does not serialise: {error}")))?;
        text.push_str(&format!("\n- {}: {}", file.file, kind.as_str().unwrap_or("changed")));
        if let Some(from) = &file.from {
            text.push_str(&format!(" from {from}"));
        }
    }
    for file in &committed.unchanged {
        text.push_str(&format!("\n- {file}: left alone, it has this content already"));
    }
    let mut output = committed.answer(&text)?;
    output.structured.insert("edit_id".into(), json!(id));
    Ok(output)
}
