//! The durable record of a conversation: its events, what they add up to, and the journal that appends them.

mod event;
mod fold;
mod journal;
mod pictures;

pub use event::{Event, KeptFile, RunEnd};
pub use fold::{Spent, Transcript, last_words};
pub use journal::{Frame, Journal, JournalError};
