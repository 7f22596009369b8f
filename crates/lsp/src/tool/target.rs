//! `line` and `symbol` to a place in a text (SPEC L3). No guess: what is not there is an error that says what is.

use std::ops::Range;

use haft_tool::ToolError;

use crate::{
    limits::{LINE_CHARS, OTHER_LINES},
    position::Lines,
};

/// A symbol found on its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The identifier that the server is asked about, as bytes of the text.
    pub(crate) span: Range<usize>,
    /// The line, from 1.
    pub(crate) line: u32,
    /// The identifier.
    pub(crate) name: String,
    /// What the caller should know of how it was found.
    pub(crate) note: Option<String>,
}

/// Finds a symbol. `shown` is the file's name for messages; `dollar` says that `$` belongs to identifiers of the language.
pub(crate) fn find(
    lines: &Lines,
    shown: &str,
    line: Option<u32>,
    symbol: Option<&str>,
    dollar: bool,
) -> Result<Target, ToolError> {
    let count = lines.count();
    let Some(line) = line else {
        return Err(ToolError::model(format!(
            "`line` is missing: the 1-based line of `{shown}` that the symbol stands on (the file has {count} lines)."
        )));
    };
    let quoted = (line >= 1).then(|| lines.line(line as usize - 1)).flatten();
    let Some(text) = quoted else {
        return Err(ToolError::model(format!("`{shown}` has no line {line}: its lines are 1 to {count}.")));
    };
    let given = symbol.unwrap_or_default().trim();
    if given.is_empty() {
        return Err(ToolError::model(format!(
            "`symbol` is missing: a piece of line {line} that names what is meant. The line is:\n{}",
            quote(text)
        )));
    }
    let (wanted, number) = numbered(given, text);
    let found = occurrences(text, wanted, dollar);
    if found.is_empty() {
        return Err(not_on_line(lines, shown, line, text, wanted, dollar));
    }
    let count = found.len();
    let at = number.unwrap_or(1);
    let Some(start) = at.checked_sub(1).and_then(|index| found.get(index)) else {
        return Err(ToolError::model(format!(
            "Line {line} of `{shown}` has `{wanted}` {}, so there is no `{wanted}#{at}`. The line is:\n{}",
            times(count),
            quote(text)
        )));
    };
    let (name_start, name) = last_name(wanted, dollar);
    let from = lines.span(line as usize - 1).map_or(0, |span| span.start) + start + name_start;
    let mut notes = Vec::new();
    if count > 1 && number.is_none() {
        notes.push(format!(
            "`{wanted}` stands on line {line} {}; the first was taken (`{wanted}#2` names the second).",
            times(count)
        ));
    }
    if name != wanted {
        notes.push(format!("Asked about `{name}`, the last name in `{wanted}`."));
    }
    Ok(Target {
        span: from..from + name.len(),
        line,
        name: name.to_owned(),
        note: (!notes.is_empty()).then(|| notes.join(" ")),
    })
}

/// Takes `#2` off, unless the line has the whole of it.
fn numbered<'a>(given: &'a str, text: &str) -> (&'a str, Option<usize>) {
    if text.contains(given) {
        return (given, None);
    }
    match given.rsplit_once('#') {
        Some((symbol, number)) if !symbol.is_empty() => match number.parse() {
            Ok(number) => (symbol, Some(number)),
            Err(_) => (given, None),
        },
        _ => (given, None),
    }
}

/// Where a symbol stands on a line: the whole identifiers if there are any, else the parts of longer ones.
fn occurrences(text: &str, wanted: &str, dollar: bool) -> Vec<usize> {
    let mut whole = Vec::new();
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(wanted).map(|at| at + from) {
        let end = at + wanted.len();
        let joined = |inside: Option<char>, outside: Option<char>| {
            inside.zip(outside).is_some_and(|(one, other)| is_name(one, dollar) && is_name(other, dollar))
        };
        let cut = joined(wanted.chars().next(), text[..at].chars().next_back())
            || joined(wanted.chars().next_back(), text[end..].chars().next());
        if cut {
            parts.push(at)
        } else {
            whole.push(at)
        }
        // Occurrences may not overlap, but a part must not hide a whole one that begins inside it.
        let step = if cut { wanted.chars().next().map_or(1, char::len_utf8) } else { wanted.len() };
        from = at + step;
    }
    if whole.is_empty() { parts } else { whole }
}

/// The last identifier in what was given: `name` in `self.name`, `greet` in `fn greet(`. All of it if it has none (an operator).
fn last_name(wanted: &str, dollar: bool) -> (usize, &str) {
    let Some(end) = wanted
        .char_indices()
        .rev()
        .find(|(_, character)| is_name(*character, dollar))
        .map(|(at, character)| at + character.len_utf8())
    else {
        return (0, wanted);
    };
    let start = wanted[..end]
        .char_indices()
        .rev()
        .take_while(|(_, character)| is_name(*character, dollar))
        .last()
        .map_or(0, |(at, _)| at);
    (start, &wanted[start..end])
}

fn is_name(character: char, dollar: bool) -> bool {
    character.is_alphanumeric()
        || character == '_'
        || (dollar && character == '$')
        // Combining marks belong to the letter before them.
        || matches!(character, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}' | '\u{200c}' | '\u{200d}')
}

fn not_on_line(lines: &Lines, shown: &str, line: u32, text: &str, wanted: &str, dollar: bool) -> ToolError {
    let mut elsewhere: Vec<u32> = Vec::new();
    let mut more = 0;
    let mut whole_only = true;
    for pass in [true, false] {
        for number in 0..lines.count() {
            let Some(other) = lines.line(number) else { continue };
            let Some(at) = other.find(wanted) else { continue };
            let whole = {
                let found = occurrences(other, wanted, dollar);
                let first = found.first().copied().unwrap_or(at);
                let end = first + wanted.len();
                let cut =
                    |character: Option<char>| character.is_some_and(|character| is_name(character, dollar));
                !(cut(other[..first].chars().next_back()) || cut(other[end..].chars().next()))
            };
            if whole != pass {
                continue;
            }
            if elsewhere.len() < OTHER_LINES { elsewhere.push(number as u32 + 1) } else { more += 1 }
        }
        if !elsewhere.is_empty() {
            whole_only = pass;
            break;
        }
    }
    let nearest = |other: &u32| other.abs_diff(line);
    let shown_lines = list(&elsewhere, more);
    let hint = match elsewhere.iter().min_by_key(|other| nearest(other)) {
        None => format!("It stands nowhere in `{shown}`."),
        Some(_) if !whole_only => format!("As a part of longer names it stands on {shown_lines}."),
        Some(_) => format!("It stands on {shown_lines}."),
    };
    let here = if text.trim().is_empty() {
        format!("Line {line} is empty.")
    } else {
        format!("Line {line} is:\n{}", quote(text))
    };
    ToolError::model(format!("`{wanted}` is not on line {line} of `{shown}`. {hint} {here}"))
}

fn list(numbers: &[u32], more: usize) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    match words.as_slice() {
        [] => "no line".into(),
        [one] if more == 0 => format!("line {one}"),
        [init @ .., last] if more == 0 => format!("lines {} and {last}", init.join(", ")),
        all => format!("lines {}{tail}", all.join(", ")),
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

/// A line for an answer: without indentation, cut where it is long.
pub(crate) fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LINE_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… (cut)", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const TEXT: &str = "def greet(name):\n    greeting = greet_all(name) + greet(name)\n    emoji = \"🦀日本\"; message = greet(emoji)\r\n\n    self.name.strip()\n";

    fn at(line: u32, symbol: &str) -> Result<(usize, String, Option<String>), String> {
        find(&Lines::new(TEXT), "a.py", Some(line), Some(symbol), false)
            .map(|target| (target.span.start, target.name, target.note))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn whole_identifiers_win_over_parts() {
        let whole = TEXT.find("greet(name)\n").unwrap();
        assert_eq!(at(2, "greet"), Ok((whole, "greet".into(), None)));
        // Where there is none, a part is taken.
        assert_eq!(at(2, "greeti"), Ok((TEXT.find("greeting").unwrap(), "greeti".into(), None)));
    }

    #[test]
    fn occurrences_are_numbered_and_the_choice_is_said() {
        let first = TEXT.find("name) +").unwrap();
        let note =
            "`name` stands on line 2 twice; the first was taken (`name#2` names the second).".to_owned();
        assert_eq!(at(2, "name"), Ok((first, "name".into(), Some(note))));
        let second = TEXT.find("name)\n    emoji").unwrap();
        assert_eq!(at(2, "name#2"), Ok((second, "name".into(), None)));
    }

    #[test]
    fn the_last_name_is_meant() {
        let note = Some("Asked about `name`, the last name in `self.name`.".to_owned());
        assert_eq!(at(5, "self.name"), Ok((TEXT.find("name.strip").unwrap(), "name".into(), note)));
    }

    #[test]
    fn errors_say_what_is_there() {
        let cases = [
            at(2, "name#3"),
            at(4, "greet"),
            at(1, "emoji"),
            at(3, "nothing"),
            at(4, "trip"),
            at(9, "greet"),
            at(0, "greet"),
            at(1, " "),
            find(&Lines::new(TEXT), "a.py", None, Some("x"), false)
                .map(|_| (0, String::new(), None))
                .map_err(|error| error.to_string()),
        ];
        let texts: Vec<String> = cases.into_iter().map(Result::unwrap_err).collect();
        insta::assert_snapshot!(texts.join("\n---\n"));
    }

    #[test]
    fn dollar_belongs_to_names_only_where_the_language_says_so() {
        let lines = Lines::new("echo $name; $names");
        let start = |dollar| find(&lines, "a", Some(1), Some("name"), dollar).unwrap().span.start;
        assert_eq!((start(false), start(true)), (6, 6));
        let lines = Lines::new("$el = el");
        let start = |dollar| find(&lines, "a", Some(1), Some("el"), dollar).unwrap().span.start;
        assert_eq!((start(false), start(true)), (1, 6));
    }

    #[test]
    fn a_number_sign_that_is_on_the_line_is_text() {
        let lines = Lines::new("this.#2x; a#2 a");
        assert_eq!(find(&lines, "a", Some(1), Some("a#2"), true).unwrap().span, 12..13);
    }
}
