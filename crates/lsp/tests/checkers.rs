//! `diagnostics "*"` with the real checkers (SPEC L4): which command ran, what it found, and that a checker that fails is no clean project.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "real/support.rs"]
#[allow(dead_code, reason = "shared with the other tests of real servers")]
mod support;

use haft_tool::Outcome;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use support::{Project, link_package, path_with};

async fn check(project: &Project) -> Outcome {
    project.lsp(json!({ "action": "diagnostics", "file": "*" })).await
}

fn places(outcome: &Outcome) -> Vec<String> {
    let list = outcome.structured["diagnostics"].as_array().unwrap();
    let place = |one: &Value| {
        format!("{}:{} {}", one["file"].as_str().unwrap(), one["line"], one["severity"].as_str().unwrap())
    };
    list.iter().map(place).collect()
}

#[tokio::test]
async fn every_language_of_a_project_is_checked() {
    let Some(path) = path_with(&["cargo", "go", "pyright"]) else { return };
    let files = [
        (
            "rs/Cargo.toml",
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\nmembers = [\"member\"]\n",
        ),
        ("rs/src/lib.rs", "pub fn f() -> u32 {\n    \"a\"\n}\n"),
        ("rs/member/Cargo.toml", "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("rs/member/src/lib.rs", "pub fn g() {\n    let unused = 1;\n}\n"),
        ("py/pyproject.toml", "[tool.pyright]\n"),
        ("py/a.py", "x: int = \"a\"\n"),
        ("go/go.mod", "module p\n\ngo 1.21\n"),
        ("go/a.go", "package p\n\nfunc F() {\n\tvar _ int = \"a\"\n}\n"),
        ("web/tsconfig.json", "{\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"types\": []}}"),
        ("web/a.ts", "export const n: number = \"a\";\n"),
    ];
    let project = Project::new("p", path, &files);
    if !link_package(&project, "typescript-7", "typescript") {
        return;
    }
    let outcome = check(&project).await;
    let expected = ["go/a.go:4 error", "py/a.py:1 error", "rs/src/lib.rs:2 error", "web/a.ts:1 error"];
    let mut found = places(&outcome);
    // Whether cargo gets to the other member's warning before it stops is its own affair.
    found.retain(|place| !place.starts_with("rs/member"));
    assert_eq!(found, expected, "{}", outcome.all_text());
    assert_eq!(outcome.structured["verified"], json!(true), "{}", outcome.all_text());
    let commands: Vec<&str> = outcome.structured["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["command"].as_str().unwrap())
        .collect();
    assert_eq!(
        commands,
        [
            "cargo check --workspace --all-targets --message-format=json",
            "tsc --noEmit --pretty false -p .",
            "pyright --outputjson",
            "go build -o /dev/null ./...",
        ]
    );
}

#[tokio::test]
async fn a_checker_that_fails_is_not_a_clean_project() {
    let Some(path) = path_with(&["cargo"]) else { return };
    let project = Project::new("p", path, &[("Cargo.toml", "this is no manifest\n")]);
    let outcome = check(&project).await;
    assert_eq!(outcome.structured["verified"], json!(false), "{}", outcome.all_text());
    assert_eq!(places(&outcome), Vec::<String>::new());
    let why = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(why.contains("without naming a problem") && why.contains("Cargo.toml"), "{why}");
}

#[tokio::test]
async fn nothing_to_check_with_is_said() {
    let project = Project::new("p", std::ffi::OsString::new(), &[("notes.txt", "x\n")]);
    let outcome = check(&project).await;
    assert_eq!(outcome.structured["verified"], json!(false));
    assert!(outcome.all_text().starts_with("Not checked:"), "{}", outcome.all_text());
}
