//! The tools as a model meets them: through a registry, over the real change set, in a directory of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod change;
mod find;
mod patch;
mod read;
mod surface;
