//! A write that breaks files that nobody has opened (SPEC W5), against the real servers.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "real/support.rs"]
#[allow(dead_code, reason = "shared with the other tests of real servers")]
mod support;
#[path = "real/watched.rs"]
#[allow(dead_code, reason = "shared")]
mod watched;

use std::time::Duration;

use haft_system::Note;
use pretty_assertions::assert_eq;
use serde_json::Value;

use support::{Project, link_package, path_with};
use watched::{Watched, without};

/// A function that two other files use, one of them in another directory; one of the two has a fault of its own from before.
struct Story {
    files: &'static [(&'static str, &'static str)],
    file: &'static str,
    fine: &'static str,
    /// With a signature that the uses do not fit.
    broken: &'static str,
    /// Where the uses break then, sorted.
    uses: &'static [&'static str],
    /// A file that comes later and uses it too, which of the files it is a copy of, and where it breaks.
    late: Option<(&'static str, &'static str, &'static str)>,
}

const PYTHON: Story = Story {
    files: &[
        ("pyproject.toml", "[project]\nname = \"p\"\nversion = \"1\"\n"),
        ("a.py", "emoji = \"🦀日本\"\n\n\ndef greet(name: str) -> str:\n    return name\n"),
        ("b.py", "from a import greet\n\nold: int = \"an old fault\"\nx = \"🦀\"; y = greet(\"b\")\n"),
        ("sub/__init__.py", ""),
        ("sub/c.py", "import a\n\nz = a.greet(\"c\")\n"),
        ("free.py", "def other(name: str) -> str:\n    return name\n"),
    ],
    file: "a.py",
    fine: "emoji = \"🦀日本\"\n\n\ndef greet(name: str) -> str:\n    return name\n",
    broken: "emoji = \"🦀日本\"\n\n\ndef greet(name: str, times: int) -> str:\n    return name * times\n",
    uses: &["b.py:4", "sub/c.py:3"],
    late: Some(("late.py", "sub/c.py", "late.py:3")),
};

const TYPESCRIPT: Story = Story {
    files: &[
        ("package.json", "{\"name\": \"p\"}"),
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"target\": \"es2020\", \"module\": \"esnext\", \"moduleResolution\": \"bundler\", \"types\": []}}",
        ),
        ("a.ts", "export function greet(name: string): string {\n  return name;\n}\n"),
        (
            "b.ts",
            "import { greet } from \"./a\";\nexport const old: number = \"an old fault\";\nexport const x = \"🦀日本\" + greet(\"b\");\n",
        ),
        ("sub/c.ts", "import * as a from \"../a\";\nexport const z = a.greet(\"c\");\n"),
        ("free.ts", "export const free = 1;\n"),
    ],
    file: "a.ts",
    fine: "export function greet(name: string): string {\n  return name;\n}\n",
    broken: "export function greet(name: string, times: number): string {\n  return name.repeat(times);\n}\n",
    uses: &["b.ts:3", "sub/c.ts:2"],
    late: Some(("sub/late.ts", "sub/c.ts", "sub/late.ts:2")),
};

const GO: Story = Story {
    files: &[
        ("go.mod", "module example.com/p\n\ngo 1.21\n"),
        ("lib/a.go", "package lib\n\nfunc Greet(name string) string {\n\treturn name\n}\n"),
        (
            "main.go",
            "package main\n\nimport \"example.com/p/lib\"\n\nvar old int = \"an old fault\"\n\nfunc main() {\n\t_ = \"🦀日本\"; println(lib.Greet(\"b\"), old)\n}\n",
        ),
        (
            "sub/c.go",
            "package sub\n\nimport \"example.com/p/lib\"\n\nfunc C() string { return lib.Greet(\"c\") }\n",
        ),
    ],
    file: "lib/a.go",
    fine: "package lib\n\nfunc Greet(name string) string {\n\treturn name\n}\n",
    broken: "package lib\n\nfunc Greet(name string, times int) string {\n\treturn name\n}\n",
    uses: &["main.go:8", "sub/c.go:5"],
    late: Some(("late/c.go", "sub/c.go", "late/c.go:5")),
};

const RUST: Story = Story {
    files: &[
        ("Cargo.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n"),
        ("src/lib.rs", "pub mod a;\npub mod b;\npub mod c;\n"),
        ("src/a.rs", "pub fn greet(name: &str) -> String {\n    name.to_owned()\n}\n"),
        (
            "src/b.rs",
            "use crate::a::greet;\n\npub const OLD: u32 = \"an old fault\";\n\npub fn b() -> String {\n    let _ = \"🦀日本\"; greet(\"b\")\n}\n",
        ),
        ("src/c.rs", "pub fn c() -> String {\n    crate::a::greet(\"c\")\n}\n"),
    ],
    file: "src/a.rs",
    fine: "pub fn greet(name: &str) -> String {\n    name.to_owned()\n}\n",
    broken: "pub fn greet(name: &str, times: usize) -> String {\n    name.repeat(times)\n}\n",
    uses: &["src/b.rs:6", "src/c.rs:2"],
    late: None,
};

const C: Story = Story {
    files: &[
        (
            "compile_commands.json",
            "[{\"directory\": \"ROOT\", \"file\": \"a.c\", \"command\": \"cc -c a.c\"}, {\"directory\": \"ROOT\", \"file\": \"b.c\", \"command\": \"cc -c b.c\"}, {\"directory\": \"ROOT\", \"file\": \"sub/c.c\", \"command\": \"cc -c sub/c.c\"}]",
        ),
        ("a.h", "#pragma once\nconst char *greet(const char *name);\n"),
        ("a.c", "int unrelated(void) { return 1; }\n"),
        (
            "b.c",
            "#include \"a.h\"\n\nstatic int *old = \"an old fault\" + 1.5;\nconst char *b(void) { (void)\"🦀日本\"; return greet(\"b\"); }\n",
        ),
        ("sub/c.c", "#include \"../a.h\"\n\nconst char *c(void) { return greet(\"c\"); }\n"),
    ],
    file: "a.h",
    fine: "#pragma once\nconst char *greet(const char *name);\n",
    broken: "#pragma once\nconst char *greet(const char *name, int times);\n",
    uses: &["b.c:4", "sub/c.c:3"],
    late: None,
};

fn places(note: &Note) -> Vec<String> {
    let list = note.structured["new_diagnostics"].as_array().unwrap();
    let errors = list.iter().filter(|one| one["severity"] == "error");
    let mut places: Vec<String> =
        errors.map(|one| format!("{}:{}", one["file"].as_str().unwrap(), one["line"])).collect();
    places.sort();
    places.dedup();
    places
}

async fn tell(story: &Story, programs: &[&str], package: Option<(&str, &str)>, only: &str) {
    let Some(path) = path_with(programs) else { return };
    let project = Project::new("p", path, story.files);
    if let Some((item, package)) = package
        && !link_package(&project, item, package)
    {
        return;
    }
    let others: Vec<&str> = [
        "pyright",
        "basedpyright",
        "ty",
        "pyrefly",
        "ruff",
        "tsgo",
        "typescript-language-server",
        "vtsls",
        "eslint",
    ]
    .into_iter()
    .filter(|id| *id != only)
    .collect();
    let watched = Watched::new(without(project, &others));
    // Warm, as a server is after a first write: where it starts with this very one, what was there before may not be known.
    let first = watched.write(&[(story.file, &format!("{}\n", story.fine))]).await;
    assert_eq!(places(&first), Vec::<String>::new(), "{only}: the first write: {first:?}");
    for round in 0..2 {
        let note = watched.write(&[(story.file, story.broken)]).await;
        assert_eq!(places(&note), story.uses, "{only}, round {round}: {note:?}");
        assert_eq!(note.structured["verified"], true, "{only}: {note:?}");
        // Once more, otherwise: what is known is not told again.
        let note = watched.write(&[(story.file, &format!("{}\n", story.broken))]).await;
        assert_eq!(places(&note), Vec::<String>::new(), "{only}, told twice: {note:?}");
        let note = watched.write(&[(story.file, story.fine)]).await;
        assert_eq!(places(&note), Vec::<String>::new(), "{only}, mended: {note:?}");
        assert!(is_looked_at(&note), "{only}: {note:?}");
    }
    if let Some((file, like, place)) = story.late {
        // What was found out about the users before does not hold any more.
        let text = story.files.iter().find(|(name, _)| *name == like).unwrap().1;
        let path = watched.project.checkout.workdir().root().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let note = watched.write(&[(story.file, story.broken)]).await;
        let mut uses: Vec<&str> = story.uses.iter().copied().chain([place]).collect();
        uses.sort_unstable();
        assert_eq!(places(&note), uses, "{only}, with one that has come: {note:?}");
    }
    let ids: Vec<String> =
        watched.project.checkout.running().iter().map(|server| server.id().to_owned()).collect();
    assert_eq!(ids, [only]);
    watched.project.checkout.servers().shut_down().await;
    assert!(watched.watch.settled(Duration::from_mins(1)).await);
}

/// Whether nothing was left out beside the changed file.
fn is_looked_at(note: &Note) -> bool {
    let Some(others) = note.structured.get("other_files") else { return true };
    let is_empty = |field: &str| others[field].as_array().is_some_and(Vec::is_empty);
    is_empty("waiting") && is_empty("not_looked_at") && others["looked_at"] != Value::Null
}

#[tokio::test]
async fn pyright() {
    tell(&PYTHON, &["pyright-langserver"], None, "pyright").await;
}

#[tokio::test]
async fn basedpyright() {
    tell(&PYTHON, &["basedpyright-langserver"], None, "basedpyright").await;
}

#[tokio::test]
async fn ty() {
    tell(&PYTHON, &["ty"], None, "ty").await;
}

#[tokio::test]
async fn pyrefly() {
    tell(&PYTHON, &["pyrefly"], None, "pyrefly").await;
}

#[tokio::test]
async fn typescript_language_server() {
    let package = Some(("typescript-language-server", "typescript"));
    tell(&TYPESCRIPT, &["typescript-language-server"], package, "typescript-language-server").await;
}

#[tokio::test]
async fn vtsls() {
    let package = Some(("typescript-language-server", "typescript"));
    tell(&TYPESCRIPT, &["vtsls"], package, "vtsls").await;
}

#[tokio::test]
async fn typescript_7() {
    tell(&TYPESCRIPT, &[], Some(("typescript-7", "typescript")), "tsgo").await;
}

#[tokio::test]
async fn clangd() {
    tell(&C, &["clangd"], None, "clangd").await;
}

#[tokio::test]
async fn gopls() {
    tell(&GO, &["gopls", "go"], None, "gopls").await;
}

#[tokio::test]
async fn rust_analyzer() {
    tell(&RUST, &["rust-analyzer", "cargo"], None, "rust-analyzer").await;
}
