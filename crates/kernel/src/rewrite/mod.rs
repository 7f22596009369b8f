//! Turns what a notebook's cell may hold beside plain code into plain code (SPEC E3). Pure: no I/O.
//!
//! A rewritten cell has as many lines before each statement as it had, so that tracebacks fit. Magics become the calls that IPython makes
//! of them (`get_ipython().run_line_magic('cd', 'src')`), which the worker answers itself; IPython's own transformer is the oracle in the
//! tests.

mod javascript;
mod literal;
mod magics;
mod python;

pub use javascript::javascript;
pub use python::python;

/// A cell as the worker runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Plain code.
    pub code: String,
    /// Whether the last statement ends with `;`, so that its value is not shown.
    pub quiet: bool,
    /// Shell command lines and scripts that the cell holds, for guardrail rules.
    pub commands: Vec<String>,
}

/// Why a cell cannot be rewritten. Nothing of it has been run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line}: {text} Nothing of the cell was run.")]
pub struct RewriteError {
    /// 1-based.
    pub line: usize,
    /// A complete sentence.
    pub text: String,
}
