//! What the program wrote: the last part of it, and from where it has not been looked at.

use std::collections::VecDeque;

use crate::limits::OUTPUT_BYTES;

/// A program's output without terminal control sequences and with plain line ends.
#[derive(Debug, Default)]
pub(crate) struct Output {
    filter: Filter,
    kept: VecDeque<u8>,
    /// Position of the first kept byte in everything that was ever written.
    start: u64,
    /// Position up to which somebody has looked.
    seen: u64,
}

/// Bytes at the end of the output that are searched for a message.
const LAST_LOOKED_AT: usize = 8 << 10;

/// A look at the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) text: String,
    /// Bytes before `text` that belong to this look and are not shown.
    pub(crate) left_out: u64,
    /// How many of those are not kept any more.
    pub(crate) lost: u64,
}

impl Output {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.filter.step(*byte, &mut self.kept);
        }
        let excess = self.kept.len().saturating_sub(OUTPUT_BYTES);
        self.kept.drain(..excess);
        self.start += excess as u64;
    }

    /// What was written since the last look, of that the last `most` bytes.
    pub(crate) fn news(&mut self, most: usize) -> Look {
        let look = self.from(self.seen, most);
        self.seen = self.end();
        look
    }

    /// The last `most` bytes of everything.
    pub(crate) fn all(&mut self, most: usize) -> Look {
        self.seen = self.end();
        self.from(0, most)
    }

    /// Bytes that nobody has looked at.
    pub(crate) fn unseen(&self) -> u64 {
        self.end() - self.seen
    }

    /// The last two lines that begin with what follows `mark`, of what nobody has looked at.
    pub(crate) fn last_from(&self, mark: &str) -> Option<String> {
        let text = self.from(self.seen, LAST_LOOKED_AT).text;
        let found = text.get(text.rfind(mark)?..)?;
        // The second line is whole when something follows it.
        let lines: Vec<&str> = found.split('\n').take(3).collect();
        let [first, second, _] = lines.as_slice() else { return None };
        Some(format!("{first} {second}"))
    }

    fn end(&self) -> u64 {
        self.start + self.kept.len() as u64
    }

    fn from(&self, position: u64, most: usize) -> Look {
        let lost = self.start.saturating_sub(position);
        let first = usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.kept.iter().skip(first).copied().collect();
        let mut cut = bytes.len().saturating_sub(most);
        // Neither in the middle of a character nor, where a line break is near, of a line.
        while cut > 0 && cut < bytes.len() && bytes[cut] & 0xc0 == 0x80 {
            cut += 1;
        }
        if cut > 0
            && let Some(line) = bytes[cut..].iter().take(most / 4).position(|byte| *byte == b'\n')
        {
            cut += line + 1;
        }
        Look { text: String::from_utf8_lossy(&bytes[cut..]).into_owned(), left_out: lost + cut as u64, lost }
    }
}

/// Takes out escape sequences (ECMA-48) and the carriage return of `\r\n`, across the borders of pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Filter {
    #[default]
    Text,
    /// A carriage return that may belong to a line end.
    Return,
    Escape,
    /// ESC [ …
    Control,
    /// ESC ] … up to BEL or ESC \ ; the number is how long it is so far.
    String(u16),
}

/// A control string that goes on for longer is text after an odd byte.
const LONGEST_STRING: u16 = 4096;

impl Filter {
    fn step(&mut self, byte: u8, to: &mut VecDeque<u8>) {
        *self = match (*self, byte) {
            (Filter::Return, b'\n') => {
                to.push_back(b'\n');
                Filter::Text
            }
            (Filter::Return, b'\r') => Filter::Return,
            (Filter::Return, _) => {
                to.push_back(b'\r');
                *self = Filter::Text;
                return self.step(byte, to);
            }
            (Filter::String(_), 0x07 | b'\n') => Filter::Text,
            (_, 0x1b) => Filter::Escape,
            (Filter::Text, b'\r') => Filter::Return,
            (Filter::Text, _) => {
                to.push_back(byte);
                Filter::Text
            }
            (Filter::Escape, b'[') => Filter::Control,
            (Filter::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Filter::String(0),
            (Filter::Escape, 0x20..=0x2f) => Filter::Escape,
            (Filter::Control, 0x20..=0x3f) => Filter::Control,
            (Filter::Escape, 0x30..=0x7e) | (Filter::Control, 0x40..=0x7e) => Filter::Text,
            (Filter::Escape | Filter::Control, _) => {
                *self = Filter::Text;
                return self.step(byte, to);
            }
            (Filter::String(length), _) if length >= LONGEST_STRING => Filter::Text,
            (Filter::String(length), _) => Filter::String(length + 1),
        };
    }
}

/// The end of a stream of words that is only shown when something goes wrong.
#[derive(Debug)]
pub(crate) struct Tail {
    kept: Output,
    most: usize,
}

impl Tail {
    pub(crate) fn new(most: usize) -> Self {
        Tail { kept: Output::default(), most }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.kept.push(bytes);
    }

    pub(crate) fn text(&self) -> String {
        self.kept.from(0, self.most).text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut output = Output::default();
        for piece in pieces {
            output.push(piece);
        }
        output.news(usize::MAX).text
    }

    #[test]
    fn terminal_sequences_go_and_line_ends_become_plain() {
        assert_eq!(
            shown(&[b"\x1b[1;31mred\x1b", b"[0m\r", b"\nnext\rover\r\r\nend"]),
            "red\nnext\rover\nend"
        );
        assert_eq!(shown(&[b"\x1b]0;title\x07a\x1b]8;;x\x1b\\b\x1b(Bc"]), "abc");
        assert_eq!(shown(&[b"array[1] \xc3", b"\xa9"]), "array[1] é");
    }

    #[test]
    fn each_byte_is_news_once() {
        let mut output = Output::default();
        output.push(b"one\n");
        assert_eq!(output.news(100), Look { text: "one\n".into(), left_out: 0, lost: 0 });
        output.push(b"two\n");
        assert_eq!(output.unseen(), 4);
        assert_eq!(output.news(100), Look { text: "two\n".into(), left_out: 0, lost: 0 });
        assert_eq!(output.news(100), Look::default());
        assert_eq!(output.all(100).text, "one\ntwo\n");
    }

    #[test]
    fn a_message_of_two_lines_is_found_at_the_end() {
        let mut output = Output::default();
        output.push(b"thread 'main' panicked at src/main.rs:3:5:\nold\nx\n");
        output.push(b"thread 'main' panicked at src/main.rs:7:9:\nindex out of bounds");
        assert_eq!(output.last_from("panicked at "), None);
        output.push(b"\nnote: more\n");
        assert_eq!(
            output.last_from("panicked at ").as_deref(),
            Some("panicked at src/main.rs:7:9: index out of bounds")
        );
        output.news(1000);
        assert_eq!(output.last_from("panicked at "), None);
    }

    #[test]
    fn a_flood_is_counted_and_its_end_is_kept() {
        let mut output = Output::default();
        output.push(&b"0123456789abcde\n".repeat(OUTPUT_BYTES / 8));
        output.push(b"last\n");
        let look = output.news(100);
        assert!(look.text.starts_with("0123456789abcde\n") && look.text.ends_with("e\nlast\n"), "{look:?}");
        assert_eq!(look.left_out + look.text.len() as u64, (OUTPUT_BYTES * 2 + 5) as u64);
        assert_eq!(look.lost, (OUTPUT_BYTES + 5) as u64);
    }

    proptest! {
        #[test]
        fn pieces_come_out_as_the_whole_does(
            bytes in prop::collection::vec(prop::sample::select(b"a[]0;m\\\r\n\x07\x1b".to_vec()), 0..60),
            cut in 0_usize..60,
        ) {
            let cut = cut.min(bytes.len());
            prop_assert_eq!(shown(&[&bytes[..cut], &bytes[cut..]]), shown(&[&bytes]));
        }
    }
}
