//! What is shown of a match: the lines around it, cut so that a file of one endless line stays small (SPEC A10).

use std::ops::Range;

use super::{Hit, Place};
use crate::{
    limits::{BINDING_CHARS, EXCERPT_CHARS, EXCERPT_LINES},
    lines::Lines,
    types::Match,
};

/// What a match looks like. `text` is what was searched.
pub(super) fn hit(text: &[u8], lines: &Lines, found: &Match) -> Hit {
    let place = place(lines, &found.range);
    let shown = excerpt(text, lines, &found.range);
    let bindings = found
        .bindings
        .iter()
        .map(|(name, binding)| (name.clone(), cut(&text[binding.range()], BINDING_CHARS)));
    Hit {
        range: found.range.clone(),
        line: place.line,
        end_line: place.end_line,
        text: shown.text,
        marks: shown.marks,
        matched: cut(&text[found.range.clone()], EXCERPT_CHARS * 2),
        bindings: bindings.collect(),
    }
}

/// The lines of a range, from 1. A match that ends with a line break ends on the line before.
pub(super) fn place(lines: &Lines, range: &Range<usize>) -> Place {
    let first = lines.number(range.start);
    let last = if range.end > range.start { lines.number(range.end - 1) } else { first };
    Place { line: first + 1, end_line: last + 1 }
}

struct Excerpt {
    text: String,
    /// Per line of `text`, which bytes of it belong to the match.
    marks: Vec<Range<usize>>,
}

fn excerpt(text: &[u8], lines: &Lines, range: &Range<usize>) -> Excerpt {
    let first = lines.number(range.start);
    let last = if range.end > range.start { lines.number(range.end - 1) } else { first };
    let mut shown = Excerpt { text: String::new(), marks: Vec::new() };
    for number in first..=last {
        if number > first {
            shown.text.push('\n');
        }
        let left = last - number + 1;
        if number - first == EXCERPT_LINES - 1 && left > 1 {
            shown.text.push_str(&format!("… ({left} more lines)"));
            shown.marks.push(0..0);
            break;
        }
        let mut line = lines.range(text, number);
        if line.start == 0 && text.starts_with(b"\xef\xbb\xbf") {
            line.start = line.start.max(3).min(line.end);
        }
        let hit = range.start.clamp(line.start, line.end)..range.end.clamp(line.start, line.end);
        let (cut, mark) = around(text, &line, &hit);
        shown.text.push_str(&cut);
        shown.marks.push(mark);
    }
    shown
}

/// A line, or the part of it around the hit if it is long.
fn around(text: &[u8], line: &Range<usize>, hit: &Range<usize>) -> (String, Range<usize>) {
    let mut window = line.clone();
    // Bytes are never fewer than characters.
    if window.len() > EXCERPT_CHARS {
        let before = EXCERPT_CHARS.saturating_sub(hit.len()) / 2;
        window.start = hit.start.saturating_sub(before).max(line.start);
        window.end = (window.start + EXCERPT_CHARS).min(line.end);
        window.start = window.start.min(window.end.saturating_sub(EXCERPT_CHARS)).max(line.start);
        window.start = boundary(text, window.start, line);
        window.end = boundary(text, window.end, line);
    }
    let mut shown = String::new();
    if window.start > line.start {
        shown.push('…');
    }
    let from = hit.start.clamp(window.start, window.end);
    let to = hit.end.clamp(from, window.end);
    shown.push_str(&String::from_utf8_lossy(&text[window.start..from]));
    let mark = shown.len();
    shown.push_str(&String::from_utf8_lossy(&text[from..to]));
    let mark = mark..shown.len();
    shown.push_str(&String::from_utf8_lossy(&text[to..window.end]));
    if window.end < line.end {
        shown.push('…');
    }
    (shown, mark)
}

/// Moves an offset forward out of the middle of a character.
fn boundary(text: &[u8], mut at: usize, line: &Range<usize>) -> usize {
    let limit = (at + 3).min(line.end);
    while at < limit && at > line.start && text[at] & 0xc0 == 0x80 {
        at += 1;
    }
    at
}

/// A text, cut after so many characters; how much is missing is said.
pub(crate) fn cut(text: &[u8], most: usize) -> String {
    // A character has at most four bytes: what lies past that many is not decoded only to be counted.
    let (head, tail) = text.split_at(text.len().min(most.saturating_mul(4)));
    let decoded = String::from_utf8_lossy(head);
    match decoded.char_indices().nth(most) {
        Some((at, _)) => {
            let missing = head.len().saturating_sub(at) + tail.len();
            format!("{}… ({missing} bytes more)", &decoded[..at])
        }
        None if tail.is_empty() => decoded.into_owned(),
        None => format!("{decoded}… ({} bytes more)", tail.len()),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn shown(text: &str, hit: Range<usize>) -> String {
        let lines = Lines::of(text.as_bytes());
        let excerpt = excerpt(text.as_bytes(), &lines, &hit);
        let marked = excerpt.text.split('\n').zip(&excerpt.marks).map(|(line, mark)| {
            format!("{}«{}»{}", &line[..mark.start], &line[mark.clone()], &line[mark.end..])
        });
        marked.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn short_lines_are_whole() {
        assert_eq!(shown("a\n  foo(1);\r\nb\n", 4..10), "  «foo(1)»;");
        assert_eq!(shown("\u{feff}foo(1)", 3..9), "«foo(1)»");
        assert_eq!(shown("x {\n  y\n}\nz", 0..9), "«x {»\n«  y»\n«}»");
    }

    #[test]
    fn a_long_line_is_cut_around_the_hit() {
        let line = format!("{}HIT{}", "ä".repeat(300), "b".repeat(300));
        let text = shown(&line, 600..603);
        assert_eq!(text, format!("…{}«HIT»{}…", "ä".repeat(49), "b".repeat(99)));
        let start = shown(&format!("HIT{}", "b".repeat(300)), 0..3);
        assert_eq!(start, format!("«HIT»{}…", "b".repeat(197)));
        let end = shown(&format!("{}HIT", "b".repeat(300)), 300..303);
        assert_eq!(end, format!("…{}«HIT»", "b".repeat(197)));
    }

    #[test]
    fn a_long_match_is_cut_and_says_so() {
        let text = "{\n".to_owned() + &"x;\n".repeat(30) + "}";
        let excerpt = shown(&text, 0..text.len());
        assert_eq!(excerpt.lines().count(), EXCERPT_LINES);
        assert_eq!(excerpt.lines().last(), Some("«»… (21 more lines)"));
        assert_eq!(cut("äöü".as_bytes(), 2), "äö… (2 bytes more)");
        assert_eq!(cut(&[b'a'; 100], 10), "aaaaaaaaaa… (90 bytes more)");
        assert_eq!(cut(b"caf\xe9", 10), "caf\u{fffd}");
    }
}
