//! The tool over real debug adapters and over a scripted one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests; they look at the machine from outside"
)]

mod adapters;
mod attach;
mod bench;
mod fake;
mod faults;
mod go;
mod inputs;
mod native;
mod processes;
mod python;
mod refused;
