//! What helps somebody who found nothing (SPEC A1, A4): a silent miss is the worst answer a search can give.

use std::collections::{BTreeMap, BTreeSet};

use haft_system::Workdir;
use tokio_util::sync::CancellationToken;

use super::{Effort, Engine, Listing, Parsed, Plan, Prepared, Query, SearchError, Seen, Visit, excerpt, run};
use crate::{
    languages::Language,
    lines::Lines,
    matcher::find,
    pattern::{Compiled, Reading},
};

/// What is known about a search that found nothing.
pub(super) struct Clues<'a> {
    pub(super) query: &'a Query,
    pub(super) prepared: &'a Prepared,
    /// Files that hold every token of the pattern.
    pub(super) holders: usize,
    /// Per language, the longest token of the pattern if no file holds it.
    pub(super) unseen: Vec<(&'static str, Vec<u8>)>,
}

/// Why there is no file to search.
pub(super) fn nothing_there(listing: &Listing, asked: Option<&'static Language>) -> String {
    match asked {
        Some(language) if listing.others.is_empty() => {
            format!("no {} file, and no file of another known language either{}.", language.id, IGNORED)
        }
        Some(language) => {
            format!("no {} file. There are files of: {}{}.", language.id, counted(&listing.others), IGNORED)
        }
        None if listing.unknown > 0 => {
            format!(
                "{} files, none of a known language. A single file can be searched with `language` given.",
                listing.unknown
            )
        }
        None => format!("no files{IGNORED}."),
    }
}

const IGNORED: &str = " (hidden files and those that .gitignore excludes are not looked at)";

fn counted(languages: &BTreeMap<&'static str, usize>) -> String {
    let mut sorted: Vec<_> = languages.iter().collect();
    sorted.sort_by_key(|(id, count)| (std::cmp::Reverse(**count), **id));
    let named = sorted.iter().take(8).map(|(id, count)| format!("{id} ({count})"));
    named.collect::<Vec<_>>().join(", ")
}

/// What to say after a search without a hit, the most telling first. Searches once more, for the other readings.
pub(super) fn nothing_found(
    engine: &Engine,
    workdir: &Workdir,
    clues: &Clues<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<String>, SearchError> {
    let Clues { query, prepared, holders, unseen } = clues;
    let mut hints = Vec::new();
    for compiled in &prepared.compiled {
        for warning in &compiled.warnings {
            let warning = format!("{}.", warning.trim_end_matches('.'));
            if !hints.contains(&warning) {
                hints.push(warning);
            }
        }
    }
    let (would, silent) = other_readings(engine, workdir, clues, cancel)?;
    hints.extend(would);
    let tokens: BTreeSet<String> =
        unseen.iter().map(|(_, token)| format!("`{}`", String::from_utf8_lossy(token))).collect();
    if unseen.len() == prepared.compiled.len() {
        let tokens: Vec<String> = tokens.into_iter().collect();
        hints.push(format!("{} is in none of the files that were searched.", tokens.join(" or ")));
    } else if *holders == 0 {
        hints.push("No file that was searched holds all of the words and signs of the pattern.".to_owned());
    } else {
        hints.push(format!(
            "{holders} file{} all of the words and signs of the pattern, but not in this shape.",
            if *holders == 1 { " holds" } else { "s hold" }
        ));
    }
    if looks_like_regex(&query.pattern) {
        hints.push(
            "The pattern looks like a regular expression. It is read as code here, with `$NAME` for any one node; use `search` for text.".to_owned(),
        );
    }
    if *holders > 0 {
        let languages: Vec<&str> = prepared.compiled.iter().map(|compiled| compiled.language.id).collect();
        if languages.contains(&"rust") && !declares(&query.pattern) {
            hints.push(
                "Rust: what stands inside a macro call (`println!(…)`, `vec![…]`) is loose tokens to the parser, not code, so it does not match; `search` finds it as text.".to_owned(),
            );
        }
        if declares(&query.pattern) {
            hints.push(
                "A pattern accounts for all parts of a node: a declaration with a modifier (`pub`, `async`, `export`, `static`), a return type, a decorator or a type \
                 annotation that the pattern does not have is another shape. Add it to the pattern (`pub fn $F($$$A) -> $R { $$$B }`).".to_owned(),
            );
        }
    }
    if !silent.is_empty() {
        hints.push(format!(
            "The pattern can be read otherwise, and has no match that way either: {}.",
            silent.join("; ")
        ));
    }
    if query.language.is_some() && !prepared.listing.others.is_empty() {
        hints.push(format!(
            "Files of other languages were not searched: {}.",
            counted(&prepared.listing.others)
        ));
    }
    Ok(hints)
}

/// Says for every other reading of the pattern whether it would find something, and where; the second list names those that would not.
fn other_readings(
    engine: &Engine,
    workdir: &Workdir,
    clues: &Clues<'_>,
    cancel: &CancellationToken,
) -> Result<(Vec<String>, Vec<String>), SearchError> {
    let prepared = clues.prepared;
    // A token that no file holds and that every other reading needs too: there is nothing to look for.
    let hopeless = |compiled: &Compiled| {
        clues.unseen.iter().any(|(language, token)| {
            *language == compiled.language.id
                && compiled.readings[1..]
                    .iter()
                    .all(|reading| reading.literals().iter().any(|l| **l == **token))
        })
    };
    let (out, others): (Vec<&Compiled>, Vec<&Compiled>) =
        prepared.compiled.iter().filter(|compiled| compiled.readings.len() > 1).partition(|c| hopeless(c));
    let mut silent_everywhere: Vec<String> = out.iter().map(|c| named(c, c.readings[1..].iter())).collect();
    let plans: Vec<Plan<'_>> = others
        .iter()
        .map(|compiled| Plan::new(compiled.language, &compiled.readings[1..], engine.prefilter))
        .collect();
    if plans.is_empty() {
        return Ok((Vec::new(), silent_everywhere));
    }
    let compiled =
        |plan: usize| prepared.compiled.iter().find(|compiled| compiled.language == plans[plan].language);
    let visit = |visit: Visit<'_>| {
        let Parsed { text, tree } = visit.parsed;
        let mut found = Vec::new();
        let mut matches = 0;
        for (number, reading) in
            compiled(visit.plan).iter().flat_map(|compiled| compiled.readings[1..].iter().enumerate())
        {
            let places = find(reading, tree, text).matches;
            if let Some(first) = places.first() {
                matches += places.len();
                let line = excerpt::place(&Lines::of(text), &first.range).line;
                found.push((visit.plan, number, line, places.len()));
            }
        }
        Seen { matches, kept: found.len(), keep: found, gave_up: 0 }
    };
    let ran = run(engine, &prepared.listing.files, &plans, usize::MAX, Effort::All, &visit, cancel)?;
    // By language and reading: the first place, and how many there are.
    let mut would: BTreeMap<(usize, usize), (String, usize)> = BTreeMap::new();
    for (index, found) in &ran.kept {
        for (plan, number, line, places) in found {
            let place = || format!("{}:{line}", workdir.show(&prepared.listing.files[*index].path));
            would.entry((*plan, *number)).or_insert_with(|| (place(), 0)).1 += places;
        }
    }
    let mut said = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        let Some(compiled) = compiled(number) else { continue };
        let read_as = compiled.readings[0].rung();
        let mut silent = Vec::new();
        for (other, reading) in compiled.readings[1..].iter().enumerate() {
            match would.get(&(number, other)) {
                Some((place, count)) => said.push(format!(
                    "In {} the pattern was read as {read_as}. Read as {} it has {count} match{}, the first at {place}. Write it so that only that reading fits, \
                     with more of what stands around it.",
                    plan.language.id,
                    reading.rung(),
                    if *count == 1 { "" } else { "es" },
                )),
                None => silent.push(reading),
            }
        }
        if !silent.is_empty() {
            silent_everywhere.push(named(compiled, silent.into_iter()));
        }
    }
    Ok((said, silent_everywhere))
}

/// `c as member, type`.
fn named<'r>(compiled: &Compiled, readings: impl Iterator<Item = &'r Reading>) -> String {
    let rungs: Vec<&str> = readings.map(Reading::rung).collect();
    format!("{} as {}", compiled.language.id, rungs.join(", "))
}

fn looks_like_regex(pattern: &str) -> bool {
    let signs =
        [".*", ".+", "\\w", "\\s", "\\d", "\\b", "\\(", "\\.", "[a-z", "[A-Z", "[0-9", "[^", "(?:", "(?i"];
    signs.iter().any(|sign| pattern.contains(sign))
        || pattern.starts_with('^')
        || pattern.ends_with('$')
        || pattern.ends_with('\\')
}

fn declares(pattern: &str) -> bool {
    let words = [
        "fn ",
        "def ",
        "function ",
        "class ",
        "struct ",
        "enum ",
        "trait ",
        "impl ",
        "interface ",
        "func ",
        "fun ",
        "const ",
        "let ",
        "var ",
        "type ",
        "public ",
        "private ",
    ];
    // At the start, of a line too, or behind an attribute.
    let starts = |word: &&str| {
        pattern.trim_start().starts_with(*word)
            || ["\n", "] ", ") "].iter().any(|before| pattern.contains(&format!("{before}{word}")))
    };
    words.iter().any(starts)
}
