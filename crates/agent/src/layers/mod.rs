//! What every call of a conversation passes: record, permission, bound. Their order is written in `haft_tool::Place`.

mod bound;
mod permission;
mod record;

pub(crate) use bound::Bound;
pub use permission::Approve;
pub(crate) use permission::Permission;
pub(crate) use record::{Record, Wholes, kept_name};
