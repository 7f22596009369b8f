//! A few lines in every language, with what the language has of its own.

pub(crate) const SAMPLES: &[(&str, &str)] = &[
    (
        "bash",
        "if [ -f \"$x\" ]; then\n  rm -rf \"$dir/build\" && echo done\nfi\nfor f in a b; do cat \"$f\" | grep -v x; done\nfunction go() {\n  local a=1\n  return 0\n}\ncase $x in a) foo ;; esac\ncat <<EOF | wc -l\ntext here\nEOF\n",
    ),
    (
        "c",
        "#  define MAX(a, b) ((a) > (b) ? (a) : (b))\n#include <stdio.h>\nstatic int add(int a, int b) {\n  if (a == b) return a << 1;\n  for (int i = 0; i < a; i++) { printf(\"%d\\n\", i); }\n  return p->next->value + buf[3];\n}\nstruct point { int x; int y; };\n",
    ),
    (
        "c-sharp",
        "using System;\nnamespace A {\n  [Serializable]\n  public class B : C {\n    public int F { get; set; } = 3;\n    async Task<int> Go(List<string> a) {\n#region x\n      var y = await a.Where(z => z.Length > 1).ToListAsync();\n#endregion\n      if (y is null) { throw new E($\"no {a}\"); }\n      return y ?? 0;\n    }\n  }\n}\n",
    ),
    (
        "cmake",
        "set(A 1)\nif(NOT DEFINED B)\n  message(STATUS \"x ${A}\")\nendif()\ntarget_link_libraries(app PRIVATE foo bar)\n",
    ),
    (
        "cpp",
        "#include <vector>\ntemplate <typename T> T max(T a, T b) { return a > b ? a : b; }\nnamespace n { class B : public A { public: int f() const override { return this->x; } }; }\nint main() {\n  std::vector<std::map<int, int>> v;\n  auto g = [&](int x) { return x >> 1; };\n  delete[] p;\n  std::cout << g(1) << std::endl;\n}\n",
    ),
    (
        "css",
        "@media (max-width: 10px) { .a > .b:hover { color: red; margin: 0 auto; } }\n#x { background: url(a.png) no-repeat; width: calc(1px + 2%); }\n",
    ),
    (
        "dart",
        "import 'a.dart';\nclass A extends B {\n  @override\n  Widget build(BuildContext context) {\n    return Text('a', style: const S(color: red));\n  }\n  void dispose() { x?.dispose(); super.dispose(); setState(() { y = 1; }); }\n}\n",
    ),
    (
        "dockerfile",
        "FROM alpine:3.1 AS base\nRUN apt-get update && \\\n  apt-get install -y curl\nENV A=1 B=2\nCOPY --from=base /a /b\nCMD [\"a\", \"b\"]\n",
    ),
    ("dtd", "<!ELEMENT a (b, c?)>\n<!ATTLIST a d CDATA #REQUIRED>\n<!ENTITY e \"f\">\n"),
    (
        "elixir",
        "defmodule A do\n  def f(x) when x > 1 do\n    x |> Enum.map(fn y -> y + 1 end) |> IO.inspect(label: \"a\")\n  end\n  defp g(a), do: a not in [1, 2]\nend\n",
    ),
    (
        "elm",
        "module Main exposing (..)\n\nadd a b =\n    a + b\n\nview model =\n    div [ class \"a\" ] [ text (String.fromInt model.count) ]\n",
    ),
    (
        "erlang",
        "-module(a).\n-export([f/1]).\nf(X) when X > 1 ->\n  io:format(\"~p\", [X]),\n  case g(X) of ok -> {ok, X}; _ -> error end.\n",
    ),
    ("fsharp", "module A\nlet add a b = a + b\nlet f x = List.map (fun y -> y + 1) x\n"),
    (
        "gleam",
        "import gleam/io\npub fn main() {\n  let x = 1\n  io.println(\"a\")\n  case x { 1 -> True _ -> False }\n}\n",
    ),
    (
        "go",
        "package main\nimport \"fmt\"\ntype A struct { B int `json:\"b\"` }\nfunc (a *A) F(x int) (int, error) {\n\tif err := g(x); err != nil {\n\t\treturn 0, fmt.Errorf(\"x: %w\", err)\n\t}\n\tgo func() { ch <- x }()\n\treturn a.B + len(s[1:]), nil\n}\n",
    ),
    (
        "graphql",
        "type A implements B { a(x: Int = 1): [String!]! @deprecated }\nquery Q($a: Int) { user(id: $a) { name, ...F } }\n",
    ),
    ("groovy", "class A {\n  def f(x) {\n    println(x)\n    return x.y(1)\n  }\n}\n"),
    (
        "haskell",
        "module A where\nimport qualified Data.Map as M\nf :: Int -> Maybe Int\nf x | x > 1 = Just (x + 1)\n    | otherwise = Nothing\ng xs = map (\\y -> y + 1) (filter even xs)\n",
    ),
    (
        "hcl",
        "resource \"aws_s3_bucket\" \"b\" {\n  bucket = \"x-${var.name}\"\n  tags = { a = 1 }\n  lifecycle { prevent_destroy = true }\n}\nlocals { x = [for s in var.l : upper(s)] }\n",
    ),
    (
        "html",
        "<!DOCTYPE html>\n<div class=\"a\" id='b'><p>text here</p><br/><img src=\"x.png\"></div>\n<script>var a = 1;</script>\n",
    ),
    (
        "java",
        "package a;\nimport java.util.List;\n@Service(name = \"a\")\npublic final class B<T> extends C implements D {\n  private final Map<String, List<T>> e = new HashMap<>();\n  @Override\n  public int f(int... g) throws E {\n    for (String s : g) { System.out.println(s + \"x\"); }\n    return list.stream().filter(x -> x > 1).map(A::b).count() >> 1;\n  }\n}\n",
    ),
    (
        "javascript",
        "import { a, b } from './c';\nexport default async function f(x, ...y) {\n  const { z } = await g(x?.y ?? 1);\n  if (z === null) throw new Error(`no ${x}`);\n  return y.map((w) => w * 2).filter(Boolean);\n}\nclass A extends B { static get c() { return super.d; } }\nconst e = <Foo bar={1} baz=\"x\">text {y}</Foo>;\n",
    ),
    ("json", "{\"a\": [1, 2, {\"b\": null}], \"c\": \"d\"}\n"),
    (
        "julia",
        "function f(x::Int; y=1)\n  if x > 1 && y == 2\n    println(\"a $x\")\n  end\n  return [i^2 for i in 1:x]\nend\nstruct A\n  b::Int\nend\n",
    ),
    (
        "kotlin",
        "package a\n@Test\nclass A(private val b: Int) : C() {\n  override fun f(x: List<String>): Int? {\n    val y = x.map { it.length }.filter { it > 1 }\n    return when (y) { is A -> 1; else -> null }\n  }\n}\n",
    ),
    (
        "lua",
        "local function f(a, b)\n  if a ~= nil and b then return a.b:c(1) end\n  for i = 1, #t do print(t[i] .. \"x\") end\nend\n",
    ),
    ("make", "A := b\nall: a.o b.o\n\t$(CC) -o $@ $^ \\\n\t  -lm\nifeq ($(A),b)\nX += y\nendif\n"),
    ("markdown", "# Title\n\nSome text with `code`.\n\n- one\n- two\n"),
    (
        "nix",
        "{ pkgs ? import <nixpkgs> {} }:\nlet x = 1; in pkgs.mkShell { buildInputs = with pkgs; [ a b ]; shellHook = ''\n  echo ${x}\n''; }\n",
    ),
    (
        "objc",
        "#import <Foundation/Foundation.h>\n@interface A : NSObject\n- (void)go:(int)x with:(NSString *)y;\n@end\n@implementation A\n- (void)go:(int)x with:(NSString *)y {\n  [self foo:x bar:@\"a\"];\n  if (x == 1) { return; }\n}\n@end\n",
    ),
    (
        "ocaml",
        "let rec f x = match x with\n  | Some y when y > 1 -> y + 1\n  | None -> 0\nlet g = List.map (fun x -> x * 2) [1; 2]\ntype t = { mutable a : int; b : string }\n",
    ),
    ("ocaml-interface", "val f : int -> string list\ntype t = { a : int }\n"),
    (
        "perl",
        "use strict;\nsub f { my ($a, $b) = @_; return $a->{x} + $b->[1]; }\nif ($x =~ /a/) { print \"b $x\\n\"; } elsif ($y) { die 'no'; }\nforeach my $i (1..3) { push @a, $i; }\n",
    ),
    (
        "php",
        "<?php\nnamespace A;\nuse B\\C;\n#[Route('/x')]\nfinal class D extends E {\n  public function f(?int $a = 1): array {\n    IF ($a === null) { throw new X(\"no $a\"); }\n    return array_map(fn($x) => $x + 1, $this->items['k']);\n  }\n}\n",
    ),
    (
        "powershell",
        "function Get-X {\n  param([string]$Name)\n  if ($Name -eq 'a') { Write-Host \"x $Name\" }\n  Get-Item -Path $Name `\n    -Force | Where-Object { $_.Length -gt 1 }\n}\n",
    ),
    (
        "proto",
        "syntax = \"proto3\";\nmessage A { repeated string b = 1; map<string, int32> c = 2; }\nservice S { rpc F (A) returns (stream A); }\n",
    ),
    (
        "python",
        "import os.path as p\n@app.route(\"/x\", methods=[\"GET\"])\nasync def f(a: int, *b, c=1, **d) -> None:\n    if a is not None and c not in b:\n        raise E(f\"no {a}\") from None\n    with open(a) as g, h:\n        x = [y for y in g if y]\n    try:\n        return os.path.join(a, 'b', key=lambda z: z.w)\n    except (A, B) as e:\n        pass\n",
    ),
    (
        "r",
        "f <- function(x, ...) {\n  if (x > 1 && !is.null(y)) return(x[[1]]$a)\n  df %>% filter(a == 1) |> print()\n}\n",
    ),
    (
        "ruby",
        "class A < B\n  attr_reader :a\n  def f(x, *y, k: 1, &b)\n    return nil unless x && y.any? { |z| z > 1 }\n    puts \"a #{x}\", 'b'\n    @c ||= { :d => 1, e: 2 }\n  rescue E => e\n    raise\n  end\nend\n",
    ),
    (
        "rust",
        "use std::{fs, io};\n#[derive(Debug)]\npub struct A<'a> { b: &'a str }\nimpl<'a> A<'a> {\n  pub async fn f<T: Clone>(&self, x: Vec<Vec<T>>) -> Result<u8, E> {\n    let y = x.iter().map(|z| z.len() as u8).collect::<Vec<_>>();\n    match y { Some(n) if n > 1 => n, _ => return Err(E::new(b\"x\", \"y\")?) }\n  }\n}\n",
    ),
    (
        "scala",
        "package a\ncase class A(b: Int) extends C with D\nobject E {\n  def f(x: List[Int])(implicit y: F): Option[Int] = x.map(_ + 1).headOption match {\n    case Some(z) if z > 1 => Some(z)\n    case _ => None\n  }\n}\n",
    ),
    (
        "solidity",
        "pragma solidity ^0.8.0;\ncontract A is B {\n  mapping(address => uint) public m;\n  function f(uint a) external view returns (uint) {\n    require(a > 1, \"no\");\n    emit E(msg.sender, a);\n    return m[msg.sender] + a;\n  }\n}\n",
    ),
    (
        "sql",
        "SELECT a.b, count(*) AS c FROM t AS a LEFT JOIN u ON a.id = u.id WHERE a.x = 1 and b IS NOT NULL GROUP BY a.b ORDER BY c DESC;\nCREATE TABLE t (id INT NOT NULL, n VARCHAR(10) DEFAULT 'x');\nINSERT INTO t (a, b) VALUES (1, 'y');\n",
    ),
    ("svelte", "<script>let a = 1;</script>\n{#if a}<p class=\"x\">{a}</p>{:else}<b>no</b>{/if}\n"),
    (
        "swift",
        "import Foundation\n@objc class A: B, C {\n  var x: [String: Int] = [:]\n  func f(_ a: Int?, by b: String) throws -> Int {\n    guard let c = a else { return 0 }\n    let d = b.map { $0.count }.filter { $0 > 1 }\n    return try foo(c, label: d) ?? x[\"k\"]!\n  }\n}\n",
    ),
    ("toml", "[a.b]\nc = [1, 2]\nd = { e = \"f\", g = true }\n[[h]]\ni = 1979-05-27\n"),
    (
        "tsx",
        "export function A({ b }: P): JSX.Element {\n  const [c, setC] = useState<string | null>(null);\n  return <div className={b} onClick={() => setC('x')}>{c ?? <Foo {...b} />} text</div>;\n}\n",
    ),
    (
        "typescript",
        "import type { A } from './a';\nexport abstract class B<T extends C> implements D {\n  private readonly e?: Map<string, T[]> = new Map();\n  async f(@Inject() g: number, ...h: T[]): Promise<void> {\n    const i = (g as unknown as string)!.length satisfies number;\n    return this.e?.get(`x`) ?? undefined;\n  }\n}\ntype K = keyof typeof x & { l: 'm' | 1 };\ninterface N { o(p: string): q is r; }\n",
    ),
    ("xml", "<?xml version=\"1.0\"?>\n<a b=\"c\"><d>text</d><e f='g'/></a>\n"),
    ("yaml", "a:\n  b: c\n  d: [1, 2]\n  e: { f: g }\nh:\n  - i: \"j\"\n    k: 'l'\n"),
    (
        "zig",
        "const std = @import(\"std\");\npub fn f(comptime T: type, x: []const u8) !T {\n  if (x.len == 0) return error.Empty;\n  switch (x[0]) { 1 => return 1, else => {} }\n  defer std.debug.print(\"a {}\", .{x});\n}\n",
    ),
];
