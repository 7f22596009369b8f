//! Takes out of a program's output what only a terminal understands.

/// Longest control string (a window title, a hyperlink) that is taken out; what goes on for longer is text after an odd byte.
const CONTROL_STRING: usize = 4096;

/// Removes escape sequences (ECMA-48: CSI, OSC, DCS and the short ones) from a stream that arrives in pieces. Everything else
/// passes unchanged, carriage returns and bytes that are not UTF-8 included.
#[derive(Default)]
pub(crate) struct Plain {
    state: State,
    /// A control string so far, to be given back if it turns out to be none.
    held: Vec<u8>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// ESC and an intermediate byte, as in `ESC ( B`.
    Short,
    /// ESC [ …
    Control,
    /// ESC ] … and its kind.
    String,
    /// An ESC inside a string: its end, if `\` follows.
    StringEscape,
}

impl Plain {
    /// What of `bytes` is to be seen.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.step(*byte, &mut shown);
        }
        shown
    }

    /// A whole text at once.
    pub(crate) fn of(bytes: &[u8]) -> Vec<u8> {
        Plain::default().push(bytes)
    }

    fn step(&mut self, byte: u8, shown: &mut Vec<u8>) {
        self.state = match (self.state, byte) {
            (State::StringEscape, b'\\') => {
                self.held.clear();
                State::Text
            }
            (State::StringEscape, _) => {
                self.held.clear();
                self.state = State::Escape;
                return self.step(byte, shown);
            }
            (State::String, 0x07) => {
                self.held.clear();
                State::Text
            }
            (State::String, 0x1b) => State::StringEscape,
            (State::String, _) => {
                self.held.push(byte);
                if byte == b'\n' || self.held.len() > CONTROL_STRING {
                    shown.append(&mut self.held);
                    State::Text
                } else {
                    State::String
                }
            }
            (_, 0x1b) => State::Escape,
            (State::Text, _) => {
                shown.push(byte);
                State::Text
            }
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => {
                self.held.push(byte);
                State::String
            }
            (State::Escape | State::Short, 0x20..=0x2f) => State::Short,
            (State::Control, 0x20..=0x3f) => State::Control,
            (State::Escape | State::Short, 0x30..=0x7e) | (State::Control, 0x40..=0x7e) => State::Text,
            // No sequence goes on with such a byte.
            (State::Escape | State::Short | State::Control, _) => {
                shown.push(byte);
                State::Text
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> String {
        String::from_utf8(Plain::of(text.as_bytes())).unwrap()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        let cases = [
            ("\x1b[1;31merror\x1b[0m: x", "error: x"),
            ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b(B\x1b7\x1b=a\x1b[?25l\x1b[2K\rb", "a\rb"),
            ("\x1bPq...\x1b\\after", "after"),
            ("array[1] ünïcode \t\r\n", "array[1] ünïcode \t\r\n"),
            ("\x1b[31\nnext", "\nnext"),
            ("\x1b]not a title\nnext", "]not a title\nnext"),
            ("end\x1b", "end"),
        ];
        for (given, expected) in cases {
            assert_eq!(plain(given), expected, "{given:?}");
        }
        let long = format!("\x1b]{}", "x".repeat(10_000));
        assert_eq!(plain(&long).len(), 10_001);
    }

    proptest! {
        #[test]
        fn pieces_come_out_as_the_whole_does(
            bytes in prop::collection::vec(prop::sample::select(b"a[]0;m\\\n\x07\x1b\xc3".to_vec()), 0..60),
            cut in 0_usize..60,
        ) {
            let cut = cut.min(bytes.len());
            let mut pieces = Plain::default();
            let shown = [pieces.push(&bytes[..cut]), pieces.push(&bytes[cut..])].concat();
            prop_assert_eq!(shown, Plain::of(&bytes));
        }

        #[test]
        fn text_without_escapes_is_unchanged(text in "[^\x1b]*") {
            prop_assert_eq!(plain(&text), text);
        }
    }
}
