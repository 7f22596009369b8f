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

mod client;
mod limits;
pub mod position;
mod ready;
pub mod servers;
mod supervisor;
pub mod uri;

pub use client::RequestError;
pub use ready::Wait;
pub use supervisor::{
    Checkout, Document, DocumentError, Place, Published, Server, ServerState, ServerStatus, Servers,
    StartError, SyncError, WhyNot, Work,
};
