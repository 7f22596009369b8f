use std::sync::Arc;

use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Roster;

/// `vibe_list`: the roster.
pub(crate) struct VibeList(pub(crate) Arc<Roster>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {}

impl Tool for VibeList {
    type Arguments = Arguments;
    const NAME: &'static str = "vibe_list";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Lists the workers: tier, status (queued, running, settled, failed, interrupted, killed), time worked, and the beginning of the last result."
            .into()
    }

    async fn call(&self, _: Arguments, _: &Context) -> Result<Output, ToolError> {
        let lines = self.0.lines();
        if lines.is_empty() {
            return Ok(Output::text("There are no workers.").structured(json!({"workers": []})));
        }
        let text: Vec<String> = lines
            .iter()
            .map(|line| {
                match line.last_result.as_deref().map(|result| result.lines().next().unwrap_or_default()) {
                    Some(result) if !result.is_empty() => {
                        format!("{}; last result: {result}", line.in_words())
                    }
                    _ => line.in_words(),
                }
            })
            .collect();
        Ok(Output::text(text.join("\n")).structured(json!({"workers": lines})))
    }
}
