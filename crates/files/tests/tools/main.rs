//! The tools as a model meets them: through a registry, over the real change set, in a directory of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::format_push_string, clippy::format_collect, reason = "speed does not matter here")]

mod bench;
mod change;
mod find;
mod patch;
mod read;
mod surface;
