//! Language models behind one trait.
//!
//! A [`Model`] is given a [`Request`] and answers with a stream of [`Event`]s that ends in [`Event::Done`] or an error. Providers, the script
//! model and the replay of a recording are all the same to the run. Names are `provider/NAME` (SPEC H2); [`open`] understands them.
//!
//! ```text
//! open("anthropic/…") ── Remote ── wire format (request → bytes, frames → answer)
//!                          │
//!                          └───── transport: HTTP, or a recording that is played; a recorder may stand between
//! open("script:FILE") ── Script
//! ```
//!
//! `Remote` owns the attempts: what is worth repeating, when, and what the run is told about it. A wire format is pure. A transport
//! knows nothing of models.

#![deny(missing_docs)]

mod address;
mod check;
mod content;
mod fault;
mod frames;
mod limits;
mod open;
mod profiles;
mod record;
mod remote;
mod replay;
mod retry;
mod script;
mod settings;
mod template;
mod transport;
mod types;
mod wire;

pub use check::check_request;
pub use open::{Shared, open, ways};
pub use record::Recorder;
pub use settings::{ProviderSettings, RetryPolicy, Setting, Settings};
pub use transport::Http;
pub use types::*;
