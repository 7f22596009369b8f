//! What a pattern does and does not swallow: all children count, on both sides (SPEC A3), what variables bind, and what is
//! said of patterns that mean little.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod patterns;

use haft_structure::languages::by_id;
use haft_structure::{PatternError, compile};
use patterns::{binding, check, hits, run};
use pretty_assertions::assert_eq;

#[test]
fn nothing_trailing_is_swallowed() {
    check(&[
        ("javascript", "if ($A) { $B }", "if (x) { y() } else { z() }\nif (x) { y() }", &["if (x) { y() }"]),
        ("javascript", "if ($A) { $$$B }", "if (x) { y() } else { z() }", &[]),
        ("javascript", "const $A = $B", "const c = 2, d = 3; const e = 4", &["const e = 4"]),
        ("javascript", "const $A = $B;", "const c = 2, d = 3; const e = 4", &["const e = 4"]),
        ("python", "import $A", "import a, b\nimport c\n", &["import c"]),
        ("python", "if $A: yield", "if a:\n    yield 2\n    important()\nif b: yield\n", &["if b: yield"]),
        (
            "python",
            "if $A: $$$B",
            "if a:\n    b()\nelse:\n    c()\nif a:\n    b()\n    c()\n",
            &["if a:\n    b()\n    c()"],
        ),
        (
            "python",
            "if $A: $B",
            "if a:\n    b()\nelif x:\n    c()\nif a:\n    b()\n    c()\n",
            &["if a:\n    b()\n    c()"],
        ),
        ("python", "yield", "def f():\n    yield 2\n    yield\n", &["yield"]),
        ("bash", "rm $A", "rm a b c\nrm -f\n", &["rm -f"]),
        (
            "bash",
            "if $A; then $$$B; fi",
            "if a; then b; c; fi\nif a; then b; else c; fi\n",
            &["if a; then b; c; fi"],
        ),
        ("elixir", "if $A do $$$B end", "if a do b end\nif a do b else c end\n", &["if a do b end"]),
        (
            "ruby",
            "if $A\n  $$$B\nend",
            "if a\n  b\n  c\nend\nif a\n  b\nelse\n  c\nend\n",
            &["if a\n  b\n  c\nend"],
        ),
        (
            "ruby",
            "begin\n  $$$B\nend",
            "begin\n  a\nend\nbegin\n  a\nrescue\n  b\nend\n",
            &["begin\n  a\nend"],
        ),
        (
            "lua",
            "if $A then $$$B end",
            "if a then b() end\nif a then b() else c() end\n",
            &["if a then b() end"],
        ),
        ("c", "int $A = $B;", "void f() { int c = 2, d = 3; int e = 4; static int g = 5; }", &["int e = 4;"]),
        ("c", "int $A = $B", "void f() { int c = 2, d = 3; int e = 4; static int g = 5; }", &["int e = 4"]),
        (
            "java",
            "int $A = $B",
            "class A { void f() { int c = 2, d = 3; int e = 4; final int g = 5; } }",
            &["int e = 4"],
        ),
        ("go", "var $A = $B", "package p\nvar a, b = 1, 2\nvar c = 3\nvar d int = 4\n", &["var c = 3"]),
        (
            "rust",
            "let $A = $B;",
            "fn f() { let a: u8 = 1; let b = 2; let mut c = 3; let Some(d) = e else { return }; }",
            &["let b = 2;"],
        ),
        (
            "rust",
            "fn $F($$$A) { $$$B }",
            "pub fn a() {}\nfn b() -> u8 { 1 }\nasync fn c() {}\nfn d(x: u8) { y(); }\n",
            &["fn d(x: u8) { y(); }"],
        ),
        ("swift", "if $A { $$$B }", "if a { b() }\nif a { b() } else { c() }\n", &["if a { b() }"]),
        (
            "kotlin",
            "if ($A) { $$$B }",
            "fun f() { if (a) { b() }\n if (a) { b() } else { c() } }",
            &["if (a) { b() }"],
        ),
        (
            "java",
            "if ($A) { $$$B }",
            "class A { void f() { if (a) { b(); } if (a) { b(); } else { c(); } } }",
            &["if (a) { b(); }"],
        ),
        ("java", "try { $$$A }", "class A { void f() { try { a(); } catch (E e) {} } }", &[]),
        (
            "go",
            "make(chan $T)",
            "package p\nvar a = make(chan int, 3)\nvar b = make(chan int)\n",
            &["make(chan int)"],
        ),
        ("haskell", "if $A then $B else $C", "x = if a then b else c\n", &["if a then b else c"]),
    ]);
}

#[test]
fn keywords_that_change_the_meaning_count() {
    check(&[
        (
            "typescript",
            "function $F($A: string) { $$$B }",
            "async function a(x: string) {}\nfunction b(x: string) {}\nfunction* c(x: string) {}",
            &["function b(x: string) {}"],
        ),
        ("python", "def $F($$$A): $$$B", "async def a(): pass\ndef b(x): pass\n", &["def b(x): pass"]),
        (
            "python",
            "for $A in $B: $$$C",
            "async def f():\n    async for a in b: c\n    for d in e: g\n",
            &["for d in e: g"],
        ),
        ("cpp", "delete $X", "void f() { delete[] a; delete b; }", &["delete b"]),
        ("javascript", "($A) => $B", "async (a) => b; (c) => d;", &["(c) => d"]),
        ("javascript", "class A { $M() { $$$B } }", "class A { static m() { } }", &[]),
        ("javascript", "let $A = $B", "const a = 1; let b = 2; var c = 3", &["let b = 2"]),
        ("javascript", "$A == $B", "a == b; a === b; a != b", &["a == b"]),
        ("rust", "&$A", "fn f() { a(&b, &mut c); }", &["&b"]),
        (
            "c-sharp",
            "foo(ref $A)",
            "class A { void f() { foo(ref a); foo(out b); foo(c); } }",
            &["foo(ref a)"],
        ),
        ("php", "$A->b()", "<?php $a->b(); $a?->b();", &["$a->b()"]),
        ("kotlin", "$A.b()", "fun f() { a.b(); a?.b() }", &["a.b()"]),
        ("dart", "$A.b()", "void f() { a.b(); a?.b(); }", &["a.b()"]),
        ("sql", "SELECT $A FROM $B", "SELECT DISTINCT a FROM t;\nSelect a From t;\n", &["Select a From t"]),
    ]);
}

#[test]
fn runs_backtrack_and_may_be_empty() {
    let source = "foo(b); foo(a, b); foo(b, c); foo(a, b, c, d); foo(a); foo()";
    check(&[
        (
            "javascript",
            "foo($$$A, b, $$$C)",
            source,
            &["foo(b)", "foo(a, b)", "foo(b, c)", "foo(a, b, c, d)"],
        ),
        ("javascript", "foo(a, $$$R)", source, &["foo(a, b)", "foo(a, b, c, d)", "foo(a)"]),
        ("javascript", "foo($$$R, d)", source, &["foo(a, b, c, d)"]),
        (
            "javascript",
            "foo($$$)",
            source,
            &["foo(b)", "foo(a, b)", "foo(b, c)", "foo(a, b, c, d)", "foo(a)", "foo()"],
        ),
        (
            "javascript",
            "foo($$$A, $$$B)",
            source,
            &["foo(b)", "foo(a, b)", "foo(b, c)", "foo(a, b, c, d)", "foo(a)", "foo()"],
        ),
        (
            "python",
            "foo($$$A, b, $$$C)",
            "foo(b)\nfoo(a, b)\nfoo(b, c)\nfoo(a)\n",
            &["foo(b)", "foo(a, b)", "foo(b, c)"],
        ),
        (
            "rust",
            "foo($$$A, b, $$$C)",
            "fn f() { foo(b); foo(a, b); foo(b, c); foo(a); }",
            &["foo(b)", "foo(a, b)", "foo(b, c)"],
        ),
        (
            "dart",
            "foo($$$A, b, $$$C)",
            "void f() { foo(b); foo(a, b); foo(b, c); foo(a); }",
            &["foo(b)", "foo(a, b)", "foo(b, c)"],
        ),
        (
            "go",
            "foo($$$A, b, $$$C)",
            "package p\nfunc f() { foo(b); foo(a, b); foo(b, c); foo(a) }",
            &["foo(b)", "foo(a, b)", "foo(b, c)"],
        ),
        (
            "c",
            "foo($$$A, b, $$$C)",
            "void f() { foo(b); foo(a, b); foo(b, c); foo(a); }",
            &["foo(b)", "foo(a, b)", "foo(b, c)"],
        ),
        (
            "kotlin",
            "foo($$$A, b, $$$C)",
            "fun f() { foo(b); foo(a, b); foo(b, c); foo(a) }",
            &["foo(b)", "foo(a, b)", "foo(b, c)"],
        ),
        (
            "javascript",
            "{ $$$E; if ($A) { b() } if ($C) { d() } }",
            "function f() { if (x) { y() } if (x) { b() } if (y) { d() } }",
            &["{ if (x) { y() } if (x) { b() } if (y) { d() } }"],
        ),
        (
            "javascript",
            "function $F() { $$$A; return $R; $$$B }",
            "function f() { a(); return 1; b() }\nfunction g() { return 1 }",
            &["function f() { a(); return 1; b() }", "function g() { return 1 }"],
        ),
        ("python", "[$$$A, $X, $X, $$$B]", "[1, 2, 2, 3]\n[1, 2, 3]\n[2, 2]\n", &["[1, 2, 2, 3]", "[2, 2]"]),
        ("python", "def $F($$$A): $$$B", "def f(a, b=1, *c): x(); y()\n", &["def f(a, b=1, *c): x(); y()"]),
        (
            "python",
            "class $C($$$B): $$$M",
            "class A(B, metaclass=C):\n    x = 1\n    y = 2\n",
            &["class A(B, metaclass=C):\n    x = 1\n    y = 2"],
        ),
    ]);
}

#[test]
fn white_space_comments_and_last_separators_do_not_count() {
    check(&[
        (
            "rust",
            "$A.b().unwrap()",
            "fn f() {\n  a\n    // first\n    .b()\n    // note\n    .unwrap();\n  a./*c*/b()./*c*/unwrap()\n}",
            &["a\n    // first\n    .b()\n    // note\n    .unwrap()", "a./*c*/b()./*c*/unwrap()"],
        ),
        (
            "javascript",
            "foo($A, $B)",
            "foo(1, /* c */ 2); foo(1,2,); foo(\n1\n,\n2)",
            &["foo(1, /* c */ 2)", "foo(1,2,)", "foo(\n1\n,\n2)"],
        ),
        ("javascript", "foo($A, $B,)", "foo(1, 2); foo(1,2,)", &["foo(1, 2)", "foo(1,2,)"]),
        (
            "rust",
            "foo($A, $B)",
            "fn f() { foo(1, 2,); foo(1, /* c */ 2); }",
            &["foo(1, 2,)", "foo(1, /* c */ 2)"],
        ),
        (
            "python",
            "foo($A, key=$V)",
            "foo(1, # c\n    key=2)\nfoo(1, key=2,)\n",
            &["foo(1, # c\n    key=2)", "foo(1, key=2,)"],
        ),
        (
            "dart",
            "foo($A, $B)",
            "void f() { foo(1, 2,); foo(1, /* c */ 2); }",
            &["foo(1, 2,)", "foo(1, /* c */ 2)"],
        ),
        (
            "go",
            "foo($A, $B)",
            "package p\nfunc f() {\n\tfoo(\n\t\t1, // c\n\t\t2,\n\t)\n}",
            &["foo(\n\t\t1, // c\n\t\t2,\n\t)"],
        ),
        ("kotlin", "foo($A, $B)", "fun f() { foo(1, 2,) }", &["foo(1, 2,)"]),
        ("c", "foo($A, $B)", "void f() { foo(1, /* c */ 2); }", &["foo(1, /* c */ 2)"]),
        (
            "rust",
            "struct S { a: $A, b: $B }",
            "struct S { a: u8, b: u8, }\n",
            &["struct S { a: u8, b: u8, }"],
        ),
        ("javascript", "[$A, $B]", "[1, 2,]; [1, , 2]; [1,2,,]", &["[1, 2,]"]),
        ("python", "a(); b()", "a()\n# c\nb()\n", &["a()\n# c\nb()"]),
        ("go", "a(); b()", "package p\nfunc f() {\n\ta()\n\tb()\n}", &["a()\n\tb()"]),
        ("javascript", "a(); b();", "c(); a()\nb()\nd()", &["a()\nb()"]),
        ("rust", "a(); b();", "fn f() { c(); a(); b(); d(); }", &["a(); b();"]),
        ("tsx", "<a><b/></a>", "let x = <a>\n  <b/>\n</a>;", &["<a>\n  <b/>\n</a>"]),
    ]);
}

#[test]
fn strings_and_comments_never_match() {
    check(&[
        (
            "rust",
            "$X.unwrap()",
            "fn f() { // a.unwrap()\n \"a.unwrap()\"; a.unwrap(); /* b.unwrap() */ }",
            &["a.unwrap()"],
        ),
        ("python", "foo($A)", "\"foo(1)\" # foo(2)\n'''\nfoo(3)\n'''\nfoo(4)\n", &["foo(4)"]),
        ("javascript", "foo($A)", "'foo(1)'; `foo(2)`; // foo(3)\n`${foo(4)}`", &["foo(4)"]),
        ("dart", "foo($A)", "void f() { 'foo(1)'; // foo(2)\n foo(3); }", &["foo(3)"]),
        ("c", "foo($A)", "void f() { g(\"foo(1)\"); /* foo(2) */ }", &[]),
        ("go", "foo($A)", "package p\n// foo(1)\nvar x = `foo(2)`\n", &[]),
        ("ruby", "foo($A)", "'foo(1)' # foo(2)\n", &[]),
    ]);
}

#[test]
fn a_repeated_name_is_the_same_text_token_by_token() {
    check(&[
        (
            "javascript",
            "foo($A, $A)",
            "foo(a.b, a . b); foo(x /*c*/ + 1, x + 1); foo(a, b); foo(1, 1.0)",
            &["foo(a.b, a . b)", "foo(x /*c*/ + 1, x + 1)"],
        ),
        ("python", "$A == $A", "a == a\na == b\nf(x) == f( x )\n", &["a == a", "f(x) == f( x )"]),
        ("rust", "foo($A, $A)", "fn f() { foo(a.b, a . b); foo(\"a b\", \"a  b\"); }", &["foo(a.b, a . b)"]),
        ("c", "$A = $A + $B;", "void f() { x = x + 1; x = y + 1; }", &["x = x + 1;"]),
        ("javascript", "f($$$A); g($$$A);", "f(1, 2); g(1,2); f(1); g(2);", &["f(1, 2); g(1,2);"]),
        ("javascript", "f($_, $_)", "f(1, 2)", &["f(1, 2)"]),
    ]);
}

#[test]
fn a_run_binds_its_elements_and_the_text_between() {
    let run = |text: &str, elements: &[&str]| {
        (text.to_owned(), elements.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(
        binding("javascript", "foo($$$A)", "foo(x, /* c */ y,)", "A"),
        run("x, /* c */ y", &["x", "y"])
    );
    assert_eq!(binding("javascript", "foo($$$A)", "foo()", "A"), run("", &[]));
    assert_eq!(binding("javascript", "foo(1, $$$A)", "foo(1)", "A"), run("", &[]));
    assert_eq!(
        binding("python", "if $A: $$$B", "if a:\n    b()\n    # c\n    d()\n", "B"),
        run("b()\n    # c\n    d()", &["b()", "d()"])
    );
    assert_eq!(
        binding("go", "return $$$A", "package p\nfunc f() { return a, b }", "A"),
        run("a, b", &["a", "b"])
    );
    assert_eq!(
        binding("rust", "match $X { $$$A }", "fn f() { match x { A => 1, B => 2 } }", "A"),
        run("A => 1, B => 2", &["A => 1,", "B => 2"])
    );
    assert_eq!(
        binding("java", "void f() { $$$B }", "class A { void f() { a(); b(); } }", "B"),
        run("a(); b();", &["a();", "b();"])
    );
    assert_eq!(binding("typescript", "foo(\"$A\")", "foo(\"x\")", "A"), run("x", &[]));
}

#[test]
fn quotes_are_tokens_and_strings_bind_their_content() {
    check(&[
        ("typescript", "foo(\"$A\")", "foo(\"x\"); foo('y'); foo(`z`); foo(\"\")", &["foo(\"x\")"]),
        ("python", "foo(\"$A\")", "foo(\"x\")\nfoo('y')\nfoo(f\"{z}\")\n", &["foo(\"x\")"]),
        ("python", "foo(\"\")", "foo(\"\")\nfoo(\"a\")\nfoo(\" \")\n", &["foo(\"\")"]),
        ("rust", "foo(\"$A\")", "fn f() { foo(\"x\"); foo(r\"y\"); }", &["foo(\"x\")"]),
        ("go", "foo(\"$A\")", "package p\nvar a = foo(\"x\")\nvar b = foo(\"\")\n", &["foo(\"x\")"]),
        ("java", "foo(\"$A\")", "class A { Object a = foo(\"x\"); Object b = foo(\"\"); }", &["foo(\"x\")"]),
        ("haskell", "foo \"\"", "x = foo \"\"\ny = foo \"a\"\n", &["foo \"\""]),
    ]);
}

#[test]
fn a_match_without_its_terminator_leaves_the_terminator() {
    let language = by_id("dart").unwrap();
    let compiled = compile(language, "if ($X != null) $X.dispose()").unwrap();
    let source = "void f() { if (a != null) a.dispose(); }";
    let found = run(compiled.readings.first().unwrap(), "dart", source).matches;
    let texts: Vec<_> =
        found.iter().map(|m| (&source[m.range.clone()], m.statement.clone().map(|s| &source[s]))).collect();
    assert_eq!(texts, [("if (a != null) a.dispose()", Some("if (a != null) a.dispose();"))]);
}

#[test]
fn a_match_knows_whether_it_is_a_statement() {
    for (language, pattern, source, statements) in [
        (
            "javascript",
            "log($A)",
            "log(1);\nx = log(2);\nif (a) { log(3) }\n() => log(4);\nif (b) log(5);",
            vec![Some("log(1);"), None, Some("log(3)"), None, None],
        ),
        ("javascript", "log($A);", "log(1);\nif (a) { log(3) }", vec![Some("log(1);"), Some("log(3)")]),
        (
            "python",
            "log($A)",
            "log(1)\nx = log(2)\nif a:\n    log(3)\n",
            vec![Some("log(1)"), None, Some("log(3)")],
        ),
        (
            "rust",
            "log($A)",
            "fn f() { log(1); let x = log(2); g(log(3)); log(4) }",
            vec![Some("log(1);"), None, None, Some("log(4)")],
        ),
        (
            "dart",
            "log($A)",
            "void f() { log(1); x = log(2); } int g() => log(3);",
            vec![Some("log(1);"), None, None],
        ),
        ("go", "log($A)", "package p\nfunc f() {\n\tlog(1)\n\tx := log(2)\n}", vec![Some("log(1)"), None]),
        ("c", "log($A)", "void f() { log(1); x = log(2); }", vec![Some("log(1);"), None]),
        ("java", "log($A)", "class A { void f() { log(1); x = log(2); } }", vec![Some("log(1);"), None]),
        (
            "ruby",
            "log($A)",
            "log(1)\nx = log(2)\ndef f\n  log(3)\nend\n",
            vec![Some("log(1)"), None, Some("log(3)")],
        ),
        ("kotlin", "log($A)", "fun f() { log(1)\n val x = log(2) }", vec![Some("log(1)"), None]),
        ("css", "color: $C", "a { color: red; }", vec![Some("color: red;")]),
    ] {
        let compiled = compile(by_id(language).unwrap(), pattern).unwrap();
        let found = run(compiled.readings.first().unwrap(), language, source).matches;
        let got: Vec<_> = found.iter().map(|m| m.statement.clone().map(|s| &source[s])).collect();
        assert_eq!(got, statements, "{language} {pattern}");
    }
}

fn error(language: &str, pattern: &str) -> String {
    compile(by_id(language).unwrap(), pattern).unwrap_err().to_string()
}

#[test]
fn what_no_context_accepts_is_an_error_with_what_the_parser_said() {
    let said = [
        error("python", "def (("),
        error("python", "case $X => $Y"),
        error("rust", "fn $F($$$A {"),
        error("javascript", "foo($A"),
        error("javascript", "if ($A) {"),
        error("json", "{\"a\": }"),
        error("rust", "} fn g() {"),
        error("javascript", "// a comment"),
        error("go", "func\n  $F( {"),
        // The grammar lets the block be empty; nothing has such a shape.
        error("python", "class $C:"),
        error("python", "except $E:"),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn patterns_that_say_nothing_are_errors() {
    let compile = |pattern: &str| compile(by_id("rust").unwrap(), pattern).map(|_| ()).unwrap_err();
    assert_eq!(compile(""), PatternError::Empty);
    assert_eq!(compile("  \n"), PatternError::Empty);
    assert_eq!(compile("$$$A"), PatternError::OnlyRun);
    assert_eq!(compile("f($A, $$$A)"), PatternError::BothKinds { name: "A".to_owned() });
    assert_eq!(compile(&"a".repeat(40_000)), PatternError::TooLarge);
    assert_eq!(compile(&format!("{}x{}", "(".repeat(300), ")".repeat(300))), PatternError::TooLarge);
    assert_eq!(compile(&format!("f({})", "x, ".repeat(1000))), PatternError::TooLarge);
}

#[test]
fn literal_dollars_are_said() {
    let compiled = compile(by_id("javascript").unwrap(), "foo($lower, \"hello $NAME\", use$HOOK)").unwrap();
    assert_eq!(
        compiled.warnings,
        [
            "`$lower` is literal text: a variable's name is capitals, digits and `_`",
            "`$HOOK` is literal text: it is joined to the word before it",
            "the variable in `hello $NAME` is literal text: it is only a part of a token",
        ]
    );
    assert_eq!(
        hits("javascript", "foo(\"hello $NAME\")", "foo(\"hello $NAME\"); foo(\"hello x\")"),
        ["foo(\"hello $NAME\")"]
    );
    assert_eq!(hits("javascript", "foo($lower)", "foo($lower); foo(x)"), ["foo($lower)"]);
}

#[test]
fn other_readings_are_kept() {
    for (language, pattern, rungs) in [
        ("javascript", "{a: $B}", vec!["statement"]),
        ("c", "$A * $B;", vec!["statement or member", "expression"]),
        ("python", "key = $V", vec!["statement", "argument", "parameter"]),
        // An abstract member, a parameter of function type.
        ("dart", "foo($A)", vec!["statement", "member or declaration", "parameter"]),
    ] {
        let compiled = compile(by_id(language).unwrap(), pattern).unwrap();
        let got: Vec<_> = compiled.readings.iter().map(haft_structure::Reading::rung).collect();
        assert_eq!(got, rungs, "{language} {pattern}");
    }
}

#[test]
fn depth_is_no_danger() {
    let deep = format!("x = {}foo(1){}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(hits("python", "foo($A)", &deep), ["foo(1)"]);
    assert_eq!(hits("javascript", "foo($A)", &deep), ["foo(1)"]);
    let twice = format!("f({deep}, {deep})", deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000)));
    assert_eq!(hits("javascript", "f($A, $A)", &twice).len(), 1);
}

#[test]
fn a_long_list_with_many_runs_ends() {
    let list = format!("f({}0)", "1, ".repeat(3_000));
    assert_eq!(hits("javascript", "f($$$A, 2, $$$B, 3, $$$C, 4, $$$D)", &list), Vec::<&str>::new());
    assert_eq!(hits("javascript", "f($$$A, $$$B, $$$C, 0)", &list).len(), 1);
}

#[test]
fn a_search_that_would_take_for_ever_says_that_it_gave_up() {
    let source = format!("f({}g(9))", "1, ".repeat(600));
    let compiled = compile(by_id("javascript").unwrap(), "f($$$A, $X, $$$B, $X, $$$C, $X, $$$D, 9)").unwrap();
    let found = run(compiled.readings.first().unwrap(), "javascript", &source);
    assert_eq!((found.matches.len(), found.gave_up), (0, 1));
}

#[test]
fn matches_inside_of_matches_are_found_too() {
    assert_eq!(
        hits("javascript", "foo($A)", "foo(foo(foo(1)))"),
        ["foo(foo(foo(1)))", "foo(foo(1))", "foo(1)"]
    );
}

#[test]
fn files_that_are_not_utf8_or_have_errors_are_searched() {
    assert_eq!(
        hits("c", "foo($A)", "#define X(a) {\nMACRO void f() { foo(1); } X\nvoid g( { foo(2); }"),
        ["foo(1)", "foo(2)"]
    );
    let compiled = compile(by_id("python").unwrap(), "foo($A)").unwrap();
    let source = b"x = '\xe9'\nfoo(1)\n";
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&(by_id("python").unwrap().grammar)()).unwrap();
    let tree = parser.parse(source, None).unwrap();
    assert_eq!(haft_structure::find(compiled.readings.first().unwrap(), &tree, source).matches.len(), 1);
}
