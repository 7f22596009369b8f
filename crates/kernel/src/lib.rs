//! Persistent interpreters: Python and JavaScript kernels that a conversation keeps, and the `eval` tool (SPEC E1–E8).
//!
//! A conversation has one [`Kernels`]. It starts a worker process per language when a cell first needs it and ends all with
//! [`Kernels::shutdown`]. A cell goes through the [`rewrite`] (magics become plain code), runs in the worker, and comes back as output,
//! displays and an error. `tool(…)` inside a cell goes through a [`Bridge`] into the run's registry.

#![deny(missing_docs)]

mod bridge;
mod cell;
mod display;
mod frames;
mod interpreter;
mod kernels;
mod limits;
pub mod notebook;
mod output;
mod render;
pub mod rewrite;
mod running;
mod tool;
mod worker;

pub use bridge::{Bridge, NoBridge};
pub use kernels::{Enclosure, Kernels, Settings};
pub use limits::{INACTIVITY_MOST_SECONDS, INACTIVITY_SECONDS};
pub use tool::{Eval, EvalArguments};
