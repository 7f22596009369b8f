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

/// One checker in a project that has chosen it.
struct Case {
    /// What its command begins with.
    command: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Exactly what is wrong with them.
    found: &'static [&'static str],
    /// What mends them.
    mended: (&'static str, &'static str),
    /// A file that spoils the configuration, and what is then said.
    spoilt: (&'static str, &'static str, &'static str),
}

const TYPES: &str = "x: int = \"🦀\"\n\n\ndef f() -> str:\n    return 1\n";
const FINE: &str = "x: int = 1\n\n\ndef f() -> str:\n    return \"\"\n";

const PYTHON: &[Case] = &[
    Case {
        command: "pyright --outputjson",
        files: &[("pyproject.toml", "[tool.pyright]\n"), ("a.py", TYPES), ("b.py", FINE)],
        found: &["a.py:1 error", "a.py:5 error"],
        mended: ("a.py", FINE),
        spoilt: ("pyproject.toml", "[tool.pyright\n", "could not be parsed"),
    },
    Case {
        command: "basedpyright --outputjson",
        files: &[("pyproject.toml", "[tool.basedpyright]\n"), ("a.py", TYPES), ("b.py", FINE)],
        found: &["a.py:1 error", "a.py:5 error"],
        mended: ("a.py", FINE),
        spoilt: ("pyproject.toml", "[[tool.basedpyright]\n[tool.basedpyright]\n", "could not be parsed"),
    },
    Case {
        command: "ty check",
        files: &[("ty.toml", ""), ("a.py", TYPES), ("b.py", FINE)],
        found: &["a.py:1 error", "a.py:5 error"],
        mended: ("a.py", FINE),
        spoilt: ("ty.toml", "nonsense = 1\n", "unknown field `nonsense`"),
    },
    Case {
        command: "pyrefly check",
        files: &[("pyrefly.toml", ""), ("a.py", TYPES), ("b.py", FINE)],
        found: &["a.py:1 error", "a.py:5 error"],
        mended: ("a.py", FINE),
        spoilt: ("pyrefly.toml", "nonsense\n", "parse"),
    },
    Case {
        command: "mypy",
        files: &[("mypy.ini", "[mypy]\n"), ("a.py", TYPES), ("b.py", FINE)],
        found: &["a.py:1 error", "a.py:5 error"],
        mended: ("a.py", FINE),
        spoilt: ("mypy.ini", "[mypy]\nnonsense = 1\n", "Unrecognized option: nonsense"),
    },
];

/// Only one of several programs on PATH, so that what runs is what the project has chosen or has at all.
async fn checked(project: &Project, case: &Case) {
    let outcome = check(project).await;
    let text = outcome.all_text();
    assert_eq!(places(&outcome), case.found, "{}: {text}", case.command);
    assert_eq!(outcome.structured["verified"], json!(true), "{}: {text}", case.command);
    assert!(
        outcome.structured["commands"][0]["command"].as_str().unwrap().starts_with(case.command),
        "{}: {text}",
        case.command
    );
    let (spoilt, broken, why) = case.spoilt;
    // Nothing is wrong with the code: the only thing that could be said is that nothing was checked as the project wants it.
    let (file, text) = case.mended;
    project.write(file, text);
    assert_eq!(check(project).await.structured["verified"], json!(true), "{} mended", case.command);
    project.write(spoilt, broken);
    let outcome = check(project).await;
    let text = outcome.all_text();
    assert_eq!(outcome.structured["verified"], json!(false), "{} spoilt: {text}", case.command);
    let said = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(said.contains(why) && !text.contains("No problems"), "{} spoilt: {text}", case.command);
}

/// mypy is a library of its interpreter: the project gets a launcher of its own, as a virtual environment has one.
fn own_mypy(project: &Project, command: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let Some(place) = support::item("mypy") else { return false };
    let bin = project.root.join(".venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\n{}\n",
        command.replace("MYPY", &format!("'{}/bin/python3' -m mypy", place.display()))
    );
    std::fs::write(bin.join("mypy"), script).unwrap();
    std::fs::set_permissions(bin.join("mypy"), std::fs::Permissions::from_mode(0o755)).unwrap();
    true
}

#[tokio::test]
async fn every_type_checker_for_python_finds_exactly_what_is_wrong_and_says_when_it_cannot_look() {
    let Some(path) = path_with(&["pyright", "basedpyright", "ty", "pyrefly"]) else { return };
    for case in PYTHON {
        let project = Project::new("p", path.clone(), case.files);
        if case.command == "mypy" && !own_mypy(&project, "exec MYPY \"$@\"") {
            return;
        }
        checked(&project, case).await;
    }
}

#[tokio::test]
async fn a_checker_that_is_killed_or_looks_at_nothing_has_not_verified_anything() {
    let Some(path) = path_with(&["pyright"]) else { return };
    let project = Project::new("p", path.clone(), &[("mypy.ini", "[mypy]\n"), ("a.py", TYPES)]);
    if !own_mypy(&project, "MYPY \"$@\"\nkill -9 $$") {
        return;
    }
    let outcome = check(&project).await;
    // What it had found before is passed on.
    assert_eq!(places(&outcome), ["a.py:1 error", "a.py:5 error"]);
    assert_eq!(outcome.structured["verified"], json!(false));
    let why = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(why.contains("signal 9"), "{why}");
    // A file that cannot be read at all ends mypy before the others.
    own_mypy(&project, "exec MYPY \"$@\"");
    project.write("b.py", "def (:\n");
    let outcome = check(&project).await;
    assert_eq!(outcome.structured["verified"], json!(false), "{}", outcome.all_text());
    let why = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(why.contains("exit code 2"), "{why}");

    let files = [("pyrightconfig.json", "{ \"include\": [\"nowhere\"] }"), ("a.py", TYPES)];
    let project = Project::new("p", path, &files);
    let outcome = check(&project).await;
    assert_eq!(outcome.structured["verified"], json!(false), "{}", outcome.all_text());
    let why = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(why.contains("no file to look at"), "{why}");
}

#[tokio::test]
async fn ruff_runs_beside_a_type_checker_where_the_project_has_chosen_it() {
    let Some(path) = path_with(&["ruff", "ty"]) else { return };
    let files = [("ty.toml", ""), ("ruff.toml", ""), ("a.py", "import os\n\nx: int = \"a\"\n")];
    let project = Project::new("p", path, &files);
    let outcome = check(&project).await;
    assert_eq!(places(&outcome), ["a.py:3 error", "a.py:1 warning"], "{}", outcome.all_text());
    assert_eq!(outcome.structured["verified"], json!(true), "{}", outcome.all_text());
    project.write("ruff.toml", "nonsense = 1\n");
    let outcome = check(&project).await;
    assert_eq!(places(&outcome), ["a.py:3 error"], "{}", outcome.all_text());
    let why = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(why.contains("unknown field `nonsense`"), "{why}");
}

#[tokio::test]
async fn eslint_with_the_rules_of_the_project() {
    let Some(path) = path_with(&["node"]) else { return };
    let case = Case {
        command: "eslint . -f json",
        files: &[
            ("package.json", "{\"type\": \"module\"}"),
            (
                "eslint.config.js",
                "export default [{ rules: { \"no-undef\": \"error\", \"no-unused-vars\": \"warn\" } }];\n",
            ),
            ("a.js", "const 日本 = \"🦀\" + missing;\n"),
            ("b.js", "export const fine = 1;\n"),
        ],
        found: &["a.js:1 error", "a.js:1 warning"],
        mended: ("a.js", "export const 日本 = 1;\n"),
        spoilt: ("eslint.config.js", "export default [{ rules: { nope: 2 } }];\n", "Could not find \"nope\""),
    };
    let project = Project::new("p", path, case.files);
    if !link_package(&project, "eslint", "eslint") {
        return;
    }
    checked(&project, &case).await;
}

#[tokio::test]
async fn every_translation_unit_is_checked_with_its_own_command() {
    let Some(path) = path_with(&["cc"]) else { return };
    let files = [
        (
            "compile_commands.json",
            "[{\"directory\": \"ROOT\", \"file\": \"a.c\", \"command\": \"cc -Wall -o a.o -c a.c\"}, {\"directory\": \"ROOT/sub dir\", \"file\": \"b.c\", \"arguments\": [\"cc\", \"-I..\", \"-c\", \"b.c\"]}, {\"directory\": \"ROOT\", \"file\": \"c.c\", \"command\": \"cc -c c.c\"}]",
        ),
        ("a.h", "int one(void)\n"),
        ("a.c", "int main(void) {\n  int unused; (void)\"🦀\";\n  return missing;\n}\n"),
        ("sub dir/b.c", "#include \"a.h\"\nint two(void);\n"),
        ("c.c", "int three(void) { return 3; }\n"),
    ];
    let project = Project::new("p", path, &files);
    let outcome = check(&project).await;
    let mut found = places(&outcome);
    // Where a compiler sees that a semicolon is missing is its own affair.
    found.retain(|place| !place.starts_with("a.h") && !place.starts_with("sub dir"));
    assert_eq!(found, ["a.c:3 error", "a.c:2 warning"], "{}", outcome.all_text());
    assert!(places(&outcome).len() > 2, "{}", outcome.all_text());
    assert_eq!(outcome.structured["verified"], json!(true), "{}", outcome.all_text());
    assert!(!project.root.join("a.o").exists() && !project.root.join("c.o").exists());
    // A compiler that is not there.
    let text = std::fs::read_to_string(project.root.join("compile_commands.json")).unwrap();
    project.write("compile_commands.json", text.replace("cc -c c.c", "no-such-cc -c c.c"));
    let outcome = check(&project).await;
    assert_eq!(outcome.structured["verified"], json!(false), "{}", outcome.all_text());
    let why = outcome.structured["unverified_because"].as_str().unwrap();
    assert!(why.contains("no-such-cc"), "{why}");
}
