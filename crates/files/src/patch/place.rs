//! Finds where the hunks of a patch belong, and applies them to a text.
//!
//! Every hunk is placed in the text as it was, none in the result of the one before. A hunk may stand only where its lines stand; if they stand
//! at several places, the header's line number, the anchors and the order of the hunks must leave one. Otherwise the patch does not fit: a guess
//! would be a change in the wrong place.

use super::{Hunk, HunkLine, Kind};
use crate::{
    limits::{DIFF_LINE_CHARS, PLACES_LISTED},
    lines::{self, Line, cut},
    nearest,
};

/// A patched text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) text: String,
    /// Where a hunk was not placed by its exact lines, in words.
    pub(crate) notes: Vec<String>,
}

/// Why a hunk does not fit, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hunk {hunk}{named}: {why}")]
pub(crate) struct Misfit {
    /// 1-based, within its file.
    hunk: usize,
    /// ` (@@ -1,3 +1,3 @@)`, or empty.
    named: String,
    why: String,
}

/// How exactly lines have to agree; the first level at which a hunk is found anywhere is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Exact,
    /// Carriage returns do not count: a model does not see them.
    LineEnding,
    TrailingSpace,
    Indentation,
    Typography,
}

const LEVELS: [Level; 5] =
    [Level::Exact, Level::LineEnding, Level::TrailingSpace, Level::Indentation, Level::Typography];

impl Level {
    fn agree(self, file: &Line<'_>, wanted: &str) -> bool {
        let bare = wanted.strip_suffix('\r').unwrap_or(wanted);
        match self {
            Level::Exact if file.ending == "\r\n" => bare.len() < wanted.len() && bare == file.text,
            Level::Exact => file.text == wanted,
            Level::LineEnding => file.text == bare,
            Level::TrailingSpace => file.text.trim_end() == bare.trim_end(),
            Level::Indentation => file.text.trim() == bare.trim(),
            Level::Typography => nearest::plain(file.text).trim() == nearest::plain(bare).trim(),
        }
    }

    fn note(self) -> Option<&'static str> {
        match self {
            Level::Exact | Level::LineEnding => None,
            Level::TrailingSpace => Some("the lines agree only without white space at their ends"),
            Level::Indentation => {
                Some("the lines agree only without their indentation; check the indentation of the new lines")
            }
            Level::Typography => Some(
                "the lines agree only with typographic quotes, dashes and spaces taken as plain ones; check the new lines",
            ),
        }
    }
}

/// A hunk on its way to its place.
struct Candidate<'a> {
    lines: Vec<&'a HunkLine>,
    /// How many lines of the file it covers.
    length: usize,
    /// Where it may start, ascending.
    starts: Vec<usize>,
    notes: Vec<&'static str>,
}

/// Applies `hunks` to `text`. New lines take the line ending of the lines beside them.
pub(crate) fn apply(text: &str, hunks: &[Hunk]) -> Result<Applied, Misfit> {
    let file = lines::split(text);
    let mut candidates = Vec::with_capacity(hunks.len());
    let mut drift = 0;
    for (at, hunk) in hunks.iter().enumerate() {
        let mut candidate = candidate(&file, hunk).map_err(|why| misfit(hunks, at, why))?;
        if let Some((start, _)) = hunk.range
            && candidate.length > 0
        {
            let named = start.saturating_sub(1);
            // What was right for the hunk before (the file grew since the diff was made) is likely right here.
            let expected = [named.checked_add_signed(drift), Some(named)];
            if let Some(place) = expected.into_iter().flatten().find(|place| candidate.starts.contains(place))
            {
                candidate.starts = vec![place];
            }
            if let [only] = candidate.starts[..] {
                drift = only as isize - named as isize;
            }
        }
        candidates.push(candidate);
    }
    let places = choose(&file, hunks, &candidates)?;
    let mut order: Vec<usize> = (0..hunks.len()).collect();
    order.sort_by_key(|at| places[*at]);
    let mut notes = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        for note in &candidate.notes {
            notes.push(format!("hunk {} (line {}): {note}", at + 1, places[at] + 1));
        }
    }
    Ok(Applied { text: build(text, &file, &candidates, &places, &order), notes })
}

fn misfit(hunks: &[Hunk], at: usize, why: String) -> Misfit {
    let named = match (&hunks[at].range, hunks[at].anchors.last()) {
        (Some((start, count)), _) => format!(" (@@ -{start},{count})"),
        (None, Some(anchor)) => format!(" (@@ {})", cut(anchor, 80)),
        (None, None) => String::new(),
    };
    Misfit { hunk: at + 1, named, why }
}

fn candidate<'a>(file: &[Line<'_>], hunk: &'a Hunk) -> Result<Candidate<'a>, String> {
    let all: Vec<&HunkLine> = hunk.lines.iter().collect();
    let old: Vec<&str> =
        all.iter().filter(|line| line.kind != Kind::Insert).map(|line| line.text.as_str()).collect();
    let spacing = all.iter().rev().take_while(|line| line.bare).count();
    // Where the header counts them they are lines of the file; some programs write an empty context line without its space.
    let counted = hunk.range.is_some_and(|(_, count)| count > 0 && count == old.len());
    if !counted
        && old.len() == spacing
        && all.len() > spacing
        && !all.iter().any(|line| line.kind == Kind::Context && !line.bare)
    {
        let lines = all[..all.len() - spacing].to_vec();
        if lines.iter().all(|line| line.kind == Kind::Insert) {
            return insertion(file, hunk, lines);
        }
    }
    let mut found = seek(file, &old);
    let mut lines = all.clone();
    let mut length = old.len();
    if found.is_none() && spacing > 0 {
        lines.truncate(all.len() - spacing);
        length = old.len() - spacing;
        found = seek(file, &old[..length]);
    }
    let Some((level, mut starts)) = found else {
        let texts: Vec<&str> = file.iter().map(|line| line.text).collect();
        let wanted: Vec<&str> = old.iter().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        let near = nearest::describe(&texts, &wanted)
            .unwrap_or_else(|| "Nothing in the file comes near them.".into());
        return Err(format!("its lines are not in the file. {near}"));
    };
    let mut notes: Vec<&'static str> = level.note().into_iter().collect();
    if hunk.at_end {
        match starts.iter().copied().find(|start| start + length == file.len()) {
            Some(start) => starts = vec![start],
            None => notes.push("it is not at the end of the file, as the patch says"),
        }
    }
    if !hunk.anchors.is_empty() {
        starts = below_anchors(file, hunk, &starts, length)?;
    }
    Ok(Candidate { lines, length, starts, notes })
}

/// A hunk of new lines only: the header's line number, the anchor or the end of the file says where.
fn insertion<'a>(
    file: &[Line<'_>],
    hunk: &'a Hunk,
    lines: Vec<&'a HunkLine>,
) -> Result<Candidate<'a>, String> {
    let mut notes = Vec::new();
    let starts = if !hunk.anchors.is_empty() {
        let places = anchor_places(file, &hunk.anchors)?;
        match places[..] {
            [only] => vec![only + 1],
            _ => return Err(format!("the `@@` line stands at {}. {MORE_CONTEXT}", list(&places))),
        }
    } else if let Some((start, count)) = hunk.range {
        // `-5,0` means behind line 5. A model that counts otherwise has to give context, which can be checked.
        if count != 0 && !(file.is_empty() && start <= 1) {
            return Err(format!(
                "its header speaks of {} before the change and it has none. Give the lines around the change.",
                lines::count(count, "line", "lines")
            ));
        }
        if start > file.len() {
            return Err(format!(
                "it goes behind line {start}, and the file has {}.",
                lines::count(file.len(), "line", "lines")
            ));
        }
        vec![start]
    } else {
        if !hunk.at_end && !file.is_empty() {
            notes.push("it has no line of the file in it, so its lines went to the end of the file");
        }
        vec![file.len()]
    };
    Ok(Candidate { lines, length: 0, starts, notes })
}

fn seek(file: &[Line<'_>], wanted: &[&str]) -> Option<(Level, Vec<usize>)> {
    if wanted.is_empty() || wanted.len() > file.len() {
        return None;
    }
    LEVELS.into_iter().find_map(|level| {
        let starts: Vec<usize> = (0..=file.len() - wanted.len())
            .filter(|start| {
                wanted.iter().zip(&file[*start..]).all(|(wanted, line)| level.agree(line, wanted))
            })
            .collect();
        (!starts.is_empty()).then_some((level, starts))
    })
}

const MORE_CONTEXT: &str = "Add lines above or below it, or an `@@` line that tells the places apart.";

/// Where the innermost anchor stands, each below the one before it.
fn anchor_places(file: &[Line<'_>], anchors: &[String]) -> Result<Vec<usize>, String> {
    let mut from = 0;
    let mut places = Vec::new();
    for anchor in anchors {
        let found = seek(&file[from..], &[anchor.as_str()])
            .map(|(_, starts)| starts.into_iter().map(|start| start + from).collect::<Vec<_>>());
        // Models shorten the line: `@@ fn x` for `fn x(a: u8) {`.
        let found = found.or_else(|| {
            let starts: Vec<usize> = (from..file.len())
                .filter(|at| file[*at].text.trim_start().starts_with(anchor.trim()))
                .collect();
            (!starts.is_empty()).then_some(starts)
        });
        places = found.ok_or_else(|| {
            let texts: Vec<&str> = file.iter().map(|line| line.text).collect();
            let near = nearest::describe(&texts, &[anchor.as_str()]).unwrap_or_default();
            format!("its `@@` line {:?} is not in the file. {near}", cut(anchor, DIFF_LINE_CHARS))
                .trim_end()
                .to_owned()
        })?;
        from = places[0] + 1;
    }
    Ok(places)
}

/// Below each place of the anchor the first fitting start before the anchor's next place; a hunk may repeat the anchor's own line.
fn below_anchors(
    file: &[Line<'_>],
    hunk: &Hunk,
    starts: &[usize],
    length: usize,
) -> Result<Vec<usize>, String> {
    let anchors = anchor_places(file, &hunk.anchors)?;
    let below: Vec<usize> = anchors
        .iter()
        .enumerate()
        .filter_map(|(at, anchor)| {
            let until = anchors.get(at + 1).copied().unwrap_or(usize::MAX);
            starts
                .iter()
                .copied()
                .find(|start| (start >= anchor || start + length > *anchor) && *start < until)
        })
        .collect();
    if below.is_empty() {
        return Err(format!(
            "its lines are in the file at {}, but not below its `@@` line, which is at {}.",
            list(starts),
            list(&anchors)
        ));
    }
    Ok(below)
}

/// Gives every hunk its place, or says which has none or more than one.
fn choose(file: &[Line<'_>], hunks: &[Hunk], candidates: &[Candidate<'_>]) -> Result<Vec<usize>, Misfit> {
    // As early as the order of the hunks allows, and as late: where both agree there is no choice.
    let mut cursor = 0;
    let earliest: Vec<Option<usize>> = candidates
        .iter()
        .map(|candidate| {
            let start = candidate.starts.iter().copied().find(|start| *start >= cursor)?;
            cursor = start + candidate.length;
            Some(start)
        })
        .collect();
    if let Some(stuck) = earliest.iter().position(Option::is_none) {
        return out_of_order(hunks, candidates, stuck);
    }
    let mut limit = file.len();
    let mut latest: Vec<Option<usize>> = candidates
        .iter()
        .rev()
        .map(|candidate| {
            let start = candidate.starts.iter().copied().rfind(|start| start + candidate.length <= limit)?;
            limit = start;
            Some(start)
        })
        .collect();
    latest.reverse();
    for (at, (early, late)) in earliest.iter().zip(&latest).enumerate() {
        if early != late {
            return Err(misfit(
                hunks,
                at,
                format!("its lines stand at {}. {MORE_CONTEXT}", list(&candidates[at].starts)),
            ));
        }
    }
    Ok(earliest.into_iter().flatten().collect())
}

/// Hunks that are not in the order of the file: right if each has one place and none overlap.
fn out_of_order(hunks: &[Hunk], candidates: &[Candidate<'_>], stuck: usize) -> Result<Vec<usize>, Misfit> {
    let single: Option<Vec<usize>> = candidates
        .iter()
        .map(|candidate| <[usize; 1]>::try_from(&candidate.starts[..]).ok().map(|[at]| at))
        .collect();
    if let Some(places) = single {
        let mut spans: Vec<(usize, usize)> = places
            .iter()
            .zip(candidates)
            .map(|(start, candidate)| (*start, start + candidate.length))
            .collect();
        spans.sort_unstable();
        if spans.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
            return Ok(places);
        }
        return Err(misfit(
            hunks,
            stuck,
            format!(
                "its lines, at {}, overlap those of another hunk. Write them as one hunk.",
                list(&candidates[stuck].starts)
            ),
        ));
    }
    Err(misfit(
        hunks,
        stuck,
        format!(
            "its lines stand only at {}, above or within an earlier hunk. Write the hunks in the order of the file, each with enough context.",
            list(&candidates[stuck].starts)
        ),
    ))
}

fn list(places: &[usize]) -> String {
    let shown: Vec<String> = places.iter().take(PLACES_LISTED).map(|at| (at + 1).to_string()).collect();
    let more = places.len().saturating_sub(PLACES_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} {}{more}", if places.len() == 1 { "line" } else { "lines" }, shown.join(", "))
}

/// The ending that most lines have; `"\n"` for a text without line breaks.
fn usual_ending<'a>(file: &[Line<'a>]) -> &'a str {
    let mut best = ("\n", 0);
    for ending in ["\n", "\r\n", "\r"] {
        let count = file.iter().filter(|line| line.ending == ending).count();
        if count > best.1 {
            best = (ending, count);
        }
    }
    best.0
}

fn build(
    text: &str,
    file: &[Line<'_>],
    candidates: &[Candidate<'_>],
    places: &[usize],
    order: &[usize],
) -> String {
    struct Out<'a> {
        text: &'a str,
        ending: &'a str,
        /// `Some(no_newline)` for an inserted line.
        inserted: Option<bool>,
    }
    let usual = usual_ending(file);
    let keep = |line: &Line<'_>| !line.ending.is_empty();
    let mut out: Vec<Out<'_>> = Vec::with_capacity(file.len());
    let mut cursor = 0;
    let mut said_no_newline = false;
    for at in order {
        let candidate = &candidates[*at];
        while cursor < places[*at] {
            out.push(Out { text: file[cursor].text, ending: file[cursor].ending, inserted: None });
            cursor += 1;
        }
        // A hunk that carries carriage returns says exactly what each line ends with.
        let literal =
            candidate.lines.iter().any(|line| line.kind != Kind::Insert && line.text.ends_with('\r'));
        let above = cursor.checked_sub(1).map(|before| file[before]).filter(keep);
        let mut beside = None;
        for line in &candidate.lines {
            match line.kind {
                Kind::Context | Kind::Remove => {
                    let old = file[cursor];
                    said_no_newline |= line.no_newline;
                    beside = Some(old).filter(keep).or(beside);
                    if line.kind == Kind::Context {
                        out.push(Out { text: old.text, ending: old.ending, inserted: None });
                    }
                    cursor += 1;
                }
                Kind::Insert => {
                    let bare = line.text.strip_suffix('\r').filter(|_| !line.no_newline);
                    let next = file.get(cursor).copied().filter(keep).or(above);
                    let ending = match bare {
                        Some(_) => "\r\n",
                        None if literal => "\n",
                        None => beside.or(next).map_or(usual, |line| line.ending),
                    };
                    let text = bare.unwrap_or(&line.text);
                    out.push(Out { text, ending, inserted: Some(line.no_newline) });
                }
            }
        }
    }
    out.extend(file[cursor..].iter().map(|line| Out {
        text: line.text,
        ending: line.ending,
        inserted: None,
    }));

    let ended = text.is_empty() || file.last().is_some_and(keep) || said_no_newline;
    let last = out.len().saturating_sub(1);
    let mut result = String::with_capacity(text.len() + 256);
    for (at, line) in out.iter().enumerate() {
        result.push_str(line.text);
        let ending = match line.inserted {
            Some(true) if at == last => "",
            Some(false) if at == last && !ended => "",
            // The old last line has a line below it now.
            None if at < last && line.ending.is_empty() => usual,
            _ => line.ending,
        };
        result.push_str(ending);
    }
    result
}

#[cfg(test)]
mod tests;
