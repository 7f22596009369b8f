//! What the tests of patterns share.

#![allow(dead_code, reason = "each test file uses a part")]

use haft_structure::languages::by_id;
use haft_structure::{Binding, Found, Reading, compile, find};

/// The texts that a pattern finds, in order.
pub(crate) fn hits<'s>(language: &str, pattern: &str, source: &'s str) -> Vec<&'s str> {
    let language = by_id(language).unwrap();
    let compiled = match compile(language, pattern) {
        Ok(compiled) => compiled,
        Err(error) => return vec![Box::leak(error.to_string().into_boxed_str())],
    };
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&(language.grammar)()).unwrap();
    let tree = parser.parse(source, None).unwrap();
    let reading = compiled.readings.first().unwrap();
    let found = find(reading, &tree, source.as_bytes());
    assert_eq!(found.gave_up, 0);
    for literal in reading.literals() {
        let in_file = source.as_bytes().windows(literal.len().max(1)).any(|w| *w == **literal);
        assert!(found.matches.is_empty() || in_file, "unsound literal {literal:?} of {pattern}");
    }
    found.matches.iter().map(|m| &source[m.range.clone()]).collect()
}

#[track_caller]
pub(crate) fn check(rows: &[(&str, &str, &str, &[&str])]) {
    let mut wrong = Vec::new();
    for (language, pattern, source, expected) in rows {
        let found = hits(language, pattern, source);
        if found != *expected {
            wrong.push(format!(
                "{language} `{pattern}`\n  in    {source:?}\n  found {found:?}\n  want  {expected:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[track_caller]
pub(crate) fn binding(language: &str, pattern: &str, source: &str, name: &str) -> (String, Vec<String>) {
    let language = by_id(language).unwrap();
    let compiled = compile(language, pattern).unwrap();
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&(language.grammar)()).unwrap();
    let tree = parser.parse(source, None).unwrap();
    let found = find(compiled.readings.first().unwrap(), &tree, source.as_bytes());
    let first = found.matches.first().unwrap();
    let (_, binding) = first.bindings.iter().find(|(n, _)| n == name).unwrap();
    let text = source[binding.range()].to_owned();
    match binding {
        Binding::One(_) => (text, vec![]),
        Binding::Run { elements, .. } => {
            (text, elements.iter().map(|e| source[e.clone()].to_owned()).collect())
        }
    }
}

/// What a reading finds in a source.
pub(crate) fn run(reading: &Reading, language: &str, source: &str) -> Found {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&(by_id(language).unwrap().grammar)()).unwrap();
    let tree = parser.parse(source, None).unwrap();
    find(reading, &tree, source.as_bytes())
}
