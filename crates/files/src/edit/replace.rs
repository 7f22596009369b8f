//! The replacement itself, pure. Line breaks of `old` agree with those of the file whatever they are; everything else must be equal.

use std::borrow::Cow;

use haft_system::TextFile;

use crate::{
    limits::PLACES_LISTED,
    lines::{count, number_at, split},
    nearest,
};

/// A text after the replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) text: String,
    pub(super) places: usize,
}

/// Replaces `old` by `new` in the file's text. The error is in words for the model.
pub(super) fn replace(file: &TextFile, old: &str, new: &str, all: bool) -> Result<Replaced, String> {
    if old == new {
        return Err("`old` and `new` are the same.".into());
    }
    let text = &file.text;
    let flat = Flat::of(text);
    let wanted = flatten(old);
    // Overlapping occurrences count: `aa` does not stand in `aaa` once.
    let found = occurrences(&flat.text, &wanted);
    match found.len() {
        0 => return Err(not_found(text, old)),
        1 => {}
        _ if all => {}
        many => {
            let places: Vec<String> = found
                .iter()
                .take(PLACES_LISTED)
                .map(|at| number_at(text, flat.original(*at)).to_string())
                .collect();
            let more = if many > PLACES_LISTED { " and others" } else { "" };
            return Err(format!(
                "`old` stands there {many} times, at lines {}{more}. Add lines around it until it is unique, or pass `all: true`.",
                places.join(", ")
            ));
        }
    }
    // A model that was shown CRLF may send it to a file that has none; the file's own ending wins.
    let new = if old.contains("\r\n") && !text.contains('\r') { flatten(new) } else { Cow::Borrowed(new) };
    let new = file.with_endings(&new);
    let mut result = String::with_capacity(text.len());
    let (mut cursor, mut places) = (0, 0);
    for at in found {
        let (start, end) = (flat.original(at), flat.original(at + wanted.len()));
        if start < cursor {
            continue;
        }
        result.push_str(&text[cursor..start]);
        result.push_str(&new);
        cursor = end;
        places += 1;
    }
    result.push_str(&text[cursor..]);
    Ok(Replaced { text: result, places })
}

/// A text with every line break as `\n`, and the way back.
struct Flat<'a> {
    text: Cow<'a, str>,
    /// Positions in the flat text of the line feeds that were two bytes, ascending.
    pairs: Vec<usize>,
}

impl<'a> Flat<'a> {
    fn of(text: &'a str) -> Self {
        if !text.contains('\r') {
            return Flat { text: Cow::Borrowed(text), pairs: Vec::new() };
        }
        if !text.contains('\n') {
            return Flat { text: Cow::Owned(text.replace('\r', "\n")), pairs: Vec::new() };
        }
        let mut flat = String::with_capacity(text.len());
        let mut pairs = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("\r\n") {
            flat.push_str(&rest[..at]);
            pairs.push(flat.len());
            flat.push('\n');
            rest = &rest[at + 2..];
        }
        flat.push_str(rest);
        Flat { text: Cow::Owned(flat), pairs }
    }

    /// The position in the original text. A position at a line break is the one before it.
    fn original(&self, at: usize) -> usize {
        at + self.pairs.partition_point(|pair| *pair < at)
    }
}

fn flatten(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

fn occurrences(text: &str, wanted: &str) -> Vec<usize> {
    let finder = memchr::memmem::Finder::new(wanted);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&text.as_bytes()[from..]) {
        found.push(from + at);
        from += at + 1;
    }
    found
}

fn not_found(text: &str, old: &str) -> String {
    if text.is_empty() {
        return "the file is empty.".into();
    }
    let mut why = String::from("`old` does not stand in it.");
    let wanted: Vec<&str> = split(old).into_iter().map(|line| line.text).collect();
    let bare: Option<Vec<&str>> = wanted.iter().map(|line| without_number(line)).collect();
    if bare.is_some() {
        why.push_str(
            " It begins each line with a line number; leave the numbers and the tabs behind them out.",
        );
    }
    let file: Vec<&str> = split(text).into_iter().map(|line| line.text).collect();
    match nearest::describe(&file, bare.as_deref().unwrap_or(&wanted)) {
        Some(near) => {
            why.push(' ');
            why.push_str(&near);
        }
        None => why.push_str(&format!(
            " Nothing in its {} comes near. Read the file to see what it says now.",
            count(file.len(), "line", "lines")
        )),
    }
    why
}

/// The line without a number and a tab in front, as `read` shows it.
fn without_number(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(' ');
    let text = rest.trim_start_matches(|character: char| character.is_ascii_digit());
    if text.len() == rest.len() {
        return None;
    }
    text.strip_prefix('\t').or_else(|| text.strip_prefix('→'))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn run(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        let file = TextFile::parse(text.as_bytes()).unwrap();
        replace(&file, old, new, all).map(|replaced| format!("{} {:?}", replaced.places, replaced.text))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with a result")]
    fn ok(text: &str) -> Result<String, String> {
        Ok(text.into())
    }

    #[test]
    fn line_breaks_of_any_kind_agree_and_the_files_own_are_kept() {
        assert_eq!(run("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", false), ok("1 \"x\\r\\ny\\r\\nc\\r\\n\""));
        assert_eq!(run("a\r\nb", "\nb", "\nc", false), ok("1 \"a\\r\\nc\""));
        assert_eq!(run("a\r\nb", "a\n", "", false), ok("1 \"b\""));
        assert_eq!(run("a\nb\n", "a\r\nb", "x\r\ny", false), ok("1 \"x\\ny\\n\""));
        assert_eq!(run("a\rb\r", "a\nb", "x\ny", false), ok("1 \"x\\ry\\r\""));
        // What is not touched keeps its own ending.
        assert_eq!(run("a\r\nb\nc\r\n", "c", "d", false), ok("1 \"a\\r\\nb\\nd\\r\\n\""));
    }

    #[test]
    fn all_replaces_from_left_to_right() {
        assert_eq!(run("aaa", "aa", "b", true), ok("1 \"ba\""));
        assert_eq!(run("x y x", "x", "xx", true), ok("2 \"xx y xx\""));
    }

    #[test]
    fn what_fails_is_said() {
        let text = "fn main() {\n\tlet name = \"Ada\";\n\tgreet(name);\n}\n";
        let all = [
            run(text, "x", "x", false),
            run("aaa", "aa", "b", false),
            run("1\nx\n2\nx\n", "x\n", "y\n", false),
            run(text, "    let name = \"Ada\";\n    greet(name);", "", false),
            run(text, "2\t\tlet name = \"Ada\";\n3\t\tgreet(name);", "", false),
            run(text, "SELECT * FROM users", "", false),
            run("", "x", "y", false),
        ]
        .map(Result::unwrap_err);
        insta::assert_snapshot!(all.join("\n\n"));
    }

    proptest! {
        #[test]
        fn an_edit_turned_around_gives_the_text_back(
            before in "[ab\n]{0,8}",
            old in "[ab\n]{1,4}",
            new in "[c-e\n]{1,4}",
            after in "[ab\n]{0,8}",
        ) {
            let text = format!("{before}{old}{after}");
            let file = TextFile::parse(text.as_bytes()).unwrap();
            if let Ok(there) = replace(&file, &old, &new, false) {
                let changed = TextFile { text: there.text, ..file.clone() };
                if let Ok(back) = replace(&changed, &new, &old, false) {
                    prop_assert_eq!(back.text, text);
                }
            }
        }

        #[test]
        fn an_edit_of_a_crlf_file_turned_around_gives_the_text_back(lines in proptest::collection::vec("[ab]{0,3}", 1..6), at in 0usize..6) {
            let at = at % lines.len();
            let mut lines = lines;
            lines[at] = "mark".into();
            let text = lines.join("\r\n") + "\r\n";
            let file = TextFile::parse(text.as_bytes()).unwrap();
            let there = replace(&file, "mark\n", "one\ntwo\n", false).unwrap();
            prop_assert_eq!(&there.text, &text.replace("mark\r\n", "one\r\ntwo\r\n"));
            let changed = TextFile { text: there.text, ..file.clone() };
            let back = replace(&changed, "one\ntwo\n", "mark\n", false).unwrap();
            prop_assert_eq!(back.text, text);
        }
    }
}
