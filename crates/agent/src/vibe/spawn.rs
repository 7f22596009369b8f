use std::sync::Arc;

use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Roster, WorkerTier, record::worker_id, words};
use crate::limits::{WORKER_LABEL, WORKERS_AT_ONCE};

/// `vibe_spawn`: a new worker.
pub(crate) struct VibeSpawn(pub(crate) Arc<Roster>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// What it is to do, complete in itself: it knows nothing of this conversation. Say what it may touch and how it is to check its work.
    brief: String,
    /// A few words by which you and people tell it from the others.
    label: String,
    /// `fast` for mechanical work with a clear specification, `good` for design, judgement and review.
    #[serde(default)]
    tier: WorkerTier,
    /// Whether it works on a copy of its own, a git worktree. Its changes then come back as an edit that you accept or discard with `resolve`.
    #[serde(default)]
    worktree: bool,
}

impl Tool for VibeSpawn {
    type Arguments = Arguments;
    const NAME: &'static str = "vibe_spawn";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        format!(
            "Puts a worker to work and returns its `worker_id` at once. The worker has a conversation of its own, the tools and the files of this one, \
             and is asked nothing but your brief. Its result comes to you by itself, or through `vibe_wait`. {WORKERS_AT_ONCE} work side by side; more are \
             queued."
        )
    }

    async fn call(&self, arguments: Arguments, _: &Context) -> Result<Output, ToolError> {
        let Arguments { brief, label, tier, worktree } = arguments;
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        if brief.trim().is_empty() {
            return Err(ToolError::model("`brief` is empty. Write what the worker is to do."));
        }
        if label.is_empty() {
            return Err(ToolError::model("`label` is empty. Give the worker a name of a few words."));
        }
        if label.chars().count() > WORKER_LABEL {
            return Err(ToolError::model(format!(
                "`label` is longer than {WORKER_LABEL} characters. What the worker is to do belongs into `brief`."
            )));
        }
        let (number, queued) = self.0.spawn(label.clone(), tier, brief, worktree).await?;
        let id = worker_id(number);
        let text = if queued {
            format!(
                "{id} ({label}), {tier}, is queued: {WORKERS_AT_ONCE} work side by side. It begins when one of them settles."
            )
        } else {
            format!("{id} ({label}), {tier}, begins now.")
        };
        Ok(words::about(text, &id, self.0.lines()))
    }
}
