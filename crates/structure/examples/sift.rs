//! Looks for a match that the prefilter would lose: cuts patterns from real files, changes what stands between the tokens, and asks the matcher and the
//! bytes. For whoever touches either: `cargo run --release -p haft-structure --example sift -- DIRECTORY [FILES] [PATTERNS] [SEED]`.

#![allow(clippy::print_stdout, reason = "this is a program for a terminal")]

#[path = "../tests/patterns/mutate.rs"]
mod mutate;

use std::{error::Error, fs, path::Path};

use haft_structure::languages;
use mutate::{Dice, Tally, try_out};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("no directory given")?;
    let mut number = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (files, patterns, seed) = (number(300)?, number(20)?, number(1)?);
    let mut dice = Dice(seed as u64);
    let mut all = Vec::new();
    gather(Path::new(&directory), &mut all)?;
    all.sort();
    let mut tally = Tally::default();
    for _ in 0..files {
        let Some(path) = all.get(dice.roll(all.len())) else { break };
        let (Some(language), Ok(text)) = (languages::for_path(path, None), fs::read_to_string(path)) else {
            continue;
        };
        if text.len() < 200_000 {
            try_out(language, &text, patterns, &mut dice, &mut tally);
        }
    }
    println!("{tally:#?}");
    if tally.lost.is_empty() { Ok(()) } else { Err("a match is lost".into()) }
}

fn gather(directory: &Path, into: &mut Vec<std::path::PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), into)?;
        } else if languages::for_path(&entry.path(), None).is_some() {
            into.push(entry.path());
        }
    }
    Ok(())
}
