//! Exit codes, and writing to standard output and error without a panic when nobody reads any more.

use std::{
    fmt,
    io::{self, Write},
};

use haft_agent::RunEnd;

/// The command did its work, and the work failed: a tool's error, a run that could not go on.
pub(crate) const FAILED: u8 = 1;
/// The command line, the settings or the place were not usable; nothing was done.
pub(crate) const USAGE: u8 = 2;
/// A run ended at a bound (steps, output tokens, a loop) before its model was done.
pub(crate) const STOPPED: u8 = 3;
/// A run was interrupted, as shells say it for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code of a run's end.
pub(crate) fn code_of(end: &RunEnd) -> u8 {
    match end {
        RunEnd::Completed => 0,
        RunEnd::Interrupted => INTERRUPTED,
        RunEnd::Stopped { .. } => STOPPED,
        RunEnd::Failed { .. } | RunEnd::Lost => FAILED,
    }
}

/// Writes a line to standard output.
pub(crate) fn out(line: impl fmt::Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Writes a piece to standard output and flushes it.
pub(crate) fn out_piece(piece: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(piece.as_bytes())?;
    stdout.flush()
}

/// Writes a line to standard error. Nobody is left to tell when that fails.
pub(crate) fn err(line: impl fmt::Display) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}
