//! Where the lines of a text begin.

use std::ops::Range;

/// An index of a text's lines, counted from 0 here and from 1 in everything that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// Offsets behind every line break.
    starts: Vec<usize>,
    len: usize,
}

impl Lines {
    pub(crate) fn of(text: &[u8]) -> Lines {
        let starts = memchr::memchr_iter(b'\n', text).map(|newline| newline + 1).collect();
        Lines { starts, len: text.len() }
    }

    /// The line that holds the offset.
    pub(crate) fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Where a line begins.
    pub(crate) fn start(&self, number: usize) -> usize {
        match number.checked_sub(1) {
            Some(before) => self.starts.get(before).copied().unwrap_or(self.len),
            None => 0,
        }
    }

    /// A line without what ends it.
    pub(crate) fn range(&self, text: &[u8], number: usize) -> Range<usize> {
        let start = self.start(number);
        let mut end = self.starts.get(number).map_or(self.len, |next| next - 1).max(start);
        if end > start && text[end - 1] == b'\r' {
            end -= 1;
        }
        start..end
    }
}
