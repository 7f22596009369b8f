use std::os::unix::fs::symlink;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::bench::{Bench, joined};

fn project() -> Bench {
    let bench = Bench::new().with([
        (".gitignore", "target/\n*.log\n"),
        ("src/main.rs", "fn main() {\n    greet(\"Ada\");\n}\n"),
        ("src/lib.rs", "pub fn greet(name: &str) {\n    println!(\"{name}\");\n}\n"),
        ("src/deep/er/mod.rs", "// greet\n"),
        ("README.md", "# Greeting\n\nCall greet(name).\n"),
        ("target/debug/build.rs", "fn greet() {}\n"),
        ("run.log", "greet\n"),
        (".github/workflows/ci.yml", "run: greet\n"),
        (".git/config", "[greet]\n"),
    ]);
    symlink("lib.rs", bench.root.join("src/link.rs")).unwrap();
    symlink("..", bench.root.join("src/loop")).unwrap();
    bench
}

#[tokio::test]
async fn glob_lists_what_git_does_not_ignore() {
    let bench = project();
    let mut all = Vec::new();
    for arguments in [
        json!({"pattern": "**/*.rs"}),
        json!({"pattern": "*.rs"}),
        json!({"pattern": "src/*.rs"}),
        json!({"pattern": "*.{md,yml}"}),
        json!({"pattern": ".github/**"}),
        json!({"pattern": "*.yml", "path": ".github"}),
        json!({"pattern": "**/config"}),
        json!({"pattern": "er/*.rs", "path": "src/deep"}),
        json!({"pattern": "*.rs", "path": "target"}),
        json!({"pattern": "src/deep"}),
        json!({"pattern": "*.go"}),
        json!({"pattern": "[z-a]"}),
        json!({"pattern": "../*"}),
        json!({"pattern": "/etc/*"}),
        json!({"pattern": ""}),
        json!({"pattern": "*", "path": "README.md"}),
        json!({"pattern": "*", "path": "sarc"}),
    ] {
        let said = bench.said("glob", arguments.clone()).await;
        all.push(format!("{arguments}\n{said}"));
    }
    insta::assert_snapshot!(joined(all));
}

#[tokio::test]
async fn glob_is_capped_with_a_true_total() {
    let bench = Bench::new();
    for number in 0..510 {
        bench.put(&format!("{number:03}.txt"), b"");
    }
    let outcome = bench.call("glob", json!({"pattern": "*.txt"})).await;
    let text = outcome.all_text();
    assert!(
        text.ends_with("499.txt\n[500 of 510 files are shown; use a narrower pattern or `path`.]"),
        "{text}"
    );
    assert_eq!(outcome.structured["total"], json!(510));
    let absolute = format!("{}/00*.txt", bench.root.display());
    let outcome = bench.call("glob", json!({"pattern": absolute})).await;
    assert_eq!(outcome.structured["total"], json!(10));
}

#[tokio::test]
async fn search_answers_lines_in_order() {
    let bench = project();
    let mut all = Vec::new();
    for arguments in [
        json!({"pattern": "greet"}),
        json!({"pattern": "GREET", "ignore_case": true, "glob": "*.rs"}),
        json!({"pattern": "greet", "glob": "!*.rs"}),
        json!({"pattern": "^fn main", "path": "src/main.rs", "context": 1}),
        json!({"pattern": "greet", "path": "target"}),
        json!({"pattern": "greet", "glob": ".github/**"}),
        json!({"pattern": "greet", "max_results": 2}),
        json!({"pattern": "}$"}),
        json!({"pattern": "nowhere"}),
        json!({"pattern": "nowhere", "glob": "*.rs", "path": "src"}),
        json!({"pattern": "greet(name)"}),
        json!({"pattern": "greet(\"Ada"}),
        json!({"pattern": "greet(", "literal": true}),
        json!({"pattern": "a\\nb"}),
        json!({"pattern": "(["}),
        json!({"pattern": ""}),
        json!({"pattern": "x", "path": "sarc"}),
        json!({"pattern": "x", "glob": "{a"}),
    ] {
        let said = bench.said("search", arguments.clone()).await;
        all.push(format!("{arguments}\n{said}"));
    }
    insta::assert_snapshot!(joined(all));
}

#[tokio::test]
async fn search_says_what_it_could_not_search_and_reads_utf16() {
    let bench = Bench::new().with([("crlf.txt", "needle\r\nother\r\n"), ("new\nline.txt", "needle\n")]);
    bench.put("binary.dat", b"needle\0needle\n");
    bench.put("late.dat", &[&b"needle\n".repeat(20_000)[..], b"\0"].concat());
    bench.put(
        "utf16.txt",
        &"\u{feff}a needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    );
    bench.put("latin.txt", b"needle f\xfcr M\xfcller\n");
    bench.put("min.js", format!("{}needle{}\n", "a".repeat(10_000), "b".repeat(10_000)).as_bytes());
    bench.put("bom.txt", b"\xef\xbb\xbfneedle\n");
    insta::assert_snapshot!(joined([
        bench.said("search", json!({"pattern": "^needle$|needleb|needle f|a needle"})).await,
        bench.said("search", json!({"pattern": "für M.ller"})).await,
    ]));
}

#[tokio::test]
async fn a_capped_search_has_a_true_total_and_is_the_same_every_time() {
    let bench = Bench::new();
    for number in 0..200 {
        bench.put(&format!("{:02}/{number:03}.txt", number % 7), b"hit\nmiss\nhit\nhit\n");
    }
    let first = bench.said("search", json!({"pattern": "hit", "max_results": 50, "context": 1})).await;
    assert!(
        first.contains("[50 of 600 matching lines in 200 files are shown; 200 files searched."),
        "{first}"
    );
    assert_eq!(first.matches(": hit\n").count(), 50);
    for _ in 0..10 {
        assert_eq!(
            bench.said("search", json!({"pattern": "hit", "max_results": 50, "context": 1})).await,
            first
        );
    }
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    use haft_tool::{Call, Context, Origin, Outcome, Surface};
    let bench = project();
    let context = Context::detached();
    context.cancel.cancel();
    let call = Call::new("search", json!({"pattern": "greet"}), Origin::Model);
    let outcome = bench.registry().call(&Surface::agent(), call, context).await;
    assert_eq!(outcome, Outcome::error("Cancelled before it finished."));
}
