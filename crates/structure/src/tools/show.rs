//! What a search found, in words for the model, with colours for a terminal, and in fields for programs.

use std::fmt::Write;

use haft_tool::Outcome;
use serde_json::{Map, Value, json};

use crate::{
    limits::{ANSWER_BYTES, NAMED_SKIPPED},
    search::{FileHit, Hit, LanguageRead, Results, Skipped},
};

/// Files that were left out and are named in the text; `structured` names more.
const SKIPPED_IN_TEXT: usize = 10;

/// How matches are set off for whoever reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Colours,
}

/// The answer of `ast_grep` for a model.
pub(super) fn for_model(results: &Results) -> String {
    text(results)
}

/// The answer of `ast_grep` for a person at a terminal: the same words with ANSI colours for file names, line numbers, the matched text and
/// the variables. Control characters of the files are made visible. Any other answer comes back as it is, without control characters.
pub fn for_terminal(outcome: &Outcome) -> String {
    let text = outcome.all_text();
    let mut rest = text.as_str();
    let mut coloured = String::new();
    let matches = outcome.structured.get("matches").and_then(Value::as_array);
    for found in matches.into_iter().flatten().filter_map(file_hit) {
        let plain = entry(&found, Style::Plain);
        let plain = plain.trim_end();
        // An answer that was cut on its way here ends earlier than its matches do.
        let Some((before, after)) = rest.split_once(plain) else { break };
        coloured.push_str(&visible(before));
        coloured.push_str(entry(&found, Style::Colours).trim_end());
        rest = after;
    }
    coloured + &visible(rest)
}

/// A match as `structured` has it; which part of its lines is the match is found again by the text.
fn file_hit(found: &Value) -> Option<FileHit> {
    let line = |field: &str| Some(found.get(field)?.as_u64()? as usize);
    let text = found.get("text")?.as_str()?.to_owned();
    let matched = found.get("matched")?.as_str()?.to_owned();
    let bindings = found.get("bindings")?.as_object()?;
    let bindings = bindings.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
    let range = text.find(&matched).map_or(0..0, |at| at..at + matched.len());
    let mut at = 0;
    let marks = text.split('\n').map(|line| {
        let start = at;
        at += line.len() + 1;
        let inside = |offset: usize| offset.clamp(start, start + line.len()) - start;
        inside(range.start)..inside(range.end)
    });
    let marks = marks.collect();
    let hit = Hit {
        range: 0..0,
        line: line("line")?,
        end_line: line("end_line")?,
        marks,
        matched,
        bindings: bindings.collect(),
        text,
    };
    Some(FileHit { file: found.get("file")?.as_str()?.to_owned(), hit })
}

/// Text of a file as a terminal may see it: an escape sequence in a source file must not do anything.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\u{7f}' => '\u{2421}',
            c if c.is_ascii_control() => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

impl Style {
    fn shown(self, text: &str) -> String {
        match self {
            Style::Colours => visible(text),
            Style::Plain => text.to_owned(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Colours if text.is_empty() => String::new(),
            Style::Colours => format!("\u{1b}[{code}m{}\u{1b}[0m", visible(text)),
            Style::Plain => text.to_owned(),
        }
    }
}

const FILE: &str = "35";
const LINE: &str = "32";
const HIT: &str = "1;31";
const NAME: &str = "36";
const FAINT: &str = "2";

fn text(results: &Results) -> String {
    let mut text = headline(results);
    text.push('\n');
    let mut shown = 0;
    for found in &results.matches {
        let entry = entry(found, Style::Plain);
        // The first is shown however long it is; its parts are bounded.
        if shown > 0 && text.len() + entry.len() > ANSWER_BYTES {
            break;
        }
        text.push_str(&entry);
        shown += 1;
    }
    let listed = results.matches.len();
    if shown < listed {
        let _ = writeln!(
            text,
            "… {} more matches of this answer are left out here to keep it short; their places are in the structured result.",
            listed - shown
        );
    }
    if listed < results.total || results.total_is_lower_bound {
        let _ = writeln!(
            text,
            "Shown are the first {listed} in path order. Narrow `path` or the pattern, or raise `max_results`, to see others."
        );
    }
    for line in footer(&results.not_read, &results.skipped) {
        text.push_str(&line);
        text.push('\n');
    }
    for hint in &results.hints {
        let _ = writeln!(text, "- {hint}");
    }
    text.truncate(text.trim_end().len());
    text
}

fn headline(results: &Results) -> String {
    let read = read_as(&results.read);
    if results.total == 0 {
        let files = plural(results.files_searched, "file");
        return format!("No match in {files} ({read}).");
    }
    let total = plural(results.total, "match");
    let in_files = plural(results.files_with_matches, "file");
    if results.total_is_lower_bound {
        return format!(
            "At least {total} in {in_files}; the search ended with its results after {} of {} files ({read}).",
            results.files_searched, results.files_listed
        );
    }
    format!("{total} in {in_files}, {} searched ({read}).", results.files_searched)
}

fn entry(found: &FileHit, style: Style) -> String {
    let FileHit { file, hit } = found;
    let place = format!("{}:{}", style.paint(FILE, file), style.paint(LINE, &hit.line.to_string()));
    let mut lines = hit.text.split('\n').zip(&hit.marks).map(|(line, mark)| {
        let (Some(before), Some(inside), Some(after)) =
            (line.get(..mark.start), line.get(mark.clone()), line.get(mark.end..))
        else {
            return style.shown(line);
        };
        format!("{}{}{}", style.shown(before), style.paint(HIT, inside), style.shown(after))
    });
    let mut entry = String::new();
    if hit.line == hit.end_line {
        let _ = writeln!(entry, "{place}: {}", lines.next().unwrap_or_default());
    } else {
        let _ = writeln!(entry, "{place}-{}:", style.paint(LINE, &hit.end_line.to_string()));
        for line in lines {
            let _ = writeln!(entry, "{line}");
        }
    }
    for (name, bound) in &hit.bindings {
        let mut lines = bound.lines();
        let first = lines.next().unwrap_or_default();
        let more = lines.count();
        let first = style.shown(first);
        let _ = write!(entry, "    {} = {first}", style.paint(NAME, &format!("${name}")));
        if more > 0 {
            let _ = write!(entry, "{}", style.paint(FAINT, &format!(" … ({})", plural(more, "more line"))));
        }
        entry.push('\n');
    }
    entry
}

/// What was left out: languages that cannot read the pattern, and files.
pub(super) fn footer(not_read: &[(&'static str, String)], skipped: &[Skipped]) -> Vec<String> {
    let mut lines = Vec::new();
    if !not_read.is_empty() {
        let languages: Vec<&str> = not_read.iter().map(|(language, _)| *language).collect();
        lines.push(format!(
            "Not searched, because the pattern is no code there: files of {}. Give `language` to see what the parser said.",
            languages.join(", ")
        ));
    }
    if !skipped.is_empty() {
        let named: Vec<String> = skipped
            .iter()
            .take(SKIPPED_IN_TEXT)
            .map(|skipped| format!("{} ({})", skipped.file, skipped.reason))
            .collect();
        let more = skipped.len() - named.len();
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        lines.push(format!("Skipped {}: {}{more}.", plural(skipped.len(), "file"), named.join(", ")));
    }
    lines
}

/// Languages that are named when none of them has a match.
const LANGUAGES_IN_TEXT: usize = 6;

/// The readings in words: `rust, read as expression; go, read as statement`. Where there are matches, only those of the languages that have some.
pub(super) fn read_as(read: &[LanguageRead]) -> String {
    let telling = telling(read);
    let mut readings: Vec<String> =
        telling.iter().map(|read| format!("{}, read as {}", read.language, read.context)).collect();
    if readings.len() > LANGUAGES_IN_TEXT {
        let more = readings.len() - LANGUAGES_IN_TEXT;
        readings.truncate(LANGUAGES_IN_TEXT);
        readings.push(format!("and {more} more languages"));
    }
    readings.join("; ")
}

/// The readings for `structured`: the context alone where one language has all matches.
pub(super) fn read_as_field(read: &[LanguageRead]) -> String {
    match telling(read)[..] {
        [one] => one.context.clone(),
        ref several => {
            let readings: Vec<String> =
                several.iter().map(|read| format!("{}: {}", read.language, read.context)).collect();
            readings.join("; ")
        }
    }
}

fn telling(read: &[LanguageRead]) -> Vec<&LanguageRead> {
    let with_matches: Vec<&LanguageRead> = read.iter().filter(|read| read.matches > 0).collect();
    if with_matches.is_empty() { read.iter().collect() } else { with_matches }
}

pub(super) fn plural(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("1 {noun}"),
        (count, "match") => format!("{count} matches"),
        (count, noun) => format!("{count} {noun}s"),
    }
}

/// The fields of `structured` (SPEC section 10), and some more: `languages`, `not_read`, `total_is_lower_bound`, `files_with_matches`,
/// `skipped_total`; per match `matched`, the match without what stands around it on its lines.
pub fn for_programs(results: &Results) -> Map<String, Value> {
    let matches: Vec<Value> = results
        .matches
        .iter()
        .map(|FileHit { file, hit }| {
            let bindings: Map<String, Value> =
                hit.bindings.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect();
            json!({
                "file": file,
                "line": hit.line,
                "end_line": hit.end_line,
                "text": hit.text,
                "matched": hit.matched,
                "bindings": bindings,
            })
        })
        .collect();
    let mut fields = Map::new();
    fields.insert("matches".into(), matches.into());
    fields.insert("total".into(), results.total.into());
    fields.insert("total_is_lower_bound".into(), results.total_is_lower_bound.into());
    fields.insert("files_with_matches".into(), results.files_with_matches.into());
    fields.insert("files_searched".into(), results.files_searched.into());
    fields.insert("read_as".into(), read_as_field(&results.read).into());
    fields.insert("languages".into(), languages(&results.read));
    fields.insert("not_read".into(), not_read(&results.not_read));
    add_skipped(&mut fields, &results.skipped);
    fields.insert("hints".into(), results.hints.clone().into());
    fields
}

pub(super) fn languages(read: &[LanguageRead]) -> Value {
    let list = read.iter().map(|read| {
        json!({
            "language": read.language,
            "read_as": read.context,
            "other_readings": read.other_contexts,
            "files": read.files,
            "matches": read.matches,
        })
    });
    list.collect()
}

pub(super) fn not_read(not_read: &[(&'static str, String)]) -> Value {
    not_read.iter().map(|(language, why)| json!({"language": language, "why": why})).collect()
}

pub(super) fn add_skipped(fields: &mut Map<String, Value>, skipped: &[Skipped]) {
    let named: Value = skipped
        .iter()
        .take(NAMED_SKIPPED)
        .map(|skipped| json!({"file": skipped.file, "reason": skipped.reason}))
        .collect();
    fields.insert("skipped".into(), named);
    fields.insert("skipped_total".into(), skipped.len().into());
}
