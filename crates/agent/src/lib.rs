//! Conversations and runs: the transcript, the loop between a model and the tools, guardrails, cards, modes and the wiring that says which
//! tools a run has.
//!
//! A [`Host`] is the server object that everything hangs on. It starts and takes up [`Conversation`]s; a conversation makes calls
//! ([`Conversation::call`]) and runs ([`Conversation::run`]), both through the same registry.

#![deny(missing_docs)]

mod ask_user;
pub mod cards;
mod cells;
pub mod config;
mod conversation;
mod explore;
pub mod guard;
mod helper;
mod host;
pub mod instructions;
mod layers;
mod limits;
mod mode;
mod outputs;
mod prompt;
mod run;
mod transcript;
mod undo;
mod vibe;
mod wiring;

pub use conversation::{Conversation, RunError};
pub use helper::OpenModel;
pub use host::{Host, HostError, ROLE, Setup};
pub use layers::Approve;
pub use mode::Mode;
pub use transcript::{Event, Frame, Journal, JournalError, KeptFile, RunEnd, Spent, Transcript, last_words};
pub use undo::{FileRecord, UndoError};
pub use vibe::{
    Worker, WorkerEnd, WorkerEvent, WorkerLine, WorkerResult, WorkerStatus, WorkerTier, Workers, Worktree,
};
