//! Language servers.

pub mod diagnostics;
mod limits;
pub mod position;
pub mod uri;
pub mod workspace_edit;
