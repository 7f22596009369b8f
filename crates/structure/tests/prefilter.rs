//! The bytes of a file are asked before it is parsed. That must never lose a match.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "patterns/mutate.rs"]
mod mutate;
#[path = "patterns/samples.rs"]
mod samples;

use haft_structure::languages::{all, by_id};
use mutate::{Dice, Tally, try_out};
use pretty_assertions::assert_eq;
use samples::SAMPLES;

#[test]
fn every_language_has_a_sample() {
    let samples: Vec<&str> = SAMPLES.iter().map(|(id, _)| *id).collect();
    assert_eq!(samples, all().iter().map(|language| language.id).collect::<Vec<_>>());
}

#[test]
fn no_match_is_lost_to_what_stands_between_its_tokens() {
    let mut dice = Dice(5);
    let mut idle = Vec::new();
    let mut whole = Tally::default();
    for (id, sample) in SAMPLES {
        let mut tally = Tally::default();
        try_out(by_id(id).unwrap(), sample, 60, &mut dice, &mut tally);
        // Markdown takes nearly everything for text, and a comment is a part of it.
        if tally.patterns < 10 || tally.matched < 20 || (tally.changed < 10 && *id != "markdown") {
            idle.push(format!("{id}: {tally:?}"));
        }
        whole.patterns += tally.patterns;
        whole.changed += tally.changed;
        whole.turned_away += tally.turned_away;
        whole.lost.extend(tally.lost);
    }
    assert_eq!(whole.lost, Vec::<String>::new(), "of {} patterns", whole.patterns);
    assert_eq!(idle, Vec::<String>::new(), "too little was tried");
    assert!(whole.changed > 2_000 && whole.turned_away > 200, "{whole:?}");
}
