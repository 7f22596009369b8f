use async_trait::async_trait;
use haft_tool::{Context, Outcome};
use serde_json::Value;

/// The way of a cell's `tool(…)` into the run's registry (SPEC E4, R7).
#[async_trait]
pub trait Bridge: Send + Sync {
    /// Makes the call as [`haft_tool::Origin::Cell`] through every layer. `from` is the context of the `eval` call whose cell asks; its
    /// cancellation ends the call.
    async fn call(&self, tool: String, arguments: Value, from: Context) -> Outcome;
}

/// No registry: every call is answered with `unknown tool`.
pub struct NoBridge;

#[async_trait]
impl Bridge for NoBridge {
    async fn call(&self, tool: String, _: Value, _: Context) -> Outcome {
        Outcome::error(format!("unknown tool: {tool}"))
    }
}
