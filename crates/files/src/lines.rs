//! Lines of a text, the same way for every tool, so that a line number from one is good for the other.

/// A line without its ending, and the ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Never contains the ending.
    pub(crate) text: &'a str,
    /// `"\n"`, `"\r\n"`, `"\r"` (only in files without any line feed), or `""` for a last line without one.
    pub(crate) ending: &'a str,
}

/// Splits at line feeds; at carriage returns only where the text has no line feed at all (old Mac files). An empty text has no lines.
pub(crate) fn split(text: &str) -> Vec<Line<'_>> {
    let breaker = if !text.contains('\n') && text.contains('\r') { '\r' } else { '\n' };
    text.split_inclusive(breaker)
        .map(|full| {
            let text = full.strip_suffix(breaker).unwrap_or(full);
            let text = if breaker == '\n' && full.ends_with('\n') {
                text.strip_suffix('\r').unwrap_or(text)
            } else {
                text
            };
            Line { text, ending: &full[text.len()..] }
        })
        .collect()
}

/// The 1-based number of the line in which byte `at` of `text` lies.
pub(crate) fn number_at(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    let feeds = memchr::memchr_iter(b'\n', before).count();
    if feeds == 0 && !text.contains('\n') {
        return 1 + memchr::memchr_iter(b'\r', before).count();
    }
    1 + feeds
}

/// `text` cut to `most` characters; says how many there were when it is cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… [line of {} characters cut]", &text[..at], text.chars().count()),
    }
}

/// Lines under their numbers, `number`, tab, text, the numbers right-aligned to each other.
pub(crate) fn numbered<'a>(
    first: usize,
    lines: impl ExactSizeIterator<Item = &'a str>,
    most: usize,
) -> String {
    let last = first + lines.len().saturating_sub(1);
    let width = last.to_string().len();
    let mut out = String::new();
    for (number, line) in (first..).zip(lines) {
        out.push_str(&format!("{number:>width$}\t{}\n", cut(line, most)));
    }
    out
}

/// `1 line`, `2 lines`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// A size for people: bytes up to 1 KiB, then with one decimal.
pub(crate) fn size(bytes: u64) -> String {
    const STEP: f64 = 1024.0;
    if bytes < 1024 {
        return count(bytes as usize, "byte", "bytes");
    }
    let mut value = bytes as f64 / STEP;
    for unit in ["KiB", "MiB", "GiB"] {
        if value < STEP {
            return format!("{value:.1} {unit}");
        }
        value /= STEP;
    }
    format!("{value:.1} TiB")
}

/// A path for a line of an answer; one with control characters (a line break is legal in a name) is quoted.
pub(crate) fn path_text(shown: &str) -> String {
    if shown.chars().any(char::is_control) { format!("{shown:?}") } else { shown.to_owned() }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn pairs(text: &str) -> Vec<(&str, &str)> {
        split(text).into_iter().map(|line| (line.text, line.ending)).collect()
    }

    #[test]
    fn lines_keep_their_own_endings() {
        assert_eq!(pairs(""), vec![]);
        assert_eq!(pairs("a\nb"), vec![("a", "\n"), ("b", "")]);
        assert_eq!(pairs("a\r\nb\n\n"), vec![("a", "\r\n"), ("b", "\n"), ("", "\n")]);
        assert_eq!(pairs("a\rb\r"), vec![("a", "\r"), ("b", "\r")]);
        assert_eq!(pairs("a\rb\nc\r"), vec![("a\rb", "\n"), ("c\r", "")]);
    }

    #[test]
    fn a_cut_line_says_its_length() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äöü… [line of 4 characters cut]");
    }

    proptest! {
        #[test]
        fn split_loses_nothing(text in "[ab\r\n]{0,20}") {
            let joined: String = split(&text).iter().flat_map(|line| [line.text, line.ending]).collect();
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn numbers_agree_with_split(text in "[ab\r\n]{1,20}") {
            let mut at = 0;
            for (index, line) in split(&text).iter().enumerate() {
                prop_assert_eq!(number_at(&text, at), index + 1);
                at += line.text.len() + line.ending.len();
            }
        }
    }
}
