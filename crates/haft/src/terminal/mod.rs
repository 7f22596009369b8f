//! How things look in a terminal, and how a person is asked.

mod cards;
mod input;
mod lines;
mod markdown;

pub(crate) use cards::{Answering, Running, answer_cards};
pub(crate) use input::{Input, Line};
pub(crate) use lines::{call_line, coloured_diff, outcome_line, plain, spent_line, table};
pub(crate) use markdown::Markdown;

use std::io::IsTerminal;

use haft_system::Environment;

/// Whether to use colours on standard output.
pub(crate) fn colours(environment: &Environment) -> bool {
    std::io::stdout().is_terminal()
        && environment.get("NO_COLOR").is_none()
        && environment.get("TERM") != Some("dumb")
}
