//! `ast_edit` and `resolve` from outside: what a rewrite does to a file (SPEC A5–A7; every row of the list of faults that other tools have).

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::{fs, os::unix::fs::PermissionsExt};

use common::Bench;
use pretty_assertions::assert_eq;
use serde_json::json;

/// One file, one rewrite, accepted.
fn rewritten(file: &str, text: &str, pattern: &str, rewrite: &str) -> String {
    Bench::new(&[(file, text)]).rewritten(file, pattern, rewrite)
}

#[test]
fn a_proposal_writes_nothing_and_reads_well() {
    let bench = Bench::new(&[
        ("a.js", "import x from 'x';\n\nfoo(1);\nbar();\nif (y) {\n  foo(2, 3);\n}\n"),
        ("b.js", "foo(foo(4));\n"),
        ("c.js", "nothing();\n"),
    ]);
    let proposed = bench.ok("ast_edit", json!({"pattern": "foo($$$A)", "rewrite": "log($$$A)"}));
    insta::assert_snapshot!(proposed.all_text());
    insta::assert_json_snapshot!(proposed.structured);
    assert_eq!(bench.read("b.js"), "foo(foo(4));\n");
    let accepted = bench.ok("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    insta::assert_snapshot!(accepted.all_text());
    insta::assert_json_snapshot!(accepted.structured);
    assert_eq!(bench.read("a.js"), "import x from 'x';\n\nlog(1);\nbar();\nif (y) {\n  log(2, 3);\n}\n");
    assert_eq!(bench.read("b.js"), "log(log(4));\n");
}

#[test]
fn nested_matches_are_rewritten_too() {
    assert_eq!(rewritten("a.js", "foo(foo(foo(1)));\n", "foo($A)", "bar($A)"), "bar(bar(bar(1)));\n");
    assert_eq!(
        rewritten("a.py", "x = not (not (not y))\n", "not $A", "neg($A)"),
        "x = neg((neg((neg(y)))))\n"
    );
    assert_eq!(
        rewritten("a.rs", "fn f() { a(b(1).unwrap()).unwrap(); }\n", "$X.unwrap()", "$X?"),
        "fn f() { a(b(1)?)?; }\n"
    );
}

#[test]
fn overlapping_matches_are_named() {
    let bench = Bench::new(&[("a.js", "foo(foo(foo(1)));\n")]);
    let proposed = bench.ok("ast_edit", json!({"pattern": "foo(foo($A))", "rewrite": "twice($A)"}));
    assert_eq!(proposed.structured["replacements"], 1);
    assert!(proposed.all_text().contains("1 match overlapped another"), "{}", proposed.all_text());
    bench.ok("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    assert_eq!(bench.read("a.js"), "twice(foo(1));\n");
}

#[test]
fn an_unbound_variable_is_refused_when_staging() {
    let bench = Bench::new(&[("a.js", "foo(1);\n")]);
    assert_eq!(
        bench.fails("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($B, $A)"})),
        "The rewrite uses `$B`, which the pattern does not bind. It binds `$A`."
    );
    assert_eq!(bench.staging.waiting(), []);
}

#[test]
fn an_empty_run_takes_its_separator_along() {
    assert_eq!(
        rewritten("a.js", "foo();\nfoo(1, 2);\n", "foo($$$A)", "bar(ctx, $$$A)"),
        "bar(ctx);\nbar(ctx, 1, 2);\n"
    );
    assert_eq!(
        rewritten("a.go", "package p\n\nfunc f() {\n\tfoo()\n\tfoo(1)\n}\n", "foo($$$A)", "bar($$$A, ctx)"),
        "package p\n\nfunc f() {\n\tbar(ctx)\n\tbar(1, ctx)\n}\n"
    );
    assert_eq!(
        rewritten("a.rs", "fn f() { g(b); g(a, b, c); }\n", "g($$$A, b, $$$C)", "h($$$A, x, $$$C)"),
        "fn f() { h(x); h(a, x, c); }\n"
    );
}

#[test]
fn a_statement_rewritten_to_nothing_takes_its_line() {
    assert_eq!(
        rewritten(
            "a.js",
            "a();\n  console.log(1);\nb(); console.log(2);\nconsole.log(3); c();\n",
            "console.log($$$A)",
            ""
        ),
        "a();\nb();\nc();\n"
    );
    assert_eq!(rewritten("a.js", "a();\nconsole.log(1);\nb();\n", "console.log($$$A);", ""), "a();\nb();\n");
    assert_eq!(
        rewritten("a.py", "a()\nif x:\n    print(1)\n    b()\n", "print($$$A)", ""),
        "a()\nif x:\n    b()\n"
    );
    assert_eq!(rewritten("a.py", "a()\r\nprint(1)\r\nb()\r\n", "print($$$A)", ""), "a()\r\nb()\r\n");
    assert_eq!(rewritten("a.py", "a()\nprint(1)", "print($$$A)", ""), "a()\n");
    // Not a statement: the element goes with its separator.
    assert_eq!(
        rewritten("a.js", "f(a, DEBUG, b); f(DEBUG); f(a, DEBUG);\n", "DEBUG", ""),
        "f(a, b); f(); f(a);\n"
    );
}

#[test]
fn a_file_that_parses_worse_is_named() {
    let bench = Bench::new(&[("a.py", "if x:\n    print(1)\n"), ("b.py", "print(1)\nx = 1\n")]);
    let proposed = bench.ok("ast_edit", json!({"pattern": "print($A)", "rewrite": ""}));
    let text = proposed.all_text();
    assert!(text.contains("WARNING a.py: the new text has a block without a statement in it"), "{text}");
    assert!(!text.contains("WARNING b.py"), "{text}");
    assert_eq!(proposed.structured["files"][0]["parses_worse"], true);
    assert_eq!(proposed.structured["files"][1]["parses_worse"], false);
    let bench = Bench::new(&[("a.js", "x = [(;\nfoo(1);\n")]);
    let same = bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    assert!(!same.all_text().contains("WARNING"), "{}", same.all_text());
    let worse = bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A"}));
    assert!(
        worse.all_text().contains("WARNING a.js: the new text parses worse than the old"),
        "{}",
        worse.all_text()
    );
}

#[test]
fn a_comment_that_would_go_away_is_named() {
    let bench = Bench::new(&[(
        "a.js",
        "foo(1, /* why */ 2);\nfoo(3, [/* kept */ 4]); // kept\nfoo(/* a */ 5 /* b */, 6);\n",
    )]);
    let proposed = bench.ok("ast_edit", json!({"pattern": "foo($A, $B)", "rewrite": "bar($A, $B)"}));
    let text = proposed.all_text();
    assert!(
        text.contains("WARNING a.js: 3 comments between the parts of the pattern would go away"),
        "{text}"
    );
    assert_eq!(proposed.structured["files"][0]["lost_comments"], 3);
    let kept = bench.ok("ast_edit", json!({"pattern": "foo($$$A)", "rewrite": "bar($$$A)"}));
    assert!(
        kept.structured["diff"].as_str().unwrap().contains("+bar(1, /* why */ 2);"),
        "{}",
        kept.all_text()
    );
}

#[test]
fn the_indentation_unit_of_the_file_is_used() {
    let template = "if (!$A) {\n  throw new Error(\n    'no'\n  );\n}";
    assert_eq!(
        rewritten("a.js", "function f() {\n\tif (x) {\n\t\tassert(y);\n\t}\n}\n", "assert($A);", template),
        "function f() {\n\tif (x) {\n\t\tif (!y) {\n\t\t\tthrow new Error(\n\t\t\t\t'no'\n\t\t\t);\n\t\t}\n\t}\n}\n"
    );
    assert_eq!(
        rewritten("a.js", "function f() {\n    assert(y);\n}\n", "assert($A);", template),
        "function f() {\n    if (!y) {\n        throw new Error(\n            'no'\n        );\n    }\n}\n"
    );
    assert_eq!(
        rewritten("a.py", "def f():\n    old(x)\n", "old($A)", "try:\n  new($A)\nexcept E:\n  pass"),
        "def f():\n    try:\n        new(x)\n    except E:\n        pass\n"
    );
}

#[test]
fn captured_lines_move_with_their_place() {
    assert_eq!(
        rewritten(
            "a.js",
            "function f() {\n  run(function () {\n    a();\n    b();\n  });\n}\n",
            "run(function () { $$$B })",
            "try {\n  $$$B\n} finally {\n  done();\n}"
        ),
        "function f() {\n  try {\n    a();\n    b();\n  } finally {\n    done();\n  };\n}\n"
    );
    assert_eq!(
        rewritten(
            "a.py",
            "x = 1\nif a:\n    b()\n    if c:\n        d()\n",
            "if a: $B",
            "while a:\n    if ok:\n        $B"
        ),
        "x = 1\nwhile a:\n    if ok:\n        b()\n        if c:\n            d()\n"
    );
    // Arguments on their own lines stay where they are.
    assert_eq!(
        rewritten("a.js", "  foo(\n    a,\n    b\n  );\n", "foo($$$A)", "bar($$$A)"),
        "  bar(\n    a,\n    b\n  );\n"
    );
}

#[test]
fn lines_inside_a_captured_string_are_never_touched() {
    let text = "function f() {\n    const q = sql(`\n  SELECT *\n FROM t\n`);\n}\n";
    assert_eq!(
        rewritten("a.js", text, "const $N = sql($S);", "if (x) {\n  var $N = run(\n    $S\n  );\n}"),
        "function f() {\n    if (x) {\n        var q = run(\n            `\n  SELECT *\n FROM t\n`\n        );\n    }\n}\n"
    );
    let text = "def f():\n    call('''\none\n  two\n''', 1)\n";
    assert_eq!(
        rewritten("a.py", text, "call($A, $B)", "if x:\n    call2(\n        $A\n    )"),
        "def f():\n    if x:\n        call2(\n            '''\none\n  two\n'''\n        )\n"
    );
    let text = "fn f() {\n    call(\"\none\n  two\");\n}\n";
    assert_eq!(
        rewritten("a.rs", text, "call($A);", "{\n    other(\n        $A,\n    );\n}"),
        "fn f() {\n    {\n        other(\n            \"\none\n  two\",\n        );\n    }\n}\n"
    );
}

#[test]
fn line_ends_bom_bytes_and_mode_are_kept() {
    let bench = Bench::new(&[]);
    bench.write("a.js", b"\xef\xbb\xbff(1);\r\nx = '\xe9';\r\nif (y) {\r\n  f(2);\r\n}");
    fs::set_permissions(bench.path("a.js"), fs::Permissions::from_mode(0o750)).unwrap();
    bench.rewritten("a.js", "f($A);", "g(\n  $A\n);");
    assert_eq!(
        bench.bytes("a.js"),
        b"\xef\xbb\xbfg(\r\n  1\r\n);\r\nx = '\xe9';\r\nif (y) {\r\n  g(\r\n    2\r\n  );\r\n}"
    );
    assert_eq!(fs::metadata(bench.path("a.js")).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[test]
fn utf_16_is_written_back_as_utf_16() {
    let utf16 = |text: &str| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect()
    };
    let bench = Bench::new(&[]);
    bench.write("a.js", &utf16("f('ä');\r\n"));
    bench.rewritten("a.js", "f($A)", "g($A)");
    assert_eq!(bench.bytes("a.js"), utf16("g('ä');\r\n"));
}

#[test]
fn a_variable_that_stands_twice_does_not_explode() {
    let bench = Bench::new(&[]);
    bench.write("a.js", format!("x = {}1{};\n", "f(".repeat(60), ")".repeat(60)).as_bytes());
    let said = bench.fails("ast_edit", json!({"pattern": "f($A)", "rewrite": "g($A, $A)"}));
    assert!(said.contains("not rewritten: the result would be larger than 64 MB"), "{said}");
}

#[test]
fn deep_nesting_is_no_problem() {
    let deep = |name: &str| format!("x = {}1{};\n", format!("{name}(").repeat(5_000), ")".repeat(5_000));
    assert_eq!(rewritten("a.js", &deep("f"), "f($A)", "g($A)"), deep("g"));
}

#[test]
fn a_rewrite_and_its_inverse_give_the_bytes_back() {
    let texts = [
        (
            "a.rs",
            include_str!("../src/search/run.rs"),
            "$X.load(Ordering::Relaxed)",
            "peek($X)",
            "peek($X)",
            "$X.load(Ordering::Relaxed)",
        ),
        (
            "b.rs",
            include_str!("../src/rewrite/mod.rs"),
            "$A.map($F)",
            "map($A, $F)",
            "map($A, $F)",
            "$A.map($F)",
        ),
        (
            "c.rs",
            include_str!("../src/staging/mod.rs"),
            "Some($A)",
            "Maybe::Just($A)",
            "Maybe::Just($A)",
            "Some($A)",
        ),
    ];
    for (file, text, pattern, rewrite, back, forth) in texts {
        let bench = Bench::new(&[(file, text)]);
        let changed = bench.rewritten(file, pattern, rewrite);
        assert_ne!(changed, text);
        assert_eq!(bench.rewritten(file, back, forth), text);
    }
}

#[test]
fn a_rewrite_to_itself_stages_nothing() {
    let bench = Bench::new(&[("a.js", "foo( 1 );\n")]);
    assert_eq!(
        bench.fails("ast_edit", json!({"pattern": "foo( $A );", "rewrite": "foo( $A );"})),
        "Nothing staged: every match reads like the rewrite already (1 match)."
    );
    let said = bench.fails("ast_edit", json!({"pattern": "nowhere($A)", "rewrite": "x"}));
    insta::assert_snapshot!(said);
}

#[test]
fn a_stale_file_refuses_the_whole_and_is_named() {
    let bench = Bench::new(&[
        ("a.js", "foo(1);\n"),
        ("b.js", "foo(2);\n"),
        ("c.js", "foo(3);\n"),
        ("d.js", "foo(4);\n"),
    ]);
    bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    bench.write("b.js", b"foo(20);\n");
    fs::remove_file(bench.path("d.js")).unwrap();
    let said = bench.fails("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    insta::assert_snapshot!(said);
    assert_eq!(bench.read("a.js"), "foo(1);\n");
    assert_eq!(bench.read("c.js"), "foo(3);\n");
    let again = bench.fails("resolve", json!({"edit_id": "edit_1", "action": "accept"}));
    insta::assert_snapshot!(again);
}

#[test]
fn several_edits_are_staged_and_resolved_in_any_order() {
    let bench = Bench::new(&[("a.js", "foo(1);\n"), ("b.js", "old();\n")]);
    bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    bench.ok("ast_edit", json!({"pattern": "old()", "rewrite": "fresh()"}));
    bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "baz($A)"}));
    bench.ok("resolve", json!({"edit_id": "edit_2", "action": "accept"}));
    assert_eq!(bench.read("b.js"), "fresh();\n");
    let said = [
        bench.fails("resolve", json!({"edit_id": "edit_9", "action": "accept"})),
        bench.fails("resolve", json!({"edit_id": "nonsense", "action": "discard"})),
        bench.fails("resolve", json!({"edit_id": "edit_2", "action": "accept"})),
        bench.fails("resolve", json!({"edit_id": "edit_2", "action": "discard"})),
        bench.ok("resolve", json!({"edit_id": "edit_1", "action": "discard"})).all_text(),
        bench.ok("resolve", json!({"edit_id": "edit_1", "action": "discard"})).all_text(),
        bench.fails("resolve", json!({"edit_id": "edit_1", "action": "accept"})),
        bench.fails("resolve", json!({"edit_id": "edit_3", "action": "perhaps"})),
        bench.ok("resolve", json!({"edit_id": "edit_3", "action": "accept"})).all_text(),
        bench.fails("resolve", json!({"edit_id": "edit_5", "action": "accept"})),
    ];
    insta::assert_snapshot!(said.join("\n---\n"));
    assert_eq!(bench.read("a.js"), "baz(1);\n");
}

#[test]
fn staging_and_discarding_changes_nothing() {
    let bench = Bench::new(&[("a.js", "foo(1);\n")]);
    let before = fs::metadata(bench.path("a.js")).unwrap().modified().unwrap();
    bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    bench.ok("resolve", json!({"edit_id": "edit_1", "action": "discard"}));
    assert_eq!(bench.read("a.js"), "foo(1);\n");
    assert_eq!(fs::metadata(bench.path("a.js")).unwrap().modified().unwrap(), before);
    let files: Vec<_> =
        fs::read_dir(bench.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["a.js"]);
}

#[test]
fn the_oldest_edits_make_room_and_are_named() {
    let bench = Bench::new(&[("a.js", "foo(1);\n")]);
    for number in 1..=32 {
        bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": format!("bar{number}($A)")}));
    }
    let proposed = bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "last($A)"}));
    assert_eq!(proposed.structured["edit_id"], "edit_33");
    assert_eq!(proposed.structured["dropped"], json!(["edit_1"]));
    assert!(
        proposed.all_text().contains("`edit_1` (ast_edit `foo($A)` → `bar1($A)`) was dropped"),
        "{}",
        proposed.all_text()
    );
    assert_eq!(
        bench.fails("resolve", json!({"edit_id": "edit_1", "action": "accept"})),
        "`edit_1` was dropped to make room for newer edits. To make the change after all, stage it again."
    );
}

#[test]
fn a_diff_is_cut_for_the_model_and_whole_for_programs() {
    let bench = Bench::new(&[]);
    for number in 0..600 {
        bench.write(&format!("f{number:03}.js"), b"one();\nfoo(1);\ntwo();\n");
    }
    bench.write("min.js", "foo(1);".repeat(3_000).as_bytes());
    let proposed = bench.ok("ast_edit", json!({"pattern": "foo($A)", "rewrite": "bar($A)"}));
    let text = proposed.all_text();
    assert!(text.len() < 20_000, "{}", text.len());
    assert!(text.contains("more lines of the diff are left out here"), "{text}");
    assert_eq!(proposed.structured["replacements"], 3_600);
    let diff = proposed.structured["diff"].as_str().unwrap();
    assert_eq!(diff.matches("+bar(1);").count(), 601);
}

#[test]
fn a_statement_taken_out_of_a_line_takes_its_separator() {
    assert_eq!(rewritten("a.py", "a = 1; b = foo(2); c = 3\n", "b = foo($A)", ""), "a = 1; c = 3\n");
    assert_eq!(rewritten("a.py", "if x: foo(); bar()\n", "foo()", ""), "if x: bar()\n");
    assert_eq!(rewritten("a.sh", "f() { foo; bar; }\n", "foo", ""), "f() { bar; }\n");
    assert_eq!(rewritten("a.tsx", "<Foo a={1} b=\"x\" c />;\n", "b=\"x\"", ""), "<Foo a={1} c />;\n");
}

#[test]
fn an_if_without_its_only_statement_does_not_take_the_next_one() {
    let c = "int f(void) {\n  if (x)\n    foo(1);\n  return 0;\n}\n";
    let expected = "int f(void) {\n  if (x)\n    {}\n  return 0;\n}\n";
    assert_eq!(rewritten("a.c", c, "foo($A);", ""), expected);
    assert_eq!(rewritten("a.c", c, "foo($A)", ""), expected);
    assert_eq!(rewritten("a.js", "if (x)\n  foo()\nbar()\n", "foo()", ""), "if (x)\n  {}\nbar()\n");
    assert_eq!(
        rewritten("a.java", "class A { void f() { if (x) a(); else foo(1); b(); } }\n", "foo($A);", ""),
        "class A { void f() { if (x) a(); else {} b(); } }\n"
    );
    assert_eq!(
        rewritten("a.js", "while (x) foo();\nfor (const a of b) foo();\n", "foo();", ""),
        "while (x) {}\nfor (const a of b) {}\n"
    );
    assert_eq!(rewritten("a.js", "if (x) { foo(); }\n", "foo();", ""), "if (x) { }\n");
}

#[test]
fn what_has_a_line_for_itself_takes_it_along() {
    let java = "class A {\n    @Override\n    public void f() { }\n}\n";
    assert_eq!(rewritten("A.java", java, "@Override", ""), "class A {\n    public void f() { }\n}\n");
    let html = "<div>\r\n  <p class=\"a\">x</p>\r\n  <p>y</p>\r\n</div>\r\n";
    assert_eq!(rewritten("a.html", html, "<p class=\"a\">$T</p>", ""), "<div>\r\n  <p>y</p>\r\n</div>\r\n");
    assert_eq!(rewritten("a.yaml", "a:\n  b: c\n  d: e\n", "b: c", ""), "a:\n  d: e\n");
    let go = "package a\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n";
    assert_eq!(rewritten("a.go", go, "\"os\"", ""), "package a\n\nimport (\n\t\"fmt\"\n)\n");
}

#[test]
fn a_generator_gets_brackets_where_it_is_not_the_only_argument() {
    let source = "any(x for x in y)\nany(z)\n";
    let edit = |rewrite: &str| rewritten("a.py", source, "any($A)", rewrite);
    assert_eq!(edit("all($A)"), "all(x for x in y)\nall(z)\n");
    assert_eq!(edit("f($A, 1)"), "f((x for x in y), 1)\nf(z, 1)\n");
    assert_eq!(edit("list($A).g()"), "list(x for x in y).g()\nlist(z).g()\n");
    let clauses = rewritten("b.py", "a = [f(x) for x in y if x]\n", "[$E for $$$C]", "list($E for $$$C)");
    assert_eq!(clauses, "a = list(f(x) for x in y if x)\n");
}

#[test]
fn comments_at_the_ends_of_a_run_stay() {
    let edit =
        |file: &str, source: &str, pattern: &str, rewrite: &str| rewritten(file, source, pattern, rewrite);
    let arguments = "foo(\n  a, // first\n  b // last\n);\nfoo(/* c */ a, b /* d */);\nfoo(/* none */);\n";
    assert_eq!(edit("a.js", arguments, "foo($$$A)", "bar($$$A)"), arguments.replace("foo", "bar"));
    assert_eq!(
        edit("a.js", arguments, "foo($$$A)", "bar(ctx, $$$A)"),
        "bar(ctx,\n  a, // first\n  b // last\n);\nbar(ctx, /* c */ a, b /* d */);\nbar(ctx);\n"
    );
    assert_eq!(
        edit("b.js", "foo(\n  a, // first\n  b // last\n);\n", "foo($$$A)", "bar($$$A, ctx)"),
        "bar(\n  a, // first\n  b // last\n, ctx);\n"
    );
    let body = "{\n    // before\n    a(); // beside\n    // behind\n}\n";
    for (file, head, pattern, rewrite) in [
        ("a.js", "function f()", "function f() { $$$B }", "function g() { $$$B }"),
        ("a.rs", "fn f()", "fn f() { $$$B }", "fn g() {\n    $$$B\n}"),
        ("a.c", "void f(void)", "void f(void) { $$$B }", "void g(void) { $$$B }"),
    ] {
        let source = format!("{head} {body}");
        assert_eq!(edit(file, &source, pattern, rewrite), source.replace("f(", "g("), "{file}");
    }
    assert_eq!(
        edit("c.js", "if (x) {\n  // to do\n}\n", "if (x) { $$$B }", "if (y) { $$$B }"),
        "if (y) {\n  // to do\n}\n"
    );
    assert_eq!(
        edit("d.js", "if (x) {\n  // to do\n}\n", "if (x) { $$$B }", "if (y) {\n  $$$B\n  z();\n}"),
        "if (y) {\n  // to do\n  z();\n}\n"
    );
    assert_eq!(
        edit(
            "a.py",
            "def f():  # why\n    # before\n    x = 1\n    # behind\n\ny = 2\n",
            "def f(): $$$B",
            "def g():\n    $$$B"
        ),
        "def g():\n    # why\n    # before\n    x = 1\n    # behind\n\ny = 2\n"
    );
    assert_eq!(
        edit("b.py", "foo(\n    a,  # first\n    b,  # last\n)\n", "foo($$$A)", "bar($$$A)"),
        "bar(\n    a,  # first\n    b,  # last\n)\n"
    );
    let members = "interface I {\n  a: b; // c\n  d: e;\n}\n";
    assert_eq!(
        edit("a.ts", members, "interface $I { $$$M }", "interface J { $$$M }"),
        members.replace("I {", "J {")
    );
    // CMake's grammar has no extras; its comments are nodes like others.
    let cmake = "if(A)\n  # c\n  b()\n  # d\nendif()\n";
    assert_eq!(
        edit("a.cmake", cmake, "if($$$A)\n  $$$B\nendif()", "if(NOT $$$A)\n  $$$B\nendif()"),
        cmake.replace("(A)", "(NOT A)")
    );
    // The comma goes where it could not stay, the comment does not.
    assert_eq!(edit("c.py", "foo(\n    a,  # only\n)\n", "foo($$$A)", "[$$$A]"), "[\n    a  # only\n]\n");
}

#[test]
fn a_block_keeps_its_line_break_behind_its_colon() {
    let source = "if a:\n    x = 1\n    y = 2\nz = 3\n";
    let expected = "if not a:\n    x = 1\n    y = 2\nz = 3\n";
    assert_eq!(rewritten("a.py", source, "if $A: $$$B", "if not $A: $$$B"), expected);
    assert_eq!(rewritten("b.py", source, "if $A: $B", "if not $A: $B"), expected);
    assert_eq!(
        rewritten("c.py", "if a:\n    # why\n    x = 1\n", "if $A: $B", "while $A: $B"),
        "while a:\n    # why\n    x = 1\n"
    );
    assert_eq!(rewritten("d.py", "if a: x = 1\n", "if $A: $B", "while $A: $B"), "while a: x = 1\n");
    let yaml = "env:\n  A: 1\n  B: 2\nsteps:\n- x\n- y\n";
    assert_eq!(rewritten("a.yml", yaml, "env: $V", "vars: $V"), yaml.replace("env", "vars"));
    assert_eq!(rewritten("b.yml", yaml, "steps: $V", "jobs: $V"), yaml.replace("steps", "jobs"));
    assert_eq!(rewritten("a.js", "x = a ||\n  b;\n", "$A || $B", "$B || $A"), "x = b || a;\n");
    assert_eq!(rewritten("c.js", "x = a ||\n  b;\n", "$A || $B", "!$A || $B"), "x = !a ||\n  b;\n");
    assert_eq!(rewritten("b.js", "f(\n  a\n);\n", "f($A)", "g($A)"), "g(a);\n");
}

#[test]
fn the_comma_of_a_tuple_of_one_stays() {
    assert_eq!(
        rewritten("a.py", "x = f((a,), (b, c))\n", "f(($$$A), $B)", "g(($$$A), $B)"),
        "x = g((a,), (b, c))\n"
    );
    assert_eq!(rewritten("b.py", "x = f((a,))\n", "f(($A, $$$B))", "g(($A, $$$B))"), "x = g((a,))\n");
    assert_eq!(rewritten("c.py", "x = f((a,))\n", "f(($A, $$$B))", "g([$A, $$$B])"), "x = g([a])\n");
}

#[test]
fn lines_that_end_with_a_return_alone_are_lines() {
    let bench = Bench::new(&[("a.py", "if a:\r    foo(1)\r    b()\rfoo(2) # c\rfoo(3)\r")]);
    let found = bench.ok("ast_grep", json!({"pattern": "foo($A)"}));
    let lines: Vec<_> =
        found.structured["matches"].as_array().unwrap().iter().map(|m| m["line"].clone()).collect();
    assert_eq!(lines, [2, 4, 5]);
    assert_eq!(found.structured["matches"][1]["text"], "foo(2) # c");
    let rewritten = bench.rewritten("a.py", "if $A: $$$B", "while $A:\n  $$$B\n  c()");
    assert_eq!(rewritten, "while a:\r    foo(1)\r    b()\r    c()\rfoo(2) # c\rfoo(3)\r");
}

#[test]
fn a_python_block_that_is_not_indented_evenly_is_named() {
    let warned = |source: &str, pattern: &str, rewrite: &str| {
        let bench = Bench::new(&[("a.py", source)]);
        let proposed = bench.ok("ast_edit", json!({"pattern": pattern, "rewrite": rewrite}));
        proposed
            .all_text()
            .contains("WARNING a.py: the new text has statements of one block at different indentations")
    };
    let source = "if a:\n    x = 1\n    y = 2\n";
    assert!(warned(source, "if $A: $$$B", "if $A: z(); $$$B"));
    assert!(!warned(source, "if $A: $$$B", "while $A: $$$B"));
    assert!(!warned("if a: x = [\n  1]; y = 2\n", "if $A: $$$B", "while $A: $$$B"));
}
