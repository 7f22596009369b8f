//! Odd places: names, links, line ends, nested roots.

use pretty_assertions::assert_eq;

use crate::support::{Project, path_with};

const UTIL: &str = "def greet(name: str) -> str:\n    return name\n";
const MAIN: &str = "from util import greet\n\nemoji = \"🦀\"; x = greet(emoji)\n";

fn files() -> Vec<(&'static str, &'static str)> {
    vec![("pyproject.toml", "[project]\nname = \"x\"\n"), ("util.py", UTIL), ("main.py", MAIN)]
}

#[tokio::test]
async fn a_root_with_every_odd_character() {
    for program in ["pyright-langserver", "ty"] {
        let Some(path) = path_with(&[program]) else { continue };
        let mut files = files();
        if program == "ty" {
            files[0].1 = "[project]\nname = \"x\"\n[tool.ty]\n";
        }
        let project = Project::new("dír é 日本 #1 [x] 100%25 a+b@c", path, &files);
        assert_eq!(project.places("definition", "main.py", 3, "greet").await, ["util.py:1"], "{program}");
        assert_eq!(
            project.places("references", "util.py", 1, "greet").await,
            ["main.py:1", "main.py:3", "util.py:1"],
            "{program}"
        );
        project.checkout.servers().shut_down().await;
    }
}

#[tokio::test]
async fn windows_line_ends_and_a_byte_order_mark() {
    let Some(path) = path_with(&["ty"]) else { return };
    let util = format!("\u{feff}{}", UTIL.replace('\n', "\r\n"));
    let main = format!("\u{feff}{}", MAIN.replace('\n', "\r\n"));
    let files = [
        ("pyproject.toml", "[project]\nname = \"x\"\n[tool.ty]\n"),
        ("util.py", &*util),
        ("main.py", &*main),
    ];
    let project = Project::new("project", path, &files);
    assert_eq!(project.places("definition", "main.py", 3, "greet").await, ["util.py:1"]);
    assert_eq!(project.places("definition", "main.py", 1, "greet").await, ["util.py:1"]);
    assert_eq!(
        project.places("references", "util.py", 1, "greet").await,
        ["main.py:1", "main.py:3", "util.py:1"]
    );
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn a_directory_reached_through_a_link() {
    let Some(path) = path_with(&["clangd"]) else { return };
    let files = [
        ("real/compile_flags.txt", "-std=c11\n"),
        ("real/util.h", "int answer(void);\n"),
        ("real/main.c", "#include \"util.h\"\nint main(void) { return answer(); }\n"),
    ];
    let project = Project::new("project", path, &files);
    std::os::unix::fs::symlink("real", project.root.join("link")).unwrap();
    assert_eq!(project.places("definition", "link/main.c", 2, "answer").await, ["real/util.h:1"]);
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn nested_roots_have_servers_of_their_own_and_two_runs_share_them() {
    let Some(path) = path_with(&["ty"]) else { return };
    let files = [
        ("pyproject.toml", "[tool.ty]\n"),
        ("util.py", UTIL),
        ("main.py", MAIN),
        ("inner/pyproject.toml", "[tool.ty]\n"),
        ("inner/util.py", "\ndef greet(name: str) -> str:\n    return name\n"),
        ("inner/main.py", MAIN),
    ];
    let project = Project::new("project", path, &files);
    let (outer, inner, again) = tokio::join!(
        project.places("definition", "main.py", 3, "greet"),
        project.places("definition", "inner/main.py", 3, "greet"),
        project.places("definition", "main.py", 1, "greet"),
    );
    assert_eq!(
        (outer, inner, again),
        (vec!["util.py:1".into()], vec!["inner/util.py:2".into()], vec!["util.py:1".into()])
    );
    let other = project.again();
    assert_eq!(other.places("definition", "main.py", 3, "greet").await, ["util.py:1"]);
    let roots: Vec<String> = project
        .checkout
        .running()
        .iter()
        .filter(|server| server.id() == "ty")
        .map(|server| project.checkout.workdir().show(server.root()))
        .collect();
    assert_eq!(roots, [".", "inner"]);
    project.checkout.servers().shut_down().await;
}
