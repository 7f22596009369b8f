//! Short diffs for answers.

use similar::{ChangeTag, TextDiff};

use crate::{
    limits::{DIFF_LINE_CHARS, DIFF_LINES, DIFF_TEXT_BYTES, DIFF_TIME},
    lines::{count, cut},
};

/// Writes diffs into an answer until its lines are used up.
pub(crate) struct Diffs {
    left: usize,
}

impl Diffs {
    pub(crate) fn new() -> Self {
        Diffs { left: DIFF_LINES }
    }

    /// A diff of two texts with two lines of context, without a file header. What is left out is said.
    pub(crate) fn show(&mut self, before: &str, after: &str) -> String {
        if before.len().max(after.len()) > DIFF_TEXT_BYTES {
            return format!("(no diff is shown: the file has {})", crate::lines::size(after.len() as u64));
        }
        let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
        let mut shown = Vec::new();
        let mut more = 0;
        for hunk in diff.unified_diff().context_radius(2).iter_hunks() {
            let header = hunk.header().to_string();
            let mut rows = vec![header];
            for change in hunk.iter_changes() {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let line = change.value().trim_end_matches(['\n', '\r']);
                let mark = if change.missing_newline() { " (no line break at the end)" } else { "" };
                rows.push(format!("{sign}{}{mark}", cut(line, DIFF_LINE_CHARS)));
            }
            let room = self.left.min(rows.len());
            more += rows.len() - room;
            self.left -= room;
            rows.truncate(room);
            shown.extend(rows);
        }
        if more > 0 {
            shown.push(format!("… ({} of the diff not shown)", count(more, "line", "lines")));
        }
        shown.join("\n")
    }
}

/// `+3 -1`.
pub(crate) fn tally(before: &str, after: &str) -> String {
    if before.len().max(after.len()) > DIFF_TEXT_BYTES {
        return String::new();
    }
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    format!("+{added} -{removed}")
}
