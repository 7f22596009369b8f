//! A conversation's cells as a notebook (SPEC E8), held against nbformat's own validator.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use std::process::Command;

use haft_kernel::notebook::{NotebookCell, notebook};
use haft_tool::Outcome;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::*;

async fn cell(bench: &Bench, language: &str, code: &str) -> NotebookCell {
    let arguments = json!({"code": code, "description": "a cell", "language": language});
    NotebookCell { outcome: bench.call(arguments.clone()).await, arguments, stdout: None, stderr: None }
}

/// What the reference implementation says about a notebook.
fn validate(made: &Value) {
    let Some(place) = python_with_packages() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("made.ipynb");
    std::fs::write(&file, serde_json::to_vec(made).unwrap()).unwrap();
    let output = Command::new(place.join("bin/python"))
        .args([
            "-W",
            "error",
            "-c",
            "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))",
        ])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn cells_outputs_and_pictures_are_in_the_notebook() {
    let bench = Bench::new();
    let refused = NotebookCell {
        arguments: json!({"code": "1", "description": "refused"}),
        outcome: Outcome::error("The person refused this call."),
        stdout: None,
        stderr: None,
    };
    let cells = vec![
        cell(
            &bench,
            "python",
            "print('one')\ndisplay('shown')\nprint('two')\nimport sys; print('err', file=sys.stderr)\n1 + 1",
        )
        .await,
        cell(&bench, "python", "tool('echo', text='x', picture=True).images[0]").await,
        refused,
        cell(&bench, "python", "1/0").await,
        cell(&bench, "python", "!echo 'out of the shell'\n%pwd;").await,
        cell(&bench, "javascript", "1 + 2").await,
        cell(&bench, "python", "%nope").await,
    ];
    let made = notebook("A title", &cells);
    validate(&made);
    let stream = |name: &str, text: &[&str]| json!({"output_type": "stream", "name": name, "text": text});
    assert_eq!(
        made["cells"][1],
        json!({
            "cell_type": "code",
            "id": "cell-1",
            "metadata": {"description": "a cell"},
            "execution_count": 1,
            "source": ["print('one')\n", "display('shown')\n", "print('two')\n", "import sys; print('err', file=sys.stderr)\n", "1 + 1"],
            "outputs": [
                stream("stdout", &["one\n"]),
                {"output_type": "display_data", "data": {"text/plain": ["'shown'"]}, "metadata": {}},
                stream("stdout", &["two\n"]),
                {"output_type": "execute_result", "execution_count": 1, "data": {"text/plain": ["2"]}, "metadata": {}},
                stream("stderr", &["err\n"]),
            ],
        })
    );
    use base64::{Engine, engine::general_purpose::STANDARD};
    assert_eq!(made["cells"][2]["outputs"][0]["data"]["image/png"], STANDARD.encode(tiny_png()));
    assert_eq!(made["cells"][3]["outputs"][0]["ename"], "ZeroDivisionError");
    assert_eq!(made["cells"][5]["source"], json!(["%%script node\n", "1 + 2"]));
    assert_eq!(made["cells"].as_array().unwrap().len(), 6);
    // A notebook of JavaScript alone needs no detour.
    let made = notebook("JavaScript", &[cell(&bench, "javascript", "[{a: 1}]").await]);
    validate(&made);
    assert_eq!(made["metadata"]["kernelspec"]["name"], "javascript");
    assert_eq!(made["cells"][1]["source"], json!(["[{a: 1}]"]));
    validate(&notebook("Nothing", &[]));
    bench.close().await;
}
