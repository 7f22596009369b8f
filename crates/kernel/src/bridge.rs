use std::path::Path;

use async_trait::async_trait;
use haft_tool::{Context, Outcome};
use serde_json::Value;

/// The way of a cell into its run: `tool(…)` to the registry (SPEC E4, R7), long output to the transcript (SPEC E6).
#[async_trait]
pub trait Bridge: Send + Sync {
    /// Makes the call as [`haft_tool::Origin::Cell`] through every layer. `from` is the context of the `eval` call whose cell asks; its
    /// cancellation ends the call.
    async fn call(&self, tool: String, arguments: Value, from: Context) -> Outcome;

    /// Keeps the whole of long output with the record of the `eval` call whose context is `from`. Nobody writes to `file` any more; it stays
    /// where it is, to be read. Answers the name that the record has for it, `None` where there is no record, or in words why it could
    /// not be kept.
    async fn keep(&self, file: &Path, from: &Context) -> Result<Option<String>, String> {
        let _ = (file, from);
        Ok(None)
    }
}

/// No registry: every call is answered with `unknown tool`.
pub struct NoBridge;

#[async_trait]
impl Bridge for NoBridge {
    async fn call(&self, tool: String, _: Value, _: Context) -> Outcome {
        Outcome::error(format!("unknown tool: {tool}"))
    }
}
