//! Changes that others make (a shell, git) between two calls, against the real servers (SPEC L5): what is answered right after one is about the files as they are.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "real/support.rs"]
#[allow(dead_code, reason = "shared with the other tests of real servers")]
mod support;
#[path = "real/watched.rs"]
#[allow(dead_code, reason = "shared")]
mod watched;

use std::fs;

use haft_lsp::LspRename;
use haft_tool::{Call, Context, Family, Origin, Registry, Surface};
use pretty_assertions::assert_eq;
use serde_json::json;

use support::{Project, link_package, path_with};
use watched::{Watched, without};

/// A function in a directory of its own that `user` calls; a constant in a directory that git ignores, which `generated_user` uses.
struct Story {
    files: &'static [(&'static str, &'static str)],
    /// The file of the function, as it is, and with a signature that the use does not fit.
    lib: (&'static str, &'static str, &'static str),
    user: &'static str,
    /// Where the function is, for a question about its uses.
    symbol: (&'static str, u32, &'static str),
    /// A generated file, as it is, and with what its use does not fit.
    generated: (&'static str, &'static str, &'static str),
    generated_user: &'static str,
    /// Another file that uses the function.
    late: (&'static str, &'static str),
    /// A directory that can be taken away.
    directory: &'static str,
    /// One of many files that use the function.
    many: fn(usize) -> (String, String),
    /// How often each of them does.
    each: usize,
}

const PYTHON: Story = Story {
    files: &[
        ("pyproject.toml", "[project]\nname = \"p\"\nversion = \"1\"\n"),
        (".gitignore", "gen/\n"),
        ("lib/__init__.py", ""),
        ("lib/a.py", "def greet(x: int) -> int:\n    return x\n"),
        ("main.py", "from lib.a import greet\n\ngreet(1)\n"),
        ("gen/__init__.py", ""),
        ("gen/pb.py", "VALUE: int = 1\n"),
        ("useg.py", "from gen.pb import VALUE\n\nx: int = VALUE\n"),
    ],
    lib: (
        "lib/a.py",
        "def greet(x: int) -> int:\n    return x\n",
        "def greet(x: int, y: int) -> int:\n    return x\n",
    ),
    user: "main.py",
    symbol: ("lib/a.py", 1, "greet"),
    generated: ("gen/pb.py", "VALUE: int = 1\n", "VALUE: str = \"\"\n"),
    generated_user: "useg.py",
    late: ("late.py", "from lib.a import greet\n\ngreet(2)\n"),
    directory: "lib",
    many: |n| (format!("many/m{n}.py"), "from lib.a import greet\n\ngreet(2)\n".into()),
    each: 2,
};

const TYPESCRIPT: Story = Story {
    files: &[
        ("package.json", "{\"name\": \"p\"}"),
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"target\": \"es2020\", \"module\": \"esnext\", \"moduleResolution\": \"bundler\", \"types\": []}}",
        ),
        (".gitignore", "gen/\n"),
        ("lib/a.ts", "export function greet(x: number): number {\n  return x;\n}\n"),
        ("main.ts", "import { greet } from \"./lib/a\";\n\ngreet(1);\n"),
        ("gen/pb.ts", "export const value: number = 1;\n"),
        ("useg.ts", "import { value } from \"./gen/pb\";\n\nexport const x: number = value;\n"),
    ],
    lib: (
        "lib/a.ts",
        "export function greet(x: number): number {\n  return x;\n}\n",
        "export function greet(x: number, y: number): number {\n  return x + y;\n}\n",
    ),
    user: "main.ts",
    symbol: ("lib/a.ts", 1, "greet"),
    generated: ("gen/pb.ts", "export const value: number = 1;\n", "export const value: string = \"\";\n"),
    generated_user: "useg.ts",
    late: ("late.ts", "import { greet } from \"./lib/a\";\n\ngreet(2);\n"),
    directory: "lib",
    many: |n| (format!("many/m{n}.ts"), "import { greet } from \"../lib/a\";\n\ngreet(2);\n".into()),
    each: 2,
};

const GO: Story = Story {
    files: &[
        ("go.mod", "module example.com/p\n\ngo 1.21\n"),
        (".gitignore", "gen/\n"),
        ("lib/a.go", "package lib\n\nfunc Greet(x int) int { return x }\n"),
        (
            "main.go",
            "package main\n\nimport \"example.com/p/lib\"\n\nfunc main() { println(lib.Greet(1)) }\n",
        ),
        ("gen/pb.go", "package gen\n\nvar Value int = 1\n"),
        ("useg/u.go", "package useg\n\nimport \"example.com/p/gen\"\n\nvar X int = gen.Value\n"),
    ],
    lib: (
        "lib/a.go",
        "package lib\n\nfunc Greet(x int) int { return x }\n",
        "package lib\n\nfunc Greet(x, y int) int { return x + y }\n",
    ),
    user: "main.go",
    symbol: ("lib/a.go", 3, "Greet"),
    generated: (
        "gen/pb.go",
        "package gen\n\nvar Value int = 1\n",
        "package gen\n\nvar Value string = \"\"\n",
    ),
    generated_user: "useg/u.go",
    late: (
        "late.go",
        "package main\n\nimport \"example.com/p/lib\"\n\nfunc late() int { return lib.Greet(2) }\n",
    ),
    directory: "lib",
    many: |n| {
        (
            format!("many{n}/m.go"),
            format!("package many{n}\n\nimport \"example.com/p/lib\"\n\nvar M = lib.Greet(2)\n"),
        )
    },
    each: 1,
};

async fn rename(project: &Project, arguments: serde_json::Value) -> haft_tool::Outcome {
    let tool = LspRename::new(project.checkout.clone(), project.changes.clone());
    let registry = Registry::builder().tool(tool, Family::Workshop).build();
    let call = Call::new("lsp_rename", arguments, Origin::Console);
    registry.call(&Surface::agent(), call, Context::detached()).await
}

async fn is_clean(watched: &Watched, file: &str, after: &str) -> bool {
    let answer = watched.project.lsp(json!({ "action": "diagnostics", "file": file })).await;
    assert!(!answer.is_error, "{after}: {answer:?}");
    assert_eq!(answer.structured["verified"], true, "{after}: {answer:?}");
    let list = answer.structured["diagnostics"].as_array().unwrap();
    !list.iter().any(|one| one["severity"] == "error")
}

async fn tell(
    story: &Story,
    programs: &[&str],
    package: Option<(&str, &str)>,
    server: &str,
    without_some: &[&str],
) {
    let Some(path) = path_with(programs) else { return };
    let project = without(Project::new("project", path, story.files), without_some);
    if let Some((item, package)) = package
        && !link_package(&project, item, package)
    {
        return;
    }
    let watched = Watched::new(project);
    let project = &watched.project;
    let (lib, fine, broken) = story.lib;
    let (generated, generated_fine, generated_broken) = story.generated;
    assert!(is_clean(&watched, story.user, "the start").await);
    assert!(is_clean(&watched, story.generated_user, "the start").await);
    assert_eq!(
        project.checkout.running().iter().map(|one| one.id().to_owned()).collect::<Vec<_>>(),
        [server]
    );
    let mut wrong: Vec<String> = Vec::new();
    for round in 0..2 {
        let mut expect = |after: &str, expected: bool, clean: bool| {
            if expected != clean {
                wrong.push(format!("{after} (round {round}): clean is {clean}"));
            }
        };
        project.write(lib, broken);
        expect("a closed file is broken", false, is_clean(&watched, story.user, "broken").await);
        project.write(lib, fine);
        expect("it is mended", true, is_clean(&watched, story.user, "mended").await);
        project.write(generated, generated_broken);
        expect(
            "generated code is broken",
            false,
            is_clean(&watched, story.generated_user, "generated").await,
        );
        project.write(generated, generated_fine);
        expect("it is mended, too", true, is_clean(&watched, story.generated_user, "generated").await);
        fs::remove_file(project.root.join(lib)).unwrap();
        expect("the file is taken away", false, is_clean(&watched, story.user, "removed").await);
        project.write(lib, fine);
        expect("it is back", true, is_clean(&watched, story.user, "back").await);
        let (here, away) = (project.root.join(story.directory), project.root.with_extension("away"));
        fs::rename(&here, &away).unwrap();
        expect("the directory is taken away", false, is_clean(&watched, story.user, "moved away").await);
        fs::rename(&away, &here).unwrap();
        expect("it is back as well", true, is_clean(&watched, story.user, "moved back").await);
    }
    assert_eq!(wrong, Vec::<String>::new());

    let (file, line, symbol) = story.symbol;
    let uses = project.places("references", file, line, symbol).await.len();
    let (late, text) = story.late;
    project.write(late, text);
    let places = project.places("references", file, line, symbol).await;
    assert!(places.len() > uses && places.iter().any(|place| place.starts_with(late)), "{places:?}");

    fs::remove_file(project.root.join(late)).unwrap();

    // As many as git brings with another branch. In a server that knows only some of them, the answer says so.
    let (many, each) = (story.many, story.each);
    let uses = |answer: &haft_tool::Outcome| answer.structured["total"].as_u64().unwrap() as usize;
    let ask = json!({ "action": "references", "file": file, "line": line, "symbol": symbol });
    let before = project.lsp(ask.clone()).await;
    assert!(!before.all_text().contains(&format!("{late}:")), "it was taken away: {}", before.all_text());
    let before = uses(&before);
    for (begun, count) in [(0, 20), (20, 60)] {
        for number in begun..count {
            let (file, text) = many(number);
            project.write(&file, &text);
        }
        let answer = project.lsp(ask.clone()).await;
        let is_told = answer.all_text().contains("files that have come since it started");
        assert_eq!(is_told, server == "pyrefly" && count > 48, "{count}: {}", answer.all_text());
        assert!(is_told || uses(&answer) == before + each * count, "{count}: {}", answer.all_text());
    }
    for number in 0..60 {
        fs::remove_file(project.root.join(many(number).0)).unwrap();
    }

    // A file that Haft writes is there for those that have waited for it.
    fs::remove_file(project.root.join(lib)).unwrap();
    assert!(!is_clean(&watched, story.user, "removed").await);
    watched.write(&[(lib, fine)]).await;
    assert!(is_clean(&watched, story.user, "written by Haft").await);
    // What others broke is no news of a write that has nothing to do with it.
    project.write(lib, broken);
    let text = fs::read_to_string(project.root.join(story.user)).unwrap();
    assert_eq!(watched.said(&[(story.user, &format!("{text}\n"))]).await.new, Vec::<String>::new());
    assert!(!is_clean(&watched, story.user, "broken again").await);
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn pyright() {
    tell(&PYTHON, &["pyright-langserver"], None, "pyright", &["ruff"]).await;
}

#[tokio::test]
async fn basedpyright() {
    tell(&PYTHON, &["basedpyright-langserver"], None, "basedpyright", &["pyright", "ruff"]).await;
}

#[tokio::test]
async fn ty() {
    tell(&PYTHON, &["ty"], None, "ty", &["pyright", "basedpyright", "ruff"]).await;
}

#[tokio::test]
async fn pyrefly() {
    tell(&PYTHON, &["pyrefly"], None, "pyrefly", &["pyright", "basedpyright", "ty", "ruff"]).await;
}

#[tokio::test]
async fn typescript_language_server() {
    let package = Some(("typescript-language-server", "typescript"));
    let server = "typescript-language-server";
    tell(&TYPESCRIPT, &[server], package, server, &["vtsls", "eslint"]).await;
}

#[tokio::test]
async fn vtsls() {
    let package = Some(("typescript-language-server", "typescript"));
    tell(&TYPESCRIPT, &["vtsls"], package, "vtsls", &["typescript-language-server", "eslint"]).await;
}

#[tokio::test]
async fn typescript_7() {
    tell(&TYPESCRIPT, &[], Some(("typescript-7", "typescript")), "tsgo", &["eslint"]).await;
}

#[tokio::test]
async fn gopls() {
    tell(&GO, &["gopls", "go"], None, "gopls", &[]).await;
}

/// pyright answers from the old configuration for a moment.
#[tokio::test]
async fn pyright_and_its_configuration() {
    let Some(path) = path_with(&["pyright-langserver"]) else { return };
    let loose = "[project]\nname = \"p\"\nversion = \"1\"\n";
    let strict = format!("{loose}\n[tool.pyright]\ntypeCheckingMode = \"strict\"\n");
    let files = [("pyproject.toml", loose), ("a.py", "def f(x):\n    return x\n")];
    let watched = Watched::new(Project::new("project", path, &files));
    assert!(is_clean(&watched, "a.py", "the start").await);
    for _ in 0..2 {
        watched.project.write("pyproject.toml", &strict);
        assert!(!is_clean(&watched, "a.py", "strict").await, "strict");
        watched.project.write("pyproject.toml", loose);
        assert!(is_clean(&watched, "a.py", "loose").await, "loose");
    }
}

/// `cargo check` runs after saves, and what others do is none.
#[tokio::test]
async fn rust_analyzer() {
    let Some(path) = path_with(&["rust-analyzer", "cargo"]) else { return };
    let manifest = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}")
    };
    let (fine, broken) = ("pub const D: u32 = 1;\n", "pub const E: u32 = 1;\n");
    let uses = manifest("b", "\n[dependencies]\na = { path = \"../a\" }\n");
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n"),
        ("a/Cargo.toml", &manifest("a", "")),
        ("a/src/lib.rs", "pub mod m;\n"),
        ("a/src/m.rs", fine),
        ("b/Cargo.toml", &uses),
        ("b/src/main.rs", "fn main() {\n    println!(\"{}\", a::m::D);\n}\n"),
    ];
    let watched = Watched::new(Project::new("project", path, &files));
    let main = "b/src/main.rs";
    assert!(is_clean(&watched, main, "the start").await);
    watched.project.write("a/src/m.rs", broken);
    assert!(!is_clean(&watched, main, "a closed file is broken").await);
    watched.project.write("a/src/m.rs", fine);
    assert!(is_clean(&watched, main, "it is mended").await);
    watched.project.write("b/Cargo.toml", manifest("b", ""));
    assert!(!is_clean(&watched, main, "a dependency is taken away").await);
    watched.project.write("b/Cargo.toml", &uses);
    assert!(is_clean(&watched, main, "it is back").await);
}

/// What changes in one root is told to the server of another, which may use it.
async fn two_roots(programs: &[&str], item: &str, without_some: &[&str]) {
    let Some(path) = path_with(programs) else { return };
    let config = "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"target\": \"es2020\", \"module\": \"esnext\", \"moduleResolution\": \"bundler\", \"types\": []}}";
    let (fine, broken) = (
        "export function f(x: number): number {\n  return x;\n}\n",
        "export function f(x: string): string {\n  return x;\n}\n",
    );
    let user = "import { f } from \"../a/i\";\n\nf(1);\n";
    let files =
        [("a/tsconfig.json", config), ("b/tsconfig.json", config), ("a/i.ts", fine), ("b/u.ts", user)];
    let project = without(Project::new("project", path, &files), without_some);
    if !link_package(&project, item, "typescript") {
        return;
    }
    let watched = Watched::new(project);
    assert!(is_clean(&watched, "b/u.ts", "the start").await);
    assert!(is_clean(&watched, "a/i.ts", "the start").await);
    for _ in 0..2 {
        assert_eq!(watched.said(&[("a/i.ts", broken)]).await.new, ["b/u.ts:3"]);
        assert!(!is_clean(&watched, "b/u.ts", "broken").await);
        watched.project.write("a/i.ts", fine);
        assert!(is_clean(&watched, "b/u.ts", "mended by others").await);
    }
    let arguments = json!({ "file": "a/i.ts", "line": 1, "symbol": "f", "new_name": "renamed" });
    let outcome = rename(&watched.project, arguments).await;
    assert!(!outcome.is_error, "{outcome:?}");
    let is_whole = fs::read_to_string(watched.project.root.join("b/u.ts")).unwrap().contains("renamed(1)");
    assert!(is_whole || outcome.all_text().contains("`f` also stands in b/u.ts:1"), "{}", outcome.all_text());
    watched.project.checkout.servers().shut_down().await;
}

/// A file that belongs to no project is not known to the server, and uses the name all the same.
#[tokio::test]
async fn a_rename_names_files_that_no_project_has() {
    let Some(path) = path_with(&["typescript-language-server"]) else { return };
    let config =
        "{\"include\": [\"src\"], \"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"types\": []}}";
    let files = [
        ("tsconfig.json", config),
        ("src/a.ts", "export const greeting = 1;\n"),
        ("src/b.ts", "import { greeting } from \"./a\";\nexport const b = greeting;\n"),
        ("scripts/c.ts", "import { greeting } from \"../src/a\";\nexport const c = greeting;\n"),
    ];
    let project = without(Project::new("project", path, &files), &["vtsls", "eslint"]);
    if !link_package(&project, "typescript-language-server", "typescript") {
        return;
    }
    let arguments = json!({ "file": "src/a.ts", "line": 1, "symbol": "greeting", "new_name": "renamed" });
    let outcome = rename(&project, arguments).await;
    assert!(!outcome.is_error, "{outcome:?}");
    assert!(fs::read_to_string(project.root.join("src/b.ts")).unwrap().contains("b = renamed"));
    let text = outcome.all_text();
    let named =
        "typescript-language-server did not name these, and `greeting` stands in them too: scripts/c.ts:1.";
    assert!(text.contains(named), "{text}");
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn two_roots_of_typescript_7() {
    two_roots(&[], "typescript-7", &["eslint"]).await;
}

#[tokio::test]
async fn two_roots_of_typescript_language_server() {
    let without_some = ["vtsls", "eslint"];
    two_roots(&["typescript-language-server"], "typescript-language-server", &without_some).await;
}

/// eslint answers with an empty list where its configuration cannot be read.
#[tokio::test]
async fn eslint_that_could_not_run_has_not_found_nothing() {
    let Some(path) = path_with(&["vscode-eslint-language-server"]) else { return };
    let good = "export default [{ rules: { \"no-unused-vars\": \"error\" } }];\n";
    let files = [
        ("package.json", "{\"name\": \"p\", \"type\": \"module\"}"),
        ("eslint.config.js", good),
        ("a.js", "const a = 1;\n"),
    ];
    let project = Project::new("project", path, &files);
    let project = without(project, &["typescript-language-server", "vtsls", "tsgo"]);
    if !link_package(&project, "eslint", "eslint") {
        return;
    }
    let watched = Watched::new(project);
    assert!(!is_clean(&watched, "a.js", "the start").await);
    watched.project.write("eslint.config.js", "export default [{ plugins: [\"nope\"] }];\n");
    let answer = watched.project.lsp(json!({ "action": "diagnostics", "file": "a.js" })).await;
    assert_eq!(answer.structured["verified"], false, "{answer:?}");
    assert!(answer.all_text().contains("eslint: it could not run: "), "{answer:?}");
    watched.project.write("eslint.config.js", good);
    assert!(!is_clean(&watched, "a.js", "mended").await);
}

/// A file that is open and that a change elsewhere breaks.
#[tokio::test]
async fn rust_analyzer_and_an_open_file() {
    let Some(path) = path_with(&["rust-analyzer", "cargo"]) else { return };
    let files = [
        ("Cargo.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/main.rs", "mod m;\n\nfn main() {\n    println!(\"{}\", m::D);\n}\n"),
        ("src/m.rs", "pub const D: u32 = 1;\n"),
    ];
    let watched = Watched::new(Project::new("project", path, &files));
    assert!(is_clean(&watched, "src/main.rs", "the start").await);
    assert_eq!(watched.said(&[("src/m.rs", "pub const D: u32 = 2;\n")]).await.new, Vec::<String>::new());
    assert_eq!(watched.said(&[("src/m.rs", "pub const E: u32 = 2;\n")]).await.new, ["src/main.rs:4"]);
}

/// A question right after a file has come is answered from what is there now.
async fn comes_back(program: &str, server: &str, without_some: &[&str]) {
    let Some(path) = path_with(&[program]) else { return };
    let util = "def greet(x: int) -> int:\n    return x\n";
    let files = [
        ("pyproject.toml", "[project]\nname = \"p\"\nversion = \"1\"\n"),
        ("util.py", util),
        ("main.py", "from util import greet\n\ngreet(1)\n"),
    ];
    let project = without(Project::new("project", path, &files), without_some);
    let definition = async || {
        let answer = project.ask("definition", "main.py", 3, "greet").await;
        assert!(!answer.is_error && !answer.all_text().contains("still loading"), "{answer:?}");
        let place = |one: &serde_json::Value| format!("{}:{}", one["file"].as_str().unwrap(), one["line"]);
        answer.structured["locations"].as_array().unwrap().iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(definition().await, ["util.py:1"], "{server}");
    for round in 0..10 {
        fs::remove_file(project.root.join("util.py")).unwrap();
        // Asked or not, it has to notice.
        if round % 2 == 0 {
            assert_ne!(definition().await, ["util.py:1"], "{server} in round {round}");
        }
        project.write("util.py", util);
        assert_eq!(definition().await, ["util.py:1"], "{server} in round {round}");
    }
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn a_file_comes_back_and_is_there() {
    comes_back("pyright-langserver", "pyright", &["ruff"]).await;
    comes_back("basedpyright-langserver", "basedpyright", &["pyright", "ruff"]).await;
    comes_back("ty", "ty", &["pyright", "basedpyright", "ruff"]).await;
    comes_back("pyrefly", "pyrefly", &["pyright", "basedpyright", "ty", "ruff"]).await;
}

/// clangd's index has files as they were when it started.
#[tokio::test]
async fn clangd_and_uses_in_files_that_are_not_open() {
    let Some(path) = path_with(&["clangd"]) else { return };
    let uses = |count: usize| {
        let line = |number| format!("int f{number}(void) {{ return greet({number}); }}\n");
        format!("#include \"a.h\"\n{}", (0..count).map(line).collect::<String>())
    };
    let fewer = uses(1);
    let files = [
        ("compile_flags.txt", "-xc\n"),
        ("a.h", "int greet(int x);\n"),
        ("main.c", "#include \"a.h\"\n\nint main(void) { return greet(1); }\n"),
        ("two.c", fewer.as_str()),
    ];
    let project = Project::new("project", path, &files);
    let found = async |file: &str| {
        let places = project.places("references", "main.c", 3, "greet").await;
        places.iter().filter(|place| place.starts_with(&format!("{file}:"))).count()
    };
    assert_eq!(found("main.c").await, 1);
    for round in 0..6 {
        let count = round % 3 + 1;
        project.write("two.c", uses(count));
        assert_eq!(found("two.c").await, count, "changed in round {round}");
        let late = format!("late{round}.c");
        project.write(&late, uses(2).replace(" f", &format!(" late{round}_")));
        assert_eq!(found(&late).await, 2, "come in round {round}");
    }
    fs::remove_file(project.root.join("two.c")).unwrap();
    assert_eq!(found("two.c").await, 0, "gone");
    project.checkout.servers().shut_down().await;
}

/// Without a list of what belongs to the project clangd has no index, and knows only the files that are open.
#[tokio::test]
async fn clangd_without_compile_commands_says_what_it_leaves_out() {
    let Some(path) = path_with(&["clangd"]) else { return };
    let user = |number: usize| {
        (
            format!("u{number:02}.c"),
            format!("#include \"a.h\"\n\nint f{number}(void) {{ return greet(1); }}\n"),
        )
    };
    let project = |count: usize| {
        let mut files = vec![
            ("Makefile".to_owned(), "all:\n".to_owned()),
            ("a.h".into(), "int greet(int x);\n".into()),
            ("a.c".into(), "#include \"a.h\"\n\nint greet(int x) { return x; }\n".into()),
        ];
        files.extend((0..count).map(user));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Project::new("project", path.clone(), &files)
    };
    let few = project(12);
    let answer = few.ask("references", "a.c", 3, "greet").await;
    assert_eq!(answer.structured["total"], 14, "{answer:?}");
    assert!(!answer.all_text().contains("compile_commands.json"), "{answer:?}");
    let salute = json!({ "file": "a.c", "line": 3, "symbol": "greet", "new_name": "salute" });
    let renamed = rename(&few, salute.clone()).await;
    assert!(!renamed.is_error, "{renamed:?}");
    assert_eq!(renamed.structured["files"].as_array().unwrap().len(), 14, "{renamed:?}");
    few.checkout.servers().shut_down().await;

    let many = project(60);
    let answer = many.ask("references", "a.c", 3, "greet").await;
    let says = "clangd has no compile_commands.json here and knows only files that are open; it leaves out 38 others";
    assert!(answer.all_text().contains(says), "{}", answer.all_text());
    let refused = rename(&many, salute).await;
    assert!(refused.is_error && refused.all_text().contains("Nothing was changed"), "{refused:?}");
    many.checkout.servers().shut_down().await;
}

/// What others do to a file that is not open is in the next answer.
#[tokio::test]
async fn rust_analyzer_has_read_what_it_was_told_of() {
    let Some(path) = path_with(&["rust-analyzer", "cargo"]) else { return };
    let callee = "pub fn greet(x: u32) -> u32 {\n    x\n}\n";
    let files = [
        ("Cargo.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/main.rs", "mod a;\n\nfn main() {\n    a::greet(1);\n}\n"),
        ("src/a.rs", callee),
    ];
    let project = Project::new("project", path, &files);
    let definition = async || project.places("definition", "src/main.rs", 4, "greet").await;
    assert_eq!(definition().await, ["src/a.rs:1"]);
    for round in 0..30 {
        let lines = round % 5 + 1;
        if round % 6 == 5 {
            fs::remove_file(project.root.join("src/a.rs")).unwrap();
            assert_eq!(definition().await, Vec::<String>::new(), "gone in round {round}");
        }
        let ends = if round % 2 == 0 { "\n" } else { "\r\n" };
        project.write("src/a.rs", format!("{}{}", ends.repeat(lines), callee.replace('\n', ends)));
        assert_eq!(definition().await, [format!("src/a.rs:{}", lines + 1)], "round {round}");
    }
    project.checkout.servers().shut_down().await;
}

/// Python's servers go on with their defaults, or with what they had before, where their configuration cannot be read.
async fn misread(program: &str, server: &str, config: &str, reason: &str, without_some: &[&str]) {
    let Some(path) = path_with(&[program]) else { return };
    let files = [("pyproject.toml", ""), (config, "[broken\n"), ("a.py", "x: int = 1\n")];
    let watched = Watched::new(without(Project::new("project", path, &files), without_some));
    let is_misread = async |after: &str| {
        let answer = watched.project.lsp(json!({ "action": "diagnostics", "file": "a.py" })).await;
        assert_eq!(answer.structured["verified"], false, "{after}: {answer:?}");
        let text = answer.all_text();
        let said = format!("{server}: it did not take the project's configuration as it is ({reason}");
        assert!(text.contains(&said) && !text.contains("No problems"), "{after}: {text}");
    };
    is_misread("the start").await;
    let note = watched.write(&[("a.py", "x: int = 2\n")]).await;
    assert_eq!(note.structured["verified"], false, "{note:?}");
    let text = note.text.unwrap();
    assert!(text.contains("did not take") && !text.contains("No new problems"), "{text}");
    let mended = if config.ends_with("json") { "{}" } else { "" };
    // Another one, further down, changes nothing of that.
    watched.project.write("deep/down/pyproject.toml", "");
    is_misread("another one comes").await;
    for round in ["once", "twice"] {
        watched.project.write(config, mended);
        assert!(is_clean(&watched, "a.py", &format!("mended {round}")).await);
        assert!(watched.said(&[("a.py", &format!("x: int = 3  # {round}\n"))]).await.verified);
        watched.project.write(config, "[broken\n");
        is_misread(&format!("broken again {round}")).await;
    }
    watched.project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn pyright_and_a_configuration_that_it_cannot_read() {
    misread("pyright-langserver", "pyright", "pyrightconfig.json", "Config file ", &["ruff"]).await;
}

#[tokio::test]
async fn basedpyright_and_a_configuration_that_it_cannot_read() {
    let without_some = ["pyright", "ruff"];
    misread("basedpyright-langserver", "basedpyright", "pyrightconfig.json", "Config file ", &without_some)
        .await;
}

#[tokio::test]
async fn ty_and_a_configuration_that_it_cannot_read() {
    let without_some = ["pyright", "basedpyright", "ruff"];
    misread("ty", "ty", "ty.toml", "Failed to load project", &without_some).await;
}

#[tokio::test]
async fn pyrefly_and_a_configuration_that_it_cannot_read() {
    misread("pyrefly", "pyrefly", "pyrefly.toml", "/", &["pyright", "basedpyright", "ty", "ruff"]).await;
}

#[tokio::test]
async fn ruff_and_a_configuration_that_it_cannot_read() {
    let without_some = ["pyright", "basedpyright", "ty", "pyrefly"];
    misread("ruff", "ruff", "ruff.toml", "Failed to ", &without_some).await;
}
