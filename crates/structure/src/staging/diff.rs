//! Unified diffs of what is proposed: whole for programs, cut for the model.

use std::{borrow::Cow, time::Duration};

use haft_system::{Before, Captured, Change};
use similar::{Algorithm, TextDiffConfig};

use crate::limits::{DIFF_LINE_CHARS, DIFF_TEXT_BYTES, DIFF_TIME_MS};

/// The unified diff of one change. Bytes that are not UTF-8 are shown as `\u{fffd}`.
pub fn change_diff(change: &Change) -> String {
    let old = |captured: &Captured| captured.before.bytes().cloned().unwrap_or_default();
    match change {
        Change::Write { at, after } => {
            let from = match at.before {
                Before::Absent => "/dev/null".to_owned(),
                Before::File { .. } => format!("a/{}", at.path.shown),
            };
            unified(&from, &format!("b/{}", at.path.shown), &old(at), after)
        }
        Change::Delete { at } => unified(&format!("a/{}", at.path.shown), "/dev/null", &old(at), b""),
        Change::Move { from, to, after } => {
            let before = old(from);
            let after = after.as_deref().unwrap_or(&before);
            let head = format!("rename from {}\nrename to {}\n", from.path.shown, to.path.shown);
            head + &unified(
                &format!("a/{}", from.path.shown),
                &format!("b/{}", to.path.shown),
                &before,
                after,
            )
        }
    }
}

/// A unified diff with three lines of context; empty when nothing differs.
pub fn unified(from: &str, to: &str, before: &[u8], after: &[u8]) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiffConfig::default()
        .algorithm(Algorithm::Myers)
        // Past this time the rest is shown as one replaced block: right, only less fine.
        .timeout(Duration::from_millis(DIFF_TIME_MS))
        .diff_lines(before, after);
    let mut text = format!("--- {from}\n+++ {to}\n");
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        text.push_str(&hunk.header().to_string());
        text.push('\n');
        for change in hunk.iter_changes() {
            text.push_str(match change.tag() {
                similar::ChangeTag::Equal => " ",
                similar::ChangeTag::Delete => "-",
                similar::ChangeTag::Insert => "+",
            });
            text.push_str(&String::from_utf8_lossy(change.value()));
            if change.missing_newline() {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// What of some diffs a model gets: whole lines up to a bound, very long lines shortened; the second value says how many lines were left
/// out.
pub fn cut_for_model(diffs: &[String]) -> (String, usize) {
    let mut text = String::new();
    let mut left_out = 0;
    for line in diffs.iter().flat_map(|diff| diff.lines()) {
        let line = line.trim_end_matches('\r');
        let line = match line.char_indices().nth(DIFF_LINE_CHARS) {
            Some((at, _)) => {
                Cow::Owned(format!("{}… ({} characters more)", &line[..at], line[at..].chars().count()))
            }
            None => Cow::Borrowed(line),
        };
        if left_out > 0 || text.len() + line.len() >= DIFF_TEXT_BYTES {
            left_out += 1;
            continue;
        }
        text.push_str(&line);
        text.push('\n');
    }
    (text, left_out)
}
