//! What `resolve` leaves behind when the machine fails in the middle: the old tree or the new one, and an edit that can be tried again. And: a
//! prefilter that loses nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::Bench;
use haft_structure::{Engine, Query, Resolve, compile, languages, search};
use haft_system::Changes;
use haft_tool::{Access, Call, Context, Family, Origin, Registry, Surface};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const FILES: [(&str, &str); 3] = [("a.js", "foo(1);\n"), ("d/b.js", "foo(2);\n"), ("d/c.js", "foo(3);\n")];

#[test]
fn a_commit_that_fails_at_any_step_leaves_the_old_tree_and_can_be_repeated() {
    for failing in 0.. {
        let bench = Bench::new(&FILES);
        bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
        let steps = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&steps);
        let hook = Arc::new(move |step: usize, _: &'static str| {
            count.store(step + 1, Ordering::Relaxed);
            if step == failing { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
        });
        let journal = bench.directory.path().join("other-journal");
        let (changes, _) = Changes::open_with_hook(bench.workdir.clone(), journal, hook).unwrap();
        let registry = Registry::builder()
            .tool(Resolve::new(changes, Arc::clone(&bench.staging)), Family::Workshop)
            .build();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let call = Call::new("resolve", json!({"edit_id": "edit_1", "action": "accept"}), Origin::Console);
        let outcome = runtime.block_on(registry.call(&Surface::agent(), call, Context::detached()));
        let now: Vec<String> = FILES.iter().map(|(file, _)| bench.read(file)).collect();
        let old: Vec<String> = FILES.iter().map(|(_, text)| (*text).to_owned()).collect();
        let new: Vec<String> = old.iter().map(|text| text.replace("foo", "bar")).collect();
        if outcome.is_error {
            assert_eq!(now, old, "step {failing}: {}", outcome.all_text());
            assert!(outcome.all_text().contains("`edit_1` stays staged"), "{}", outcome.all_text());
            // The bench's own `resolve` has no fault.
            bench.ok("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
            let now: Vec<String> = FILES.iter().map(|(file, _)| bench.read(file)).collect();
            assert_eq!(now, new, "after step {failing}");
        } else {
            assert_eq!(now, new, "step {failing}: {}", outcome.all_text());
        }
        if steps.load(Ordering::Relaxed) <= failing {
            assert!(failing > 10, "only {failing} steps: the hook was not called");
            return;
        }
    }
}

/// Node by node through a real file: the text of a node, with one of its children made a variable, is a pattern. What it finds must not
/// depend on the prefilter.
#[test]
fn the_prefilter_loses_nothing_of_patterns_cut_from_real_code() {
    let source = include_str!("../src/search/run.rs");
    let bench = Bench::new(&[("one.rs", source), ("two.rs", include_str!("../src/rewrite/mod.rs"))]);
    let rust = languages::by_id("rust").unwrap();
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&(rust.grammar)()).unwrap();
    let tree = parser.parse(source, None).unwrap();
    let mut nodes = Vec::new();
    let mut waiting = vec![tree.root_node()];
    while let Some(node) = waiting.pop() {
        for at in 0..node.named_child_count() {
            waiting.extend(node.named_child(at as u32));
        }
        if node.byte_range().len() < 200 && node.named_child_count() > 0 {
            nodes.push(node);
        }
    }
    let (mut tried, mut found) = (0, 0);
    for (number, node) in nodes.iter().enumerate().step_by(nodes.len() / 60) {
        let child = node.named_child((number % node.named_child_count()) as u32).unwrap();
        let pattern = format!(
            "{}$HOLE{}",
            &source[node.start_byte()..child.start_byte()],
            &source[child.end_byte()..node.end_byte()]
        );
        if compile(rust, &pattern).is_err() {
            continue;
        }
        let query = Query {
            pattern: pattern.clone(),
            scope: bench.workdir.resolve(".", Access::Read).unwrap(),
            language: Some(rust),
            max_results: 10_000,
            count_all: true,
        };
        let with = search(&Engine::once(), &bench.workdir, &query, &CancellationToken::new()).unwrap();
        let without = Engine::once().without_prefilter();
        let without = search(&without, &bench.workdir, &query, &CancellationToken::new()).unwrap();
        assert_eq!(with.matches, without.matches, "{pattern}");
        tried += 1;
        found += usize::from(with.total > 0);
    }
    assert!(tried > 20 && found > 10, "{tried} patterns, {found} with a match");
}

#[test]
fn a_read_only_file_is_refused_and_the_edit_stays() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(&FILES);
    bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    let mode = |mode| fs::set_permissions(bench.path("d/b.js"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    let said = bench.fails("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    insta::assert_snapshot!(said);
    assert_eq!(bench.read("a.js"), "foo(1);\n");
}
