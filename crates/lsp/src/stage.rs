//! Where proposals wait (SPEC A9). Implemented by whoever wires a conversation, over the staging area of its structural tools.

use haft_system::ChangeSet;
use haft_tool::ToolError;

/// A place where a worked-out change waits for `resolve`.
pub trait Stage: Send + Sync + 'static {
    /// Keeps a change and answers its `edit_id`. `origin` says in a few words where it comes from.
    fn stage(&self, set: ChangeSet, origin: String) -> Result<String, ToolError>;
}
