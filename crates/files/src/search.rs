//! `search`: lines of files that a regular expression matches, with ripgrep's engine.

mod scan;

use std::path::{Path, PathBuf};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use haft_system::{PathState, ResolvedPath, Workdir};
use haft_tool::{Access, Context, Output, Tier, Tool, ToolError, Touch};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    blocking,
    glob::named,
    limits::{
        SEARCH_BYTES, SEARCH_CONTEXT, SEARCH_RESULTS, SEARCH_RESULTS_MOST, SEARCH_TIME, SKIPPED_STRUCTURED,
    },
    lines::{count, path_text},
    suggest,
    walk::{self, PathPattern, Rules},
};
use scan::{Found, Row, Wanted};

/// The tool.
#[derive(Clone, Debug)]
pub struct Search {
    workdir: Workdir,
}

impl Search {
    /// Searches below `workdir`.
    pub fn new(workdir: Workdir) -> Self {
        Search { workdir }
    }
}

/// What to search for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArguments {
    /// Regular expression (Rust syntax), matched line by line.
    pattern: String,
    /// File or directory; the working directory by default.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Only files that fit, like `*.rs` or `src/**`; `!` in front leaves them out.
    #[serde(default)]
    glob: Option<String>,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show around each match.
    #[serde(default)]
    context: u32,
    /// 100 by default, at most 1000.
    #[serde(default)]
    #[schemars(range(min = 1))]
    max_results: Option<u32>,
}

impl Tool for Search {
    type Arguments = SearchArguments;
    const NAME: &'static str = "search";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Searches the contents of files. Answers `path:line: text` for each matching line, sorted, with the total. Hidden files and those that git \
         ignores are left out, unless `path` is or lies in such a directory."
            .into()
    }

    fn touches(&self, arguments: &SearchArguments) -> Vec<Touch> {
        vec![Touch::Path(arguments.path.clone().unwrap_or_else(|| ".".into()), Access::Read)]
    }

    async fn call(&self, arguments: SearchArguments, context: &Context) -> Result<Output, ToolError> {
        let tool = self.clone();
        let cancel = context.cancel.clone();
        blocking(move || tool.search(&arguments, &cancel)).await
    }
}

fn matcher(pattern: &str, literal: bool, ignore_case: bool) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .fixed_strings(literal)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .crlf(true)
        .build(pattern)
        .map_err(|error| unwrapped(&error.to_string(), pattern))
}

/// The parser's words about the pattern as it was given: the engine wraps it in a group before it reads it.
fn unwrapped(error: &str, pattern: &str) -> String {
    let wrapped = format!("    (?:{pattern})");
    let Some((before, after)) = error.split_once(&wrapped) else { return error.to_owned() };
    let (marks, rest) = after.trim_start_matches('\n').split_once('\n').unwrap_or(("", after));
    // A mark below the wrapping itself (a group that is not closed) has no place in the pattern.
    let marks = marks
        .strip_prefix("   ")
        .filter(|marks| marks.starts_with("    "))
        .map_or_else(String::new, |marks| format!("\n{marks}"));
    format!("{before}    {pattern}{marks}\n{rest}")
}

impl Search {
    fn search(&self, arguments: &SearchArguments, cancel: &CancellationToken) -> Result<Output, ToolError> {
        let given = arguments.path.clone().unwrap_or_else(|| ".".into());
        let base = self.workdir.resolve(&given, Access::Read)?;
        if arguments.pattern.is_empty() {
            return Err(ToolError::model("The pattern is empty. To list files use `glob`."));
        }
        let (files, errors) = self.files(&base, arguments, cancel)?;
        let scan = |matcher: &RegexMatcher, wanted: Wanted| scan::run(&files, matcher, wanted, cancel);
        let literal_hint = || -> Option<String> {
            let plain = matcher(&arguments.pattern, true, arguments.ignore_case).ok()?;
            let found = scan(&plain, Wanted { rows: 0, context: 0, time: SEARCH_TIME })?;
            (found.total > 0).then(|| {
                format!(
                    "As plain text it matches {} in {}: repeat the call with `literal: true`.",
                    count(found.total as usize, "line", "lines"),
                    count(found.files_with_hits, "file", "files")
                )
            })
        };
        let regex = match matcher(&arguments.pattern, arguments.literal, arguments.ignore_case) {
            Ok(regex) => regex,
            Err(error) => {
                let hint = match literal_hint() {
                    Some(hint) => hint,
                    None if error.contains("\\n") => {
                        "The search goes line by line, so a pattern cannot span lines.".into()
                    }
                    None => "Escape special characters with `\\`, or pass `literal: true`.".into(),
                };
                return Err(ToolError::model(format!(
                    "The pattern is not a usable regular expression: {error}\n{hint}"
                )));
            }
        };
        let wanted = Wanted {
            rows: arguments
                .max_results
                .map_or(SEARCH_RESULTS, |most| most as usize)
                .clamp(1, SEARCH_RESULTS_MOST),
            context: (arguments.context as usize).min(SEARCH_CONTEXT),
            time: SEARCH_TIME,
        };
        let found = scan(&regex, wanted).ok_or(ToolError::Cancelled)?;
        let mut hint = None;
        if found.total == 0 && !arguments.literal && regex_syntax_in(&arguments.pattern) {
            hint = literal_hint();
            if cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
        }
        Ok(self.answer(arguments, &base, &files, &found, errors, hint))
    }

    fn files(
        &self,
        base: &ResolvedPath,
        arguments: &SearchArguments,
        cancel: &CancellationToken,
    ) -> Result<(Vec<PathBuf>, Vec<String>), ToolError> {
        match base.state {
            PathState::Missing => Err(suggest::missing(&self.workdir, base)),
            PathState::Other(what) => {
                Err(ToolError::model(format!("`{}` is {what}; only files can be searched.", base.shown)))
            }
            PathState::File => Ok((vec![base.real.clone()], Vec::new())),
            PathState::Directory => {
                let glob = arguments.glob.as_ref();
                let glob = glob
                    .map(|glob| PathPattern::parse(glob, &base.real, true))
                    .transpose()
                    .map_err(ToolError::model)?;
                let hidden = glob.as_ref().is_some_and(PathPattern::names_hidden);
                let fits = |path: &Path| glob.as_ref().is_none_or(|glob| glob.fits(path));
                let walked =
                    walk::files(&self.workdir, &base.real, Rules { hidden, links: false }, &fits, cancel)
                        .ok_or(ToolError::Cancelled)?;
                Ok((walked.files, walked.errors))
            }
        }
    }

    fn answer(
        &self,
        arguments: &SearchArguments,
        base: &ResolvedPath,
        files: &[PathBuf],
        found: &Found,
        errors: Vec<String>,
        hint: Option<String>,
    ) -> Output {
        let mut text = String::new();
        let mut matches = Vec::new();
        let mut full = false;
        'files: for file in &found.files {
            let shown = self.workdir.show(&files[file.index]);
            let name = path_text(&shown);
            for row in &file.rows {
                let line = match row {
                    Row::Hit { line, text } => format!("{name}:{line}: {text}\n"),
                    Row::Context { line, text } => format!("{name}-{line}- {text}\n"),
                    Row::Gap => "--\n".to_owned(),
                };
                if text.len() + line.len() > SEARCH_BYTES && !matches.is_empty() {
                    full = true;
                    break 'files;
                }
                text.push_str(&line);
                if let Row::Hit { line, text } = row {
                    matches.push(json!({ "file": shown, "line": line, "text": text }));
                }
            }
        }
        let complete = found.searched == files.len();
        let at_least = if complete { "" } else { "at least " };
        let what = count(found.total as usize, "matching line", "matching lines");
        let place = count(found.files_with_hits, "file", "files");
        let searched = count(found.searched - found.skipped.len(), "file", "files");
        if found.total == 0 {
            let filter =
                arguments.glob.as_ref().map_or_else(String::new, |glob| format!(" that fit `{glob}`"));
            text.push_str(&format!("No line matches `{}`", arguments.pattern));
            match base.state {
                PathState::File => text.push_str(&format!(" in `{}`.\n", base.shown)),
                _ => text.push_str(&format!(
                    " in the {searched} searched in `{}`{filter}. Hidden and ignored files were left out; name such a directory as `path` to search it.\n",
                    base.shown
                )),
            }
        } else if matches.len() as u64 == found.total {
            text.push_str(&format!("[{at_least}{what} in {place}; {searched} searched.]\n"));
        } else {
            let how = if full {
                "ask for less"
            } else {
                "narrow the pattern, `path` or `glob`, or raise `max_results`"
            };
            text.push_str(&format!(
                "[{} of {at_least}{what} in {place} are shown; {searched} searched. To see others {how}.]\n",
                matches.len()
            ));
        }
        if !complete {
            text.push_str(&format!(
                "The search was stopped after {} s: {} of {} files were searched.\n",
                SEARCH_TIME.as_secs(),
                found.searched,
                files.len()
            ));
        }
        text.extend(hint.map(|hint| hint + "\n"));
        let skipped: Vec<(String, &str)> = found
            .skipped
            .iter()
            .map(|(index, why)| (self.workdir.show(&files[*index]), why.as_str()))
            .collect();
        if !skipped.is_empty() {
            let names: Vec<String> =
                skipped.iter().map(|(file, why)| format!("{} ({why})", path_text(file))).collect();
            text.push_str(&format!("Not searched: {}.\n", named(&names)));
        }
        if !errors.is_empty() {
            text.push_str(&format!("Could not be looked at: {}.\n", named(&errors)));
        }
        let skipped_total = skipped.len();
        let skipped: Vec<_> = skipped
            .iter()
            .take(SKIPPED_STRUCTURED)
            .map(|(file, why)| json!({ "file": file, "why": why }))
            .collect();
        Output::text(text.trim_end()).structured(json!({
            "matches": matches,
            "total": found.total,
            "total_is_lower_bound": !complete,
            "files_searched": found.searched - found.skipped.len(),
            "skipped": skipped,
            "skipped_total": skipped_total,
            "errors": errors,
        }))
    }
}

/// Whether a pattern means anything else than its own text.
fn regex_syntax_in(pattern: &str) -> bool {
    pattern.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'])
}
