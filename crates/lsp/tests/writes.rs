//! Diagnostics on write against the real servers (SPEC W1–W5): what a write broke is said, what was broken before is not.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "real/support.rs"]
#[allow(dead_code, reason = "shared with the other tests of real servers")]
mod support;
#[path = "real/watched.rs"]
#[allow(dead_code, reason = "shared")]
mod watched;

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use futures::FutureExt;
use pretty_assertions::assert_eq;
use serde_json::json;

use support::{Project, link_package, path_with};
use watched::{Said, Watched, without};

fn new(places: &[&str]) -> Said {
    Said { new: places.iter().map(|place| (*place).to_owned()).collect(), verified: true }
}

/// A language in which the same story is told.
struct Story {
    files: &'static [(&'static str, &'static str)],
    /// The file that is written.
    file: &'static str,
    /// A line without fault, one with a fault, and another with the very same fault.
    fine: &'static str,
    fault: &'static str,
    /// What stands before and after these lines.
    frame: (&'static str, &'static str),
}

impl Story {
    fn text(&self, lines: &[&str]) -> String {
        format!("{}{}\n{}", self.frame.0, lines.join("\n"), self.frame.1)
    }

    /// 1-based line of the first of the lines.
    fn first(&self) -> usize {
        self.frame.0.lines().count() + 1
    }

    fn at(&self, index: usize) -> String {
        format!("{}:{}", self.file, self.first() + index)
    }

    async fn tell(&self, watched: &Watched) {
        let (fine, fault) = (self.fine, self.fault);
        // The file had a fault before anybody wrote: that is not news (W3).
        let said = watched.said(&[(self.file, &self.text(&[fine, fine, fault]))]).await;
        assert_eq!(said, new(&[]), "an old fault");
        // It slides: no news (W2).
        let said = watched.said(&[(self.file, &self.text(&[fine, fine, fine, fault]))]).await;
        assert_eq!(said, new(&[]), "an old fault further down");
        // A second one of the same kind is news.
        let said = watched.said(&[(self.file, &self.text(&[fault, fine, fine, fault]))]).await;
        assert_eq!(said, new(&[&self.at(0)]), "a second one");
        let said = watched.said(&[(self.file, &self.text(&[fine, fine]))]).await;
        assert_eq!(said, new(&[]), "all mended");
        // One that was mended and comes back is news again.
        let said = watched.said(&[(self.file, &self.text(&[fine, fault]))]).await;
        assert_eq!(said, new(&[&self.at(1)]), "one comes back");
        // Others change the file: what they broke is no news of the next write.
        watched.project.write(self.file, self.text(&[fault, fault, fine]));
        let said = watched.said(&[(self.file, &self.text(&[fault, fault, fine, fine]))]).await;
        assert_eq!(said, new(&[]), "broken by others");
        let said = watched.said(&[(self.file, &self.text(&[fine, fault, fault, fault]))]).await;
        assert_eq!(said.new.len(), 1, "one more than before: {said:?}");
    }
}

const PYTHON: Story = Story {
    files: &[
        ("pyproject.toml", "[project]\nname = \"p\"\nversion = \"1\"\n"),
        ("a.py", "emoji = \"🦀🦀日本\"\nx: int = \"a\"\n"),
    ],
    file: "a.py",
    fine: "emoji = \"🦀🦀日本\"",
    fault: "x: int = \"a\"",
    frame: ("", ""),
};

const TYPESCRIPT: Story = Story {
    files: &[
        ("package.json", "{\"name\": \"p\"}"),
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"types\": [], \"ignoreDeprecations\": \"6.0\"}}",
        ),
        ("a.ts", "export {};\n{ const e = \"🦀日本\"; void e; }\n{ const x: number = \"a\"; void x; }\n"),
    ],
    file: "a.ts",
    fine: "{ const e = \"🦀日本\"; void e; }",
    fault: "{ const x: number = \"a\"; void x; }",
    frame: ("export {};\n", ""),
};

const C: Story = Story {
    files: &[
        ("compile_flags.txt", "-Wall\n"),
        ("a.c", "void f(void) {\n  const char *e = \"🦀日本\"; (void)e;\n  missing_one = 1;\n}\n"),
    ],
    file: "a.c",
    fine: "  (void)\"🦀日本\";",
    fault: "  missing_one = 1;",
    frame: ("void f(void) {\n", "}\n"),
};

const GO: Story = Story {
    files: &[
        ("go.mod", "module p\n\ngo 1.21\n"),
        ("a.go", "package p\n\nfunc F() {\n\t_ = \"🦀日本\"\n\tvar _ int = \"a\"\n}\n"),
    ],
    file: "a.go",
    fine: "\t_ = \"🦀日本\"",
    fault: "\tvar _ int = \"a\"",
    frame: ("package p\n\nfunc F() {\n", "}\n"),
};

const RUST: Story = Story {
    files: &[
        ("Cargo.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n"),
        ("src/lib.rs", "pub fn f() {\n    let _ = \"🦀日本\";\n    let _: u32 = \"a\";\n}\n"),
    ],
    file: "src/lib.rs",
    fine: "    let _ = \"🦀日本\";",
    fault: "    let _: u32 = \"a\";",
    frame: ("pub fn f() {\n", "}\n"),
};

async fn tell(story: &Story, programs: &[&str], package: Option<(&str, &str)>, disable: &[&str]) {
    let Some(path) = path_with(programs) else { return };
    let project = Project::new("p", path, story.files);
    if let Some((item, package)) = package
        && !link_package(&project, item, package)
    {
        return;
    }
    let project = without(project, disable);
    let watched = Watched::new(project);
    story.tell(&watched).await;
    let servers: Vec<String> =
        watched.project.checkout.running().iter().map(|server| server.id().to_owned()).collect();
    assert!(!servers.iter().any(|id| disable.contains(&id.as_str())), "{servers:?}");
    watched.project.checkout.servers().shut_down().await;
    assert!(watched.watch.settled(Duration::from_mins(1)).await);
}

#[tokio::test]
async fn pyright() {
    tell(&PYTHON, &["pyright-langserver"], None, &["basedpyright", "ty", "pyrefly", "ruff"]).await;
}

#[tokio::test]
async fn basedpyright() {
    // As it is set by itself, and with a second declaration, it finds more than one thing wrong with a line.
    let files = [
        ("pyproject.toml", "[tool.basedpyright]\ntypeCheckingMode = \"standard\"\n"),
        ("a.py", "emoji = \"🦀🦀日本\"\nprint(missing_one)\n"),
    ];
    let story = Story { files: Box::leak(Box::new(files)), fault: "print(missing_one)", ..PYTHON };
    tell(&story, &["basedpyright-langserver"], None, &["pyright", "ty", "pyrefly", "ruff"]).await;
}

#[tokio::test]
async fn pyrefly() {
    tell(&PYTHON, &["pyrefly"], None, &["pyright", "basedpyright", "ty", "ruff"]).await;
}

#[tokio::test]
async fn vtsls() {
    let package = Some(("typescript-language-server", "typescript"));
    tell(&TYPESCRIPT, &["vtsls"], package, &["tsgo", "typescript-language-server", "eslint"]).await;
}

#[tokio::test]
async fn ty() {
    tell(&PYTHON, &["ty"], None, &["pyright", "basedpyright", "pyrefly", "ruff"]).await;
}

#[tokio::test]
async fn ty_with_ruff_beside_it() {
    tell(&PYTHON, &["ty", "ruff"], None, &["pyright", "basedpyright", "pyrefly"]).await;
}

#[tokio::test]
async fn typescript_language_server() {
    tell(
        &TYPESCRIPT,
        &["typescript-language-server"],
        Some(("typescript-language-server", "typescript")),
        &["tsgo", "vtsls", "eslint"],
    )
    .await;
}

#[tokio::test]
async fn typescript_7() {
    tell(
        &TYPESCRIPT,
        &[],
        Some(("typescript-7", "typescript")),
        &["typescript-language-server", "vtsls", "eslint"],
    )
    .await;
}

#[tokio::test]
async fn clangd() {
    tell(&C, &["clangd"], None, &[]).await;
}

#[tokio::test]
async fn gopls() {
    tell(&GO, &["gopls", "go"], None, &[]).await;
}

/// rust-analyzer now and then never ends a check that it began, or loading the project. "Not verified" is the right word for it, and the story is told again.
#[tokio::test]
async fn rust_analyzer() {
    const TRIES: usize = 3;
    for attempt in 1..=TRIES {
        let told = AssertUnwindSafe(tell(&RUST, &["rust-analyzer", "cargo"], None, &[])).catch_unwind().await;
        let Err(panic) = told else { return };
        let words = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        let is_slow =
            ["cargo check had not ended", "had not answered"].iter().any(|slow| words.contains(slow));
        if attempt == TRIES || !is_slow {
            resume_unwind(panic);
        }
    }
}

/// What a server says of a file that is in no build must not pass for "no problems": its types were never looked at.
async fn is_not_called_clean(
    programs: &[&str],
    files: &[(&str, &str)],
    file: &str,
    // Whether each has an error that shows without its project.
    texts: &[(&str, bool)],
    why: &str,
) {
    let Some(path) = path_with(programs) else { return };
    let watched = Watched::new(Project::new("project", path, files));
    let answer = watched.project.lsp(json!({ "action": "diagnostics", "file": file })).await;
    assert_eq!(answer.structured["verified"], false, "{answer:?}");
    assert!(answer.all_text().contains(why), "{answer:?}");
    for (text, shows) in texts {
        let note = watched.write(&[(file, text)]).await;
        assert_eq!(note.structured["verified"], false, "{note:?}");
        let because = note.structured["unverified_because"].to_string();
        assert!(because.contains(why), "{note:?}");
        // What is no sentence of the language is told all the same.
        assert_eq!(because.contains(&format!("what it finds all the same: {file}:")), *shows, "{note:?}");
    }
}

#[tokio::test]
async fn a_go_file_of_no_build_is_not_called_clean() {
    let other = "//go:build special\n\npackage main\n\nfunc other() int {\n\treturn 1\n}\n";
    is_not_called_clean(
        &["gopls", "go"],
        &[
            ("go.mod", "module x\n\ngo 1.19\n"),
            ("main.go", "package main\n\nfunc main() {}\n"),
            ("other.go", other),
        ],
        "other.go",
        &[(&other.replace("return 1", "return missing"), false)],
        "it has not analysed the file as part of the project",
    )
    .await;
}

#[tokio::test]
async fn a_rust_file_that_no_module_names_is_not_called_clean() {
    is_not_called_clean(
        &["rust-analyzer", "cargo"],
        &[
            ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("src/loose.rs", "pub fn one() -> u8 {\n    1\n}\n"),
        ],
        "src/loose.rs",
        &[("pub fn one() -> u8 {\n    missing()\n}\n", false), ("pub fn one( -> u8 {\n", true)],
        "it has not analysed the file as part of the project",
    )
    .await;
}

/// clangd says of a file whose includes have changed what it finds with those from before, first, and under the new version.
#[tokio::test]
async fn clangd_is_not_believed_about_includes_from_before() {
    const HEADERS: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";
    const MAIN: &str = "#include <stdio.h>\n#include \"util.h\"\n\nint main(void) {\n  return twice(4);\n}\n";
    let Some(path) = path_with(&["clangd"]) else { return };
    let twice = format!("{HEADERS}static inline int twice(int a) {{ return a * 2; }}\n");
    let files = [("compile_flags.txt", "-xc\n-std=c11\n"), ("util.h", &twice), ("main.c", MAIN)];
    let watched = Watched::new(Project::new("project", path, &files));
    let without = MAIN.replace("#include \"util.h\"\n", "");
    let news = new(&["main.c:4"]);
    for _ in 0..3 {
        assert_eq!(watched.said(&[("main.c", &without)]).await, news, "without the header");
        assert_eq!(watched.said(&[("main.c", MAIN)]).await, new(&[]), "with the header");
    }
    // The header changes under it: by others, which is no news of the next write but is known, and by Haft.
    watched.project.write("util.h", HEADERS);
    assert_eq!(watched.said(&[("main.c", &MAIN.replace('4', "5"))]).await, new(&[]), "broken by others");
    let answer = watched.project.lsp(json!({ "action": "diagnostics", "file": "main.c" })).await;
    assert!(answer.all_text().contains("main.c:5: error"), "{answer:?}");
    watched.project.write("util.h", &twice);
    assert_eq!(watched.said(&[("main.c", MAIN)]).await, new(&[]), "mended by others");
    assert_eq!(watched.said(&[("util.h", HEADERS)]).await, new(&["main.c:5"]), "broken by Haft");
}
