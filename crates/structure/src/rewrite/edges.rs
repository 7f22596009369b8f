//! What stands at the ends of a captured text: comments, which must not get lost, and line breaks, which some languages need.

use std::ops::Range;

use super::{FileStyle, indent::Piece, template::Part};
use crate::types::Binding;

/// What of a variable's surroundings goes where the variable goes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// The variable's text with what goes along before it.
    pub(super) body: Range<usize>,
    /// What goes along behind it.
    pub(super) behind: [Range<usize>; 2],
    /// The line break before it goes along.
    pub(super) on_new_line: bool,
    /// The white space behind it goes along, so that the template's own is too much.
    pub(super) spaces: bool,
    /// It ends with a comment that a line break must follow.
    pub(super) unfinished: bool,
}

impl FileStyle<'_> {
    /// `around` is the variable's text with what lies between it and its neighbours; `before` is the template's text so far, `next` the
    /// part behind.
    pub(super) fn edges(
        &self,
        binding: &Binding,
        around: &Range<usize>,
        before: &Piece,
        line_is_blank: bool,
        next: Option<&Part>,
    ) -> Edges {
        let range = binding.range();
        if range.is_empty() {
            return self.comments_alone(around, before, line_is_blank, next);
        }
        let left = &self.source[around.start..range.start];
        let comment = left.len() - left.trim_ascii_start().len();
        let is_run = matches!(binding, Binding::Run { .. });
        let follows = self.follows_same(around.start, before) || (is_run && is_open(before));
        let on_new_line = !line_is_blank && left.contains(&b'\n') && follows;
        let start = if on_new_line { around.start } else { around.start + comment };
        let body = start..range.end;

        let right = &self.source[range.end..around.end];
        let used = right.trim_ascii_end().len();
        let separator = range.end + right.len() - right.trim_ascii_start().len();
        let has_separator = separator < around.end && matches!(self.source.get(separator), Some(b',' | b';'));
        let comments = used > 0 && !(has_separator && used == separator + 1 - range.end);
        let text = following(next);
        let breaks = text.split_once('\n').is_some_and(|(line, _)| line.trim().is_empty());
        let closes = text.trim_start().starts_with([')', ']', '}']);
        let spaces =
            !breaks && right.contains(&b'\n') && (comments || closes || self.precedes_same(around.end, text));
        // A separator goes only where such a list ends there too; in Python's `(a,)` it makes the tuple.
        let keeps_separator = has_separator && self.precedes_same(around.end, text);
        let end = match (spaces, comments || keeps_separator) {
            (true, _) => around.end,
            (false, true) => range.end + used,
            (false, false) => return Edges { body, on_new_line, ..Edges::default() },
        };
        let behind = if has_separator && !keeps_separator {
            [range.end..separator, separator + 1..end.max(separator + 1)]
        } else {
            [range.end..end, end..end]
        };
        let unfinished = comments && !spaces && !breaks && self.is_line_comment(end);
        Edges { body, behind, on_new_line, spaces, unfinished }
    }

    /// A run of nothing has at most comments.
    fn comments_alone(
        &self,
        around: &Range<usize>,
        before: &Piece,
        line_is_blank: bool,
        next: Option<&Part>,
    ) -> Edges {
        let text = &self.source[around.clone()];
        let start = around.start + text.len() - text.trim_ascii_start().len();
        let end = around.end - (text.len() - text.trim_ascii_end().len());
        let next = following(next);
        let as_it_was =
            !line_is_blank && self.follows_same(around.start, before) && self.precedes_same(around.end, next);
        if start >= end {
            return Edges { body: around.start..around.start, ..Edges::default() };
        }
        if as_it_was {
            return Edges { body: around.clone(), on_new_line: true, spaces: true, ..Edges::default() };
        }
        let breaks = next.split_once('\n').is_some_and(|(line, _)| line.trim().is_empty());
        let unfinished = !breaks && self.is_line_comment(end);
        Edges { body: start..end, unfinished, ..Edges::default() }
    }

    /// Whether a run of nothing stands behind the last comma of a list, which such a list has in the template too.
    pub(super) fn is_behind_comma(&self, around: &Range<usize>, before: &str, after: &str) -> bool {
        self.source[..around.start].ends_with(b",")
            && before.trim_end().ends_with(',')
            && self.precedes_same(around.end, after)
    }

    /// Whether the template has before the variable what the source has there.
    fn follows_same(&self, at: usize, before: &Piece) -> bool {
        let last = before.text.trim_ascii_end().last();
        last.is_some() && self.source[..at].last() == last
    }

    /// The same for what is behind it.
    fn precedes_same(&self, at: usize, text: &str) -> bool {
        let first = text.trim_start().as_bytes().first();
        first.is_some() && self.source.get(at) == first
    }

    /// Whether a comment that ends here ends with its line.
    fn is_line_comment(&self, end: usize) -> bool {
        let closed: [&[u8]; 6] = [b"*/", b"-->", b"-}", b"*)", b"#>", b"]]"];
        self.ends_line(end) && !closed.iter().any(|close| self.source[..end].ends_with(close))
    }

    /// Whether nothing more stands on the line.
    pub(super) fn ends_line(&self, at: usize) -> bool {
        let rest = self.source[at..].trim_ascii_start();
        let white = &self.source[at..self.source.len() - rest.len()];
        white.contains(&b'\n') || rest.is_empty()
    }
}

/// Whether a line may end behind a text, whatever comes.
fn is_open(before: &Piece) -> bool {
    matches!(before.text.trim_ascii_end().last(), Some(b'(' | b'[' | b'{' | b','))
}

fn following(next: Option<&Part>) -> &str {
    match next {
        Some(Part::Text(text)) => text,
        _ => "",
    }
}
