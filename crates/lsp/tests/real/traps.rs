//! What other agents have got wrong.

use haft_lsp::servers::{ServerOverride, Table};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::support::{Project, path_with};

#[tokio::test]
async fn a_marker_without_a_program_and_a_program_without_a_marker_start_nothing() {
    let nowhere = std::ffi::OsString::from("/nowhere");
    let project = Project::new(
        "project",
        nowhere,
        &[("go.mod", "module x\n"), ("x.go", "package x\n"), ("y.py", "x = 1\n"), ("z.unknown", "")],
    );
    let texts = [
        project.ask("hover", "x.go", 1, "x").await.all_text(),
        project.ask("hover", "y.py", 1, "x").await.all_text(),
        project.ask("hover", "z.unknown", 1, "x").await.all_text(),
        project.ask("hover", "missing.py", 1, "x").await.all_text(),
        project.lsp(json!({ "action": "hover" })).await.all_text(),
        project.lsp(json!({ "action": "symbols" })).await.all_text(),
        project.lsp(json!({ "action": "symbols", "query": "x" })).await.all_text(),
        project.lsp(json!({ "action": "diagnostics" })).await.all_text(),
    ];
    insta::assert_snapshot!(texts.join("\n---\n"));
    assert_eq!(project.supervisor.running(), []);
}

#[tokio::test]
async fn status_tells_both_halves_of_every_known_server() {
    let nowhere = std::ffi::OsString::from("/nowhere");
    let project = Project::new("project", nowhere, &[("go.mod", "module x\n"), ("sub/package.json", "{}")]);
    let status = project.lsp(json!({ "action": "status" })).await;
    let home = project.checkout.servers().resolver().own_place("x").unwrap();
    let home = home.parent().unwrap().display().to_string();
    insta::assert_snapshot!(status.all_text().replace(&home, "CACHE"));
    let servers = status.structured["servers"].as_array().unwrap();
    let ids: std::collections::BTreeSet<&str> =
        servers.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), project.checkout.table().servers().len());
    let gopls = servers.iter().find(|entry| entry["id"] == "gopls").unwrap();
    assert_eq!(
        (&gopls["marker"], &gopls["binary"], &gopls["state"]),
        (&json!("go.mod"), &json!(null), &json!("unavailable"))
    );
}

#[tokio::test]
async fn fixes_are_staged_and_nothing_is_written() {
    let Some(path) = path_with(&["typescript-language-server"]) else { return };
    let main = "const answer: number = helper();\n";
    let files = [
        ("package.json", "{}"),
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"strict\": true, \"module\": \"esnext\", \"moduleResolution\": \"bundler\"}, \"include\": [\"*.ts\"]}",
        ),
        ("util.ts", "export function helper(): number {\n  return 1;\n}\n"),
        ("main.ts", main),
    ];
    let project = Project::new("project", path, &files);
    let outcome = project.ask("code_actions", "main.ts", 1, "helper").await;
    let actions = outcome.structured["actions"].as_array().unwrap();
    let import = actions
        .iter()
        .find(|action| action["title"].as_str().unwrap().contains("import"))
        .unwrap_or_else(|| panic!("no import: {}", outcome.all_text()));
    assert_eq!(import["edit_id"], "edit_1", "{}", outcome.all_text());
    assert_eq!(import["files"], json!(["main.ts"]));
    assert_eq!(std::fs::read_to_string(project.root.join("main.ts")).unwrap(), main);
    let set = project.staged.0.lock().unwrap()[0].0.clone();
    project.changes.commit(set, "test").await.unwrap();
    let after = std::fs::read_to_string(project.root.join("main.ts")).unwrap();
    assert!(after.starts_with("import { helper } from") && after.ends_with(main), "{after}");
    project.checkout.servers().shut_down().await;
}

#[tokio::test]
async fn settings_reach_servers_that_need_them() {
    let Some(path) = path_with(&["vscode-css-language-server", "vscode-json-language-server"]) else {
        return;
    };
    let files = [
        ("package.json", "{\n  \"name\": \"x\"\n}\n"),
        ("a.css", ":root { --main: red; }\n.x { color: var(--main); }\n"),
    ];
    let project = Project::new("project", path, &files);
    assert_eq!(project.places("definition", "a.css", 2, "--main").await, ["a.css:1"]);
    let outline = project.lsp(json!({ "action": "symbols", "file": "package.json" })).await;
    assert_eq!(outline.structured["symbols"][0]["name"], "name");
    let none = project.ask("definition", "package.json", 2, "name").await;
    assert!(none.all_text().contains("vscode-json-language-server"), "{}", none.all_text());
    project.checkout.servers().shut_down().await;
}

/// tsserver reports no progress for it, so waiting for progress would be waiting in vain.
#[tokio::test]
async fn a_definition_in_a_project_without_a_configuration_file_is_not_the_import() {
    let Some(path) = path_with(&["typescript-language-server"]) else { return };
    let files = [
        ("package.json", "{}"),
        ("util.js", "export function greet(n) { return n; }\n"),
        ("main.js", "import { greet } from \"./util.js\";\nconst a = greet(1);\n"),
    ];
    let project = Project::new("project", path, &files);
    assert_eq!(project.places("definition", "main.js", 2, "greet").await, ["util.js:1"]);
    project.checkout.servers().shut_down().await;
}

/// One entry that makes no sense used to switch all language servers off.
#[tokio::test]
async fn a_broken_entry_in_config_switches_off_that_server_and_no_other() {
    let Some(path) = path_with(&["ty", "pyright-langserver"]) else { return };
    let files = [("pyproject.toml", "[project]\nname = \"x\"\n"), ("a.py", "x = 1\ny = x\n")];
    let mut project = Project::new("project", path, &files);
    let entry = |text: &str| toml::from_str::<ServerOverride>(text).unwrap();
    let overrides = [
        ("mine".to_owned(), entry("command = ['mine']\nlanguages = { my = 'my' }\n")),
        ("pyright".to_owned(), entry("command = []\n")),
        ("basedpyright".to_owned(), entry("disabled = true\n")),
    ];
    project.with_table(Table::shipped().unwrap().with_what_fits(&overrides.into()));
    let first = project.ask("definition", "a.py", 2, "x").await;
    assert!(!first.is_error, "{}", first.all_text());
    let second = project.ask("definition", "a.py", 2, "x").await;
    project.write("b.my", "x\n");
    let unknown = project.ask("definition", "b.my", 1, "x").await;
    let status = project.lsp(json!({ "action": "status" })).await;
    let said: Vec<String> = status.all_text().lines().rev().take(2).map(str::to_owned).collect();
    insta::assert_snapshot!(
        [first.all_text(), second.all_text(), unknown.all_text(), said.join("\n")].join("\n---\n")
    );
    let servers = status.structured["servers"].as_array().unwrap();
    let state = |id: &str| servers.iter().find(|one| one["id"] == id).unwrap()["state"].clone();
    assert_eq!(
        (state("ty"), state("pyright"), state("mine")),
        (json!("ready"), json!("disabled"), json!("disabled"))
    );
    project.checkout.servers().shut_down().await;
}
