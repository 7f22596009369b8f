use std::sync::Arc;

use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Roster, WorkerStatus, words};

/// `vibe_send`: more for a worker to do.
pub(crate) struct VibeSend(pub(crate) Arc<Roster>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The worker, such as `w1`.
    worker_id: String,
    /// What it is to know or to do now.
    message: String,
}

impl Tool for VibeSend {
    type Arguments = Arguments;
    const NAME: &'static str = "vibe_send";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Adds a message to a worker's brief. One that is at work gets it at its next step. One that has settled, failed or was interrupted goes to work \
         again, with its own conversation as it was. Returns at once."
            .into()
    }

    async fn call(&self, arguments: Arguments, _: &Context) -> Result<Output, ToolError> {
        if arguments.message.trim().is_empty() {
            return Err(ToolError::model("`message` is empty. Write what the worker is to know or to do."));
        }
        let (worker, before, queued) = self.0.send(&arguments.worker_id, arguments.message).await?;
        let name = words::name(&worker);
        let text = match before {
            WorkerStatus::Running => format!("{name} is at work and gets the message at its next step."),
            WorkerStatus::Queued => {
                format!("{name} is still queued and gets the message together with its brief.")
            }
            _ if queued => format!("{name} is queued and goes to work again when a place is free."),
            _ => format!("{name} goes to work again."),
        };
        Ok(words::about(text, &worker.id(), self.0.lines()))
    }
}
