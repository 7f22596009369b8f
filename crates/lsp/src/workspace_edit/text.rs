use super::TextEdit;
use crate::position::{Lines, PositionEncoding};

/// Two edits want the same text; the line (from 0) where they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap(pub(super) usize);

/// Carries out edits that all speak of the same text, in whatever order they came. The same replacement given twice counts once; insertions at
/// one place keep their order, and stand before a replacement that begins there.
pub(super) fn apply(
    lines: &Lines,
    edits: &[TextEdit],
    encoding: PositionEncoding,
) -> Result<String, Overlap> {
    let text = lines.text();
    let mut pieces: Vec<(std::ops::Range<usize>, &str)> =
        edits.iter().map(|edit| (lines.bytes(edit.range, encoding), edit.text.as_str())).collect();
    // Stable: insertions at one place stay in order.
    pieces.sort_by_key(|(span, _)| (span.start, span.end));
    pieces.dedup_by(|b, a| a == b && !a.0.is_empty());
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for (span, new) in pieces {
        if span.start < done {
            return Err(Overlap(lines.line_at(span.start)));
        }
        result.push_str(&text[done..span.start]);
        result.push_str(new);
        done = span.end;
    }
    result.push_str(&text[done..]);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::position::{Position, Range};

    fn edit(from: (u32, u32), to: (u32, u32), text: &str) -> TextEdit {
        let at = |(line, character)| Position { line, character };
        TextEdit { range: Range { start: at(from), end: at(to) }, text: text.into() }
    }

    fn apply_to(text: &str, edits: &[TextEdit]) -> Result<String, Overlap> {
        apply(&Lines::new(text), edits, PositionEncoding::Utf16)
    }

    #[test]
    fn two_hits_on_one_line_after_an_emoji() {
        let edits = [
            edit((1, 12), (1, 17), "welcome"),
            edit((1, 5), (1, 10), "welcome"),
            edit((1, 12), (1, 17), "welcome"),
        ];
        assert_eq!(
            apply_to("a\r\n🦀 = greet, greet\r\n", &edits),
            Ok("a\r\n🦀 = welcome, welcome\r\n".into())
        );
    }

    #[test]
    fn insertions_keep_their_order_and_equal_ones_are_both_made() {
        let edits = [edit((0, 1), (0, 1), "("), edit((0, 1), (0, 1), "("), edit((0, 1), (0, 2), "B")];
        assert_eq!(apply_to("abc", &edits), Ok("a((Bc".into()));
    }

    #[test]
    fn overlaps_are_found() {
        assert_eq!(
            apply_to("x\nabc", &[edit((1, 0), (1, 2), "X"), edit((1, 1), (1, 3), "Y")]),
            Err(Overlap(1))
        );
        assert_eq!(
            apply_to("x\nabc", &[edit((1, 0), (1, 2), "X"), edit((1, 0), (1, 2), "Y")]),
            Err(Overlap(1))
        );
        assert_eq!(
            apply_to("x\nabc", &[edit((1, 0), (1, 2), "X"), edit((1, 2), (1, 3), "Y")]),
            Ok("x\nXY".into())
        );
    }

    proptest! {
        /// Renaming every hit of a word is the same as replacing the word, in every encoding and order.
        #[test]
        fn as_a_plain_replacement(text in "[a\u{e9}\u{65e5}\u{1f980} n\r\n]{0,60}", seed in any::<u64>()) {
            let lines = Lines::new(text.as_str());
            for encoding in [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32] {
                let mut edits: Vec<TextEdit> = text
                    .match_indices('n')
                    .map(|(at, hit)| TextEdit { range: lines.range(at..at + hit.len(), encoding), text: "🦀m".into() })
                    .collect();
                if !edits.is_empty() {
                    let by = seed as usize % edits.len();
                    edits.rotate_left(by);
                }
                prop_assert_eq!(apply(&lines, &edits, encoding), Ok(text.replace('n', "🦀m")));
            }
        }
    }
}
