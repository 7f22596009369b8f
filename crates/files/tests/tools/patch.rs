use std::{fs, os::unix::fs::PermissionsExt};

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, joined};

fn project() -> Bench {
    Bench::new().with([
        ("src/a.py", "def greet():\n    print(\"hi\")\n\ndef leave():\n    print(\"bye\")\n"),
        ("src/b.py", "one\ntwo\nthree\n"),
        ("old.txt", "gone\n"),
        ("sp ace/ä.txt", "eins\r\nzwei\r\n"),
    ])
}

fn envelope(body: &str) -> serde_json::Value {
    json!({ "patch": format!("*** Begin Patch\n{body}\n*** End Patch\n") })
}

#[tokio::test]
async fn every_kind_of_change_in_one_patch() {
    let bench = project();
    fs::set_permissions(bench.root.join("src/b.py"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = bench
        .said(
            "apply_patch",
            envelope(
                "*** Add File: new/dir/c.txt\n+hello\n+\n+world\n*** Update File: src/a.py\n@@ def leave():\n-    print(\"bye\")\n+    print(\"ciao\")\n\
                 *** Update File: src/b.py\n*** Move to: lib/b.py\n@@\n one\n-two\n+2\n three\n*** Delete File: old.txt\n\
                 *** Update File: sp ace/ä.txt\n@@\n-zwei\n+2\n+3",
            ),
        )
        .await;
    insta::assert_snapshot!(said);
    assert_eq!(
        bench.tree(),
        [
            ("lib/b.py", "one\n2\nthree\n"),
            ("new/dir/c.txt", "hello\n\nworld\n"),
            ("sp ace/ä.txt", "eins\r\n2\r\n3\r\n"),
            ("src/a.py", "def greet():\n    print(\"hi\")\n\ndef leave():\n    print(\"ciao\")\n"),
        ]
        .map(|(path, content)| (path.to_owned(), content.to_owned()))
    );
    assert_eq!(fs::metadata(bench.root.join("lib/b.py")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn a_diff_of_git_is_applied() {
    let bench = project();
    let patch = "diff --git a/src/b.py b/lib/b.py
similarity index 60%
rename from src/b.py
rename to lib/b.py
index 1..2 100644
--- a/src/b.py
+++ b/lib/b.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/run.sh b/run.sh
new file mode 100755
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+true
\\ No newline at end of file
";
    insta::assert_snapshot!(bench.said("apply_patch", json!({ "patch": patch })).await);
    assert_eq!(bench.text("lib/b.py"), "one\n2\nthree\n");
    assert_eq!(bench.text("run.sh"), "true");
    assert!(!bench.root.join("old.txt").exists() && !bench.root.join("src/b.py").exists());
}

/// Peers leave the first half of such a patch behind (openai/codex#34917), or write over files (Add, Move).
#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let bench = project();
    let before = bench.tree();
    let good = "*** Add File: first.txt\n+x\n*** Delete File: old.txt\n";
    let mut all = Vec::new();
    for bad in [
        "*** Update File: src/b.py\n@@\n-zwei\n+2",
        "*** Update File: src/b.py\n-one\n+1\n@@\n-two \n-four\n+2",
        "*** Update File: src/a.py\n@@\n-    print(\"hello\")\n+    pass",
        "*** Update File: src/missing.py\n@@\n-x\n+y",
        "*** Add File: src/a.py\n+x",
        "*** Delete File: missing.txt",
        "*** Delete File: src",
        "*** Update File: src/a.py\n*** Move to: src/b.py",
        "*** Update File: src/a.py\n*** Move to: first.txt",
        "*** Update File: old.txt\n-gone\n+back",
        "*** Update File: ../x\n-gone\n+back",
        "*** Add File: .git/hooks/post-checkout\n+x",
        "*** Update File: src/b.py\n-nine\n+9\n*** Update File: src/a.py\n-ten\n+10",
    ] {
        let said = bench.said("apply_patch", envelope(&format!("{good}{bad}"))).await;
        assert_eq!(bench.tree(), before, "{bad}");
        all.push(format!("{bad}\n\n{said}"));
    }
    let delete = "--- a/src/b.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n";
    all.push(bench.said("apply_patch", json!({ "patch": delete })).await);
    all.push(
        bench.said("apply_patch", json!({ "patch": "*** Begin Patch\n*** Delete File: old.txt" })).await,
    );
    assert_eq!(bench.tree(), before);
    insta::assert_snapshot!(joined(all));
}

#[tokio::test]
async fn sections_of_one_file_build_on_each_other() {
    let bench = project();
    let all = [
        bench
            .said(
                "apply_patch",
                envelope("*** Update File: src/b.py\n-one\n+1\n*** Update File: src/b.py\n 1\n-two\n+2"),
            )
            .await,
        bench.said("apply_patch", envelope("*** Delete File: old.txt\n*** Add File: old.txt\n+new")).await,
        bench
            .said("apply_patch", envelope("*** Add File: n.txt\n+a\n+b\n*** Update File: n.txt\n-b\n+c"))
            .await,
        bench.said("apply_patch", envelope("*** Update File: src/b.py\n 1\n-2\n+2")).await,
        bench
            .said(
                "apply_patch",
                envelope(
                    "*** Update File: src/b.py\n*** Move to: src/c.py\n*** Update File: src/c.py\n-three\n+3",
                ),
            )
            .await,
    ];
    insta::assert_snapshot!(joined(all));
    assert_eq!(bench.text("old.txt"), "new\n");
    assert_eq!(bench.text("n.txt"), "a\nc\n");
    assert_eq!(bench.text("src/c.py"), "1\n2\n3\n");
}

#[tokio::test]
async fn tolerance_is_said_in_the_answer() {
    let bench = project();
    let said = bench
        .said(
            "apply_patch",
            envelope("*** Update File: src/a.py\n@@\n def greet():  \n-  print(\"hi\")\n+    print(\"ho\")"),
        )
        .await;
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn a_file_moves_to_the_place_of_one_that_the_patch_deletes() {
    let bench = project();
    let said = bench
        .said(
            "apply_patch",
            envelope("*** Delete File: old.txt\n*** Update File: src/b.py\n*** Move to: old.txt\n-two\n+2"),
        )
        .await;
    insta::assert_snapshot!(said);
    assert_eq!(bench.text("old.txt"), "one\n2\nthree\n");
    assert!(!bench.root.join("src/b.py").exists());
}
