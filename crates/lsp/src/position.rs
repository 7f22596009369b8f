//! Positions in the three encodings of LSP (SPEC L8). Servers count columns in UTF-8 bytes, UTF-16 units or characters, as they chose at
//! `initialize`; inside Haft a place is a byte offset into the text, and outside a line and a symbol.

use std::{ops::Range as Span, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a server counts columns in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionEncoding {
    /// Bytes.
    Utf8,
    /// UTF-16 units: what the protocol means when a server says nothing.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl PositionEncoding {
    /// What a server chose, from the capabilities that it answered. `None` for a name that was not offered.
    pub fn chosen(capabilities: &Value) -> Option<Self> {
        // clangd's name for it is older than the protocol's.
        let named = capabilities.get("positionEncoding").and_then(Value::as_str);
        match named {
            None => Some(PositionEncoding::Utf16),
            Some("utf-8") => Some(PositionEncoding::Utf8),
            Some("utf-16") => Some(PositionEncoding::Utf16),
            Some("utf-32") => Some(PositionEncoding::Utf32),
            Some(_) => None,
        }
    }

    /// How long `text` is in this encoding.
    fn width(self, text: &str) -> usize {
        match self {
            PositionEncoding::Utf8 => text.len(),
            PositionEncoding::Utf16 => text.chars().map(char::len_utf16).sum(),
            PositionEncoding::Utf32 => text.chars().count(),
        }
    }
}

/// A place as the protocol has it: both numbers count from 0, `character` in the server's encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0, in the server's encoding.
    pub character: u32,
}

/// A stretch as the protocol has it; the end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// Where it ends, exclusive.
    pub end: Position,
}

/// A text with its lines found, as the protocol counts them: `\n`, `\r\n` and a lone `\r` all end a line.
#[derive(Clone, Debug)]
pub struct Lines {
    text: Arc<str>,
    /// Byte offset at which each line begins.
    starts: Arc<[usize]>,
}

impl Lines {
    /// Finds the lines of `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            if bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n') {
                starts.push(at + 1);
            }
        }
        Lines { starts: starts.into(), text }
    }

    /// The whole text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How many lines there are, the one after the last line end included, even if it is empty.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Where line `line` (from 0) lies, without its line end. `None` past the end.
    pub fn span(&self, line: usize) -> Option<Span<usize>> {
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let content = self.text[start..end].trim_end_matches(['\n', '\r']);
        Some(start..start + content.len())
    }

    /// Line `line` (from 0) without its line end.
    pub fn line(&self, line: usize) -> Option<&str> {
        self.span(line).map(|span| &self.text[span])
    }

    /// The byte offset of a server's position. Lenient, as the protocol says: a column past the end of its line is the end of the
    /// line, a line past the end of the text the end of the text, and a column inside a character the character's beginning.
    pub fn offset(&self, position: Position, encoding: PositionEncoding) -> usize {
        let Some(span) = self.span(position.line as usize) else { return self.text.len() };
        let line = &self.text[span.clone()];
        let wanted = position.character as usize;
        let within = match encoding {
            PositionEncoding::Utf8 => line.floor_char_boundary(wanted),
            _ => {
                let mut left = wanted;
                line.char_indices()
                    .find_map(|(at, character)| {
                        let width =
                            if encoding == PositionEncoding::Utf16 { character.len_utf16() } else { 1 };
                        if left < width {
                            return Some(at);
                        }
                        left -= width;
                        None
                    })
                    .unwrap_or(line.len())
            }
        };
        span.start + within
    }

    /// The position of a byte offset; one inside a character counts as the character's beginning, one past the end as the end.
    pub fn position(&self, offset: usize, encoding: PositionEncoding) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_at(offset);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let character = encoding.width(&self.text[start..offset]);
        Position { line: line as u32, character: character as u32 }
    }

    /// The line (from 0) that a byte offset lies on.
    pub fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The byte span of a server's range; a range that ends before it begins is empty at its beginning.
    pub fn bytes(&self, range: Range, encoding: PositionEncoding) -> Span<usize> {
        let start = self.offset(range.start, encoding);
        start..self.offset(range.end, encoding).max(start)
    }

    /// The range of a byte span.
    pub fn range(&self, span: Span<usize>, encoding: PositionEncoding) -> Range {
        Range { start: self.position(span.start, encoding), end: self.position(span.end, encoding) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    const ALL: [PositionEncoding; 3] =
        [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];

    #[test]
    fn columns_after_an_emoji_and_cjk_in_each_encoding() {
        let lines = Lines::new("a\r\nx = \"🦀é日\"; name\n");
        let offset = lines.text().find("name").unwrap();
        let columns: Vec<u32> = ALL.iter().map(|e| lines.position(offset, *e).character).collect();
        assert_eq!(columns, [17, 12, 11]);
        for encoding in ALL {
            assert_eq!(lines.offset(lines.position(offset, encoding), encoding), offset);
        }
    }

    #[test]
    fn lines_end_at_all_three_line_ends() {
        let lines = Lines::new("a\nb\r\nc\rd\r\n");
        let found: Vec<Option<&str>> = (0..6).map(|line| lines.line(line)).collect();
        assert_eq!(found, [Some("a"), Some("b"), Some("c"), Some("d"), Some(""), None]);
    }

    #[test]
    fn positions_past_the_end_are_the_end() {
        let lines = Lines::new("ab\r\ncd");
        for encoding in ALL {
            assert_eq!(lines.offset(Position { line: 0, character: 99 }, encoding), 2);
            assert_eq!(lines.offset(Position { line: 7, character: 0 }, encoding), 6);
        }
    }

    #[test]
    fn a_column_inside_a_character_is_its_beginning() {
        let lines = Lines::new("🦀x");
        assert_eq!(lines.offset(Position { line: 0, character: 1 }, PositionEncoding::Utf16), 0);
        assert_eq!(lines.offset(Position { line: 0, character: 3 }, PositionEncoding::Utf8), 0);
        assert_eq!(lines.offset(Position { line: 0, character: 2 }, PositionEncoding::Utf16), 4);
    }

    proptest! {
        #[test]
        fn every_offset_comes_back(text in "[a\u{e9}\u{65e5}\u{1f980}\r\n]{0,40}") {
            let lines = Lines::new(text.as_str());
            for (offset, _) in text.char_indices() {
                // Between `\r` and `\n` there is no position of its own.
                let inside_line_end = text[..offset].ends_with('\r') && text[offset..].starts_with('\n');
                if inside_line_end { continue }
                for encoding in ALL {
                    prop_assert_eq!(lines.offset(lines.position(offset, encoding), encoding), offset);
                }
            }
        }
    }
}
