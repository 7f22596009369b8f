//! The tool `debug` (SPEC section 5): programs under a debugger, through the Debug Adapter Protocol.
//!
//! ```text
//! tool ── Debugger (one per conversation: breakpoints, at most one session)
//!              └── Session ── state (pure: what is known) · references · breakpoints
//!                     ├── protocol::Client ⇄ adapter (stdio or TCP)
//!                     ├── attendant: owns the adapter's process, watches the program, leaves nothing behind
//!                     └── company: the sessions of the processes that the program has started
//! target · cargo · go · python: from what a caller names to an adapter and its launch
//! adapters: the known adapters as data, and whether one can be used here
//! ```
//!
//! What an answer says about the program is what the adapter has said, checked against the process itself where adapters are known
//! to be silent. A number that was handed out for a frame or a variable is refused once the program has moved.

#![deny(missing_docs)]
#![allow(clippy::format_push_string, reason = "answers are put together from pieces; none of them is hot")]

mod adapters;
mod cargo;
mod debugger;
mod go;
mod limits;
mod protocol;
mod python;
mod render;
mod session;
mod target;
mod tool;

pub use adapters::AdapterReport;
pub use debugger::Debugger;
pub use tool::{ConditionalLine, Debug, DebugArguments, Line, Op};
