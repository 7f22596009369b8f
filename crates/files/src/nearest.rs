//! The text of a file that comes nearest to a text that was looked for and not found, so that the next try can be right.

use std::collections::HashMap;

use crate::{
    limits::{DIFF_LINE_CHARS, NEAREST_LINES, NEAREST_SCAN},
    lines::{cut, numbered},
};

/// Below this share of equal character pairs two lines have nothing to do with each other.
const LIKENESS: f64 = 0.5;

/// Where the nearest text stands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Nearest {
    /// Index of its first line.
    start: usize,
    /// Which of the wanted lines gave the place.
    seen: usize,
}

/// What an error says about the nearest text: its lines under their numbers, and what differs. `None` when nothing in the file comes near.
pub(crate) fn describe(file: &[&str], wanted: &[&str]) -> Option<String> {
    let nearest = find(file, wanted)?;
    let length = wanted.len().clamp(1, NEAREST_LINES);
    // A long text is shown from a little above the line that was recognised.
    let start = if wanted.len() > NEAREST_LINES {
        (nearest.start + nearest.seen).saturating_sub(2).min(file.len().saturating_sub(1))
    } else {
        nearest.start
    };
    let end = (start + length).min(file.len());
    let place =
        if end - start == 1 { format!("line {}", start + 1) } else { format!("lines {}-{end}", start + 1) };
    let mut text = format!("The nearest text is at {place}:\n");
    text.push_str(&numbered(start + 1, file[start..end].iter().copied(), DIFF_LINE_CHARS));
    let pairs = wanted.iter().enumerate().map(|(at, line)| (nearest.start + at, *line));
    let differing = pairs
        .map(|(at, line)| (at, line, file.get(at).copied()))
        .find(|(_, line, found)| *found != Some(*line));
    match differing {
        None => {}
        Some((at, line, None)) => text.push_str(&format!(
            "The file ends before line {}, where yours goes on: {:?}",
            at + 1,
            cut(line, DIFF_LINE_CHARS)
        )),
        Some((at, line, Some(found))) => text.push_str(&format!(
            "First difference, at line {} ({}):\n  yours: {:?}\n  file:  {:?}",
            at + 1,
            difference(line, found),
            cut(line, DIFF_LINE_CHARS),
            cut(found, DIFF_LINE_CHARS)
        )),
    }
    Some(text.trim_end().to_owned())
}

fn find(file: &[&str], wanted: &[&str]) -> Option<Nearest> {
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    // Equal lines (but for white space and quotes) vote for the place at which the whole text would start; rare lines tell more than common ones.
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in file.iter().enumerate() {
        let key = loose(line);
        if !key.is_empty() {
            places.entry(key).or_default().push(at);
        }
    }
    let mut votes: HashMap<usize, (f64, usize)> = HashMap::new();
    for (at, line) in wanted.iter().enumerate() {
        let Some(found) = places.get(&loose(line)) else { continue };
        let weight = 1.0 / found.len() as f64;
        for place in found {
            if let Some(start) = place.checked_sub(at) {
                let vote = votes.entry(start).or_insert((0.0, at));
                vote.0 += weight;
            }
        }
    }
    let best =
        votes.into_iter().max_by(|(a, (left, _)), (b, (right, _))| left.total_cmp(right).then(b.cmp(a)));
    if let Some((start, (_, seen))) = best {
        return Some(Nearest { start, seen });
    }
    // No line is equal: the longest line of the text looks for its like.
    let (seen, longest) =
        wanted.iter().enumerate().max_by_key(|(at, line)| (line.trim().len(), usize::MAX - at))?;
    let pairs = bigrams(longest);
    let (place, score) = file
        .iter()
        .take(NEAREST_SCAN)
        .enumerate()
        .map(|(at, line)| (at, likeness(&pairs, &bigrams(line))))
        .max_by(|(a, left), (b, right)| left.total_cmp(right).then(b.cmp(a)))?;
    (score >= LIKENESS).then(|| Nearest { start: place.saturating_sub(seen), seen: seen.min(place) })
}

/// In which way two lines differ, in words.
fn difference(yours: &str, file: &str) -> &'static str {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if yours.trim_end() == file.trim_end() {
        "only white space at the end of the line"
    } else if yours.trim() == file.trim() {
        "only the indentation"
    } else if squeezed(yours) == squeezed(file) {
        "only white space"
    } else if squeezed(&plain(yours)) == squeezed(&plain(file)) {
        "only typography: quotes, dashes or special spaces"
    } else if loose(yours) == loose(file) {
        "only the kind of quotes, or white space"
    } else if squeezed(yours).to_lowercase() == squeezed(file).to_lowercase() {
        "only upper and lower case"
    } else {
        "the text itself"
    }
}

/// Typographic quotes, dashes and spaces as their plain forms.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            other => other,
        })
        .collect()
}

/// A line without white space, all quotes alike.
fn loose(line: &str) -> String {
    plain(line)
        .chars()
        .filter(|character| !character.is_whitespace())
        .map(|character| if matches!(character, '"' | '`') { '\'' } else { character })
        .collect()
}

fn bigrams(line: &str) -> HashMap<(char, char), usize> {
    let characters: Vec<char> = line
        .chars()
        .filter(|character| !character.is_whitespace())
        .flat_map(char::to_lowercase)
        .take(400)
        .collect();
    let mut pairs = HashMap::new();
    for pair in characters.windows(2) {
        *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
    }
    pairs
}

/// Dice's coefficient: 1 for the same character pairs, 0 for none in common.
fn likeness(left: &HashMap<(char, char), usize>, right: &HashMap<(char, char), usize>) -> f64 {
    let total: usize = left.values().sum::<usize>() + right.values().sum::<usize>();
    if total == 0 {
        return 0.0;
    }
    let common: usize =
        left.iter().map(|(pair, count)| right.get(pair).map_or(0, |other| *count.min(other))).sum();
    2.0 * common as f64 / total as f64
}

/// How alike two names are, for suggestions: 1 for equal but for case, 0 for nothing in common.
pub(crate) fn name_likeness(left: &str, right: &str) -> f64 {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let longest = left.len().max(right.len());
    // Lengths this far apart cannot be alike; most names of a tree end here.
    if longest == 0 || left.len().abs_diff(right.len()) * 2 > longest {
        return 0.0;
    }
    // Levenshtein's distance, a row at a time.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, character) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(character != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    1.0 - row[right.len()] as f64 / longest as f64
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const FILE: [&str; 7] =
        ["fn main() {", "\tlet name = \"Ada\";", "\tprintln!(\"{name}\");", "}", "", "fn other() {", "}"];

    #[test]
    fn what_differs_is_named() {
        let all = [
            &["    let name = \"Ada\";", "    println!(\"{name}\");"][..],
            &["\tlet name = 'Ada';"],
            &["\tlet name = “Ada”;"],
            &["FN OTHER() {"],
            &["\tlet nome = \"Ada\";  // who"],
            &["}", "", "fn other() {", "}", "more"],
            &["fn main() { "],
        ]
        .map(|wanted| describe(&FILE, wanted).unwrap_or_else(|| "nothing".into()));
        insta::assert_snapshot!(all.join("\n\n"));
    }

    #[test]
    fn nothing_near_is_nothing() {
        assert_eq!(describe(&FILE, &["SELECT * FROM users WHERE id = 7"]), None);
        assert_eq!(describe(&FILE, &["", "  "]), None);
        assert_eq!(describe(&[], &["x"]), None);
    }
}
