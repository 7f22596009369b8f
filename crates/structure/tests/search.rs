//! `ast_grep` from outside: files in, answers out.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::{fs, os::unix::fs::symlink};

use common::{Bench, matches};
use haft_structure::{Engine, Query, languages, search};
use haft_tool::{Access, Tool, erase};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn project() -> Bench {
    Bench::new(&[
        (
            "src/a.rs",
            "fn main() {\n    let x = load(1).unwrap();\n    // load(2).unwrap()\n    println!(\"load(3).unwrap()\");\n}\n",
        ),
        ("src/b.rs", "fn f() { let y = z\n        .get()\n        .unwrap(); }\n"),
        ("lib/tool.py", "import os\nvalue = os.environ.get('A')\nother = os.environ.get('B', 1)\n"),
        ("notes.txt", "x.unwrap()\n"),
    ])
}

#[test]
fn the_tool_is_described() {
    let bench = Bench::new(&[]);
    let tool = erase(haft_structure::AstGrep::new(bench.workdir.clone(), Engine::new().into()));
    assert_eq!(haft_structure::AstGrep::NAME, "ast_grep");
    insta::assert_json_snapshot!(tool.spec());
    let tool = erase(haft_structure::AstEdit::new(
        bench.workdir.clone(),
        bench.changes.clone(),
        Engine::new().into(),
        bench.staging.clone(),
    ));
    insta::assert_json_snapshot!(tool.spec());
    let tool = erase(haft_structure::Resolve::new(bench.changes.clone(), bench.staging.clone()));
    insta::assert_json_snapshot!(tool.spec());
}

#[test]
fn code_is_found_and_text_is_not() {
    let bench = project();
    let outcome = bench.ok("ast_grep", json!({"pattern": "$X.unwrap()", "language": "rust"}));
    insta::assert_snapshot!(outcome.all_text());
    insta::assert_json_snapshot!(outcome.structured);
}

#[test]
fn a_directory_is_searched_in_every_language_that_reads_the_pattern() {
    let bench = project();
    let outcome = bench.ok("ast_grep", json!({"pattern": "os.environ.get($$$A)"}));
    assert_eq!(
        matches(&outcome),
        [
            "lib/tool.py:2 os.environ.get('A') {\"A\":\"'A'\"}",
            "lib/tool.py:3 os.environ.get('B', 1) {\"A\":\"'B', 1\"}",
        ]
    );
    let languages: Vec<_> =
        outcome.structured["languages"].as_array().unwrap().iter().map(|l| &l["language"]).collect();
    assert_eq!(languages, ["python", "rust"]);
    // `import $A` is Python and no Rust.
    let outcome = bench.ok("ast_grep", json!({"pattern": "import $A"}));
    assert_eq!(matches(&outcome), ["lib/tool.py:1 import os {\"A\":\"os\"}"]);
    assert_eq!(outcome.structured["not_read"][0]["language"], "rust");
    insta::assert_snapshot!(outcome.all_text());
}

#[test]
fn results_are_in_path_order_and_the_first_are_final() {
    let bench = Bench::new(&[]);
    for number in 0..200 {
        bench.write(&format!("d{:02}/f{number:03}.py", number % 17), b"a(1)\nb(2)\na(3)\n");
    }
    let all = bench.ok("ast_grep", json!({"pattern": "a($X)", "max_results": 1000}));
    assert_eq!(all.structured["total"], 400);
    assert_eq!(all.structured["total_is_lower_bound"], false);
    let every = matches(&all);
    let mut sorted = every.clone();
    sorted.sort();
    assert_eq!(every, sorted);
    for _ in 0..5 {
        let first = bench.ok("ast_grep", json!({"pattern": "a($X)", "max_results": 7}));
        assert_eq!(matches(&first), every[..7]);
        // The whole is small enough to have been counted.
        assert_eq!(first.structured["total"], 400);
    }
}

#[test]
fn a_search_that_ends_early_says_so_and_is_the_same_every_time() {
    let bench = Bench::new(&[]);
    let text = "a(1)\n".to_owned() + &"value = other(thing, 1234567890)\n".repeat(8_000);
    for number in 0..12 {
        bench.write(&format!("f{number:02}.py"), text.as_bytes());
    }
    let first = bench.ok("ast_grep", json!({"pattern": "a($X)", "max_results": 3}));
    assert_eq!(matches(&first).len(), 3);
    assert_eq!(first.structured["total_is_lower_bound"], true);
    let total = first.structured["total"].as_u64().unwrap();
    assert_eq!(first.structured["files_searched"], total);
    assert!((3..12).contains(&total));
    for _ in 0..3 {
        let again = bench.ok("ast_grep", json!({"pattern": "a($X)", "max_results": 3}));
        assert_eq!(again.structured, first.structured);
    }
    let text = first.all_text();
    insta::assert_snapshot!(text);
    // Counting everything gives the right number.
    let query = Query {
        pattern: "a($X)".into(),
        scope: bench.workdir.resolve(".", Access::Read).unwrap(),
        language: None,
        max_results: 3,
        count_all: true,
    };
    let all = search(&Engine::once(), &bench.workdir, &query, &CancellationToken::new()).unwrap();
    assert_eq!((all.total, all.total_is_lower_bound, all.matches.len()), (12, false, 3));
}

#[test]
fn nothing_is_left_out_in_silence() {
    let bench = Bench::new(&[("ok.py", "foo(1)\n")]);
    bench.write("latin.py", b"# caf\xe9\nfoo('\xe9')\n");
    bench.write("binary.py", b"foo(1)\0\0\0");
    bench.write("wide.py", &utf16("foo(2)\n"));
    let large = fs::File::create(bench.path("large.py")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let outcome = bench.ok("ast_grep", json!({"pattern": "foo($A)"}));
    assert_eq!(
        matches(&outcome),
        [
            "latin.py:2 foo('\u{fffd}') {\"A\":\"'\u{fffd}'\"}",
            "ok.py:1 foo(1) {\"A\":\"1\"}",
            "wide.py:1 foo(2) {\"A\":\"2\"}",
        ]
    );
    insta::assert_snapshot!(outcome.all_text());
    assert_eq!(outcome.structured["skipped_total"], 2);
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

#[test]
fn ignored_and_hidden_files_git_and_links_are_not_walked() {
    let bench = Bench::new(&[
        (".gitignore", "out/\n"),
        ("out/a.py", "foo(1)\n"),
        (".git/b.py", "foo(2)\n"),
        (".hidden/c.py", "foo(3)\n"),
        ("d.py", "foo(4)\n"),
    ]);
    symlink(bench.path("d.py"), bench.path("link.py")).unwrap();
    let files = |path: &str| {
        let outcome = bench.ok("ast_grep", json!({"pattern": "foo($A)", "path": path}));
        matches(&outcome).iter().map(|found| found.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(files("."), ["d.py:1"]);
    // What is named is searched.
    assert_eq!(files("out"), ["out/a.py:1"]);
    assert_eq!(files(".hidden/c.py"), [".hidden/c.py:1"]);
    assert_eq!(files("link.py"), ["d.py:1"]);
}

#[test]
fn the_language_of_a_file() {
    let bench = Bench::new(&[
        ("run", "#!/usr/bin/env python3\nfoo(1)\n"),
        ("odd.xyz", "foo(2)\n"),
        ("a.h", "class A { void f() { foo(3); } };\n"),
        ("b.cpp", "void g() { foo(4); }\n"),
    ]);
    let one = |arguments| matches(&bench.ok("ast_grep", arguments));
    assert_eq!(one(json!({"pattern": "foo($A)", "path": "run"})), ["run:2 foo(1) {\"A\":\"1\"}"]);
    assert_eq!(
        one(json!({"pattern": "foo($A)", "path": "odd.xyz", "language": "python"})),
        ["odd.xyz:1 foo(2) {\"A\":\"2\"}"]
    );
    // A header among C++ files is C++.
    assert_eq!(
        one(json!({"pattern": "foo($A)", "language": "cpp"})),
        ["a.h:1 foo(3) {\"A\":\"3\"}", "b.cpp:1 foo(4) {\"A\":\"4\"}"]
    );
    insta::assert_snapshot!(
        [
            bench.fails("ast_grep", json!({"pattern": "foo($A)", "path": "odd.xyz"})),
            bench.fails("ast_grep", json!({"pattern": "foo($A)", "language": "klingon"})),
            bench.fails("ast_grep", json!({"pattern": "foo($A)", "language": "rust"})),
            bench.fails("ast_grep", json!({"pattern": "foo($A)", "path": "nowhere"})),
            bench.fails("ast_grep", json!({"pattern": "foo(", "path": "b.cpp"})),
            bench.fails("ast_grep", json!({"pattern": "foo($A)", "max_results": 0})),
            bench
                .fails("ast_grep", json!({"pattern": "foo($A)", "path": "../elsewhere"}))
                .replace(bench.workdir.root().to_str().unwrap(), "ROOT")
                .replace(bench.directory.path().canonicalize().unwrap().to_str().unwrap(), "TMP"),
        ]
        .join("\n---\n")
    );
}

#[test]
fn an_empty_result_says_what_would_help() {
    let bench = Bench::new(&[
        ("a.js", "x = {a: 1};\nfunction f() { use(1); }\n"),
        ("k.py", "call(1, key=2)\n"),
        ("t.sh", "use 1\n"),
        ("m.rs", "pub fn go() { println!(\"{}\", m.unwrap()); }\n"),
    ]);
    let said = |arguments| {
        let outcome = bench.ok("ast_grep", arguments);
        assert_eq!(outcome.structured["total"], 0, "{}", outcome.all_text());
        outcome.all_text()
    };
    insta::assert_snapshot!(
        [
            said(json!({"pattern": "nowhere_at_all($A)"})),
            said(json!({"pattern": "use($A, $B)", "path": "a.js"})),
            said(json!({"pattern": "$M.unwrap()", "language": "rust"})),
            said(json!({"pattern": "fn go() { $$$B }", "language": "rust"})),
            said(json!({"pattern": "key = $V", "path": "k.py"})),
            said(json!({"pattern": "use($x)", "path": "a.js"})),
            said(json!({"pattern": "use\\(.*", "path": "t.sh"})),
        ]
        .join("\n---\n")
    );
}

#[test]
fn a_minified_file_stays_small() {
    let bench = Bench::new(&[]);
    bench.write("app.min.js", "f(1,a);".repeat(60_000).as_bytes());
    let outcome = bench.ok("ast_grep", json!({"pattern": "f($X, $Y)"}));
    assert_eq!(outcome.structured["total"], 60_000);
    let bytes = outcome.all_text().len() + serde_json::to_string(&outcome.structured).unwrap().len();
    assert!(bytes < 100_000, "{bytes} bytes");
}

#[test]
fn a_deep_file_is_no_problem() {
    let bench = Bench::new(&[]);
    bench.write(
        "deep.js",
        format!("x = {}1{};\nfoo(2);\n", "(".repeat(20_000), ")".repeat(20_000)).as_bytes(),
    );
    let outcome = bench.ok("ast_grep", json!({"pattern": "foo($X)"}));
    assert_eq!(matches(&outcome), ["deep.js:2 foo(2) {\"X\":\"2\"}"]);
}

#[test]
fn trees_are_kept_and_a_changed_file_is_parsed_again() {
    let bench = Bench::new(&[("a.py", "foo(1)\n")]);
    let all = || matches(&bench.ok("ast_grep", json!({"pattern": "foo($A)"})));
    assert_eq!(all(), ["a.py:1 foo(1) {\"A\":\"1\"}"]);
    assert_eq!(all(), ["a.py:1 foo(1) {\"A\":\"1\"}"]);
    // Same size, and perhaps the same time stamp.
    bench.write("a.py", b"foo(2)\n");
    assert_eq!(all(), ["a.py:1 foo(2) {\"A\":\"2\"}"]);
}

#[test]
fn a_cancelled_search_ends() {
    let bench = project();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let query = Query {
        pattern: "$X.unwrap()".into(),
        scope: bench.workdir.resolve(".", Access::Read).unwrap(),
        language: languages::by_id("rust"),
        max_results: 50,
        count_all: false,
    };
    let result = search(&Engine::new(), &bench.workdir, &query, &cancel);
    assert_eq!(result, Err(haft_structure::SearchError::Cancelled));
}

#[test]
fn the_prefilter_changes_nothing() {
    let bench = project();
    for (file, text) in [
        ("src/c.rs", include_str!("../src/rewrite/mod.rs")),
        ("src/d.rs", include_str!("../src/staging/mod.rs")),
        ("src/e.rs", include_str!("../src/search/excerpt.rs")),
    ] {
        bench.write(file, text.as_bytes());
    }
    let patterns = [
        "$X.unwrap()",
        "$A == $A",
        "Some($X)",
        "let $X = $Y;",
        "$X?",
        "fn $F($$$A) -> $R { $$$B }",
        "use $X;",
        "$A.iter()",
        "if let Some($X) = $Y { $$$B }",
        "Ok(())",
        "&self",
        "$X.len() > 0",
        "vec![$$$A]",
        "|$X| $Y",
        "match $X { $$$A }",
        "\"c\"",
        "pub struct $S { $$$F }",
    ];
    for pattern in patterns {
        let query = Query {
            pattern: pattern.into(),
            scope: bench.workdir.resolve(".", Access::Read).unwrap(),
            language: languages::by_id("rust"),
            max_results: 100_000,
            count_all: true,
        };
        let with = search(&Engine::once(), &bench.workdir, &query, &CancellationToken::new()).unwrap();
        let without = Engine::once().without_prefilter();
        let without = search(&without, &bench.workdir, &query, &CancellationToken::new()).unwrap();
        assert_eq!((with.matches, with.total), (without.matches, without.total), "{pattern}");
    }
}

#[test]
fn a_terminal_gets_colours_and_no_control_characters() {
    let bench = Bench::new(&[("a.py", "x = foo(1) + 2\nif foo(\n  2\n):\n  pass\nfoo('\u{1b}[31m')\n")]);
    let outcome = bench.ok("ast_grep", json!({"pattern": "foo($A)"}));
    insta::assert_snapshot!(haft_structure::tools::for_terminal(&outcome).replace('\u{1b}', "ESC"));
    let plain = haft_structure::tools::for_terminal(&bench.call("ast_grep", json!({"pattern": "bar($A)"})));
    insta::assert_snapshot!(plain);
}
