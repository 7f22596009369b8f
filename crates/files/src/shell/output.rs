//! From a command's bytes to what a model reads of them.

use std::fmt::Write;

use haft_system::CapturedOutput;

use super::terminal::Plain;

/// Output ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The text, without a line break at its end.
    pub(crate) text: String,
    /// Whether bytes were left out.
    pub(crate) truncated: bool,
}

/// Shows `output`; what was left out, changed or not shown is said in lines in square brackets.
pub(crate) fn show(output: &CapturedOutput) -> Shown {
    if output.total == 0 {
        return Shown { text: "(no output)".to_owned(), truncated: false };
    }
    let kept = output.head.len() + output.tail.len();
    if kept == 0 {
        return Shown {
            text: format!("[{} bytes of output, none of them kept]", output.total),
            truncated: true,
        };
    }
    let whole = output.bytes();
    if is_binary(&whole) {
        let text = format!(
            "[{} bytes of output are not shown: they are binary, or text in an encoding other than UTF-8. Send them to a file (… > FILE) \
             and look at that with a fitting program.]",
            output.total
        );
        return Shown { text, truncated: true };
    }
    let truncated = output.dropped() > 0;
    let mut seen = Seen::default();
    let mut text;
    if truncated {
        let head = to_last_line(&output.head);
        let tail = from_first_line(&output.tail);
        let left_out = output.total - (head.len() + tail.len()) as u64;
        text = seen.decode(&Plain::of(head));
        end_line(&mut text);
        let _ = writeln!(
            text,
            "[{left_out} of {} bytes are left out here. To read them, run the command again with its output in a file (… > FILE 2>&1), \
             and read or search that.]",
            output.total
        );
        text.push_str(&seen.decode(&Plain::of(tail)));
    } else {
        text = seen.decode(&Plain::of(&whole));
    }
    if text.trim_end_matches(['\n', '\r']).is_empty() && !truncated {
        text = "(only line breaks and terminal control sequences)".to_owned();
    }
    if text.ends_with('\n') {
        text.pop();
    }
    for note in seen.notes() {
        end_line(&mut text);
        text.push_str(&note);
    }
    Shown { text, truncated }
}

/// Live output as it comes, made fit to be seen: pieces end at a character's end.
#[derive(Default)]
pub(crate) struct Live {
    plain: Plain,
    waiting: Vec<u8>,
}

impl Live {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let shown = self.plain.push(bytes);
        self.waiting.extend(shown);
    }

    /// How many bytes wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What there is to see, but for a character that is not complete yet (unless it never will be).
    pub(crate) fn take(&mut self, last: bool) -> Option<String> {
        let end = if last { self.waiting.len() } else { complete(&self.waiting) };
        let rest = self.waiting.split_off(end);
        let ready = std::mem::replace(&mut self.waiting, rest);
        (!ready.is_empty()).then(|| String::from_utf8_lossy(&ready).into_owned())
    }
}

/// The length of `bytes` without a character at their end that has only begun.
pub(crate) fn complete(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for (position, byte) in bytes.iter().enumerate().skip(start).rev() {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => break,
        };
        return if position + length > bytes.len() { position } else { bytes.len() };
    }
    bytes.len()
}

/// `find -print0` has few NUL bytes, European text in a one-byte encoding few that are not UTF-8; pictures, archives and programs
/// have many.
fn is_binary(bytes: &[u8]) -> bool {
    let nuls: usize = bytes.iter().map(|byte| usize::from(*byte == 0)).sum();
    let broken: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    nuls * 5 > bytes.len() || (nuls + broken) * 10 > bytes.len() * 3
}

fn to_last_line(head: &[u8]) -> &[u8] {
    let line = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
    // A very long line is cut within.
    if line * 2 > head.len() { &head[..line] } else { &head[..complete(head)] }
}

fn from_first_line(tail: &[u8]) -> &[u8] {
    let line = tail.iter().position(|byte| *byte == b'\n').map_or(tail.len(), |position| position + 1);
    if line * 2 < tail.len() {
        return &tail[line..];
    }
    let rest = tail.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
    &tail[rest..]
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// What was changed on the way to text.
#[derive(Default)]
struct Seen {
    broken: usize,
    nuls: usize,
}

impl Seen {
    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.broken += chunk.invalid().len();
                text.push('\u{fffd}');
            }
        }
        self.nuls += text.matches('\0').count();
        text.replace('\0', "\u{2400}")
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.broken > 0 {
            notes.push(format!("[not all of it is UTF-8: {} shown as \u{fffd}]", bytes(self.broken)));
        }
        if self.nuls > 0 {
            notes.push(format!("[NUL: {} shown as \u{2400}]", bytes(self.nuls)));
        }
        notes
    }
}

fn bytes(count: usize) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> CapturedOutput {
        CapturedOutput { head: bytes.to_vec(), tail: Vec::new(), total: bytes.len() as u64 }
    }

    #[test]
    fn what_is_shown_of_each_kind_of_output() {
        let cut = CapturedOutput {
            head: b"first\nsecond\nthi".to_vec(),
            tail: b"rd\nlast but one\nlast\n".to_vec(),
            total: 1000,
        };
        let long_lines =
            CapturedOutput { head: "aaaé".as_bytes()[..4].to_vec(), tail: b"\xa9bbb".to_vec(), total: 5000 };
        let cases = [
            whole(b""),
            whole(b"plain\n"),
            whole(b"no line break"),
            whole(b"two\n\n"),
            whole(b"\n\n"),
            whole(b"\x1b[32mok\x1b[0m\r\n"),
            whole(b"caf\xe9 au lait, and so on and so on\n"),
            whole(b"one.txt\0two.txt\0three.txt\0"),
            whole(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0"),
            cut,
            long_lines,
        ];
        let shown: Vec<String> = cases
            .iter()
            .map(|case| {
                let Shown { text, truncated } = show(case);
                format!("--- truncated: {truncated}\n{text}")
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn live_output_is_not_cut_within_a_character() {
        let mut live = Live::default();
        let mut seen = Vec::new();
        for byte in "aé\x1b[1m€😀z".as_bytes() {
            live.push(&[*byte]);
            seen.extend(live.take(false));
        }
        assert_eq!(seen, ["a", "é", "€", "😀", "z"]);
        live.push(b"\xe2\x82");
        assert_eq!((live.take(false), live.take(true)), (None, Some("\u{fffd}".into())));
    }

    proptest! {
        #[test]
        fn only_a_begun_character_is_held_back(text in "\\PC{0,8}", cut in 0_usize..40) {
            let bytes = &text.as_bytes()[..cut.min(text.len())];
            let end = complete(bytes);
            prop_assert!(std::str::from_utf8(&bytes[..end]).is_ok());
            prop_assert!(bytes.len() - end < 4);
        }
    }
}
