//! Structural search as a program of its own: what the benchmark and the differential run measure.
//!
//! ```text
//! find --pattern 'foo($$$A)' [--language ID] [--all] [--max N] [--ranges] DIRECTORY
//! ```
//!
//! `--all` counts every match instead of ending with the first `--max` (50). Prints a summary as one line of JSON; with `--ranges` before it one line
//! per match: file, and the first and last byte of the match.

#![allow(clippy::print_stdout, reason = "this is a program for a terminal")]

use std::{error::Error, io::Write};

use haft_structure::{Engine, Query, languages, search};
use haft_system::Workdir;
use haft_tool::Access;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn main() -> Result<(), Box<dyn Error>> {
    let mut pattern = None;
    let mut language = None;
    let mut directory = None;
    let mut max_results = 50;
    let (mut count_all, mut ranges) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--pattern" => pattern = Some(value()?),
            "--language" => language = Some(value()?),
            "--max" => max_results = value()?.parse()?,
            "--all" => count_all = true,
            "--ranges" => ranges = true,
            _ => directory = Some(argument),
        }
    }
    let workdir = Workdir::new(directory.ok_or("no directory given")?)?;
    let language = match &language {
        Some(id) => Some(languages::by_id(id).ok_or(format!("unknown language {id}"))?),
        None => None,
    };
    let query = Query {
        pattern: pattern.ok_or("no --pattern given")?,
        scope: workdir.resolve(".", Access::Read)?,
        language,
        max_results,
        count_all,
    };
    let results = search(&Engine::once(), &workdir, &query, &CancellationToken::new())?;
    let mut out = std::io::stdout().lock();
    if ranges {
        for found in &results.matches {
            let range = &found.hit.range;
            writeln!(out, "{}", json!({"file": found.file, "start": range.start, "end": range.end}))?;
        }
    }
    let read: Vec<_> =
        results.read.iter().map(|read| format!("{}: {}", read.language, read.context)).collect();
    let summary = json!({
        "total": results.total,
        "total_is_lower_bound": results.total_is_lower_bound,
        "files_searched": results.files_searched,
        "candidates": results.candidates,
        "candidate_bytes": results.candidate_bytes,
        "skipped": results.skipped.len(),
        "read_as": read,
    });
    writeln!(out, "{summary}")?;
    Ok(())
}
