use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::patch::{Action, parse};

/// The hunks of an update of one file.
fn hunks(body: &str) -> Vec<Hunk> {
    let patch = if body.starts_with("--- ") {
        body.to_owned()
    } else {
        format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch\n")
    };
    match parse(&patch).unwrap().sections.remove(0).action {
        Action::Update { hunks, .. } | Action::Delete { hunks } => hunks,
        Action::Add { .. } => panic!("not an update"),
    }
}

fn run(text: &str, body: &str) -> Result<Applied, String> {
    apply(text, &hunks(body)).map_err(|misfit| misfit.to_string())
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with a result")]
fn done(text: &str) -> Result<Applied, String> {
    Ok(Applied { text: text.into(), notes: vec![] })
}

const FUNCTIONS: &str = "fn a() {\n    work();\n}\n\nfn b() {\n    work();\n}\n";

#[test]
fn exact_lines_are_replaced() {
    assert_eq!(run("a\nb\nc\n", "@@\n a\n-b\n+B\n+b2\n c"), done("a\nB\nb2\nc\n"));
    assert_eq!(run("a\nb\nc\n", "-a\n+A\n@@\n-c\n+C"), done("A\nb\nC\n"));
    assert_eq!(run("a\n", "-a"), done(""));
    assert_eq!(run("a\nb\n", "--- f\n+++ f\n@@ -1,0 +2 @@\n+new"), done("a\nnew\nb\n"));
    assert_eq!(run("", "--- f\n+++ f\n@@ -0,0 +1 @@\n+new"), done("new\n"));
}

#[test]
fn an_anchor_tells_equal_places_apart() {
    assert_eq!(
        run(FUNCTIONS, "@@ fn b() {\n-    work();\n+    rest();"),
        done("fn a() {\n    work();\n}\n\nfn b() {\n    rest();\n}\n")
    );
    // Shortened, and repeated as context.
    assert_eq!(
        run(FUNCTIONS, "@@ fn b()\n fn b() {\n-    work();\n+    rest();"),
        done("fn a() {\n    work();\n}\n\nfn b() {\n    rest();\n}\n")
    );
    assert_eq!(
        run(FUNCTIONS, "@@ fn a() {\n+    first();"),
        done("fn a() {\n    first();\n    work();\n}\n\nfn b() {\n    work();\n}\n")
    );
}

#[test]
fn a_line_number_tells_equal_places_apart_only_where_it_is_right() {
    assert_eq!(
        run(FUNCTIONS, "--- f\n+++ f\n@@ -6 +6 @@\n-    work();\n+    rest();"),
        done("fn a() {\n    work();\n}\n\nfn b() {\n    rest();\n}\n")
    );
    assert!(run(FUNCTIONS, "--- f\n+++ f\n@@ -5 +5 @@\n-    work();\n+    rest();").is_err());
    // A wrong number does not matter where the lines stand once.
    assert_eq!(run("a\nb\n", "--- f\n+++ f\n@@ -77 +77 @@\n-b\n+B"), done("a\nB\n"));
}

#[test]
fn as_many_equal_hunks_as_places_leave_no_choice() {
    assert_eq!(
        run(FUNCTIONS, "@@\n-    work();\n+    one();\n@@\n-    work();\n+    two();"),
        done("fn a() {\n    one();\n}\n\nfn b() {\n    two();\n}\n")
    );
}

#[test]
fn hunks_out_of_order_are_right_when_each_has_one_place() {
    assert_eq!(run("a\nb\nc\n", "@@\n-c\n+C\n@@\n-a\n+A"), done("A\nb\nC\n"));
}

#[test]
fn line_endings_and_the_last_line_stay_as_they_are() {
    assert_eq!(run("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B"), done("a\r\nB\r\nc\r\n"));
    assert_eq!(run("a\r\nb\nc\n", "@@\n-b\n+B"), done("a\r\nB\nc\n"));
    assert_eq!(run("a\nb", "@@\n-b\n+B"), done("a\nB"));
    assert_eq!(run("a\nb", "@@\n b\n+c"), done("a\nb\nc"));
    assert_eq!(
        run("a\nb", "--- f\n+++ f\n@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b"),
        done("a\nb\n")
    );
    assert_eq!(
        run("a\nb\n", "--- f\n+++ f\n@@ -2 +2 @@\n-b\n+b\n\\ No newline at end of file"),
        done("a\nb")
    );
    assert_eq!(run("a\rb\r", "@@\n-b\n+B\n+c"), done("a\rB\rc\r"));
}

#[test]
fn the_end_of_the_file_tells_equal_places_apart() {
    assert_eq!(run("x\ny\nx\n", "@@\n-x\n+z\n*** End of File"), done("x\ny\nz\n"));
    assert_eq!(run("x\ny\n", "@@\n+z\n*** End of File"), done("x\ny\nz\n"));
}

#[test]
fn blank_lines_below_a_hunk_may_be_spacing() {
    assert_eq!(run("a\nb\n", "@@\n-a\n+A\n\n"), done("A\nb\n"));
    // Where the file has them they are context.
    assert_eq!(run("a\n\nb\na\n", "@@\n-a\n+A\n"), done("A\n\nb\na\n"));
}

#[test]
fn tolerance_is_said() {
    let all = [
        run("\tif x {\n\t\ty();\n", "@@\n     if x {\n-        y();\n+        z();"),
        run("a  \nb\n", "@@\n a\n-b\n+B"),
        run("say(“hi”)\n", "@@\n-say(\"hi\")\n+say(\"ho\")"),
        run("a\n", "+b"),
        run("x\ny\n", "@@\n-x\n+z\n*** End of File"),
    ];
    insta::assert_debug_snapshot!(all);
}

#[test]
fn what_does_not_fit_is_said() {
    let all = [
        run(FUNCTIONS, "@@\n-    work();\n+    rest();"),
        run(FUNCTIONS, "@@\n-    wrok();\n+    rest();"),
        run(FUNCTIONS, "@@ fn c() {\n-    work();\n+    rest();"),
        run("a\nfn x\n", "@@ fn x\n-a\n+b"),
        run("a\nb\nc\n", "@@\n a\n-b\n+B\n@@\n-b\n-c\n+C"),
        run("a\nb\na\n", "@@\n-b\n+B\n a\n@@\n-a\n+A"),
        run("a\n", "--- f\n+++ f\n@@ -9,0 +9 @@\n+x"),
        run("a\n", "--- f\n+++ f\n@@ -1,3 +1,4 @@\n+x"),
        run("", "@@\n-a\n+b"),
        run("x\nx\n", "@@ x\n+y"),
    ]
    .map(|result| result.unwrap_err());
    insta::assert_snapshot!(all.join("\n\n"));
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        Just("same".to_owned()),
        Just("-- dashes".to_owned()),
        Just("++ pluses".to_owned()),
        Just("@@ at".to_owned()),
        Just("*** End Patch".to_owned()),
        Just("\\ No newline".to_owned()),
        "[a-c \t“é]{0,4}",
    ];
    let ending = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (proptest::collection::vec((line, ending), 0..24), any::<bool>()).prop_map(|(lines, ended)| {
        let mut text: String = lines.iter().flat_map(|(line, ending)| [line.as_str(), *ending]).collect();
        if !ended {
            let end = text.trim_end_matches(['\r', '\n']).len();
            text.truncate(end);
        }
        text
    })
}

/// The text with plain line feeds, the last line too.
fn ended(text: String) -> String {
    let text = text.replace('\r', "");
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_of_two_texts_makes_one_into_the_other(a in text(), b in text(), radius in 0usize..4) {
        prop_assume!(a != b);
        // Without any context a diff does not say which of two line endings a new line has.
        prop_assume!(radius > 0 || !(a.contains('\r') || b.contains('\r')));
        let diff = similar::TextDiff::from_lines(a.as_str(), b.as_str());
        let patch = diff.unified_diff().context_radius(radius).header("f", "f").to_string();
        let applied = apply(&a, &hunks(&patch)).map_err(|misfit| TestCaseError::fail(format!("{misfit}\n{patch}")))?;
        prop_assert_eq!(applied, Applied { text: b, notes: vec![] }, "{}", patch);
    }

    #[test]
    fn another_programs_diff_of_two_texts_makes_one_into_the_other(a in text(), b in text()) {
        prop_assume!(a != b);
        let patch = diffy::create_patch(&a, &b).to_string();
        let applied = apply(&a, &hunks(&patch)).map_err(|misfit| TestCaseError::fail(format!("{misfit}\n{patch}")))?;
        prop_assert_eq!(applied, Applied { text: b, notes: vec![] }, "{}", patch);
    }

    #[test]
    fn an_envelope_made_from_a_diff_applies_or_is_refused(a in text().prop_map(ended), b in text().prop_map(ended)) {
        prop_assume!(a != b);
        let diff = similar::TextDiff::from_lines(a.as_str(), b.as_str());
        let mut body = String::new();
        for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
            body.push_str("@@\n");
            for change in hunk.iter_changes() {
                body.push_str(&format!("{}{}", change.tag(), change.value()));
            }
        }
        // Without line numbers a hunk may fit twice; then it must be refused, never misplaced.
        if let Ok(applied) = apply(&a, &hunks(body.trim_end_matches('\n'))) {
            prop_assert_eq!(applied.text, b, "{}", body);
        }
    }

    /// Whatever a model sends: an answer or an error, never a panic.
    #[test]
    fn no_patch_makes_a_panic(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("*** Begin Patch".to_owned()),
                Just("*** End Patch".to_owned()),
                Just("*** Update File: f".to_owned()),
                Just("*** Add File: g".to_owned()),
                Just("*** Move to: h".to_owned()),
                Just("*** End of File".to_owned()),
                Just("diff --git a/f b/f".to_owned()),
                Just("diff --git \"a/\\303\" b".to_owned()),
                Just("--- a/f".to_owned()),
                Just("+++ /dev/null".to_owned()),
                Just("+++ ä".to_owned()),
                Just("rename from f".to_owned()),
                Just("rename to ä".to_owned()),
                Just("\\ No newline at end of file".to_owned()),
                "@@( -[0-9]{1,2}(,[0-9])? \\+[0-9]{1,2}(,[0-9])? @@)?( [ab]{0,2})?",
                "[ +-][ab]{0,2}\r?",
                "",
                "\\PC{0,6}",
            ],
            0..16,
        ),
        begun in any::<bool>(),
        text in text(),
    ) {
        let mut patch = lines.join("\n");
        if begun {
            patch = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch");
        }
        if let Ok(patch) = parse(&patch) {
            for section in patch.sections {
                if let Action::Update { hunks, .. } | Action::Delete { hunks } = section.action {
                    drop(apply(&text, &hunks));
                }
            }
        }
    }
}
