//! Conversations and runs: the transcript, the loop between a model and the tools, guardrails, cards, modes and the wiring that says which
//! tools a run has.
//!
//! A [`Host`] is the server object that everything hangs on. It starts and takes up [`Conversation`]s; a conversation makes calls
//! ([`Conversation::call`]) and runs ([`Conversation::run`]), both through the same registry.

#![deny(missing_docs)]

pub mod cards;
pub mod config;
mod conversation;
pub mod guard;
mod host;
pub mod instructions;
mod layers;
mod limits;
mod mode;
mod prompt;
mod run;
mod transcript;
mod wiring;

pub use conversation::{Conversation, RunError};
pub use host::{Host, HostError, Setup};
pub use layers::Approve;
pub use mode::Mode;
pub use transcript::{Event, Frame, Journal, JournalError, RunEnd, Spent, Transcript};
