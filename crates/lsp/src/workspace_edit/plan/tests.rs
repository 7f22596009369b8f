use std::fs;

use haft_system::Workdir;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::uri;

struct Place {
    _root: tempfile::TempDir,
    root: PathBuf,
    changes: Changes,
}

fn place(files: &[(&str, &str)]) -> Place {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("project");
    for (name, text) in files {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let workdir = Workdir::new(&project).unwrap();
    let real = workdir.root().to_owned();
    let (changes, _) = Changes::open(workdir, root.path().join("journal")).unwrap();
    Place { _root: root, root: real, changes }
}

impl Place {
    fn uri(&self, file: &str) -> String {
        uri::from_path(&self.root.join(file))
    }

    fn replace(&self, file: &str, hits: &[(u32, u32, u32)], new: &str) -> Value {
        self.versioned(file, Value::Null, hits, new)
    }

    fn versioned(&self, file: &str, version: Value, hits: &[(u32, u32, u32)], new: &str) -> Value {
        let edits: Vec<Value> = hits
            .iter()
            .map(|(line, from, to)| {
                json!({"range": {"start": {"line": line, "character": from}, "end": {"line": line, "character": to}}, "newText": new})
            })
            .collect();
        json!({"textDocument": {"uri": self.uri(file), "version": version}, "edits": edits})
    }

    async fn plan(&self, steps: Vec<Value>) -> Result<EditPlan, EditError> {
        self.plan_with(steps, &|_| None, Some("greet")).await
    }

    async fn plan_with(
        &self,
        steps: Vec<Value>,
        open: &(dyn Fn(&Path) -> Option<Open> + Sync),
        replaces: Option<&str>,
    ) -> Result<EditPlan, EditError> {
        let edit = WorkspaceEdit::parse(&json!({"documentChanges": steps}))?;
        let encoding = PositionEncoding::Utf16;
        Planner { changes: &self.changes, encoding, open, named: None, replaces }.plan(&edit).await
    }

    async fn why_not(&self, steps: Vec<Value>) -> String {
        let error = self.plan(steps).await.unwrap_err().to_string();
        let above = self.root.parent().unwrap().to_str().unwrap();
        error.replace(self.root.to_str().unwrap(), "[root]").replace(above, "[above]")
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read(self.root.join(file)).ok().map(|bytes| String::from_utf8(bytes).unwrap())
    }
}

#[tokio::test]
async fn edits_of_several_files_keep_line_ends_and_byte_order_mark() {
    let place = place(&[("a.ts", "\u{feff}const e = \"🦀\"; greet(greet)\r\n"), ("b.ts", "greet()\n")]);
    let plan = place
        .plan(vec![
            place.replace("a.ts", &[(0, 22, 27), (0, 16, 21)], "hi\nho"),
            place.replace("b.ts", &[(0, 0, 5)], "hi"),
        ])
        .await
        .unwrap();
    let file = |file: &str, edits| PlannedFile { file: file.into(), from: None, edits };
    assert_eq!(plan.files, vec![file("a.ts", 2), file("b.ts", 1)]);
    place.changes.commit(plan.set, "test").await.unwrap();
    assert_eq!(place.read("a.ts").unwrap(), "\u{feff}const e = \"🦀\"; hi\r\nho(hi\r\nho)\r\n");
    assert_eq!(place.read("b.ts").unwrap(), "hi()\n");
}

#[tokio::test]
async fn file_operations_and_edits_in_order() {
    let place = place(&[
        ("src/greet/mod.rs", "fn greet() {}\n"),
        ("src/greet/sub.rs", "x\n"),
        ("src/main.rs", "mod greet;\n"),
    ]);
    let plan = place
        .plan(vec![
            place.replace("src/main.rs", &[(0, 4, 9)], "hello"),
            place.replace("src/greet/mod.rs", &[(0, 3, 8)], "hello"),
            json!({"kind": "rename", "oldUri": place.uri("src/greet"), "newUri": place.uri("src/hello")}),
            place.replace("src/hello/mod.rs", &[(0, 0, 0)], "pub "),
            json!({"kind": "create", "uri": place.uri("src/new.rs")}),
            json!({"kind": "delete", "uri": place.uri("gone.rs"), "options": {"ignoreIfNotExists": true}}),
        ])
        .await
        .unwrap();
    let file = |file: &str, from: Option<&str>, edits| PlannedFile {
        file: file.into(),
        from: from.map(Into::into),
        edits,
    };
    assert_eq!(
        plan.files,
        vec![
            file("src/main.rs", None, 1),
            file("src/hello/mod.rs", Some("src/greet/mod.rs"), 2),
            file("src/hello/sub.rs", Some("src/greet/sub.rs"), 0),
            file("src/new.rs", None, 0),
        ]
    );
    assert_eq!(plan.emptied, vec![place.root.join("src/greet")]);
    place.changes.commit(plan.set, "test").await.unwrap();
    let now = ["src/hello/mod.rs", "src/hello/sub.rs", "src/main.rs", "src/new.rs", "src/greet/mod.rs"]
        .map(|file| place.read(file));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(now, [text("pub fn hello() {}\n"), text("x\n"), text("mod hello;\n"), text(""), None]);
}

#[tokio::test]
async fn a_file_that_moves_and_is_replaced_in_the_same_edit() {
    let place = place(&[("a.ts", "old a\n"), ("b.ts", "old b\n")]);
    let plan = place
        .plan(vec![
            json!({"kind": "rename", "oldUri": place.uri("a.ts"), "newUri": place.uri("b.ts"), "options": {"overwrite": true}}),
            json!({"kind": "create", "uri": place.uri("a.ts")}),
        ])
        .await
        .unwrap();
    place.changes.commit(plan.set, "test").await.unwrap();
    assert_eq!((place.read("a.ts"), place.read("b.ts")), (Some(String::new()), Some("old a\n".into())));
}

#[tokio::test]
async fn what_must_not_be_touched_refuses_the_whole_edit() {
    let place = place(&[
        ("a.ts", "greet()\n"),
        ("node_modules/x/i.ts", "greet()\n"),
        (".gitignore", "dist/\n"),
        ("dist/o.ts", "greet()\n"),
        ("pic.ts", "\u{0}\u{1}greet\n"),
    ]);
    let good = || place.replace("a.ts", &[(0, 0, 5)], "hi");
    let mut said = Vec::new();
    for file in ["node_modules/x/i.ts", "dist/o.ts", "../other.ts", ".git/config", "pic.ts", "none.ts"] {
        said.push(place.why_not(vec![good(), place.replace(file, &[(0, 0, 5)], "hi")]).await);
    }
    said.push(place.why_not(vec![place.replace("a.ts", &[(0, 0, 5), (0, 3, 7)], "hi")]).await);
    said.push(place.why_not(vec![json!({"kind": "create", "uri": place.uri("a.ts")})]).await);
    said.push(
        place
            .why_not(vec![
                json!({"kind": "rename", "oldUri": place.uri("none.ts"), "newUri": place.uri("b.ts")}),
            ])
            .await,
    );
    said.push(
        place
            .why_not(vec![
                json!({"kind": "rename", "oldUri": place.uri("a.ts"), "newUri": place.uri("pic.ts")}),
            ])
            .await,
    );
    insta::assert_snapshot!(said.join("\n"));
    assert_eq!(place.read("a.ts").unwrap(), "greet()\n");
}

#[tokio::test]
async fn an_edit_for_another_text_than_the_one_on_disk_is_refused() {
    let place = place(&[("a.ts", "// new line\ngreet()\n")]);
    let hit = |version: Value| vec![place.versioned("a.ts", version, &[(0, 0, 5)], "hi")];
    let mut said = vec![place.plan(hit(Value::Null)).await.unwrap_err().to_string()];
    let old = |_: &Path| Some(Open { version: 4, text: "greet()\n".into() });
    for version in [json!(3), json!(4), Value::Null] {
        said.push(place.plan_with(hit(version), &old, None).await.unwrap_err().to_string());
    }
    insta::assert_snapshot!(said.join("\n"));
    let same = |_: &Path| Some(Open { version: 4, text: "// new line\ngreet()\n".into() });
    assert!(place.plan_with(hit(json!(4)), &same, None).await.is_ok());
}
