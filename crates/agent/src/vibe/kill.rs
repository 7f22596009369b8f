use std::sync::Arc;

use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Roster, WorkerStatus, words};

/// `vibe_kill`: the end of a worker.
pub(crate) struct VibeKill(pub(crate) Arc<Roster>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The worker, such as `w1`.
    worker_id: String,
}

impl Tool for VibeKill {
    type Arguments = Arguments;
    const NAME: &'static str = "vibe_kill";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Ends a worker for good, with every process that it started, and returns when they are dead. What it has written stays. To let it do something \
         else, use `vibe_send`."
            .into()
    }

    async fn call(&self, arguments: Arguments, _: &Context) -> Result<Output, ToolError> {
        let (worker, before) = self.0.kill(&arguments.worker_id).await?;
        let name = words::name(&worker);
        let text = match before {
            WorkerStatus::Killed => format!("{name} was killed before."),
            WorkerStatus::Running => {
                format!(
                    "{name} was at work and is dead, with everything that it had started. What it has written stays."
                )
            }
            before => format!("{name} was {before} and is dead."),
        };
        Ok(words::about(text, &worker.id(), self.0.lines()))
    }
}
