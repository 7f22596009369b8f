//! The tool against real servers. What is not installed is left out, unless `cargo xtask test` says that it has to be there.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail loudly and say what it leaves out"
)]

mod support;

use pretty_assertions::assert_eq;
use serde_json::json;
use support::{Project, path_with};

const UTIL: &str =
    "def greet(name: str) -> str:\n    return \"hello \" + name\n\n\ndef unused() -> int:\n    return 1\n";
const MAIN: &str =
    "from util import greet\n\nemoji = \"🦀🦀\"; message = greet(emoji)\n日本 = greet(\"日本\")\n";

fn python(path: std::ffi::OsString) -> Project {
    Project::new(
        "project",
        path,
        &[("pyproject.toml", "[project]\nname = \"x\"\n"), ("util.py", UTIL), ("main.py", MAIN)],
    )
}

async fn python_answers(path: std::ffi::OsString, id: &str) {
    let project = python(path);
    assert_eq!(project.places("definition", "main.py", 3, "greet").await, ["util.py:1"], "{id}");
    let running: Vec<String> =
        project.checkout.running().iter().map(|server| server.id().to_owned()).collect();
    assert!(running.iter().any(|running| running == id), "{running:?}");
    assert_eq!(
        project.places("references", "util.py", 1, "greet").await,
        ["main.py:1", "main.py:3", "main.py:4", "util.py:1"],
        "{id}"
    );
    assert_eq!(project.places("definition", "main.py", 3, "emoji#2").await, ["main.py:3"]);
    let hover = project.ask("hover", "main.py", 4, "greet").await;
    assert!(hover.all_text().contains("name: str"), "{}", hover.all_text());
    let outline = project.lsp(json!({ "action": "symbols", "file": "util.py" })).await;
    eprintln!("{}", outline.all_text());
    let search = project.lsp(json!({ "action": "symbols", "query": "greet" })).await;
    eprintln!("{}", search.all_text());
    for action in ["type_definition", "implementation", "calls", "code_actions"] {
        let outcome = project.ask(action, "main.py", 3, "greet").await;
        eprintln!("{action}: error {}: {}", outcome.is_error, outcome.all_text());
    }
    let status = project.lsp(json!({ "action": "status" })).await;
    eprintln!("{}", status.all_text());
    let reload = project.lsp(json!({ "action": "reload" })).await;
    eprintln!("{}", reload.all_text());
    // What a shell does is seen: the file that is not open any more, and the one that is.
    project.write("util.py", format!("\n\n{UTIL}"));
    assert_eq!(project.places("definition", "main.py", 3, "greet").await, ["util.py:3"], "{id}");
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn pyright() {
    let Some(path) = path_with(&["pyright-langserver"]) else { return };
    python_answers(path, "pyright").await;
}
