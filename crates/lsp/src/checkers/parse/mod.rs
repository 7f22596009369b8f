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
    /// What `source` says about a place; the code and the severity are the caller's to set where the format has them.
    fn at(
        source: &str,
        path: impl Into<String>,
        (line, column): (u32, u32),
        message: impl Into<String>,
    ) -> Self {
        Finding {
            path: path.into(),
            line,
            column,
            severity: Severity::Error,
            code: None,
            message: message.into(),
            source: source.into(),
        }
    }

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

/// Why an output that could be read does not prove that everything was checked, in words that follow "not verified: ": an exit code that says so, a configuration that the checker
/// passed over, no file that it looked at. Several of them go on with their own defaults then, and end with 0.
pub(super) fn doubt(format: Format, code: i32, stdout: &str, stderr: &str) -> Option<String> {
    let whole: &[i32] = match format {
        Format::Cargo => &[0, 101],
        Format::Tsc | Format::GoVet => &[0, 1, 2],
        Format::Dart => &[0, 1, 2, 3],
        Format::Pyright
        | Format::Gitlab
        | Format::Pyrefly
        | Format::Ruff
        | Format::Eslint
        | Format::PythonSyntax
        | Format::Mypy
        | Format::GoBuild
        | Format::Compiler => &[0, 1],
    };
    let complaint = stderr.lines().map(str::trim).find(|line| match format {
        Format::Pyright => line.starts_with("Config file") && line.contains("could not be parsed"),
        Format::Pyrefly => line.contains("failed to parse"),
        // `FILE: words`; problems of the project have a line number and come on stdout.
        Format::Mypy => ["pyproject.toml: ", "mypy.ini: ", ".mypy.ini: ", "setup.cfg: "]
            .iter()
            .any(|file| line.starts_with(file)),
        _ => false,
    });
    if let Some(complaint) = complaint {
        return Some(format!("it did not take the project's configuration as it is ({complaint})"));
    }
    let no_files = match format {
        Format::Pyright => json::pyright_files(stdout) == Some(0),
        Format::Gitlab | Format::Ruff => stderr.to_lowercase().contains("no python files found"),
        Format::PythonSyntax => json::python_files(stdout) == Some(0),
        _ => false,
    };
    if no_files {
        return Some(
            "it found no file to look at; the project's configuration may leave all of them out".into(),
        );
    }
    (!whole.contains(&code)).then(|| format!("it ended with exit code {code}: it did not check everything"))
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
