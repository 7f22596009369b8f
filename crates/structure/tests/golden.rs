//! What an ordinary fragment finds, language by language: the rows of the comparison with other tools (patterns that those miss or
//! match too much) and their like in further languages.

#![expect(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod patterns;

use patterns::{binding, check};

const DART: &str = "\
class W extends State<X> {
  final int count = 3;
  @override
  void dispose() {
    timer.dispose();
    super.dispose();
  }
  Widget build(BuildContext context) {
    setState(() { a = 1; });
    if (timer != null) timer.dispose();
    dispose(1);
    return Text('x', style: s);
  }
}
";

#[test]
fn dart_fragments_are_found_where_they_stand() {
    check(&[
        ("dart", "dispose($X)", DART, &["dispose(1)"]),
        ("dart", "dispose($X);", DART, &["dispose(1);"]),
        ("dart", "Text($$$A)", DART, &["Text('x', style: s)"]),
        ("dart", "$X.dispose()", DART, &["timer.dispose()", "super.dispose()", "timer.dispose()"]),
        ("dart", "setState(() { $$$B })", DART, &["setState(() { a = 1; })"]),
        (
            "dart",
            "@override void dispose() { $$$B }",
            DART,
            &["@override\n  void dispose() {\n    timer.dispose();\n    super.dispose();\n  }"],
        ),
        // A pattern accounts for everything, annotations too.
        ("dart", "void dispose() { $$$B }", DART, &[]),
        (
            "dart",
            "void dispose() { $$$B }",
            "class A { void dispose() { a(); } }",
            &["void dispose() { a(); }"],
        ),
        (
            "dart",
            "Widget build(BuildContext $C) { $$$B }",
            DART,
            &[
                "Widget build(BuildContext context) {\n    setState(() { a = 1; });\n    if (timer != null) timer.dispose();\n    dispose(1);\n    return Text('x', style: s);\n  }",
            ],
        ),
        ("dart", "if ($X != null) $X.dispose()", DART, &["if (timer != null) timer.dispose()"]),
        ("dart", "if ($X != null) $X.dispose();", DART, &["if (timer != null) timer.dispose();"]),
        ("dart", "final int $N = $V;", DART, &["final int count = 3;"]),
        (
            "dart",
            "final int $N = $V;",
            "void f() { final int a = 1; }\nfinal int b = 2;",
            &["final int a = 1;", "final int b = 2;"],
        ),
        ("dart", "Text", DART, &["Text"]),
        ("dart", "style: $S", DART, &["style: s"]),
        ("dart", "return $X;", DART, &["return Text('x', style: s);"]),
        ("dart", "class $C extends State<$T> { $$$B }", DART, &[DART.trim_end()]),
        (
            "dart",
            "foo($A)",
            "void main() { var x = foo(a.b); foo(c(d), ); bar(() => foo(1)); }",
            &["foo(a.b)", "foo(c(d), )", "foo(1)"],
        ),
    ]);
}

#[test]
fn calls_are_found_as_statements_and_as_parts_of_others() {
    check(&[
        (
            "c",
            "foo($A)",
            "void f() { foo(1); x = foo(2); if (foo(3)) return foo(4); }\nint a = foo(5);",
            &["foo(1)", "foo(2)", "foo(3)", "foo(4)", "foo(5)"],
        ),
        ("c", "foo($A);", "void f() { foo(1); x = foo(2); }", &["foo(1);"]),
        ("c", "printf($$$A)", "void f() { printf(\"%d\", 1); }", &["printf(\"%d\", 1)"]),
        ("cpp", "foo($A)", "void f() { foo(1); x = foo(2); }", &["foo(1)", "foo(2)"]),
        ("cpp", "std::vector<$T>", "void f() { std::vector<int> a; }", &["std::vector<int>"]),
        ("cpp", "foo<$T>($A)", "void f() { foo<int>(1); }", &["foo<int>(1)"]),
        (
            "go",
            "fmt.Println($A)",
            "package p\nfunc f() { fmt.Println(1); x := fmt.Println(2) }",
            &["fmt.Println(1)", "fmt.Println(2)"],
        ),
        (
            "go",
            "fmt.Println($$$A)",
            "package p\nfunc f() {\n\tfmt.Println()\n\tfmt.Println(1, 2)\n}",
            &["fmt.Println()", "fmt.Println(1, 2)"],
        ),
        ("go", "foo($A)", "package p\nvar x = foo(1)\nfunc f() { foo(2) }", &["foo(1)", "foo(2)"]),
        ("go", "$X := bar($Y)", "package p\nfunc f() { a := bar(1) }", &["a := bar(1)"]),
        (
            "java",
            "System.out.println($A)",
            "class A { void f() { System.out.println(1); } }",
            &["System.out.println(1)"],
        ),
        (
            "java",
            "System.out.println($A);",
            "class A { void f() { System.out.println(1); } }",
            &["System.out.println(1);"],
        ),
        ("c-sharp", "foo($A)", "class A { void f() { foo(1); x = foo(2); } }", &["foo(1)", "foo(2)"]),
        (
            "solidity",
            "require($A)",
            "contract C { function f() public { require(x > 1); } }",
            &["require(x > 1)"],
        ),
        ("kotlin", "foo($A)", "fun f() { foo(1); val x = foo(2) }", &["foo(1)", "foo(2)"]),
        ("swift", "foo($A)", "func f() { foo(1); let x = foo(2) }", &["foo(1)", "foo(2)"]),
        ("php", "foo($A)", "<?php foo(1); $x = foo($y);", &["foo(1)", "foo($y)"]),
        ("ruby", "foo($A)", "foo(1)\nx = foo(2)\nfoo 3\n", &["foo(1)", "foo(2)"]),
        ("python", "foo($A)", "foo(1)\nx = foo(2)\nfoo(1, 2)\n", &["foo(1)", "foo(2)"]),
        ("javascript", "foo($A)", "foo(1); x = foo(2)\nfoo(1, 2)", &["foo(1)", "foo(2)"]),
        ("typescript", "foo($A)", "foo(1); const x: T = foo(2)", &["foo(1)", "foo(2)"]),
        ("rust", "foo($A)", "fn f() { foo(1); let x = foo(2); foo(3) }", &["foo(1)", "foo(2)", "foo(3)"]),
        ("scala", "foo($A)", "object A { def f = { foo(1); val x = foo(2) } }", &["foo(1)", "foo(2)"]),
        ("lua", "foo($A)", "foo(1)\nlocal x = foo(2)\n", &["foo(1)", "foo(2)"]),
        ("elixir", "foo($A)", "foo(1)\nx = foo(2)\n", &["foo(1)", "foo(2)"]),
        ("zig", "foo($A)", "fn f() void { foo(1); const x = foo(2); }", &["foo(1)", "foo(2)"]),
        ("r", "foo($A)", "foo(1)\nx <- foo(2)\n", &["foo(1)", "foo(2)"]),
        ("julia", "foo($A)", "foo(1)\nx = foo(2)\n", &["foo(1)", "foo(2)"]),
        ("objc", "foo($A)", "void f() { foo(1); int x = foo(2); }", &["foo(1)", "foo(2)"]),
        ("objc", "[$A release]", "void f() { [a release]; }", &["[a release]"]),
        ("perl", "foo($A)", "foo(1);\nmy $x = foo(2);\n", &["foo(1)", "foo(2)"]),
        ("gleam", "foo($A)", "fn f() {\n  foo(1)\n  let x = foo(2)\n}\n", &["foo(1)", "foo(2)"]),
        ("haskell", "foo $A", "x = foo 1\ny = bar (foo 2)\n", &["foo 1", "foo 2"]),
        ("erlang", "foo(A)", "f(A) -> foo(A).\n", &["foo(A)"]),
        ("ocaml", "foo $A", "let x = foo 1\n", &["foo 1"]),
        ("groovy", "foo($A)", "foo(1)\ndef x = foo(2)\n", &["foo(1)", "foo(2)"]),
        ("cmake", "set($A $B)", "set(X 1)\nset(Y 1 2)\n", &["set(X 1)"]),
        ("bash", "rm $A", "rm a\nrm a b c\n", &["rm a"]),
        ("make", "CFLAGS = $A", "CFLAGS = -O2\n", &["CFLAGS = -O2"]),
        ("sql", "SELECT $A FROM $B", "select a from t;\n", &["select a from t"]),
        ("powershell", "Write-Host $A", "Write-Host \"x\"\n", &["Write-Host \"x\""]),
    ]);
}

#[test]
fn clauses_arms_pairs_and_members_have_contexts_of_their_own() {
    check(&[
        ("rust", "Some($A) => $B", "fn f() { match x { Some(a) => a, None => 0 } }", &["Some(a) => a"]),
        (
            "rust",
            "$A => $B",
            "fn f() { match x { Some(a) => a, None => 0, } }",
            &["Some(a) => a", "None => 0"],
        ),
        (
            "rust",
            "#[test] fn $N() { $$$B }",
            "#[test]\nfn a() { x(); }\nfn b() {}\n",
            &["#[test]\nfn a() { x(); }"],
        ),
        ("rust", "pub $F: $T", "struct S { pub a: u8, b: u8 }", &["pub a: u8"]),
        (
            "rust",
            "fn $F(&self) -> $T { $$$B }",
            "impl A { fn a(&self) -> u8 { 1 } }",
            &["fn a(&self) -> u8 { 1 }"],
        ),
        (
            "rust",
            "match $X { $$$A }",
            "fn f() { match x { A => 1, B => 2 } }",
            &["match x { A => 1, B => 2 }"],
        ),
        ("rust", "impl $T { $$$B }", "impl A { fn a() {} }", &["impl A { fn a() {} }"]),
        (
            "python",
            "except $E: $$$B",
            "try:\n    a()\nexcept E:\n    b()\n    c()\n",
            &["except E:\n    b()\n    c()"],
        ),
        ("python", "elif $X: $Y", "if a:\n    b()\nelif c:\n    d()\n", &["elif c:\n    d()"]),
        ("python", "else: $Y", "if a:\n    b()\nelse:\n    d()\n", &["else:\n    d()"]),
        ("python", "finally: $Y", "try:\n    b()\nfinally:\n    d()\n", &["finally:\n    d()"]),
        ("python", "case $X: $Y", "match a:\n    case 1:\n        d()\n", &["case 1:\n        d()"]),
        ("python", "key=$V", "f(key=1)\nkey=2\n", &["key=1"]),
        ("python", "key = $V", "f(key=1)\nkey=2\n", &["key=2"]),
        ("python", "\"a\": $B", "x = {\"a\": 1, 'a': 2}\n", &["\"a\": 1"]),
        (
            "python",
            "@$D\ndef $F($$$A): $$$B",
            "@a\ndef f(x): pass\n@a\n@b\ndef g(): pass\n",
            &["@a\ndef f(x): pass"],
        ),
        (
            "typescript",
            "$A: string",
            "function f(a: string, b: number) {}\nclass C { c: string }\ninterface I { d: string }",
            &["a: string", "c: string", "d: string"],
        ),
        (
            "typescript",
            "x: $T",
            "function f(x: string, b: number) {}\nlet o = { x: 1 };",
            &["x: string", "x: 1"],
        ),
        (
            "typescript",
            "private $F: number = $V",
            "class C { private a: number = 1; b: number = 2 }",
            &["private a: number = 1"],
        ),
        (
            "typescript",
            "$F($$$A): void { $$$B }",
            "class C { a(x: number): void { y(); } b() {} }",
            &["a(x: number): void { y(); }"],
        ),
        ("typescript", "a: $V", "let o = { a: 1, b: 2 };", &["a: 1"]),
        ("javascript", "a: $B", "let o = { a: 1, b: 2 };", &["a: 1"]),
        ("javascript", "{a: $B}", "let o = { a: 1 };", &["{ a: 1 }"]),
        (
            "javascript",
            "case $X: $$$B",
            "switch (a) { case 1: b(); c(); default: d(); }",
            &["case 1: b(); c();"],
        ),
        ("javascript", "catch ($E) { $$$B }", "try { a() } catch (e) { b() }", &["catch (e) { b() }"]),
        ("javascript", "className=\"x\"", "let a = <A className=\"x\" id=\"b\" />;", &["className=\"x\""]),
        ("javascript", "onClick={$F}", "let a = <A onClick={f} id=\"b\" />;", &["onClick={f}"]),
        ("tsx", "onClick={$F}", "let a = <A onClick={f} id=\"b\" />;", &["onClick={f}"]),
        ("tsx", "<Foo $$$A />", "let a = <Foo b=\"1\" c />;", &["<Foo b=\"1\" c />"]),
        (
            "css",
            "color: $C",
            "a { color: red; background: blue }\nb { color: #fff }",
            &["color: red", "color: #fff"],
        ),
        (
            "css",
            "color: $C;",
            "a { color: red; background: blue }\nb { color: #fff }",
            &["color: red;", "color: #fff"],
        ),
        ("css", "$S { $$$D }", "a { color: red; b: c }", &["a { color: red; b: c }"]),
        ("json", "\"a\": $B", "{\"a\": [1, 2], \"b\": 1}", &["\"a\": [1, 2]"]),
        ("json", "{\"a\": $B}", "[{\"a\": 1}, {\"a\": 1, \"b\": 2}]", &["{\"a\": 1}"]),
        ("yaml", "image: $I", "a:\n  image: x:1\n  b: c\n", &["image: x:1"]),
        ("toml", "version = $V", "[a]\nversion = \"1\"\nb = 2\n", &["version = \"1\""]),
        (
            "hcl",
            "resource \"$A\" \"$B\" { $$$C }",
            "resource \"a\" \"b\" {\n  c = 1\n  d = 2\n}\n",
            &["resource \"a\" \"b\" {\n  c = 1\n  d = 2\n}"],
        ),
        ("hcl", "ami = $V", "resource \"a\" \"b\" {\n  ami = 1\n}\n", &["ami = 1"]),
        ("c", "struct $S { $$$F };", "struct a { int x; char y; };\n", &["struct a { int x; char y; };"]),
        ("c", "struct S { $$$ }", "struct S { int x; char y; };\n", &["struct S { int x; char y; }"]),
        ("c", "int $X;", "struct a { int x; char y; };\nint z;\n", &["int x;", "int z;"]),
        ("c", "char *$X;", "struct a { int x; char *y; };\n", &["char *y;"]),
        ("c", "return $X;", "int f() { return 1; }", &["return 1;"]),
        ("c", "case $X: $$$B", "void f() { switch (a) { case 1: b(); break; } }", &["case 1: b(); break;"]),
        (
            "java",
            "void $M($$$A) { $$$B }",
            "class A { void a(int x, int y) { b(); c(); } }",
            &["void a(int x, int y) { b(); c(); }"],
        ),
        (
            "java",
            "int $X = $V;",
            "class A { int a = 1; void f() { int b = 2; } }",
            &["int a = 1;", "int b = 2;"],
        ),
        (
            "java",
            "catch ($E $N) { $$$B }",
            "class A { void f() { try { a(); } catch (E e) { b(); } } }",
            &["catch (E e) { b(); }"],
        ),
        ("kotlin", "is $T -> $X", "fun f() { when (x) { is A -> 1\n else -> 2 } }", &["is A -> 1"]),
        ("kotlin", "val $X: $T = $V", "class A { val a: B = 1 }", &["val a: B = 1"]),
        (
            "swift",
            "case .$A: $$$B",
            "func f() { switch x { case .a: b()\n default: c() } }",
            &["case .a: b()"],
        ),
        (
            "go",
            "case $X: $$$B",
            "package p\nfunc f() { switch x {\ncase 1:\n\ta()\n\tb()\n} }",
            &["case 1:\n\ta()\n\tb()"],
        ),
        ("go", "a: $B", "package p\nvar x = T{a: 1, b: 2}", &["a: 1"]),
        (
            "go",
            "func ($R $T) $F($$$A) { $$$B }",
            "package p\nfunc (r R) f(a int) { b() }",
            &["func (r R) f(a int) { b() }"],
        ),
        (
            "go",
            "if err != nil { $$$B }",
            "package p\nfunc f() { if err != nil { return err } }",
            &["if err != nil { return err }"],
        ),
        ("ruby", "rescue $E => $V\n  $$$B", "begin\n  a\nrescue E => e\n  b\nend\n", &["rescue E => e\n  b"]),
        ("php", "'a' => $V", "<?php $x = ['a' => 1, 'b' => 2];", &["'a' => 1"]),
        (
            "php",
            "public function $F($$$A) { $$$B }",
            "<?php class A { public function f($a, $b) { return 1; } }",
            &["public function f($a, $b) { return 1; }"],
        ),
        ("elixir", "{:ok, $X} -> $Y", "case a do\n  {:ok, b} -> b\n  :error -> 1\nend\n", &["{:ok, b} -> b"]),
        ("haskell", "Just $X -> $Y", "f a = case a of\n  Just b -> b\n  Nothing -> 1\n", &["Just b -> b"]),
        (
            "scala",
            "case Some($X) => $Y",
            "object A { x match {\n case Some(a) => a\n case None => 1\n} }",
            &["case Some(a) => a"],
        ),
        ("html", "href=\"$U\"", "<a href=\"x\">b</a>", &["href=\"x\""]),
        ("html", "<a href=\"$U\">$T</a>", "<p><a href=\"x\">b</a></p>", &["<a href=\"x\">b</a>"]),
        ("xml", "<a>$T</a>", "<r><a>b</a><c/></r>", &["<a>b</a>"]),
        ("bash", "a) $$$B ;;", "case x in\na) b; c;;\nesac\n", &["a) b; c;;"]),
        ("sql", "WHERE $A = $B", "SELECT a FROM t WHERE x = 1;\n", &["WHERE x = 1"]),
        ("graphql", "$F: String", "type A { b: String c: Int }", &["b: String"]),
        (
            "proto",
            "string $N = $I;",
            "syntax = \"proto3\";\nmessage A { string b = 1; int32 c = 2; }",
            &["string b = 1;"],
        ),
        ("nix", "a = $B;", "{ a = 1; c = 2; }", &["a = 1;"]),
        ("dockerfile", "RUN $A", "FROM a\nRUN b c\n", &["RUN b c"]),
    ]);
}

#[test]
fn whole_declarations_are_found() {
    check(&[
        (
            "rust",
            "pub fn $F($$$A) -> $R { $$$B }",
            "impl A { pub fn f(&self, a: u8) -> u8 { b(); 1 } }",
            &["pub fn f(&self, a: u8) -> u8 { b(); 1 }"],
        ),
        ("rust", "use $A::$B;", "use a::b;\nuse c;\n", &["use a::b;"]),
        (
            "rust",
            "let $X = $Y else { return };",
            "fn f() { let Some(a) = b else { return }; }",
            &["let Some(a) = b else { return };"],
        ),
        (
            "rust",
            "struct $S { $$$F }",
            "struct A { a: u8, pub b: u8 }\nstruct B {}\n",
            &["struct A { a: u8, pub b: u8 }", "struct B {}"],
        ),
        (
            "rust",
            "Vec<$T>",
            "fn f(a: Vec<u8>) { let b: Vec<Vec<u8>> = c; }",
            &["Vec<u8>", "Vec<Vec<u8>>", "Vec<u8>"],
        ),
        (
            "python",
            "with open($F) as $X: $$$B",
            "with open(a) as f:\n    b(f)\n    c()\n",
            &["with open(a) as f:\n    b(f)\n    c()"],
        ),
        (
            "python",
            "match $X:\n    $$$C",
            "match a:\n    case 1: b()\n    case 2: c()\n",
            &["match a:\n    case 1: b()\n    case 2: c()"],
        ),
        (
            "java",
            "public class $C { $$$B }",
            "public class A { int a; void f() {} }",
            &["public class A { int a; void f() {} }"],
        ),
        (
            "typescript",
            "useState<$T>($A)",
            "const [a, b] = useState<string>(null)",
            &["useState<string>(null)"],
        ),
        (
            "typescript",
            "import { $$$A } from '$M'",
            "import { a, b as c } from 'd'\n",
            &["import { a, b as c } from 'd'"],
        ),
        ("typescript", "export const $X = $Y", "export const a = 1;\nconst b = 2;", &["export const a = 1"]),
        (
            "typescript",
            "interface $I { $$$M }",
            "interface A { a: string; b(): void }",
            &["interface A { a: string; b(): void }"],
        ),
        ("typescript", "Array<$T>", "let a: Array<string> = b", &["Array<string>"]),
        (
            "javascript",
            "class $C { $$$M }",
            "class A { a() {} static b = 1 }",
            &["class A { a() {} static b = 1 }"],
        ),
        (
            "javascript",
            "switch ($X) { $$$C }",
            "switch (a) { case 1: b(); default: c() }",
            &["switch (a) { case 1: b(); default: c() }"],
        ),
        (
            "go",
            "type $T struct { $$$F }",
            "package p\ntype A struct {\n\ta int\n\tb string\n}\n",
            &["type A struct {\n\ta int\n\tb string\n}"],
        ),
        (
            "kotlin",
            "class $C($$$P) : $B() { $$$M }",
            "class A(val a: Int, b: String) : C() { fun f() {} }",
            &["class A(val a: Int, b: String) : C() { fun f() {} }"],
        ),
        (
            "swift",
            "func $F($$$A) -> $R { $$$B }",
            "class A { func f(a: Int, b: Int) -> Int { return 1 } }",
            &["func f(a: Int, b: Int) -> Int { return 1 }"],
        ),
        (
            "php",
            "class $C extends $D { $$$B }",
            "<?php class A extends B { public $a; function f() {} }",
            &["class A extends B { public $a; function f() {} }"],
        ),
        ("php", "$this->$M($$$A)", "<?php $this->f(1, $a);", &["$this->f(1, $a)"]),
        (
            "c-sharp",
            "public $T $N { get; set; }",
            "class A { public int B { get; set; } }",
            &["public int B { get; set; }"],
        ),
        (
            "c-sharp",
            "foreach (var $X in $Y) { $$$B }",
            "class A { void F() { foreach (var a in b) { c(); } } }",
            &["foreach (var a in b) { c(); }"],
        ),
        (
            "c-sharp",
            "catch ($E $N) { $$$B }",
            "class A { void F() { try { a(); } catch (E e) { b(); } } }",
            &["catch (E e) { b(); }"],
        ),
        (
            "sql",
            "INSERT INTO $T ($$$C) VALUES ($$$V)",
            "insert into a (b, c) values (1, 2);\n",
            &["insert into a (b, c) values (1, 2)"],
        ),
        (
            "sql",
            "SELECT $$$A FROM $T WHERE $C",
            "SELECT a, b FROM c WHERE d = 1;\n",
            &["SELECT a, b FROM c WHERE d = 1"],
        ),
        (
            "scala",
            "def $F($$$A): $R = $B",
            "object A { def f(a: Int, b: Int): Int = a + b }",
            &["def f(a: Int, b: Int): Int = a + b"],
        ),
        ("haskell", "$F $A = $B", "f a = b\n", &["f a = b"]),
        (
            "elixir",
            "def $F($$$A) do $$$B end",
            "defmodule A do\n  def f(a, b) do\n    c(a)\n    d(b)\n  end\nend\n",
            &["def f(a, b) do\n    c(a)\n    d(b)\n  end"],
        ),
        (
            "ruby",
            "def $M($$$A)\n  $$$B\nend",
            "class A\n  def f(a, b)\n    c\n    d\n  end\nend\n",
            &["def f(a, b)\n    c\n    d\n  end"],
        ),
        (
            "lua",
            "function $F($$$A) $$$B end",
            "function f(a, b)\n  c()\n  d()\nend\n",
            &["function f(a, b)\n  c()\n  d()\nend"],
        ),
        (
            "bash",
            "for $X in $$$Y; do $$$B; done",
            "for a in b c; do\n  d\n  e\ndone\n",
            &["for a in b c; do\n  d\n  e\ndone"],
        ),
        (
            "cpp",
            "template <typename $T> class $C { $$$B };",
            "template <typename T> class A { int a; void f(); };",
            &["template <typename T> class A { int a; void f(); };"],
        ),
        (
            "cpp",
            "for (auto $X : $Y) { $$$B }",
            "void f() { for (auto a : b) { c(); d(); } }",
            &["for (auto a : b) { c(); d(); }"],
        ),
        (
            "cpp",
            "void $F($$$A) { $$$E }",
            "void f(int a, char b) { c(); d(); }",
            &["void f(int a, char b) { c(); d(); }"],
        ),
        ("c", "#define $A $B", "#define X 1\nint a;\n", &["#define X 1"]),
        ("c", "#include <$A>", "#include <a.h>\n#include \"b.h\"\n", &[]),
        (
            "c",
            "switch ($X) { $$$C }",
            "void f() { switch (a) { case 1: b(); break; default: c(); } }",
            &["switch (a) { case 1: b(); break; default: c(); }"],
        ),
        (
            "css",
            "@media $Q { $$$B }",
            "@media print { a { b: c } d { e: f } }",
            &["@media print { a { b: c } d { e: f } }"],
        ),
        (
            "html",
            "<div $$$A>$$$B</div>",
            "<div a=\"b\" c><p>d</p> e</div>",
            &["<div a=\"b\" c><p>d</p> e</div>"],
        ),
        ("yaml", "$K: $V", "a: b\nc: [d]\n", &["a: b", "c: [d]"]),
        ("toml", "[$A]", "[a]\nb = 1\n", &[]),
        (
            "zig",
            "fn $F($$$A) $R { $$$B }",
            "fn f(a: u8, b: u8) u8 { c(); return 1; }",
            &["fn f(a: u8, b: u8) u8 { c(); return 1; }"],
        ),
        (
            "dart",
            "$T $F($$$A) async { $$$B }",
            "class A { Future<int> f(int a) async { b(); return 1; } }",
            &["Future<int> f(int a) async { b(); return 1; }"],
        ),
        (
            "solidity",
            "function $F($$$A) public { $$$B }",
            "contract A { function f(uint a, uint b) public { c(); d(); } }",
            &["function f(uint a, uint b) public { c(); d(); }"],
        ),
        (
            "proto",
            "message $M { $$$F }",
            "syntax = \"proto3\";\nmessage A { string b = 1; int32 c = 2; }",
            &["message A { string b = 1; int32 c = 2; }"],
        ),
        ("graphql", "type $T { $$$F }", "type A { b: String c: Int }", &["type A { b: String c: Int }"]),
        ("erlang", "$F($A) -> $B.", "f(A) -> b.\n", &["f(A) -> b."]),
        ("ocaml", "let $F $A = $B", "let f a = b\n", &["let f a = b"]),
        (
            "gleam",
            "pub fn $F($$$A) { $$$B }",
            "pub fn f(a, b) {\n  c()\n  d()\n}\n",
            &["pub fn f(a, b) {\n  c()\n  d()\n}"],
        ),
        (
            "julia",
            "function $F($$$A)\n  $$$B\nend",
            "function f(a, b)\n  c()\n  d()\nend\n",
            &["function f(a, b)\n  c()\n  d()\nend"],
        ),
        (
            "r",
            "$F <- function($$$A) { $$$B }",
            "f <- function(a, b = 1) {\n  c()\n  d()\n}\n",
            &["f <- function(a, b = 1) {\n  c()\n  d()\n}"],
        ),
        ("perl", "sub $F { $$$B }", "sub f {\n  a();\n  b();\n}\n", &["sub f {\n  a();\n  b();\n}"]),
        (
            "powershell",
            "function $F { $$$B }",
            "function F {\n  Write-Host 1\n  Get-Item\n}\n",
            &["function F {\n  Write-Host 1\n  Get-Item\n}"],
        ),
        ("groovy", "def $F($$$A) { $$$B }", "def f(a, b) { c(); d() }\n", &["def f(a, b) { c(); d() }"]),
        ("fsharp", "let $F $A = $B", "let f a = b\n", &["let f a = b"]),
        ("elm", "$F $A = $B", "f a =\n    b\n", &["f a =\n    b"]),
        ("hcl", "$K = $V", "a = 1\nb {\n  c = 2\n}\n", &["a = 1", "c = 2"]),
        ("nix", "{ $$$A }: $B", "{ a, b }: c\n", &["{ a, b }: c"]),
        ("make", "$T: $D", "a: b\n\tc\nd: e\n", &["d: e"]),
        ("cmake", "if($A)\n$$$B\nendif()", "if(X)\nset(A 1)\nendif()\n", &["if(X)\nset(A 1)\nendif()"]),
        ("svelte", "<p>$X</p>", "<div><p>a</p></div>", &["<p>a</p>"]),
        ("markdown", "# $T", "# a\n\nb\n", &["# a"]),
    ]);
}

#[test]
fn fragments_that_were_read_as_something_else_are_found() {
    check(&[
        // A constructor was an enum's constant with a body.
        (
            "java",
            "A() { $$$B }",
            "class A { A() { super(); this.x = 1; } }",
            &["A() { super(); this.x = 1; }"],
        ),
        ("java", "public $C(int $X) { $$$B }", "class A { public A(int x) { } }", &["public A(int x) { }"]),
        ("java", "A(1) { void m() {} }", "enum E { A(1) { void m() {} } }", &["A(1) { void m() {} }"]),
        ("java", "super($$$A);", "class A { A() { super(1); f(); } }", &["super(1);"]),
        (
            "java",
            "@GetMapping(value = $V, $$$R)",
            "class A { @GetMapping(value = \"/y\", produces = \"z\") void f() {} }",
            &["@GetMapping(value = \"/y\", produces = \"z\")"],
        ),
        // An annotation was searched as an expression only.
        (
            "python",
            "Optional[$T]",
            "def f(x: Optional[int]) -> Optional[str]: return Optional[y]\n",
            &["Optional[int]", "Optional[str]", "Optional[y]"],
        ),
        (
            "python",
            "@app.route($$$A)\n$$$D\nasync def $F($$$P): $$$B",
            "@app.route(\"/\")\n@login\n@other(1)\nasync def f(): pass\n",
            &["@app.route(\"/\")\n@login\n@other(1)\nasync def f(): pass"],
        ),
        // A switch expression was a property called `switch`, a lambda a property's value.
        (
            "c-sharp",
            "$X switch { $$$A }",
            "class A { int f() { return x switch { 1 => 2, _ => 3 }; } }",
            &["x switch { 1 => 2, _ => 3 }"],
        ),
        (
            "c-sharp",
            "_ => $V",
            "class A { int f() { g(_ => 1); return x switch { _ => 3 }; } }",
            &["_ => 1", "_ => 3"],
        ),
        (
            "c-sharp",
            "$I => new { $$$A }",
            "class A { void f() { l.Select(i => new { i.B }); } }",
            &["i => new { i.B }"],
        ),
        // A trailing return type and a body were a variable with its value in braces, a lambda a function.
        (
            "cpp",
            "auto $F($$$A) -> $R { $$$B }",
            "auto h(int u) -> int { return u; }\nstruct A { template <class U> auto g(U u) -> decltype(u) { return u; } };",
            &["auto h(int u) -> int { return u; }", "auto g(U u) -> decltype(u) { return u; }"],
        ),
        (
            "cpp",
            "template <class $U> auto $F($$$A) -> $R { $$$B }",
            "struct A { template <class U> auto g(U u) -> decltype(u) { return u; } };",
            &["template <class U> auto g(U u) -> decltype(u) { return u; }"],
        ),
        (
            "cpp",
            "[$$$C]($$$A) { $$$B }",
            "void f() { g([&, x](int a) { return a; }); }",
            &["[&, x](int a) { return a; }"],
        ),
        (
            "cpp",
            "A(int $X) : $$$I { $$$B }",
            "class A { A(int x) : x_(x), y_(1) {} };",
            &["A(int x) : x_(x), y_(1) {}"],
        ),
        (
            "go",
            "case int, string: $$$B",
            "package a\nfunc f() { switch x := y.(type) { case int, string: g() } }",
            &["case int, string: g()"],
        ),
        (
            "php",
            "match(true) { $$$A }",
            "<?php $s = match(true) { $a > 1 => 'x', default => 'y' };",
            &["match(true) { $a > 1 => 'x', default => 'y' }"],
        ),
        (
            "swift",
            "protocol $P { $$$B }",
            "protocol P { func m() -> Int\n var v: Int { get } }\n",
            &["protocol P { func m() -> Int\n var v: Int { get } }"],
        ),
    ]);
}

#[test]
fn a_variable_in_a_macro_call_stands_for_one_argument() {
    check(&[
        (
            "rust",
            "assert_eq!($A, $B)",
            "fn f() { assert_eq!(a.b(), vec![1, 2]); assert_eq!(a, b, \"c\"); assert_eq!(x); assert_eq!(&a[1..], -1); }",
            &["assert_eq!(a.b(), vec![1, 2])", "assert_eq!(&a[1..], -1)"],
        ),
        (
            "rust",
            "println!(\"{}\", $X)",
            "fn f() { println!(\"{}\", x.unwrap()); println!(\"{}\"); }",
            &["println!(\"{}\", x.unwrap())"],
        ),
        ("rust", "vec![$X; $N]", "fn f() { vec![0u8; a + 1]; vec![0, 1]; }", &["vec![0u8; a + 1]"]),
        (
            "rust",
            "assert_eq!($A, $A)",
            "fn f() { assert_eq!(a.b, a . b); assert_eq!(a, b); }",
            &["assert_eq!(a.b, a . b)"],
        ),
    ]);
    assert_eq!(
        binding("rust", "assert!($A, $$$B)", "fn f() { assert!(x == 1, \"a\", b); }", "A").0,
        "x == 1"
    );
}

#[test]
fn what_looks_alike_to_the_grammar_is_told_apart() {
    check(&[
        ("rust", "foo(\"x\")", "fn f() { foo(\"x\"); foo(b\"x\"); foo(c\"x\"); }", &["foo(\"x\")"]),
        ("ruby", "puts \"a\"", "puts \"a\"\nputs 'a'\n", &["puts \"a\""]),
        ("c", "#define $A $B", "#define A 1\n#  define B 2\n", &["#define A 1", "#  define B 2"]),
        (
            "powershell",
            "Get-Item -Path $A -Force",
            "Get-Item -Path $x `\n  -Force\n",
            &["Get-Item -Path $x `\n  -Force"],
        ),
        ("javascript", "foo($A, b)", "foo(\u{a0}1,\u{2003}b\u{feff});", &["foo(\u{a0}1,\u{2003}b\u{feff})"]),
        ("sql", "COMMENT ON TABLE $T IS 'x'", "COMMENT ON TABLE t IS 'x';\n", &["COMMENT ON TABLE t IS 'x'"]),
    ]);
}

#[test]
fn variables_in_powershell_stand_where_its_own_do() {
    let source = "function Get-X {\n  if ($Name -eq \"a\") { Write-Host \"x $Name\" }\n  Get-ChildItem -Path $p -Recurse | Where-Object { $_.Length -gt 1 } | ForEach-Object { $_.Name }\n}\n";
    check(&[
        ("powershell", "$A -eq $B", source, &["$Name -eq \"a\""]),
        ("powershell", "if ($A) { $$$B }", source, &["if ($Name -eq \"a\") { Write-Host \"x $Name\" }"]),
        ("powershell", "Get-ChildItem -Path $P -Recurse", source, &["Get-ChildItem -Path $p -Recurse"]),
        ("powershell", "Write-Host $X", source, &["Write-Host \"x $Name\""]),
        ("powershell", "Where-Object { $$$B }", source, &["Where-Object { $_.Length -gt 1 }"]),
    ]);
}

#[test]
fn a_run_in_brackets_finds_everything_that_has_such_brackets() {
    let python = "x = {1: 2, 3: 4}\ny = {1}\nz = {}\nf({**a})\n";
    check(&[
        ("python", "{$$$A}", python, &["{1: 2, 3: 4}", "{1}", "{}", "{**a}"]),
        ("python", "f({$$$A})", python, &["f({**a})"]),
        (
            "python",
            "f({$$$A}, {$$$B})",
            "f({1}, {2: 3})\nf({1: 2}, {3})\n",
            &["f({1}, {2: 3})", "f({1: 2}, {3})"],
        ),
        ("python", "{$A}", "x = {1: 2}\ny = {1}\n", &["{1}"]),
        (
            "python",
            "isinstance($X, ($$$T))",
            "isinstance(a, (b))\nisinstance(a, (b, c))\nisinstance(a, b)\n",
            &["isinstance(a, (b))", "isinstance(a, (b, c))"],
        ),
        ("python", "except ($$$E): $$$B", "try:\n    a\nexcept (B, C):\n    d\n", &["except (B, C):\n    d"]),
        ("python", "f($$$A)", "f(1, 2)\nf((1, 2))\n", &["f(1, 2)", "f((1, 2))"]),
        ("rust", "Ok(($$$A))", "fn f() { Ok((a, b)) }\nfn g() { Ok((a)) }", &["Ok((a, b))", "Ok((a))"]),
        (
            "scala",
            "xs.foreach { $$$B }",
            "object A { xs.foreach { case (k, v) => p(k) }; xs.foreach { p } }",
            &["xs.foreach { case (k, v) => p(k) }", "xs.foreach { p }"],
        ),
        (
            "scala",
            "try { $$$A } catch { $$$B }",
            "object A { try { a } catch { case e: E => b } }",
            &["try { a } catch { case e: E => b }"],
        ),
        (
            "go",
            "type $G[$$$P] map[$K]$V",
            "package p\ntype G[K comparable, V any] map[K]V\n",
            &["type G[K comparable, V any] map[K]V"],
        ),
    ]);
}

#[test]
fn sizeof_is_asked_of_values_and_of_types() {
    let source =
        "void f(void) { a = sizeof(int); b = sizeof(struct s); c = sizeof(*d); e = malloc(sizeof(t) * 2); }";
    let all: &[&str] = &["sizeof(int)", "sizeof(struct s)", "sizeof(*d)", "sizeof(t)"];
    check(&[
        ("c", "sizeof($A)", source, all),
        ("cpp", "sizeof($A)", source, all),
        ("objc", "sizeof($A)", source, all),
        ("c", "malloc(sizeof($T) * $N)", source, &["malloc(sizeof(t) * 2)"]),
        (
            "c",
            "malloc(sizeof($T))",
            "void f(void) { p = malloc(sizeof(struct s)); }",
            &["malloc(sizeof(struct s))"],
        ),
    ]);
}

#[test]
fn a_variable_in_place_of_a_statement_is_any_statement() {
    let source = "if (a) return 1; if (b) c(); if (d) { e(); }";
    let all: &[&str] = &["if (a) return 1;", "if (b) c();", "if (d) { e(); }"];
    let c = format!("int f(void) {{ {source} }}");
    let java = format!("class A {{ int f() {{ {source} }} }}");
    let go = "package p\nfunc f() { if a { b() } else if c { d() } else { e() } }\n";
    check(&[
        ("c", "if ($A) $B", &c, all),
        ("cpp", "if ($A) $B", &c, all),
        ("java", "if ($A) $B", &java, all),
        ("javascript", "if ($A) $B", source, all),
        ("c-sharp", "if ($A) $B", &java, all),
        ("dart", "if ($A) $B", &c, all),
        ("c", "while ($A) $B", "void f(void) { while (a) continue; }", &["while (a) continue;"]),
        (
            "java",
            "for (String $S : $L) $B",
            "class A { void f() { for (String s : l) { e(s); } } }",
            &["for (String s : l) { e(s); }"],
        ),
        // With its semicolon it is an expression.
        ("c", "if ($A) $B;", &c, &["if (b) c();"]),
        ("javascript", "if ($A) $B else $C", "if (a) { b() } else { c() }", &["if (a) { b() } else { c() }"]),
        ("typescript", "if ($A) $B else $C", "if (a) b(); else c();", &["if (a) b(); else c();"]),
        (
            "go",
            "if $A { $$$B } else $C",
            go,
            &["if a { b() } else if c { d() } else { e() }", "if c { d() } else { e() }"],
        ),
    ]);
}

#[test]
fn the_first_part_of_a_for_may_be_a_declaration() {
    let source = "for (i = 0; i < n; i++) { a(); } for (int k = 0; k < n; k++) { b(); }";
    let both: &[&str] = &["for (i = 0; i < n; i++) { a(); }", "for (int k = 0; k < n; k++) { b(); }"];
    let c = format!("void f(void) {{ {source} }}");
    let java = format!("class A {{ void f() {{ {source} }} }}");
    check(&[
        ("c", "for ($A; $B; $C) { $$$D }", &c, both),
        ("cpp", "for ($A; $B; $C) { $$$D }", &c, both),
        ("java", "for ($A; $B; $C) { $$$D }", &java, both),
        ("c-sharp", "for ($A; $B; $C) { $$$D }", &java, both),
        (
            "javascript",
            "for ($A; $B; $C) { $$$D }",
            "for (let i = 0; i < n; i++) { a(i); } for (i = 0; i < n; i++) { b(i); }",
            &["for (let i = 0; i < n; i++) { a(i); }", "for (i = 0; i < n; i++) { b(i); }"],
        ),
        (
            "javascript",
            "for ($$$A; $$$B; $$$C) { $$$D }",
            "for (;;) { a(); } for (let i = 0; i < n; i++) { b(i); }",
            &["for (;;) { a(); }", "for (let i = 0; i < n; i++) { b(i); }"],
        ),
        (
            "c",
            "for ($$$A; $$$B; $$$C) { $$$D }",
            "void f(void) { for (;;) { a(); } for (int i = 0; ; ) { b(); } }",
            &["for (;;) { a(); }", "for (int i = 0; ; ) { b(); }"],
        ),
    ]);
    let bound = |name| {
        binding(
            "c",
            "for ($A; $B; $C) { $$$D }",
            "void f(void) { for (int k = 0; k < n; k++) { b(); } }",
            name,
        )
        .0
    };
    assert_eq!(["A", "B", "C"].map(bound), ["int k = 0", "k < n", "k++"]);
}

#[test]
fn a_generator_is_an_argument() {
    let source = "any(x for x in y)\nany([1])\nsum((x for x in y), 1)\n";
    check(&[
        ("python", "any($A)", source, &["any(x for x in y)", "any([1])"]),
        ("python", "any($$$A)", source, &["any(x for x in y)", "any([1])"]),
        ("python", "$F($A, $$$B)", source, &["any(x for x in y)", "any([1])", "sum((x for x in y), 1)"]),
        ("python", "any($E for $X in $Y)", source, &["any(x for x in y)"]),
        (
            "python",
            "any($A) or all($A)",
            "any(x for x in y) or all(x  for x in y)\n",
            &["any(x for x in y) or all(x  for x in y)"],
        ),
        ("python", "any($A, key=$K)", source, &[]),
    ]);
    assert_eq!(binding("python", "any($A)", source, "A").0, "x for x in y");
    assert_eq!(
        binding("python", "any($$$A)", source, "A"),
        ("x for x in y".to_owned(), vec!["x for x in y".to_owned()])
    );
}

#[test]
fn a_run_can_stand_for_clauses_branches_and_specifications() {
    let list = "x = [a for a in b if c for d in e]\n";
    check(&[
        ("python", "[$E for $$$C]", list, &["[a for a in b if c for d in e]"]),
        ("python", "{$K: $V for $$$C}", "x = {a: 1 for a in b}\n", &["{a: 1 for a in b}"]),
        ("python", "f($E for $$$C)", "f(a for a in b)\n", &["f(a for a in b)"]),
        (
            "python",
            "[$E for $X in $Y $$$C]",
            "x = [a for a in b if c]\ny = [a for a in b]\n",
            &["[a for a in b if c]", "[a for a in b]"],
        ),
        ("python", "[$E for $$$C]", "x = [a async for a in b]\n", &[]),
        (
            "python",
            "match $X: $$$C",
            "match a:\n    case 1:\n        b\n    case _:\n        c\n",
            &["match a:\n    case 1:\n        b\n    case _:\n        c"],
        ),
        (
            "ruby",
            "case $A\n$$$B\nend",
            "case a\nwhen 1 then b\nelse c\nend\n",
            &["case a\nwhen 1 then b\nelse c\nend"],
        ),
        ("ruby", "if $A\n$$$B\nend", "if a\n  b\nelse\n  c\nend\n", &[]),
        (
            "scala",
            "for {$$$A} yield $B",
            "object A { val x = for { a <- b; c <- d if e } yield c }",
            &["for { a <- b; c <- d if e } yield c"],
        ),
        ("scala", "for ($$$A) $B", "object A { for (a <- b; c <- d) e(c) }", &["for (a <- b; c <- d) e(c)"]),
        (
            "go",
            "const ($$$A)",
            "package p\nconst (\n\ta = 1\n\tb = 2\n)\n",
            &["const (\n\ta = 1\n\tb = 2\n)"],
        ),
        ("go", "var ($$$A)", "package p\nvar (\n\ta int\n)\n", &["var (\n\ta int\n)"]),
    ]);
    assert_eq!(binding("python", "[$E for $$$C]", list, "C").0, "a in b if c for d in e");
}

#[test]
fn bash_bodies_need_no_semicolon_behind_a_variable() {
    let function = "foo() {\n  a\n  b c\n}\n";
    check(&[
        ("bash", "foo() { $$$B }", function, &[function.trim_end()]),
        ("bash", "$F() { $$$B }", function, &[function.trim_end()]),
        ("bash", "function foo { $$$B }", "function foo {\n  a\n}\n", &["function foo {\n  a\n}"]),
        ("bash", "{ $$$B }", "{ a; b; }\n", &["{ a; b; }"]),
        ("bash", "if $C; then $$$B fi", "if a; then b; fi\n", &["if a; then b; fi"]),
        (
            "bash",
            "for $V in $$$L; do $$$B done",
            "for a in b c; do d $a; done\n",
            &["for a in b c; do d $a; done"],
        ),
        ("bash", "( $$$B )", "(a; b)\n", &["(a; b)"]),
    ]);
}

#[test]
fn a_statement_with_its_semicolon_is_no_part_of_another() {
    check(&[
        (
            "c",
            "struct $S { $$$F };",
            "typedef struct a { int b; } c;\nstruct d { int e; };\n",
            &["struct d { int e; };"],
        ),
        (
            "c",
            "struct $S { $$$F }",
            "typedef struct a { int b; } c;\nstruct d { int e; };\n",
            &["struct a { int b; }", "struct d { int e; }"],
        ),
    ]);
}

#[test]
fn words_that_are_values_are_nodes() {
    let source = "using System;\nusing static A.B;\nclass A { object F() { lock (this) { v(); } using var x = y(); return this; } int[] G() => new int[] { 1, 2 }; }";
    check(&[
        ("c-sharp", "lock ($A) { $$$B }", source, &["lock (this) { v(); }"]),
        ("c-sharp", "return $A;", source, &["return this;"]),
        ("c-sharp", "using $A;", source, &["using System;"]),
        ("c-sharp", "using System;", source, &["using System;"]),
        ("c-sharp", "using static $A;", source, &["using static A.B;"]),
        ("c-sharp", "using var $X = $Y;", source, &["using var x = y();"]),
        ("c-sharp", "new int[] { $$$A }", source, &["new int[] { 1, 2 }"]),
        ("php", "(int) $A", "<?php $a = (int) $b;", &["(int) $b"]),
        ("kotlin", "init { $$$B }", "class A { init { a() } }", &["init { a() }"]),
        (
            "swift",
            "if let $A = try? $B { $$$C }",
            "func f() { if let a = try? b() { c() } }",
            &["if let a = try? b() { c() }"],
        ),
    ]);
}

#[test]
fn contexts_that_mean_the_same_are_searched_together() {
    check(&[
        ("python", "$A: int", "x: int\ndef f(a: int, b: str): pass\n", &["x: int", "a: int"]),
        (
            "python",
            "$A: $T = $V",
            "x: int = 1\ndef f(a: int = 2, b=3): pass\n",
            &["x: int = 1", "a: int = 2"],
        ),
        (
            "go",
            "case $A: $$$B",
            "package p\nfunc f() { select { case <-c: d() }\nswitch x { case 1: e() } }\n",
            &["case <-c: d()", "case 1: e()"],
        ),
        ("go", "case <-$C: $$$B", "package p\nfunc f() { select { case <-c: d() } }\n", &["case <-c: d()"]),
        (
            "javascript",
            "export default $A",
            "export default function f() {}",
            &["export default function f() {}"],
        ),
        ("javascript", "export default $A", "export default a + b;", &["export default a + b"]),
        ("typescript", "export default $A", "export default class A {}", &["export default class A {}"]),
        ("typescript", "...$A", "f(...a); const { b, ...c } = d;", &["...a"]),
    ]);
}

#[test]
fn fragments_of_data_and_of_functional_languages_are_found() {
    let yaml = "ports:\n  - a\n  - b: 1\n    c: 2\nx: y\n";
    check(&[
        ("dockerfile", "CMD [$$$A]", "FROM a\nCMD [\"a\", \"b\"]\n", &["CMD [\"a\", \"b\"]"]),
        ("yaml", "ports:\n  - $$$A", yaml, &["ports:\n  - a\n  - b: 1\n    c: 2"]),
        (
            "css",
            "@keyframes $K { $$$A }",
            "@keyframes k { from { a: 1; } to { a: 2; } }",
            &["@keyframes k { from { a: 1; } to { a: 2; } }"],
        ),
        (
            "sql",
            "UPDATE $T SET $$$S WHERE $W",
            "UPDATE t SET a = 1, b = 2 WHERE c = 3;",
            &["UPDATE t SET a = 1, b = 2 WHERE c = 3"],
        ),
        ("haskell", "f :: $T", "f :: Int -> Int\nf x = x\n", &["f :: Int -> Int"]),
        ("haskell", "import $M", "import Data.List\n", &["import Data.List"]),
        (
            "ocaml",
            "match $X with $$$C",
            "let f x = match x with [] -> y | h :: t -> g t\n",
            &["match x with [] -> y | h :: t -> g t"],
        ),
        ("ocaml", "try $A with $$$B", "let r = try a with Not_found -> b\n", &["try a with Not_found -> b"]),
        (
            "ocaml",
            "type r = { $$$F }",
            "type r = { x : int; mutable y : string }\n",
            &["type r = { x : int; mutable y : string }"],
        ),
        (
            "fsharp",
            "match $X with $$$C",
            "let f x =\n  match x with\n  | A -> 1\n  | B -> 2\n",
            &["match x with\n  | A -> 1\n  | B -> 2"],
        ),
        (
            "go",
            "Name string $T",
            "package p\ntype T struct {\n\tName string `json:\"x\"`\n}\n",
            &["Name string `json:\"x\"`"],
        ),
    ]);
    assert_eq!(binding("yaml", "ports:\n  - $$$A", yaml, "A").0, "a\n  - b: 1\n    c: 2");
}

#[test]
fn loops_of_dart_are_found() {
    let dart = "void f() { while (a > 1) { a--; } for (var i = 0; i < 10; i++) { h(i); } for (final x in b) { h(x); } }";
    check(&[
        ("dart", "while ($A) { $$$B }", dart, &["while (a > 1) { a--; }"]),
        (
            "dart",
            "for (var $I = 0; $I < $N; $I++) { $$$B }",
            dart,
            &["for (var i = 0; i < 10; i++) { h(i); }"],
        ),
        ("dart", "for (final $X in $Y) { $$$B }", dart, &["for (final x in b) { h(x); }"]),
        ("dart", "for ($A; $B; $C) { $$$D }", dart, &["for (var i = 0; i < 10; i++) { h(i); }"]),
        ("dart", "typedef $F = $T;", "typedef F = void Function(int);", &["typedef F = void Function(int);"]),
        (
            "java",
            "while ($A) { $$$B }",
            "class A { void f() { while (a) { b(); } } }",
            &["while (a) { b(); }"],
        ),
        (
            "c-sharp",
            "foreach (var $X in $Y) { $$$B }",
            "class A { void F() { foreach (var x in y) { b(); } } }",
            &["foreach (var x in y) { b(); }"],
        ),
    ]);
}
