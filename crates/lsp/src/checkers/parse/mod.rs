//! What checkers print, read. Pure; every parser takes the whole output and gives what it found.

mod cargo;
mod json;
mod lines;

use super::Format;
use crate::diagnostics::{Diagnostic, Severity};

/// A problem as a checker names it: the path is as it was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) severity: Severity,
    pub(super) code: Option<String>,
    pub(super) message: String,
    pub(super) source: String,
}

impl Finding {
    /// As it is shown, under the file's shown name.
    pub(super) fn into_diagnostic(self, file: String) -> Diagnostic {
        let place = [self.line.saturating_sub(1), self.column.saturating_sub(1)];
        Diagnostic {
            file,
            line: self.line.max(1),
            severity: self.severity,
            code: self.code,
            message: self.message,
            source: Some(self.source),
            span: [place[0], place[1], place[0], place[1]],
        }
    }
}

/// Reads a checker's output. `Err` says what is wrong with it; findings on stderr are looked for where a checker writes them there.
pub(super) fn parse(format: Format, stdout: &str, stderr: &str) -> Result<Vec<Finding>, String> {
    match format {
        Format::Cargo => Ok(cargo::parse(stdout)),
        Format::Tsc => Ok(lines::tsc(stdout)),
        Format::Pyright => json::pyright(stdout),
        Format::Gitlab => json::gitlab(stdout),
        Format::Pyrefly => json::pyrefly(stdout),
        Format::Ruff => json::ruff(stdout),
        Format::Eslint => json::eslint(stdout),
        Format::PythonSyntax => json::python_syntax(stdout),
        Format::Mypy => Ok(lines::mypy(stdout)),
        Format::GoBuild => Ok(lines::go(&format!("{stdout}\n{stderr}"), Severity::Error)),
        Format::GoVet => Ok(lines::go(&format!("{stdout}\n{stderr}"), Severity::Warning)),
        Format::Dart => Ok(lines::dart(stdout)),
        Format::Compiler => Ok(lines::compiler(&format!("{stdout}\n{stderr}"))),
    }
}
