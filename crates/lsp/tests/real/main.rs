//! The tool against real servers. What is not installed is left out, unless `cargo xtask test` says that it has to be there.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod places;
#[allow(dead_code, reason = "shared with the other tests of real servers")]
mod support;
mod traps;

use haft_tool::Outcome;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::{Project, path_with};

/// A small project in one language, and what its server has to answer. Every main file uses the function beside an emoji and a CJK text.
struct Case {
    id: &'static str,
    programs: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    /// The file and line with two uses or one, after an emoji.
    main: (&'static str, u32),
    /// Where the function is defined.
    definition: &'static str,
    /// All places of the function, sorted.
    references: &'static [&'static str],
    /// Part of what hover says.
    hover: &'static str,
    /// Names in the outline of the file with the definition, sorted.
    outline: &'static [&'static str],
    /// A symbol with its implementations; `None` where the server does not offer them.
    implementation: Option<(&'static str, u32, &'static str, &'static [&'static str])>,
    calls: bool,
    search: bool,
}

const PYTHON: &[(&str, &str)] = &[
    ("pyproject.toml", "[project]\nname = \"x\"\n"),
    (
        "util.py",
        "def greet(name: str) -> str:\n    return \"hello \" + name\n\n\ndef unused() -> int:\n    return 1\n",
    ),
    (
        "main.py",
        "from util import greet\n\nemoji = \"🦀🦀\"; message = greet(emoji)\n日本 = greet(\"日本\")\n",
    ),
];

const TYPESCRIPT: &[(&str, &str)] = &[
    ("package.json", "{\"name\": \"x\"}"),
    (
        "tsconfig.json",
        "{\"compilerOptions\": {\"strict\": true, \"module\": \"esnext\", \"moduleResolution\": \"bundler\"}, \"include\": [\"*.ts\"]}",
    ),
    (
        "util.ts",
        "export function greet(name: string): string {\n  return \"hello \" + name;\n}\n\nexport interface Shape {\n  area(): number;\n}\n\nexport class Square implements Shape {\n  area(): number {\n    return 1;\n  }\n}\n",
    ),
    (
        "main.ts",
        "import { greet } from \"./util\";\n\nconst emoji = \"🦀🦀\"; const message = greet(emoji);\nconst 日本 = greet(\"日本\");\nexport { message, 日本 };\n",
    ),
];

const GO: &[(&str, &str)] = &[
    ("go.mod", "module example.com/x\n\ngo 1.21\n"),
    (
        "util.go",
        "package main\n\nfunc Greet(name string) string {\n\treturn \"hello \" + name\n}\n\ntype Shape interface {\n\tArea() int\n}\n\ntype Square struct{}\n\nfunc (Square) Area() int { return 1 }\n",
    ),
    (
        "main.go",
        "package main\n\nfunc main() {\n\temoji := \"🦀🦀\"; println(Greet(emoji))\n\t日本 := Greet(\"日本\"); println(日本)\n}\n",
    ),
];

const C: &[(&str, &str)] = &[
    (
        "compile_commands.json",
        "[{\"directory\": \"ROOT\", \"file\": \"main.c\", \"command\": \"cc -c main.c\"}, {\"directory\": \"ROOT\", \"file\": \"util.c\", \"command\": \"cc -c util.c\"}]",
    ),
    ("util.h", "const char *greet(const char *name);\n"),
    ("util.c", "#include \"util.h\"\n\nconst char *greet(const char *name) { return name; }\n"),
    (
        "main.c",
        "#include \"util.h\"\n\nint main(void) {\n  const char *emoji = \"🦀🦀\"; const char *message = greet(emoji);\n  return message[0] + greet(\"日本\")[0];\n}\n",
    ),
];

const RUST: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (
        "src/util.rs",
        "pub fn greet(name: &str) -> String {\n    name.to_owned()\n}\n\npub trait Shape {\n    fn area(&self) -> u32;\n}\n\npub struct Square;\n\nimpl Shape for Square {\n    fn area(&self) -> u32 {\n        1\n    }\n}\n",
    ),
    (
        "src/main.rs",
        "mod util;\nuse util::greet;\n\nfn main() {\n    let emoji = \"🦀🦀\"; let message = greet(emoji);\n    println!(\"{message}{}\", greet(\"日本\"));\n}\n",
    ),
];

async fn check(case: Case) {
    let Some(path) = path_with(case.programs) else { return };
    let id = case.id;
    let mut project = Project::new("project", path, case.files);
    if id == "vtsls" {
        project.switch_off(&["typescript-language-server"]);
    }
    let (file, line) = case.main;
    let name = if id == "gopls" { "Greet" } else { "greet" };
    let (definition_file, definition_line) = case.definition.rsplit_once(':').unwrap();
    let definition_line: u32 = definition_line.parse().unwrap();

    assert_eq!(project.places("definition", file, line, name).await, [case.definition], "{id} definition");
    assert_eq!(project.checkout.running().first().map(|server| server.id().to_owned()).as_deref(), Some(id));
    let references = project.places("references", definition_file, definition_line, name).await;
    assert_eq!(references, case.references, "{id} references");
    let hover = project.ask("hover", file, line, name).await;
    assert!(!hover.is_error && hover.all_text().contains(case.hover), "{id}: {}", hover.all_text());

    let outline = project.lsp(json!({ "action": "symbols", "file": definition_file })).await;
    let names = names(&outline);
    let missing: Vec<&&str> =
        case.outline.iter().filter(|name| !names.contains(&(**name).to_owned())).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "{id} outline: {}", outline.all_text());

    let search = project.lsp(json!({ "action": "symbols", "query": name })).await;
    if case.search {
        assert!(
            self::names(&search).iter().any(|found| found.trim_end_matches("()") == name),
            "{id} search: {}",
            search.all_text()
        );
    }

    match case.implementation {
        Some((file, line, symbol, expected)) => {
            assert_eq!(project.places("implementation", file, line, symbol).await, expected, "{id}");
        }
        None => {
            let outcome = project.ask("implementation", file, line, name).await;
            assert!(
                outcome.is_error && outcome.all_text().contains("does not offer"),
                "{id}: {}",
                outcome.all_text()
            );
        }
    }
    let types = project.ask("type_definition", file, line, if id == "clangd" { "emoji" } else { name }).await;
    assert!(!types.is_error, "{id} type_definition: {}", types.all_text());

    let calls = project.ask("calls", definition_file, definition_line, name).await;
    if case.calls {
        assert!(
            calls.structured["incoming"].as_array().is_some_and(|list| list.len() == 2),
            "{id} calls: {}",
            calls.all_text()
        );
    } else {
        assert!(calls.is_error, "{id} calls: {}", calls.all_text());
    }
    let actions = project.ask("code_actions", file, line, name).await;
    assert!(!actions.is_error, "{id} code_actions: {}", actions.all_text());

    // What a shell does to another file is seen, and the answer is about the disk.
    let old = std::fs::read_to_string(project.root.join(definition_file)).unwrap();
    let shifted = if id == "gopls" { old.replacen('\n', "\n\n\n", 1) } else { format!("\n\n{old}") };
    project.write(definition_file, shifted);
    let moved = format!("{definition_file}:{}", definition_line + 2);
    assert_eq!(
        project.places("definition", file, line, name).await,
        [moved],
        "{id} after a change by others"
    );
    // Deleted and created again.
    std::fs::remove_file(project.root.join(definition_file)).unwrap();
    let gone = project.ask("hover", definition_file, definition_line, name).await;
    assert!(gone.is_error && gone.all_text().contains("There is no file"), "{id}: {}", gone.all_text());
    project.write(definition_file, &old);
    assert_eq!(
        project.places("definition", file, line, name).await,
        [case.definition],
        "{id} after it came back"
    );

    let status = project.lsp(json!({ "action": "status" })).await;
    let entry = status.structured["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["id"] == id)
        .unwrap()
        .clone();
    assert_eq!(entry["root"], ".", "{id}");
    assert_eq!(entry["state"], "ready", "{id}: {entry}");
    assert!(entry["rss_bytes"].as_u64().unwrap() > 1 << 20, "{id}: {entry}");
    let pid = entry["pid"].as_u64().unwrap();
    let reload = project.lsp(json!({ "action": "reload", "file": file })).await;
    assert!(!reload.is_error, "{id}: {}", reload.all_text());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{id} outlived its reload");
    assert_eq!(project.places("definition", file, line, name).await, [case.definition], "{id} after reload");
    project.checkout.servers().shut_down().await;
    assert_eq!(project.supervisor.running(), []);
}

fn names(outcome: &Outcome) -> Vec<String> {
    let symbols = outcome.structured.get("symbols").and_then(Value::as_array).cloned().unwrap_or_default();
    symbols.iter().map(|symbol| symbol["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pyright() {
    check(Case {
        id: "pyright",
        programs: &["pyright-langserver"],
        files: PYTHON,
        main: ("main.py", 3),
        definition: "util.py:1",
        references: &["main.py:1", "main.py:3", "main.py:4", "util.py:1"],
        hover: "name: str",
        outline: &["greet", "unused"],
        implementation: None,
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn ty() {
    // The project's own choice comes before the order of the table.
    let mut files = PYTHON.to_vec();
    files[0] = ("pyproject.toml", "[project]\nname = \"x\"\n[tool.ty]\n");
    check(Case {
        id: "ty",
        programs: &["ty"],
        files: files.leak(),
        main: ("main.py", 3),
        definition: "util.py:1",
        references: &["main.py:1", "main.py:3", "main.py:4", "util.py:1"],
        hover: "name: str",
        outline: &["greet", "unused"],
        implementation: Some(("main.py", 3, "greet", &[])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn basedpyright() {
    let mut files = PYTHON.to_vec();
    files[0] = ("pyproject.toml", "[project]\nname = \"x\"\n[tool.basedpyright]\n");
    check(Case {
        id: "basedpyright",
        programs: &["basedpyright-langserver"],
        files: files.leak(),
        main: ("main.py", 3),
        definition: "util.py:1",
        references: &["main.py:1", "main.py:3", "main.py:4", "util.py:1"],
        hover: "name: str",
        outline: &["greet", "unused"],
        implementation: Some(("main.py", 3, "greet", &[])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn pyrefly() {
    let mut files = PYTHON.to_vec();
    files[0] = ("pyproject.toml", "[project]\nname = \"x\"\n[tool.pyrefly]\n");
    check(Case {
        id: "pyrefly",
        programs: &["pyrefly"],
        files: files.leak(),
        main: ("main.py", 3),
        definition: "util.py:1",
        references: &["main.py:1", "main.py:3", "main.py:4", "util.py:1"],
        hover: "name: str",
        outline: &["greet", "unused"],
        implementation: Some(("main.py", 3, "greet", &[])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn vtsls() {
    check(Case {
        id: "vtsls",
        programs: &["vtsls"],
        files: TYPESCRIPT,
        main: ("main.ts", 3),
        definition: "util.ts:1",
        references: &["main.ts:1", "main.ts:3", "main.ts:4", "util.ts:1"],
        hover: "name: string",
        outline: &["Shape", "Square", "area", "greet"],
        implementation: Some(("util.ts", 6, "area", &["util.ts:10"])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn typescript_language_server() {
    check(Case {
        id: "typescript-language-server",
        programs: &["typescript-language-server"],
        files: TYPESCRIPT,
        main: ("main.ts", 3),
        definition: "util.ts:1",
        references: &["main.ts:1", "main.ts:3", "main.ts:4", "util.ts:1"],
        hover: "name: string",
        outline: &["Shape", "Square", "area", "greet"],
        implementation: Some(("util.ts", 6, "area", &["util.ts:10"])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn clangd() {
    check(Case {
        id: "clangd",
        programs: &["clangd"],
        files: C,
        main: ("main.c", 4),
        definition: "util.c:3",
        references: &["main.c:4", "main.c:5", "util.c:3", "util.h:1"],
        hover: "const char *name",
        outline: &["greet"],
        implementation: Some(("main.c", 4, "greet", &[])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn gopls() {
    check(Case {
        id: "gopls",
        programs: &["gopls", "go"],
        files: GO,
        main: ("main.go", 4),
        definition: "util.go:3",
        references: &["main.go:4", "main.go:5", "util.go:3"],
        hover: "func Greet(name string) string",
        outline: &["Greet", "Shape", "Square"],
        implementation: Some(("util.go", 8, "Area", &["util.go:13"])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn rust_analyzer() {
    // The real one may stand behind a stand-in of rustup's on PATH.
    check(Case {
        id: "rust-analyzer",
        programs: &["rust-analyzer", "cargo"],
        files: RUST,
        main: ("src/main.rs", 5),
        definition: "src/util.rs:1",
        references: &["src/main.rs:2", "src/main.rs:5", "src/main.rs:6", "src/util.rs:1"],
        hover: "fn greet(name: &str) -> String",
        outline: &["Shape", "Square", "greet"],
        implementation: Some(("src/util.rs", 6, "area", &["src/util.rs:12"])),
        calls: true,
        search: true,
    })
    .await;
}

#[tokio::test]
async fn typescript_7() {
    let Some(path) = path_with(&["tsc"]) else { return };
    let project = Project::new("project", path, TYPESCRIPT);
    if !support::link_package(&project, "typescript-7", "typescript") {
        return;
    }
    assert_eq!(project.places("definition", "main.ts", 3, "greet").await, ["util.ts:1"]);
    let running: Vec<String> =
        project.checkout.running().iter().map(|server| server.id().to_owned()).collect();
    assert_eq!(running, ["tsgo"]);
    assert_eq!(
        project.places("references", "util.ts", 1, "greet").await,
        ["main.ts:1", "main.ts:3", "main.ts:4", "util.ts:1"]
    );
    assert_eq!(project.places("implementation", "util.ts", 6, "area").await, ["util.ts:10"]);
    let pid = project.checkout.running()[0].pid();
    project.checkout.servers().shut_down().await;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "tsc --lsp stayed after shutdown");
}
