use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::Arc,
};

use haft_system::{ChangeObserver, Note, Planned};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::bench::{Bench, joined};

#[tokio::test]
async fn write_creates_and_replaces() {
    let bench = Bench::new().with([("old.txt", "one\ntwo\n"), ("crlf.txt", "one\r\ntwo\r\n")]);
    bench.put("bom.txt", b"\xef\xbb\xbfone\n");
    bench.put("latin.txt", b"M\xfcller\n");
    bench.put("data.bin", b"\x7fELF\0\0");
    let mut all = Vec::new();
    for arguments in [
        json!({"path": "new/dir/a.txt", "content": "one\ntwo\n"}),
        json!({"path": "empty.txt", "content": ""}),
        json!({"path": "old.txt", "content": "one\n2\n"}),
        json!({"path": "old.txt", "content": "one\n2\n"}),
        json!({"path": "crlf.txt", "content": "1\n2\n"}),
        json!({"path": "bom.txt", "content": "1\n"}),
        json!({"path": "latin.txt", "content": "Jäger\n"}),
        json!({"path": "latin.txt", "content": "→ Jäger\n"}),
        json!({"path": "data.bin", "content": "text\n"}),
        json!({"path": "new", "content": "x"}),
        json!({"path": "../x", "content": "x"}),
        json!({"path": ".git/config", "content": "x"}),
    ] {
        let said = bench.said("write", arguments.clone()).await;
        all.push(format!("{arguments}\n{said}"));
    }
    insta::assert_snapshot!(joined(all));
    assert_eq!(bench.text("new/dir/a.txt"), "one\ntwo\n");
    assert_eq!(bench.text("empty.txt"), "");
    assert_eq!(bench.text("crlf.txt"), "1\r\n2\r\n");
    assert_eq!(bench.bytes("bom.txt"), b"\xef\xbb\xbf1\n");
    assert_eq!(bench.text("latin.txt"), "→ Jäger\n");
    assert_eq!(bench.text("data.bin"), "text\n");
}

#[tokio::test]
async fn write_does_not_put_an_old_idea_over_a_changed_file() {
    let bench = Bench::new().with([("a.txt", "one\n")]);
    bench.call("read", json!({"path": "a.txt"})).await;
    bench.put("a.txt", b"changed by others\n");
    let refused = bench.said("write", json!({"path": "a.txt", "content": "two\n"})).await;
    assert_eq!(bench.text("a.txt"), "changed by others\n");
    bench.call("read", json!({"path": "a.txt", "limit": 1})).await;
    let written = bench.said("write", json!({"path": "a.txt", "content": "two\n"})).await;
    // Its own writes count as seen.
    let again = bench.said("write", json!({"path": "a.txt", "content": "three\n"})).await;
    insta::assert_snapshot!(joined([refused, written, again]));
    assert_eq!(bench.text("a.txt"), "three\n");
}

#[tokio::test]
async fn modes_and_links_are_kept() {
    let bench =
        Bench::new().with([("run.sh", "#!/bin/sh\n"), ("real.txt", "one\n"), ("locked.txt", "one\n")]);
    let mode = |path: &str| fs::metadata(bench.root.join(path)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(bench.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(bench.root.join("locked.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    symlink("real.txt", bench.root.join("link.txt")).unwrap();
    fs::write(bench.outside().join("secret"), "s").unwrap();
    symlink(bench.outside().join("secret"), bench.root.join("out")).unwrap();
    symlink(bench.outside().join("missing"), bench.root.join("dangling")).unwrap();

    bench.call("write", json!({"path": "run.sh", "content": "#!/bin/sh\ntrue\n"})).await;
    assert_eq!((bench.text("run.sh").as_str(), mode("run.sh")), ("#!/bin/sh\ntrue\n", 0o755));
    let all = [
        bench.said("edit", json!({"path": "link.txt", "old": "one", "new": "two"})).await,
        bench.said("write", json!({"path": "link.txt", "content": "three\n"})).await,
        bench.said("write", json!({"path": "locked.txt", "content": "two\n"})).await,
        bench.said("edit", json!({"path": "out", "old": "s", "new": "t"})).await,
        bench.said("write", json!({"path": "dangling", "content": "t"})).await,
    ];
    insta::assert_snapshot!(joined(all));
    assert_eq!(bench.text("real.txt"), "three\n");
    assert!(fs::symlink_metadata(bench.root.join("link.txt")).unwrap().is_symlink());
    assert_eq!((bench.text("locked.txt").as_str(), mode("locked.txt")), ("one\n", 0o444));
    assert_eq!(fs::read_to_string(bench.outside().join("secret")).unwrap(), "s");
    assert!(!bench.outside().join("missing").exists());
}

#[tokio::test]
async fn edit_replaces_what_is_there_once() {
    let text = "fn main() {\n\tlet name = \"Ada\";\n\tgreet(name);\n\tgreet(name);\n}\n";
    let bench =
        Bench::new().with([("a.rs", text), ("crlf.txt", "one\r\ntwo\r\nthree\r\n"), ("empty.txt", "")]);
    bench.put("latin.txt", b"M\xfcller\n");
    bench.put("data.bin", b"\x7fELF\0\0");
    let mut all = Vec::new();
    for arguments in [
        json!({"path": "a.rs", "old": "\"Ada\"", "new": "\"Grace\""}),
        json!({"path": "a.rs", "old": "greet(name);\n", "new": "hail(name);\n"}),
        json!({"path": "a.rs", "old": "greet(name);\n", "new": "hail(name);\n", "all": true}),
        json!({"path": "a.rs", "old": "    let name = \"Grace\";", "new": "x"}),
        json!({"path": "a.rs", "old": "", "new": "x"}),
        json!({"path": "a.rs", "old": "x", "new": "x"}),
        json!({"path": "crlf.txt", "old": "one\ntwo\n", "new": "1\n2\n"}),
        json!({"path": "latin.txt", "old": "Müller", "new": "Jäger"}),
        json!({"path": "latin.txt", "old": "Jäger", "new": "→"}),
        json!({"path": "empty.txt", "old": "x", "new": "y"}),
        json!({"path": "data.bin", "old": "x", "new": "y"}),
        json!({"path": "b.rs", "old": "x", "new": "y"}),
        json!({"path": ".", "old": "x", "new": "y"}),
    ] {
        let said = bench.said("edit", arguments.clone()).await;
        all.push(format!("{arguments}\n{said}"));
    }
    insta::assert_snapshot!(joined(all));
    assert_eq!(bench.text("a.rs"), "fn main() {\n\tlet name = \"Grace\";\n\thail(name);\n\thail(name);\n}\n");
    assert_eq!(bench.bytes("crlf.txt"), b"1\r\n2\r\nthree\r\n");
    assert_eq!(bench.bytes("latin.txt"), b"J\xe4ger\n");
}

#[tokio::test]
async fn a_large_change_shows_a_short_diff() {
    let bench = Bench::new();
    bench.put("a.txt", "old\n".repeat(500).as_bytes());
    let outcome = bench.call("edit", json!({"path": "a.txt", "old": "old", "new": "new", "all": true})).await;
    let text = outcome.all_text();
    assert!(text.starts_with("Changed `a.txt`: 500 replacements.\n@@ -1,500 +1,500 @@\n-old\n"), "{text}");
    assert!(text.ends_with("… (921 lines of the diff not shown)"), "{text}");
    assert_eq!(bench.text("a.txt"), "new\n".repeat(500));
}

/// Says that it has verified every change.
struct Verifier;

#[async_trait::async_trait]
impl ChangeObserver for Verifier {
    async fn before(&self, _: &[Planned]) {}

    async fn after(&self, committed: &[Planned]) -> Option<Note> {
        let names: Vec<&str> = committed.iter().map(|planned| planned.file.shown.as_str()).collect();
        let structured: Value = json!({"verified": true, "new_diagnostics": [{"file": names[0], "line": 1}]});
        Some(Note {
            text: Some(format!("1 new problem in {}.", names.join(", "))),
            structured: structured.as_object().unwrap().clone(),
        })
    }
}

#[tokio::test]
async fn what_observers_say_is_folded_into_the_answer() {
    let bench = Bench::new().with([("a.rs", "one\n")]);
    bench.changes.observe(Arc::new(Verifier));
    let all = [
        bench.said("write", json!({"path": "b.rs", "content": "x\n"})).await,
        bench.said("edit", json!({"path": "a.rs", "old": "one", "new": "two"})).await,
        bench
            .said("apply_patch", json!({"patch": "*** Begin Patch\n*** Delete File: a.rs\n*** Delete File: b.rs\n*** End Patch"}))
            .await,
    ];
    insta::assert_snapshot!(joined(all));
}

/// A model sends several edits of one file in one turn, and they run side by side.
#[tokio::test(flavor = "multi_thread")]
async fn edits_of_one_file_at_the_same_time_all_count() {
    let names: Vec<String> = (0..20).map(|number| format!("name{number:02}")).collect();
    let bench = Bench::new();
    bench.put("a.txt", names.join("\n").as_bytes());
    let calls = names
        .iter()
        .map(|name| bench.call("edit", json!({"path": "a.txt", "old": name, "new": name.to_uppercase()})));
    let outcomes = futures::future::join_all(calls).await;
    assert!(outcomes.iter().all(|outcome| !outcome.is_error), "{outcomes:?}");
    assert_eq!(bench.text("a.txt"), names.join("\n").to_uppercase());
}

#[tokio::test]
async fn an_edit_of_a_file_that_changed_since_it_was_read_says_so() {
    let bench = Bench::new().with([("a.txt", "one\ntwo\n")]);
    bench.call("read", json!({"path": "a.txt"})).await;
    bench.put("a.txt", b"one\ntwo\nthree\n");
    let said = bench.said("edit", json!({"path": "a.txt", "old": "two", "new": "2"})).await;
    insta::assert_snapshot!(said);
    assert_eq!(bench.text("a.txt"), "one\n2\nthree\n");
}

#[tokio::test]
async fn a_file_too_large_to_hold_is_not_changed() {
    let bench = Bench::new();
    fs::File::create(bench.root.join("big")).unwrap().set_len(1 << 33).unwrap();
    let all = [
        bench.said("edit", json!({"path": "big", "old": "x", "new": "y"})).await,
        bench.said("write", json!({"path": "big", "content": "y"})).await,
    ];
    insta::assert_snapshot!(joined(all));
}
