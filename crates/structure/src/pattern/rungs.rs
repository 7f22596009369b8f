//! Every rung of every language: one fragment it takes, one it refuses.

use pretty_assertions::assert_eq;

use super::ladder::takes;
use crate::languages::{all, by_id};

type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// Language; rungs, each with a fragment that it takes; a fragment that none of the language's rungs takes.
const FRAGMENTS: &[Row] = &[
    (
        "bash",
        &[
            ("word", "\"$A\""),
            ("statement", "foo $A"),
            ("case item", "a) b ;;"),
            ("clause", "else b"),
            ("test", "$A == b"),
            ("arithmetic", "a >= 1"),
        ],
        "if ; fi (",
    ),
    (
        "c",
        &[
            ("block", "{ $$$B }"),
            ("value", "{1, $A}"),
            ("initializer", ".a = 1"),
            ("statement", "foo();"),
            ("case", "case 1: a();"),
            ("else clause", "else { a(); }"),
            ("member", "int $A : 3;"),
            ("declaration", "int f(int a) { return $A; }"),
            ("expression", "a * b"),
            ("parameter", "int a[], ..."),
            ("type", "unsigned int"),
            ("enumerator", "A = 1"),
        ],
        "if ((",
    ),
    (
        "c-sharp",
        &[
            ("declaration", "using A.B;"),
            ("statement", "lock (a) { b(); }"),
            ("expression", "new[] { 1 }"),
            ("expression", "a ?? b"),
            ("expression", "$X switch { 1 => 2 }"),
            ("expression", "a => b"),
            ("statement", "foo();"),
            ("case", "case 1: a(); break;"),
            ("switch arm", "1 => $A"),
            ("clause", "catch (E e) { a(); }"),
            ("member", "public int F { get; set; }"),
            ("declaration", "namespace A { class B {} }"),
            ("argument", "a: $B"),
            ("attribute", "[Test]"),
            ("parameter", "this int $A"),
            ("type", "List<$T>"),
        ],
        "class {{",
    ),
    ("cmake", &[("command", "set($A 1)")], "set(("),
    (
        "cpp",
        &[
            ("declaration", "int f(int a) { return a; }"),
            ("block", "{ $$$B }"),
            ("value", "{1, $A}"),
            ("initializer", ".a = 1"),
            ("type", "unsigned int"),
            ("expression", "[a](int b) { c(); }"),
            ("parameter", "int a = 1"),
            ("statement", "foo();"),
            ("case", "case 1: a();"),
            ("else clause", "else { a(); }"),
            ("catch clause", "catch (E& e) { a(); }"),
            ("member", "virtual int $F() = 0;"),
            ("declaration", "namespace a { int b; }"),
            ("expression", "a * b"),
            ("type", "std::vector<$T>"),
            ("enumerator", "A = 1"),
        ],
        "if ((",
    ),
    (
        "css",
        &[
            ("declaration", "color: $C"),
            ("rule", "a { b: c }"),
            ("selector", "a > .$B"),
            ("value", "1px solid"),
            ("query", "(min-width: 1px)"),
        ],
        "a { { (",
    ),
    (
        "dart",
        &[
            ("block", "{ $$$B }"),
            ("declaration", "typedef A = int;"),
            ("declaration", "import 'a';"),
            ("expression", "[1, $A]"),
            ("type", "List<$T>"),
            ("statement", "foo();"),
            ("member", "static final $A = 1;"),
            ("declaration", "import 'a';"),
            ("argument", "a: $B"),
            ("case", "case 1: a(); break;"),
            ("switch arm", "1 => $A"),
            ("element", "'a': $B"),
            ("parameter", "required this.a"),
            ("clause", "finally { a(); }"),
            ("annotation", "@override"),
        ],
        "class {{",
    ),
    ("dockerfile", &[("instruction", "FROM a")], "]["),
    ("dtd", &[("declaration", "<!ELEMENT a (b)>")], "<!("),
    (
        "elixir",
        &[
            ("expression", "foo($A)"),
            ("clause", "{:ok, a} -> b"),
            ("pair", "a: $B"),
            ("map entry", "a | b: $C"),
        ],
        "foo(((",
    ),
    (
        "elm",
        &[
            ("field", "a = 1"),
            ("field type", "a : Int"),
            ("expression", "foo $A"),
            ("declaration", "foo a = b"),
            ("case branch", "Just a -> b"),
            ("type", "Maybe (List a)"),
        ],
        "= =",
    ),
    (
        "erlang",
        &[
            ("type", "integer()"),
            ("expression", "foo($A)"),
            ("form", "-module(a)."),
            ("function clause", "f(X) -> X"),
            ("clause", "{ok, X} when X > 1 -> X"),
        ],
        "foo(((",
    ),
    (
        "fsharp",
        &[
            ("type", "int list"),
            ("expression", "foo $A"),
            ("declaration", "module A"),
            ("rule", "| Some a -> b"),
        ],
        "let let (",
    ),
    (
        "gleam",
        &[
            ("statement", "foo($A)"),
            ("case clause", "Ok(a) -> b"),
            ("declaration", "pub fn a() { 1 }"),
            ("argument", "a: $B"),
            ("parameter", "a b: Int"),
            ("type", "List(Int)"),
        ],
        "fn fn (",
    ),
    (
        "go",
        &[
            ("for clause", "a := range b"),
            ("expression", "a + $B"),
            ("element", "a: $B"),
            ("statement", "a := $B"),
            ("case", "case 1: a()"),
            ("type case", "case *A: b()"),
            ("select case", "case a := <-b: c()"),
            ("declaration", "func a() {}"),
            ("field", "A int `json:\"a\"`"),
            ("interface member", "Read(p []byte) (n int, err error)"),
            ("type", "map[string]$T"),
            ("parameter", "a ...int"),
            ("constant", "A = iota"),
            ("variable", "a int = 1"),
            ("import", "_ \"a\""),
        ],
        "func ((",
    ),
    (
        "graphql",
        &[
            ("field definition", "a: Int!"),
            ("selection", "a { b }"),
            ("definition", "type A { b: Int }"),
            ("argument", "a: 1"),
            ("enum value", "A"),
            ("directive", "@a(b: 1)"),
        ],
        "type {{",
    ),
    ("groovy", &[("block statement", "foo(a)"), ("expression", "a + b"), ("statement", "foo(a)")], "((("),
    (
        "haskell",
        &[
            ("instance member", "foo a = b"),
            ("field", "a :: Int"),
            ("expression", "foo $A"),
            ("declaration", "f :: Int"),
            ("declaration", "import A"),
            ("alternative", "Just a -> b"),
            ("do statement", "a <- b"),
            ("type", "Maybe Int -> String"),
            ("pattern", "a@(Just b)"),
        ],
        "where where =",
    ),
    ("hcl", &[("body", "a = $B"), ("expression", "a.b + $C"), ("element", "\"a\" = 1")], "a = = {"),
    ("html", &[("attribute", "href=\"a\""), ("element", "<p>a</p>"), ("start tag", "<zq a=\"b\">")], "<"),
    (
        "java",
        &[
            ("statement", "foo();"),
            ("case", "case 1: a();"),
            ("clause", "catch (E e) { a(); }"),
            ("member", "public void a() { b(); }"),
            ("interface member", "default void a() {}"),
            ("declaration", "package a;"),
            ("expression", "a"),
            ("constructor's first statement", "super(a);"),
            ("member", "A(int b) {}"),
            ("annotation", "@A(1)"),
            ("parameter", "int... a"),
            ("type", "List<$T>"),
            ("enum constant", "A(1) { }"),
        ],
        "class {{",
    ),
    (
        "javascript",
        &[
            ("parameter", "a = 1"),
            ("JSX attribute", "a={b}"),
            ("property", "a: $B"),
            ("statement", "foo()"),
            ("expression", "function () { a() }"),
            ("member", "static a = 1"),
            ("object member", "...a"),
            ("case", "case 1: a()"),
            ("clause", "catch (e) { a() }"),
            ("else clause", "else { a() }"),
            ("decorator", "@a"),
        ],
        "if ((",
    ),
    ("json", &[("pair", "\"a\": $B"), ("value", "[1, $A]")], "{{"),
    (
        "julia",
        &[
            ("field", "a::Int"),
            ("argument", "a = 1"),
            ("expression", "a + b"),
            ("statement", "foo(a)"),
            ("clause", "else\n  a"),
            ("clause", "catch e\n  a"),
        ],
        "function (",
    ),
    (
        "kotlin",
        &[
            ("statement", "foo()"),
            ("when entry", "is A -> b"),
            ("clause", "catch (e: E) { a() }"),
            ("member", "init { a() }"),
            ("declaration", "package a"),
            ("argument", "*a"),
            ("expression", "a"),
            ("parameter", "a: B"),
            ("constructor parameter", "private val a: B"),
            ("type", "List<$T>"),
            ("annotation", "@A(1)"),
        ],
        "class {{",
    ),
    (
        "lua",
        &[
            ("statement", "foo(a)"),
            ("expression", "a.b"),
            ("field", "[1] = 2"),
            ("clause", "elseif a then b()"),
        ],
        "if if",
    ),
    ("make", &[("recipe line", "echo a"), ("rule", "a: b"), ("rule", "A := b")], "a:::b$("),
    ("markdown", &[("block", "# a")], ""),
    ("nix", &[("expression", "a b"), ("binding", "a = b;"), ("formal", "a ? b")], "{{"),
    (
        "objc",
        &[
            ("block", "{ $$$B }"),
            ("value", "{1, $A}"),
            ("initializer", ".a = 1"),
            ("member", "int a;"),
            ("declaration", "@class A;"),
            ("parameter", "int a"),
            ("statement", "[a b];"),
            ("case", "case 1: a();"),
            ("else clause", "else { a(); }"),
            ("method", "- (void)a { b(); }"),
            ("method declaration", "- (void)a;"),
            ("expression", "a * b"),
        ],
        "if ((",
    ),
    (
        "ocaml",
        &[
            ("pattern", "(a, b)"),
            ("expression", "foo $A"),
            ("item", "let a b = c"),
            ("match case", "| Some a -> b"),
            ("type", "int -> string"),
            ("field", "mutable a : int"),
        ],
        "let let (",
    ),
    (
        "ocaml-interface",
        &[("type", "int -> string"), ("item", "val a : int"), ("field", "mutable a : int")],
        "let let (",
    ),
    (
        "perl",
        &[("expression", "$a + $b"), ("statement", "foo($A);"), ("clause", "elsif ($a) { b(); }")],
        "sub {{(",
    ),
    (
        "php",
        &[
            ("match arm", "1 => $a"),
            ("statement", "foo($a);"),
            ("member", "private int $a = 1;"),
            ("array element", "'a' => $b"),
            ("case", "case 1: a();"),
            ("clause", "catch (E $e) { a(); }"),
            ("clause", "else { a(); }"),
            ("argument", "a: $b"),
            ("parameter", "int ...$a"),
            ("attribute", "#[A]"),
        ],
        "class {{",
    ),
    (
        "powershell",
        &[
            ("member", "[int] $a"),
            ("pair", "a = 1"),
            ("expression", "$a + 1"),
            ("statement", "Write-Host $a"),
            ("clause", "else { a }"),
            ("clause", "catch { a }"),
        ],
        "if ((",
    ),
    (
        "proto",
        &[
            ("field", "int32 a = 1;"),
            ("enum field", "A = 1;"),
            ("declaration", "message A {}"),
            ("rpc", "rpc A(B) returns (C);"),
            ("file", "syntax = \"proto3\";"),
        ],
        "message {{",
    ),
    (
        "python",
        &[
            ("argument", "a=1"),
            ("statement", "a = 1"),
            ("argument", "**a"),
            ("clause", "except E: a()"),
            ("clause", "elif a: b()"),
            ("case", "case 1: a()"),
            ("pair", "\"a\": 1"),
            ("parameter", "a: int"),
            ("parameter", "a, /, b, *, c"),
            ("decorator", "@a.b(c)"),
            ("type", "Optional[$T]"),
            ("comprehension clause", "if a"),
        ],
        "def ((",
    ),
    ("r", &[("statement", "foo(a)"), ("argument", "\"a\" = "), ("parameter", "...")], "function (("),
    (
        "ruby",
        &[
            ("pair", "'a' => b"),
            ("expression", "a + b"),
            ("statement", "foo(a)"),
            ("when clause", "when 1 then a"),
            ("clause", "rescue E => e\n  a"),
            ("clause", "elsif a\n  b"),
            ("pair", "a: 1"),
            ("parameter", "&a"),
        ],
        "def ((",
    ),
    (
        "rust",
        &[
            ("member", "pub fn a(&self) {}"),
            ("trait member", "fn a(&self);"),
            ("statement", "a();"),
            ("match arm", "Some(a) => b"),
            ("item", "#![a]"),
            ("field", "pub a: u8"),
            ("parameter", "&mut self"),
            ("field value", "..a"),
            ("variant", "A(u8)"),
            ("else clause", "else { a() }"),
            ("type", "&'a [u8]"),
            ("pattern", "Some(ref a) | None"),
            ("where predicate", "A: B + C"),
            ("condition", "let Some(a) = b"),
            ("import", "a as b"),
            ("generic parameter", "const A: u8"),
        ],
        "fn ((",
    ),
    (
        "scala",
        &[
            ("block statement", "foo(a)"),
            ("expression", "a + b"),
            ("annotation", "@a(b)"),
            ("statement", "foo(a)"),
            ("case", "case Some(a) => b"),
            ("declaration", "package a"),
            ("type", "A => B"),
            ("parameter", "a: B = c"),
            ("enumerator", "a <- b"),
        ],
        "def def (",
    ),
    (
        "solidity",
        &[
            ("struct member", "uint a;"),
            ("statement", "foo(a);"),
            ("member", "function a() public {}"),
            ("declaration", "pragma solidity ^0.8.0;"),
            ("expression", "a"),
            ("parameter", "uint256"),
        ],
        "contract {{",
    ),
    (
        "sql",
        &[
            ("statement", "SELECT a FROM b"),
            ("column definition", "a INT NOT NULL"),
            ("expression", "a = 1 AND b = 2"),
            ("clause", "ORDER BY a"),
            ("term", "a AS b"),
        ],
        "SELECT FROM (",
    ),
    ("svelte", &[("attribute", "href=\"a\""), ("element", "<p>a</p>")], "<"),
    (
        "swift",
        &[
            ("protocol member", "func a() -> Int"),
            ("declaration", "import A"),
            ("expression", "a + b"),
            ("parameter", "a b: Int"),
            ("attribute", "@objc"),
            ("statement", "foo(a)"),
            ("case", "case 1: a()"),
            ("member", "init() { a() }"),
            ("argument", "a: b"),
            ("enum case", "case a(Int)"),
            ("type", "[String: Int]"),
            ("catch clause", "catch { a() }"),
        ],
        "class {{",
    ),
    ("toml", &[("pair", "a = 1"), ("value", "[1, 2]")], "a = = {"),
    (
        "tsx",
        &[
            ("type", "List<$T>"),
            ("case", "case 1: a()"),
            ("clause", "catch (e) { a() }"),
            ("else clause", "else { a() }"),
            ("expression", "function () { a() }"),
            ("parameter", "a?: string"),
            ("object member", "...a"),
            ("enum member", "A = 1"),
            ("decorator", "@a"),
            ("JSX attribute", "a={b}"),
            ("property", "a: $B"),
            ("statement", "foo()"),
            ("member", "private a = 1"),
            ("interface member", "readonly [a: string]: B"),
            ("type", "A[]"),
        ],
        "if ((",
    ),
    (
        "typescript",
        &[
            ("type", "List<$T>"),
            ("enum member", "A = 1"),
            ("property", "a: $B"),
            ("statement", "foo()"),
            ("expression", "function () { a() }"),
            ("member", "private a = 1"),
            ("interface member", "new (a: string): B"),
            ("parameter", "a?: string"),
            ("object member", "...a"),
            ("case", "case 1: a()"),
            ("clause", "finally { a() }"),
            ("else clause", "else { a() }"),
            ("type", "string | number[]"),
            ("decorator", "@a"),
        ],
        "if ((",
    ),
    (
        "xml",
        &[("attribute", "a=\"b\""), ("element", "<a>b</a>"), ("document", "<?xml version=\"1.0\"?><a/>")],
        "<<",
    ),
    ("yaml", &[("flow pair", "a: b"), ("node", "a: b"), ("node", "- a")], "{a: ["),
    (
        "zig",
        &[
            ("declaration", "fn a() void {}"),
            ("member", "a: u8,"),
            ("expression", "a + b"),
            ("statement", "foo(a);"),
            ("prong", "1 => a,"),
            ("declaration", "pub fn a() void {}"),
            ("parameter", "comptime a: u8"),
        ],
        "fn {{",
    ),
];

#[test]
fn every_language_has_its_rows() {
    let rows: Vec<&str> = FRAGMENTS.iter().map(|(id, _, _)| *id).collect();
    let languages: Vec<&str> = all().iter().map(|l| l.id).collect();
    assert_eq!(rows, languages);
}

#[test]
fn every_rung_takes_its_fragment() {
    let mut wrong = Vec::new();
    for (id, fragments, _) in FRAGMENTS {
        let language = by_id(id).unwrap();
        for rung in language.rungs {
            if rung.completes {
                continue;
            }
            let mut own = fragments.iter().filter(|(name, _)| *name == rung.name);
            if !own.any(|(_, fragment)| takes(language, rung, fragment)) {
                wrong.push(format!("{id}: {}", rung.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn rungs_that_complete_take_what_lacks_its_terminator() {
    let mut wrong = Vec::new();
    for language in all() {
        for rung in language.rungs.iter().filter(|r| r.completes) {
            assert!(rung.suffix.starts_with(';'), "{} {}", language.id, rung.name);
            let row = FRAGMENTS.iter().find(|(id, _, _)| *id == language.id).unwrap();
            let own = row.1.iter().filter(|(name, _)| *name == rung.name);
            let fragments = own
                .map(|(_, f)| f.trim_end_matches(';'))
                .chain(["int a", "foo(a)", "import a", "a: b", "uint a"]);
            if !fragments.into_iter().any(|fragment| takes(language, rung, fragment)) {
                wrong.push(format!("{}: {}", language.id, rung.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_rung_refuses_a_broken_fragment() {
    let mut wrong = Vec::new();
    for (id, _, broken) in FRAGMENTS {
        // Markdown takes every text.
        if broken.is_empty() {
            continue;
        }
        let language = by_id(id).unwrap();
        for rung in language.rungs {
            // Whether it looks as if it were meant is not the question.
            let rung = crate::languages::Rung { when: None, ..*rung };
            if takes(language, &rung, broken) {
                wrong.push(format!("{id}: {} takes `{broken}`", rung.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
