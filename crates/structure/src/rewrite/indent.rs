//! How text moves sideways when it lands on another line (SPEC A6): the file's own unit, and lines inside strings left alone.

use tree_sitter::Tree;

use crate::lines::Lines;

/// Text on its way into a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: Vec<u8>,
    /// Where the lines begin (offsets into `text`, ascending) that must not be moved, because they begin inside a string.
    pub(super) fixed: Vec<usize>,
}

impl Piece {
    pub(super) fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    /// Takes away the blanks at the end.
    pub(super) fn trim_blanks(&mut self) {
        let blanks = self.text.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.text.truncate(self.text.len() - blanks);
    }

    pub(super) fn append(&mut self, other: &Piece) {
        let at = self.text.len();
        self.fixed.extend(other.fixed.iter().map(|offset| at + offset));
        self.push(&other.text);
    }

    /// The same text with every line after the first moved from the indentation `from` to the indentation `to`.
    pub(super) fn moved(self, from: &[u8], to: &[u8]) -> Piece {
        if from == to || !self.text.contains(&b'\n') {
            return self;
        }
        let mut moved = Piece::default();
        let mut fixed = self.fixed.iter().copied().peekable();
        let mut at = 0;
        for line in self.text.split_inclusive(|byte| *byte == b'\n') {
            let is_fixed = fixed.next_if_eq(&at).is_some();
            if is_fixed {
                moved.fixed.push(moved.text.len());
            }
            // An unfinished line is the white space before something.
            let is_empty = is_blank(line) && line.ends_with(b"\n");
            if at == 0 || is_fixed || is_empty {
                moved.push(line);
            } else {
                let common = line.iter().zip(from).take_while(|(a, b)| a == b).count();
                moved.push(to);
                moved.push(&line[common..]);
            }
            at += line.len();
        }
        moved
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// The white space at the beginning of the line that holds `at`, and whether nothing else stands between it and `at`.
pub(super) fn line_indent<'a>(source: &'a [u8], lines: &Lines, at: usize) -> (&'a [u8], bool) {
    let mut start = lines.start(lines.number(at));
    if start == 0 && source.starts_with(b"\xef\xbb\xbf") && at >= 3 {
        start = 3;
    }
    let line = &source[start..];
    let blank = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if start + blank >= at { (&source[start..at], true) } else { (&line[..blank], false) }
}

/// Whether the line that begins at `at` begins inside a string, a here-document or another token in which white space counts.
/// Comments may be moved.
pub(super) fn starts_in_string(tree: &Tree, source: &[u8], at: usize) -> bool {
    if at == 0 || at >= source.len() {
        return false;
    }
    let Some(node) = tree.root_node().descendant_for_byte_range(at - 1, at + 1) else { return false };
    let kind = node.kind();
    if kind.contains("comment") || kind == "block_scalar" {
        return false;
    }
    // A leaf that holds a line break is one token. Some grammars give the text of a string no node of its own: there the node
    // around it is the string, whereas inside an interpolation it is the interpolation.
    let stringy = ["string", "template", "heredoc", "quoted", "raw_text", "char"];
    node.child_count() == 0
        || stringy.iter().any(|part| kind.contains(part))
            && !kind.contains("interpolation")
            && !kind.contains("substitution")
}

/// One step of indentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Tab,
    Spaces(usize),
}

impl Unit {
    /// The unit of a file: what most of its deeper lines add to the line before. `None` for a file without indentation. `in_string` says of
    /// the offset of a line whether it begins inside a string: such lines say nothing.
    pub(super) fn of_file(source: &[u8], in_string: &dyn Fn(usize) -> bool) -> Option<Unit> {
        const WIDEST: usize = 8;
        // The beginning tells; a file of megabytes is not read through for this.
        const ENOUGH: usize = 500;
        let mut tabs = 0;
        let mut spaces = [0; WIDEST + 1];
        let (mut last, mut at, mut looked) = (0, 0, 0);
        for line in source.split_inclusive(|byte| *byte == b'\n') {
            let start = at;
            at += line.len();
            if is_blank(line) || in_string(start) {
                continue;
            }
            looked += 1;
            if looked > ENOUGH {
                break;
            }
            if line[0] == b'\t' {
                tabs += 1;
                continue;
            }
            let depth = line.iter().take_while(|byte| **byte == b' ').count();
            if depth > last && depth - last <= WIDEST {
                spaces[depth - last] += 1;
            }
            last = depth;
        }
        // A step of one is an aligned comment far more often than a unit.
        let (width, count) =
            spaces.iter().enumerate().skip(2).max_by_key(|(width, count)| (**count, usize::MAX - width))?;
        match (tabs, *count) {
            (0, 0) => (spaces[1] > 0).then_some(Unit::Spaces(1)),
            (tabs, count) if tabs > count => Some(Unit::Tab),
            _ => Some(Unit::Spaces(width)),
        }
    }

    /// The unit of a template: tabs, or what all of its indentations are multiples of.
    pub(super) fn of_template<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Unit> {
        let mut width = 0;
        for text in texts {
            for line in text.split('\n').skip(1) {
                if line.starts_with('\t') {
                    return Some(Unit::Tab);
                }
                let depth = line.len() - line.trim_start_matches(' ').len();
                width = gcd(width, depth);
            }
        }
        (width > 0).then_some(Unit::Spaces(width))
    }

    /// The white space of a template's line in the unit of the file.
    pub(super) fn translate(template: Option<Unit>, file: Option<Unit>, white: &str) -> Vec<u8> {
        let (Some(template), Some(file)) = (template, file) else { return white.as_bytes().to_vec() };
        let (steps, rest) = match template {
            Unit::Tab => {
                let tabs = white.len() - white.trim_start_matches('\t').len();
                (tabs, white.len() - tabs)
            }
            Unit::Spaces(width) => (white.len() / width, white.len() % width),
        };
        let mut translated = match file {
            Unit::Tab => vec![b'\t'; steps],
            Unit::Spaces(width) => vec![b' '; steps * width],
        };
        translated.extend(std::iter::repeat_n(b' ', rest));
        translated
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_unit_of_a_file_is_found() {
        let unit = |text: &[u8]| Unit::of_file(text, &|_| false);
        assert_eq!(unit(b"a\n  b\n    c\nd\n  e\n"), Some(Unit::Spaces(2)));
        assert_eq!(unit(b"a\n    b\n        c\n   # x\nd\n    e\n"), Some(Unit::Spaces(4)));
        assert_eq!(unit(b"a {\n\tb\n\t\tc\n}\n"), Some(Unit::Tab));
        assert_eq!(unit(b"a\nb\n"), None);
        assert_eq!(unit(b"/*\n * c\n */\n"), Some(Unit::Spaces(1)));
        assert_eq!(Unit::of_template(["if (x) {\n  a;\n    b;\n}"].into_iter()), Some(Unit::Spaces(2)));
        assert_eq!(Unit::of_template(["one line"].into_iter()), None);
    }

    #[test]
    fn lines_are_moved_and_fixed_ones_are_not() {
        let piece = Piece { text: b"a\n    b\n  c\n\n    d\n".to_vec(), fixed: vec![8] };
        let moved = piece.moved(b"  ", b"\t");
        assert_eq!(moved, Piece { text: b"a\n\t  b\n  c\n\n\t  d\n".to_vec(), fixed: vec![7] });
    }
}
