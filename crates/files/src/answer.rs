//! What the tools that change files answer where they had nothing to change; else see [`haft_system::Committed::answer`].

use haft_tool::Output;
use serde_json::json;

/// The answer to a change that turned out to change nothing.
pub(crate) fn unchanged(text: String) -> Output {
    Output::text(text).structured(json!({
        "files": [],
        "new_diagnostics": [],
        "verified": false,
        "unverified_because": "nothing was written",
    }))
}
