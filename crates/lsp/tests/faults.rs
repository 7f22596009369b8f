//! Servers that misbehave, each in its own way. What is asserted is what a caller hears, how often the server was started and what it was sent.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::exit,
    reason = "a test may fail loudly, and this binary is also the fake server"
)]

#[path = "fake/mod.rs"]
mod fake;

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use fake::Fake;
use haft_lsp::{Checkout, Lsp, RequestError, Server, Servers};
use haft_system::{Environment, Supervisor, Workdir};
use haft_tool::{Call, Context, Family, Origin, Outcome, Registry, Surface};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

struct Scene {
    root: PathBuf,
    checkout: Checkout,
    registry: Registry,
    supervisor: Supervisor,
    fake: Fake,
    _place: tempfile::TempDir,
}

impl Scene {
    fn new(script: Value) -> Self {
        Self::with(script, &[("a.fake", "one two\nname 🦀 name\n")], Duration::from_mins(10))
    }

    fn with(script: Value, files: &[(&str, &str)], idle: Duration) -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("fake.toml"), "").unwrap();
        for (file, text) in files {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        let root = root.canonicalize().unwrap();
        let fake = Fake::new(script);
        let environment = Environment::capture();
        let supervisor = Supervisor::new(environment.clone());
        let workdir = Workdir::new(&root).unwrap();
        let servers = Servers::with_idle(environment, supervisor.clone(), idle);
        let checkout = Checkout::new(servers, workdir, fake.table("fake"));
        let tool = Lsp::new(checkout.clone());
        let registry = Registry::builder().tool(tool, Family::Workshop).build();
        Scene { root, checkout, registry, supervisor, fake, _place: place }
    }

    fn file(&self) -> PathBuf {
        self.root.join("a.fake")
    }

    async fn server(&self) -> Arc<Server> {
        self.checkout.language_server_for(&self.file()).await.unwrap()
    }

    async fn lsp(&self, arguments: Value) -> Outcome {
        let call = Call::new("lsp", arguments, Origin::Console);
        let surface = Surface::agent();
        let answer = self.registry.call(&surface, call, Context::detached());
        tokio::time::timeout(PATIENCE, answer).await.unwrap()
    }

    async fn hover(&self) -> String {
        let outcome =
            self.lsp(json!({ "action": "hover", "file": "a.fake", "line": 1, "symbol": "one" })).await;
        outcome.all_text()
    }

    /// Waits until the fake has received a message that `fits`.
    async fn received(&self, fits: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.fake.log().into_iter().find(&fits) {
                return found;
            }
            assert!(Instant::now() < until, "it never came: {:#?}", self.fake.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn end(&self) {
        self.checkout.servers().shut_down().await;
        assert_eq!(self.supervisor.running(), []);
    }
}

fn hovers() -> Value {
    json!({ "hoverProvider": true, "definitionProvider": true })
}

fn rule(on: &str, steps: Value) -> Value {
    json!({ "on": on, "do": steps })
}

#[tokio::test]
async fn every_request_of_the_server_is_answered_and_ids_are_kept_apart() {
    // Its ids are the very numbers that ours are, and texts.
    let steps = json!([
        { "ask": { "id": 1, "method": "workspace/configuration", "params": { "items": [{ "section": "fake" }] } } },
        { "ask": { "id": 2, "method": "client/registerCapability", "params": { "registrations": [] } } },
        { "ask": { "id": "2", "method": "window/workDoneProgress/create", "params": { "token": 1 } } },
        { "ask": { "id": "x", "method": "workspace/applyEdit", "params": { "edit": {} } } },
        { "ask": { "id": 99, "method": "fake/unknown", "params": null } },
        { "ask": { "id": 100, "method": "workspace/workspaceFolders" } },
        { "sleep_ms": 20 },
        { "reply_as_text": { "contents": "found" } },
    ]);
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [rule("textDocument/hover", steps)] }));
    assert_eq!(scene.hover().await, "found");
    scene.received(|message| message["id"] == 100 && message.get("result").is_some()).await;
    let log = scene.fake.log();
    let answer = |id: Value| log.iter().find(|one| one["id"] == id && one.get("method").is_none()).unwrap();
    assert_eq!(answer(json!(1))["result"], json!([{}]));
    assert_eq!(answer(json!(2))["result"], Value::Null);
    assert_eq!(answer(json!("2"))["result"], Value::Null);
    assert_eq!(answer(json!("x"))["result"]["applied"], false);
    assert_eq!(answer(json!(99))["error"]["code"], -32601);
    assert_eq!(answer(json!(100))["result"][0]["name"], "project");
    scene.end().await;
}

#[tokio::test]
async fn server_requests_before_the_answer_to_initialize_are_answered() {
    let steps = json!([
        { "ask": { "id": 7, "method": "workspace/configuration", "params": { "items": [{}] } } },
        { "sleep_ms": 20 },
        { "reply": { "capabilities": hovers() } },
    ]);
    let scene = Scene::new(json!({ "rules": [
        rule("initialize", steps), rule("textDocument/hover", json!([{ "reply": { "contents": "x" } }])),
    ] }));
    assert_eq!(scene.hover().await, "x");
    scene.received(|message| message["id"] == 7 && message["result"] == json!([{}])).await;
    scene.end().await;
}

#[tokio::test]
async fn junk_before_headers_a_flood_of_errors_and_a_message_of_fifty_megabytes() {
    let steps = json!([
        { "raw": "starting the engine...\n\n" },
        { "stderr": 4_000_000 },
        { "large": 50_000_000 },
    ]);
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [rule("textDocument/hover", steps)] }));
    let text = scene.hover().await;
    assert!(text.ends_with("… (cut; 50000000 characters in all)"), "{}", &text[text.len() - 80..]);
    scene.end().await;
}

#[tokio::test]
async fn a_storm_of_refreshes_is_answered() {
    let steps = json!([
        { "flood": { "method": "workspace/diagnostic/refresh", "count": 3000 } },
        { "reply": { "contents": "after the storm" } },
    ]);
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [rule("textDocument/hover", steps)] }));
    assert_eq!(scene.hover().await, "after the storm");
    scene.received(|message| message["id"] == "flood-2999").await;
    assert_eq!(scene.server().await.refreshes(), 3000);
    scene.end().await;
}

#[tokio::test]
async fn a_request_that_is_given_up_is_cancelled_and_a_late_answer_is_nobodys() {
    let steps = json!([{ "sleep_ms": 300 }, { "reply": { "contents": "late" } }]);
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [
        { "on": "textDocument/hover", "times": 1, "do": steps },
        rule("textDocument/hover", json!([{ "reply": { "contents": "right" } }])),
    ] }));
    let server = scene.server().await;
    let limit = Duration::from_millis(50);
    let late = server.request("textDocument/hover", json!({}), limit).await;
    assert_eq!(late, Err(RequestError::TimedOut(limit)));
    let hover = scene.received(|message| message["method"] == "textDocument/hover").await;
    let cancel = scene.received(|message| message["method"] == "$/cancelRequest").await;
    assert_eq!(cancel["params"]["id"], hover["id"]);
    assert_eq!(scene.hover().await, "right");
    // A caller that goes away cancels too.
    drop(tokio::time::timeout(limit, server.request("fake/none", Value::Null, PATIENCE)).await);
    scene.end().await;
}

#[tokio::test]
async fn params_are_left_out_rather_than_null() {
    let scene = Scene::new(json!({ "capabilities": hovers() }));
    scene.server().await;
    scene.end().await;
    let log = scene.fake.log();
    let shutdown = log.iter().find(|message| message["method"] == "shutdown").unwrap();
    assert!(shutdown.get("params").is_none(), "{shutdown}");
    assert_eq!(log.last().unwrap()["method"], "exit");
}

#[tokio::test]
async fn a_server_that_dies_at_the_start_is_told_with_its_last_words_and_not_started_for_ever() {
    let steps = json!([{ "say": "cannot find the sysroot" }, { "sleep_ms": 20 }, { "exit": 3 }]);
    let scene = Scene::new(json!({ "rules": [rule("initialize", steps)] }));
    let first = scene.hover().await;
    let expected = "fake does not run: it ended (exit code 3); its last error output:\ncannot find the sysroot. The next call starts it again.";
    assert_eq!(first, expected);
    for _ in 0..8 {
        let text = scene.hover().await;
        assert!(text.starts_with("fake does not run: it ended (exit code 3)"), "{text}");
    }
    // Back-off holds the others back: 0 s, 1 s, then 2 s and more, which is told and not waited for.
    let starts = scene.fake.starts();
    assert!((3..=5).contains(&starts), "{starts} starts");
    let status = scene.lsp(json!({ "action": "status" })).await;
    assert!(status.all_text().contains("fake in .: failed"), "{}", status.all_text());
    scene.fake.rescript(json!({ "capabilities": hovers(), "rules": [rule("textDocument/hover", json!([{ "reply": { "contents": "well again" } }]))] }));
    let reload = scene.lsp(json!({ "action": "reload", "file": "a.fake" })).await;
    assert!(reload.all_text().contains("fake 1.2 runs in `.`."), "{}", reload.all_text());
    assert_eq!(scene.hover().await, "well again");
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_request_is_reported_and_the_next_call_has_a_new_one() {
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [
        { "on": "textDocument/hover", "start": 1, "do": [{ "exit": 9 }] },
        rule("textDocument/hover", json!([{ "reply": { "contents": "second life" } }])),
    ] }));
    assert_eq!(scene.hover().await, "fake is gone: it ended (exit code 9). The next call starts it again.");
    assert_eq!(scene.hover().await, "second life");
    assert_eq!(scene.fake.starts(), 2);
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_ended_and_the_next_call_has_a_new_one() {
    // No reply at all: to what it is asked in its first life.
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [
        { "on": "textDocument/hover", "start": 1, "do": [] },
        rule("textDocument/hover", json!([{ "reply": { "contents": "second life" } }])),
    ] }));
    let server = scene.server().await;
    let limit = Duration::from_secs(5);
    for _ in 0..2 {
        let answer = server.request("textDocument/hover", json!({}), limit).await;
        assert_eq!(answer, Err(RequestError::TimedOut(limit)));
    }
    assert_eq!(server.gone().as_deref(), Some("it had not said a word to 2 questions in a row"));
    assert_eq!(scene.hover().await, "second life");
    let status = scene.lsp(json!({ "action": "status" })).await;
    assert!(status.all_text().contains("it had not said a word"), "{}", status.all_text());
    assert_eq!(scene.fake.starts(), 2);
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_does_not_read_does_not_stall_anybody() {
    let scene = Scene::new(
        json!({ "capabilities": hovers(), "rules": [rule("textDocument/didSave", json!([{ "deaf": true }]))] }),
    );
    let server = scene.server().await;
    let file = scene.file();
    server.sync(&file).unwrap();
    // Texts of a megabyte, until the pipe and the queue are full.
    let begin = Instant::now();
    let mut refused = None;
    for number in 0..2000 {
        let size = if number < 4 { 1 << 20 } else { 64 };
        fs::write(&file, format!("{number} {}", "x".repeat(size))).unwrap();
        if let Err(error) = server.sync(&file) {
            refused = Some(error.to_string());
            break;
        }
    }
    assert_eq!(refused.as_deref(), Some("the server has stopped reading its input"));
    assert!(begin.elapsed() < PATIENCE);
    scene.end().await;
}

#[tokio::test]
async fn empty_answers_while_loading_are_asked_again() {
    let begin = json!({ "send": { "method": "$/progress", "params": { "token": 1, "value": { "kind": "begin", "title": "Indexing" } } } });
    let end =
        json!({ "send": { "method": "$/progress", "params": { "token": 1, "value": { "kind": "end" } } } });
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [
        rule("textDocument/didOpen", json!([begin, { "sleep_ms": 400 }, end])),
        rule("textDocument/definition", json!([{ "reply": [{ "uri": "{uri}", "range": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 4 } } }] }])),
    ] }));
    let outcome =
        scene.lsp(json!({ "action": "definition", "file": "a.fake", "line": 1, "symbol": "one" })).await;
    assert_eq!(outcome.all_text(), "1 definition of `one` (fake):\na.fake:2: name 🦀 name");
    // It was not asked before it had loaded.
    let log = scene.fake.log();
    let opened = log.iter().position(|message| message["method"] == "textDocument/didOpen").unwrap();
    let asked = log.iter().position(|message| message["method"] == "textDocument/definition").unwrap();
    assert!(opened < asked);
    assert_eq!(log.iter().filter(|message| message["method"] == "textDocument/definition").count(), 1);
    scene.end().await;
}

#[tokio::test]
async fn what_changed_meanwhile_is_asked_again_and_a_refusal_is_passed_on() {
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [
        { "on": "textDocument/hover", "times": 2, "do": [{ "error": { "code": -32801, "message": "content modified" } }] },
        { "on": "textDocument/hover", "times": 1, "do": [{ "reply": { "contents": "third" } }] },
        rule("textDocument/hover", json!([{ "error": { "code": -32603, "message": "internal trouble." } }])),
        rule("textDocument/definition", json!([{ "error": { "code": 0, "message": "one is a keyword" } }])),
    ] }));
    assert_eq!(scene.hover().await, "third");
    assert_eq!(scene.hover().await, "fake refused textDocument/hover: internal trouble (error -32603).");
    let outcome =
        scene.lsp(json!({ "action": "definition", "file": "a.fake", "line": 1, "symbol": "one" })).await;
    assert_eq!(
        outcome.all_text(),
        "fake found no definition of `one` (a.fake:1).\n(fake says: one is a keyword.)"
    );
    assert!(!outcome.is_error);
    let outcome =
        scene.lsp(json!({ "action": "references", "file": "a.fake", "line": 1, "symbol": "one" })).await;
    assert!(
        outcome.is_error && outcome.all_text().starts_with("fake does not offer references."),
        "{}",
        outcome.all_text()
    );
    scene.end().await;
}

#[tokio::test]
async fn columns_are_in_the_encoding_that_the_server_chose() {
    for (encoding, column) in
        [(json!("utf-8"), 10), (json!("utf-16"), 8), (json!("utf-32"), 7), (Value::Null, 8)]
    {
        let mut capabilities = hovers();
        if !encoding.is_null() {
            capabilities["positionEncoding"] = encoding.clone();
        }
        let scene = Scene::new(json!({ "capabilities": capabilities }));
        scene.lsp(json!({ "action": "hover", "file": "a.fake", "line": 2, "symbol": "name#2" })).await;
        let asked = scene.received(|message| message["method"] == "textDocument/hover").await;
        assert_eq!(asked["params"]["position"], json!({ "line": 1, "character": column }), "{encoding}");
        scene.end().await;
    }
}

#[tokio::test]
async fn the_copy_follows_the_disk_and_others_are_told() {
    let watch = json!([{ "ask": { "id": 1, "method": "client/registerCapability", "params": { "registrations": [{
        "id": "w", "method": "workspace/didChangeWatchedFiles",
        "registerOptions": { "watchers": [{ "globPattern": "**/*.{fake,side}" }] } }] } } }]);
    let script = json!({ "capabilities": hovers(), "rules": [rule("initialized", watch)] });
    let scene = Scene::with(
        script,
        &[("a.fake", "one\n"), ("b.fake", "two\n"), ("c.side", ""), ("d.none", "")],
        PATIENCE,
    );
    let server = scene.server().await;
    let mut changes = server.changes();
    while server.offers("workspace/didChangeWatchedFiles").is_empty() {
        changes.changed().await.unwrap();
    }
    let file = scene.file();
    let first = server.sync(&file).unwrap();
    server.sync(&scene.root.join("b.fake")).unwrap();
    assert_eq!(server.sync(&file).unwrap().version, first.version, "nothing changed, so nothing was sent");
    // A shell changes two open files, one by renaming over it, one watched file and one that nobody watches.
    fs::write(&file, "one changed\n").unwrap();
    fs::write(scene.root.join("new"), "two changed\n").unwrap();
    fs::rename(scene.root.join("new"), scene.root.join("b.fake")).unwrap();
    fs::write(scene.root.join("c.side"), "x").unwrap();
    fs::write(scene.root.join("d.none"), "x").unwrap();
    let second = server.sync(&file).unwrap();
    assert_eq!((second.lines.text().as_ref(), second.version > first.version), ("one changed\n", true));
    let told = scene.received(|message| message["method"] == "workspace/didChangeWatchedFiles").await;
    let mut told: Vec<(String, u64)> = told["params"]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            (
                change["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(),
                change["type"].as_u64().unwrap(),
            )
        })
        .collect();
    told.sort();
    // Of the open files the new text itself is told, and not also that it is on the disk.
    assert_eq!(told, [("c.side".to_owned(), 2)]);
    let changed =
        scene.received(|message| message["params"]["contentChanges"][0]["text"] == "two changed\n").await;
    assert_eq!(changed["method"], "textDocument/didChange");
    // Saved, for it is on the disk.
    assert_eq!(scene.fake.methods().iter().filter(|method| *method == "textDocument/didSave").count(), 2);
    // A file that is gone is closed.
    fs::remove_file(&file).unwrap();
    assert!(server.sync(&file).is_err());
    let closed = scene.received(|message| message["method"] == "textDocument/didClose").await;
    assert!(closed["params"]["textDocument"]["uri"].as_str().unwrap().ends_with("a.fake"));
    scene.end().await;
}

#[tokio::test]
async fn many_documents_are_not_all_kept_open() {
    let names: Vec<String> = (0..80).map(|number| format!("f{number}.fake")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x\n")).collect();
    let mut files = files;
    files.push(("a.fake", "x\n"));
    let scene = Scene::with(json!({ "capabilities": hovers() }), &files, PATIENCE);
    let server = scene.server().await;
    for name in &names {
        server.sync(&scene.root.join(name)).unwrap();
    }
    assert_eq!(server.open_documents().len(), 64);
    assert!(server.document(&scene.root.join("f79.fake")).is_some());
    assert!(server.document(&scene.root.join("f0.fake")).is_none());
    scene.end().await;
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_one_at_work_is_not() {
    let script = json!({ "capabilities": hovers(), "rules": [
        { "on": "textDocument/hover", "start": 1, "do": [{ "sleep_ms": 900 }, { "reply": { "contents": "slow" } }] },
        rule("textDocument/hover", json!([{ "reply": { "contents": "again" } }])),
    ] });
    let scene = Scene::with(script, &[("a.fake", "one\n")], Duration::from_millis(200));
    // Longer than the idle time, and not cut off by it.
    assert_eq!(scene.hover().await, "slow");
    let until = Instant::now() + PATIENCE;
    while !scene.supervisor.running().is_empty() {
        assert!(Instant::now() < until, "it is never stopped");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(scene.hover().await, "again");
    assert_eq!(scene.fake.starts(), 2);
    scene.end().await;
}

#[tokio::test]
async fn calls_at_once_share_one_start() {
    let steps = json!([{ "sleep_ms": 200 }, { "reply": { "capabilities": hovers() } }]);
    let scene = Scene::new(json!({ "rules": [
        rule("initialize", steps), rule("textDocument/hover", json!([{ "reply": { "contents": "x" } }])),
    ] }));
    // The first caller gives up at once; the start goes on for the others.
    let impatient = tokio::time::timeout(Duration::from_millis(20), scene.server()).await;
    assert!(impatient.is_err());
    let answers = futures::future::join_all((0..8).map(|_| scene.hover())).await;
    assert_eq!(answers, vec!["x"; 8]);
    assert_eq!(scene.fake.starts(), 1);
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_will_not_go_is_killed() {
    let scene = Scene::new(json!({ "capabilities": hovers(), "rules": [
        rule("shutdown", json!([])), rule("exit", json!([])),
    ] }));
    let server = scene.server().await;
    let pid = server.pid();
    scene.end().await;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(server.gone().as_deref(), Some("it was stopped"));
}

/// As the Dart server does it: capabilities by registration after a slow start, progress as a text token that begins late, diagnostics without a
/// version, and requests while it analyses.
#[tokio::test]
async fn a_server_that_registers_everything_late_and_reports_its_analysis() {
    let registered = ["textDocument/definition", "textDocument/hover"].map(|method| {
        json!({ "id": method, "method": method, "registerOptions": { "documentSelector": [{ "language": "fake" }] } })
    });
    let analysing = |kind: &str| json!({ "send": { "method": "$/progress", "params": { "token": "ANALYZING", "value": { "kind": kind, "title": "Analyzing…" } } } });
    let status =
        |is: bool| json!({ "send": { "method": "$/analyzerStatus", "params": { "isAnalyzing": is } } });
    let initialized = json!([
        { "sleep_ms": 100 },
        { "ask": { "id": 1, "method": "client/registerCapability", "params": { "registrations": registered } } },
    ]);
    let opened = json!([
        { "sleep_ms": 50 },
        { "ask": { "id": 2, "method": "window/workDoneProgress/create", "params": { "token": "ANALYZING" } } },
        analysing("begin"), status(true),
        { "sleep_ms": 300 },
        { "send": { "method": "textDocument/publishDiagnostics", "params": { "uri": "{uri}", "diagnostics": [] } } },
        status(false), analysing("end"),
    ]);
    let place = json!({ "targetUri": "{uri}", "targetRange": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 4 } },
        "targetSelectionRange": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 4 } } });
    let scene = Scene::new(json!({ "capabilities": {}, "rules": [
        rule("initialize", json!([{ "sleep_ms": 1500 }, { "reply": { "capabilities": { "textDocumentSync": 2 } } }])),
        rule("initialized", initialized),
        rule("textDocument/didOpen", opened),
        rule("textDocument/definition", json!([{ "reply": [place] }])),
    ] }));
    let outcome =
        scene.lsp(json!({ "action": "definition", "file": "a.fake", "line": 1, "symbol": "one" })).await;
    assert_eq!(outcome.all_text(), "1 definition of `one` (fake):\na.fake:2: name 🦀 name");
    scene.received(|message| message["id"] == 2 && message.get("result").is_some()).await;
    scene.end().await;
}

#[test]
fn what_models_are_told_fits_into_three_kilobytes() {
    let environment = Environment::capture();
    let supervisor = Supervisor::new(environment.clone());
    let place = tempfile::tempdir().unwrap();
    let workdir = Workdir::new(place.path()).unwrap();
    let (changes, _) = haft_system::Changes::open(workdir.clone(), place.path().join("journal")).unwrap();
    let table = haft_lsp::servers::Table::shipped().unwrap();
    let checkout = Checkout::new(Servers::new(environment, supervisor), workdir, table);
    let registry = Registry::builder()
        .tool(Lsp::new(checkout.clone()), Family::Workshop)
        .tool(haft_lsp::LspRename::new(checkout, changes), Family::Workshop)
        .build();
    let specs: Vec<haft_tool::Spec> = registry.list(&Surface::agent()).into_iter().cloned().collect();
    let size = serde_json::to_string(&specs).unwrap().len();
    assert!(size <= 3 * 1024, "{size} bytes");
    insta::assert_json_snapshot!(specs);
}
