//! Language servers: the client, the servers of a process and what a run asks them (SPEC L, W, N).
//!
//! ```text
//!  lsp · lsp_rename · diagnostics on write
//!        │
//!        ▼
//!  Checkout (working directory + table) ── Servers ((server, root) → process)
//!                                             │
//!                                             ▼
//!                     Server: documents · what it has said · disk watch ── client ── process
//! ```

#![deny(missing_docs)]
#![allow(clippy::format_push_string, reason = "answers are put together from pieces; none of them is hot")]

mod checkers;
mod client;
pub mod diagnostics;
mod limits;
mod on_write;
pub mod position;
mod ready;
mod rename;

pub mod servers;
mod stage;
mod stamp;
mod supervisor;
mod tool;
pub mod uri;
pub mod workspace_edit;

pub use client::RequestError;
pub use on_write::WriteDiagnostics;
pub use ready::Wait;
pub use rename::{LspRename, LspRenameArguments};
pub use stage::Stage;
pub use supervisor::{
    Checkout, Document, DocumentError, Place, Published, Server, ServerState, ServerStatus, Servers,
    StartError, SyncError, WhyNot, Work,
};
pub use tool::{Lsp, LspAction, LspArguments};
