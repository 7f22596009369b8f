use std::{sync::Arc, time::Duration};

use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Roster,
    record::{DELIVERED, delivered},
    words,
};
use crate::limits::{WORKER_WAIT_MOST_SECONDS, WORKER_WAIT_SECONDS};

/// `vibe_wait`: a worker's result.
pub(crate) struct VibeWait(pub(crate) Arc<Roster>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The worker, such as `w1`.
    worker_id: String,
    /// How long to wait at most; 30 if not given, 0 only looks.
    #[serde(default)]
    timeout_seconds: Option<u32>,
}

impl Tool for VibeWait {
    type Arguments = Arguments;
    const NAME: &'static str = "vibe_wait";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Waits until a worker settles and returns its report, or its status when the time is up. A result is given once, here or between your steps. \
         Wait when you need the result to go on; else do something useful in the meantime."
            .into()
    }

    async fn call(&self, arguments: Arguments, context: &Context) -> Result<Output, ToolError> {
        let Arguments { worker_id, timeout_seconds } = arguments;
        let seconds = timeout_seconds.unwrap_or(WORKER_WAIT_SECONDS);
        if seconds > WORKER_WAIT_MOST_SECONDS {
            return Err(ToolError::model(format!(
                "`timeout_seconds` is {seconds}, and {WORKER_WAIT_MOST_SECONDS} is the most. Wait again when the time is up."
            )));
        }
        let number = self.0.find(&worker_id)?.number;
        let time_up = tokio::time::sleep(Duration::from_secs(seconds.into()));
        tokio::pin!(time_up);
        let mut news = self.0.news.subscribe();
        loop {
            let results = self.0.claim(number, &context.call);
            if !results.is_empty() {
                let turns: Vec<(u64, u64)> =
                    results.iter().map(|(_, result)| (number, result.turn)).collect();
                let mut output = words::about(words::results(&results), &worker_id, self.0.lines());
                output.structured.insert(DELIVERED.into(), delivered(&turns));
                return Ok(output);
            }
            let worker = self.0.find(&worker_id)?;
            let name = words::name(&worker);
            if worker.status.is_over() {
                let text = match (&worker.last, worker.undelivered.is_empty()) {
                    (_, false) => {
                        format!("{name}: {}. Another call is giving you its result.", worker.status)
                    }
                    (Some(_), true) => {
                        format!("{name}: {}. You were given its last result before.", worker.status)
                    }
                    (None, true) => format!("{name}: {}. There is no result.", worker.status),
                };
                return Ok(words::about(text, &worker_id, self.0.lines()));
            }
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
                // The sender lives as long as the roster.
                _ = news.changed() => {}
                () = &mut time_up => {
                    let text = format!("{name} is still {} after {seconds} s of waiting.", worker.status);
                    return Ok(words::about(text, &worker_id, self.0.lines()));
                }
            }
        }
    }
}
