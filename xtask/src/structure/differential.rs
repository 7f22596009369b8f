//! The same search by Haft and by ast-grep, hit by hit. Where ast-grep reads a fragment in another context than a reader would, its rule has
//! `context` and `selector`. A difference that has no explanation here is an error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    corpora::{CORPORA, Ready},
    finder, peers, process,
};
use crate::repo;

struct Case {
    corpus: &'static str,
    pattern: &'static str,
    /// For ast-grep: what the pattern stands in, and the kind of node that it is there.
    context: Option<(&'static str, &'static str)>,
    /// Why Haft finds what ast-grep does not.
    only_haft: Option<&'static str>,
    /// Why ast-grep finds what Haft does not.
    only_peer: Option<&'static str>,
}

const fn case(corpus: &'static str, pattern: &'static str) -> Case {
    Case { corpus, pattern, context: None, only_haft: None, only_peer: None }
}

impl Case {
    const fn within(self, context: &'static str, selector: &'static str) -> Case {
        Case { context: Some((context, selector)), ..self }
    }

    const fn haft(self, why: &'static str) -> Case {
        Case { only_haft: Some(why), ..self }
    }

    const fn peer(self, why: &'static str) -> Case {
        Case { only_peer: Some(why), ..self }
    }
}

include!("cases.rs");

type Hits = BTreeSet<(String, u64, u64)>;

pub(super) fn run(only: Option<&str>, samples: usize) -> Result<()> {
    let finder = finder()?;
    let peers = peers::fetch()?;
    let out = repo::target().join("provision/structure-differential.out");
    let mut unexplained = 0;
    println!(
        "| corpus | pattern | both | only Haft | only ast-grep | explanation |\n| --- | --- | --- | --- | --- | --- |"
    );
    for case in CASES.iter().filter(|case| only.is_none_or(|only| case.pattern.contains(only))) {
        let corpus =
            CORPORA.iter().find(|corpus| corpus.name == case.corpus).context("a corpus is missing")?;
        let ready = corpus.fetch()?;
        let ours = ours(&finder, corpus.language, case.pattern, &ready, &out)?;
        let theirs = theirs(&peers.ast_grep, corpus.peer_language, case, &ready, &out)?;
        let ours = without_separators(ours, &ready.directory);
        let theirs = without_separators(theirs, &ready.directory);
        let haft: Vec<_> = ours.difference(&theirs).collect();
        let peer: Vec<_> = theirs.difference(&ours).collect();
        let both = ours.intersection(&theirs).count();
        let mut explained = Vec::new();
        for (hits, why, side) in [(&haft, case.only_haft, "Haft"), (&peer, case.only_peer, "ast-grep")] {
            match (hits.len(), why) {
                (0, _) => {}
                (_, Some(why)) => explained.push(format!("{side}: {why}")),
                (count, None) => {
                    unexplained += count;
                    explained.push(format!("**{side}: unexplained**"));
                }
            }
        }
        println!(
            "| {} | `{}` | {both} | {} | {} | {} |",
            case.corpus,
            case.pattern.replace('\n', "⏎").replace('|', "\\|"),
            haft.len(),
            peer.len(),
            explained.join("; ")
        );
        for (hits, side) in [(haft, "haft"), (peer, "ast-grep")] {
            for (file, start, end) in hits.into_iter().take(samples) {
                eprintln!("  only {side}: {file}: {}", excerpt(&ready.directory.join(file), *start, *end));
            }
        }
    }
    if unexplained > 0 {
        bail!("{unexplained} differences have no explanation");
    }
    Ok(())
}

/// Some grammars count the separator behind an element (a match arm's comma) to it, and Haft's matches end before it.
fn without_separators(hits: Hits, directory: &Path) -> Hits {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let shorter = hits.into_iter().map(|(file, start, end)| {
        let bytes =
            files.entry(file.clone()).or_insert_with(|| fs::read(directory.join(&file)).unwrap_or_default());
        let separator = matches!(bytes.get(end as usize - 1), Some(b',' | b';'));
        (file, start, end - u64::from(separator))
    });
    shorter.collect()
}

fn excerpt(file: &Path, start: u64, end: u64) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let text = bytes.get(start as usize..end as usize).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..text.len().min(160)]).replace('\n', "⏎");
    format!("{start}..{end} {text}")
}

fn ours(finder: &Path, language: &str, pattern: &str, ready: &Ready, out: &Path) -> Result<Hits> {
    let directory = ready.directory.to_string_lossy().into_owned();
    let arguments = [
        "--pattern",
        pattern,
        "--language",
        language,
        "--all",
        "--ranges",
        "--max",
        "100000000",
        directory.as_str(),
    ];
    process::run(finder, &arguments, out)?;
    let mut hits = Hits::new();
    for line in fs::read_to_string(out)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        if let (Some(file), Some(start), Some(end)) =
            (line["file"].as_str(), line["start"].as_u64(), line["end"].as_u64())
        {
            hits.insert((file.to_owned(), start, end));
        }
    }
    Ok(hits)
}

fn theirs(program: &Path, language: &str, case: &Case, ready: &Ready, out: &Path) -> Result<Hits> {
    let directory = ready.directory.to_string_lossy().into_owned();
    let pattern = match case.context {
        Some((context, selector)) => json!({"context": context, "selector": selector}),
        None => json!(case.pattern),
    };
    // YAML takes JSON.
    let rule = json!({"id": "case", "language": language, "rule": {"pattern": pattern}}).to_string();
    process::run(program, &["scan", "--inline-rules", &rule, "--json=stream", &directory], out)?;
    let mut hits = Hits::new();
    for line in fs::read_to_string(out)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let range = &line["range"]["byteOffset"];
        if let (Some(file), Some(start), Some(end)) =
            (line["file"].as_str(), range["start"].as_u64(), range["end"].as_u64())
        {
            let file = Path::new(file).strip_prefix(&ready.directory).unwrap_or(Path::new(file));
            hits.insert((file.to_string_lossy().into_owned(), start, end));
        }
    }
    Ok(hits)
}
