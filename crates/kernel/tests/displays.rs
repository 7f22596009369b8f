//! How values are shown (notes, section 8), with the real libraries.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use haft_tool::{Content, Outcome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::*;

/// The kinds of an answer's pieces; pictures with their size.
fn pieces(outcome: &Outcome) -> Vec<String> {
    outcome
        .content
        .iter()
        .map(|piece| match piece {
            Content::Text { text } => text.clone(),
            Content::Image { mime, data } => {
                let picture = image::load_from_memory(data).unwrap();
                format!("<{mime} {}x{}>", picture.width(), picture.height())
            }
            Content::Table { columns, rows } => format!("<table {columns:?} {} rows>", rows.len()),
        })
        .collect()
}

fn only_table(outcome: &Outcome) -> (Vec<String>, Vec<Vec<Value>>) {
    let tables: Vec<_> = outcome
        .content
        .iter()
        .filter_map(|piece| match piece {
            Content::Table { columns, rows } => Some((columns.clone(), rows.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(tables.len(), 1, "{:?}", pieces(outcome));
    tables.into_iter().next().unwrap()
}

#[tokio::test]
async fn pandas_frames_are_tables() {
    let Some(bench) = packaged() else { return };
    let code = "import pandas as pd, numpy as np
pd.DataFrame({'a': [1, 2, 3], 'b': [0.5, np.nan, np.inf], 'c': ['x', None, 'y'], 'd': pd.to_datetime(['2026-01-02', None, '2026-01-03'])})";
    let outcome = bench.python(code).await;
    assert_eq!(
        only_table(&outcome),
        (
            vec!["a".into(), "b".into(), "c".into(), "d".into()],
            vec![
                vec![json!(1), json!(0.5), json!("x"), json!("2026-01-02 00:00:00")],
                vec![json!(2), json!(null), json!(null), json!(null)],
                vec![json!(3), json!("inf"), json!("y"), json!("2026-01-03 00:00:00")],
            ]
        )
    );
    let outcome = bench.python("pd.DataFrame({'n': range(100_000)} | {f'c{i}': 1 for i in range(70)})").await;
    let (columns, rows) = only_table(&outcome);
    assert_eq!((columns.len(), rows.len(), &rows[0][0], &rows[29][0]), (50, 30, &json!(0), &json!(99_999)));
    assert!(
        outcome.first_text().unwrap().starts_with(
            "DataFrame: 100000 rows × 71 columns; the first 20 and the last 10 rows; the middle columns are left out (n int64, "
        ),
        "{}",
        outcome.all_text()
    );
    assert_eq!(outcome.structured["displays"][0]["shape"], json!([100_000, 71]));
    let outcome = bench.python("pd.DataFrame({'v': [1, 2]}, index=pd.MultiIndex.from_tuples([('a', 1), ('b', 2)], names=['k', None]))").await;
    assert_eq!(
        only_table(&outcome),
        (
            vec!["k".into(), "level_1".into(), "v".into()],
            vec![vec![json!("a"), json!(1), json!(1)], vec![json!("b"), json!(2), json!(2)]]
        )
    );
    // What is missing is missing, whatever the column calls it.
    let code = "pd.DataFrame({'i': pd.array([1, None], dtype='Int64'), 's': pd.array(['a', None], dtype='string'), 't': [pd.Timedelta(0), pd.NaT]})";
    assert_eq!(
        only_table(&bench.python(code).await).1,
        [vec![json!(1), json!("a"), json!("0 days 00:00:00")], vec![json!(null); 3]]
    );
    let outcome = bench.python("pd.Series([1, 2], index=['x', 'y'], name='s')").await;
    assert_eq!(
        only_table(&outcome),
        (vec!["index".into(), "s".into()], vec![vec![json!("x"), json!(1)], vec![json!("y"), json!(2)]])
    );
    // Columns of the same name, an empty frame, and a frame in the middle of a cell.
    let outcome = bench
        .python("display(pd.DataFrame([[1, 2]], columns=['a', 'a']))\nprint('between')\npd.DataFrame()")
        .await;
    assert_eq!(
        pieces(&outcome),
        [
            "DataFrame: 1 rows × 2 columns (a int64, a int64)",
            "<table [\"a\", \"a\"] 1 rows>",
            "between\nDataFrame: 0 rows × 0 columns",
            "<table [] 0 rows>"
        ]
    );
    bench.close().await;
}

#[tokio::test]
async fn polars_frames_are_tables() {
    let Some(bench) = packaged() else { return };
    let outcome = bench
        .python("import polars as pl\npl.DataFrame({'a': range(50), 'b': [str(n) for n in range(50)]})")
        .await;
    let (columns, rows) = only_table(&outcome);
    assert_eq!(
        (columns, rows.len(), &rows[29]),
        (vec!["a".to_owned(), "b".to_owned()], 30, &vec![json!(49), json!("49")])
    );
    let outcome = bench.python("pl.Series('s', [1, None, 3])").await;
    assert_eq!(
        only_table(&outcome),
        (vec!["s".into()], vec![vec![json!(1)], vec![json!(null)], vec![json!(3)]])
    );
    bench.close().await;
}

#[tokio::test]
async fn figures_are_shown_once_and_in_order() {
    let Some(bench) = packaged() else { return };
    let code = "import matplotlib.pyplot as plt
print('before')
plt.figure(figsize=(4, 2)); plt.plot([1, 2, 3]); plt.show()
print('between')
fig, ax = plt.subplots(figsize=(4, 2)); ax.plot([3, 2, 1])
print('after')
fig";
    let outcome = bench.python(code).await;
    let shown: Vec<String> = pieces(&outcome)
        .iter()
        .map(|piece| if piece.starts_with("<image/png") { "<figure>".into() } else { piece.clone() })
        .collect();
    assert_eq!(
        (shown, &outcome.structured["stderr"]),
        (["before", "<figure>", "between\nafter", "<figure>"].map(str::to_owned).to_vec(), &json!(""))
    );
    // Left open, it is shown at the end of the cell, and not again.
    let outcome = bench.python("plt.plot([1]);").await;
    assert_eq!(outcome.structured["displays"].as_array().unwrap().len(), 1);
    assert_eq!(pieces(&bench.python("1").await), ["1"]);
    // Within limits, whatever its size.
    let outcome = bench.python("plt.figure(figsize=(60, 10), dpi=200); plt.plot([1]);").await;
    let Content::Image { data, .. } = &outcome.content[0] else { panic!("{:?}", pieces(&outcome)) };
    let picture = image::load_from_memory(data).unwrap();
    assert!(picture.width() <= 1568, "{}", picture.width());
    // A cell that fails shows what it had drawn.
    let outcome = bench.python("plt.plot([1]); 1/0").await;
    assert!(outcome.is_error);
    assert!(
        outcome.content.iter().any(|piece| matches!(piece, Content::Image { .. })),
        "{:?}",
        pieces(&outcome)
    );
    let outcome = bench.python("plt.figure(); plt.text(0.5, 0.5, r'$\\frac{broken$');").await;
    assert!(!outcome.is_error, "{}", outcome.all_text());
    assert!(outcome.all_text().contains("the figure could not be drawn"), "{}", outcome.all_text());
    bench.close().await;
}

#[tokio::test]
async fn pictures_of_pil_are_shown_and_made_smaller() {
    let Some(bench) = packaged() else { return };
    // Noise, which as PNG is larger than anything that is passed on.
    let code =
        "import os\nfrom PIL import Image\nImage.frombytes('RGB', (6000, 3000), os.urandom(6000 * 3000 * 3))";
    let outcome = bench.python(code).await;
    assert_eq!(pieces(&outcome)[0], "[a picture of 6000 × 3000 pixels, shown at 1568 × 784]");
    let shown = &outcome.structured["displays"][0];
    assert_eq!(
        (&shown["width"], &shown["height"], &shown["type"]),
        (&json!(1568), &json!(784), &json!("image"))
    );
    assert!(shown["text"].as_str().unwrap().contains("size=6000x3000"), "{shown}");
    for mode in ["1", "L", "P", "I;16", "CMYK", "RGBA", "F"] {
        let outcome = bench.python(&format!("Image.new('{mode}', (40, 4000))")).await;
        assert!(
            !outcome.is_error && !outcome.structured["displays"].as_array().unwrap().is_empty(),
            "{mode}"
        );
    }
    let outcome = bench.python("from PIL import Image\nImage.new('RGB', (30, 20), 'red')").await;
    assert_eq!(pieces(&outcome), ["<image/png 30x20>"]);
    let outcome = bench.python("Image.new('RGB', (4000, 1000), 'red')").await;
    assert_eq!(
        pieces(&outcome),
        ["[a picture of 4000 × 1000 pixels, shown at 1568 × 392]", "<image/png 1568x392>"]
    );
    assert_eq!(outcome.structured["displays"][0]["width"], 1568);
    bench.close().await;
}

#[tokio::test]
async fn a_plotly_figure_is_text_for_the_model_and_html_for_the_rest() {
    let Some(bench) = packaged() else { return };
    let outcome = bench.python("import plotly.graph_objects as go\ngo.Figure(go.Bar(y=[2, 3, 1]))").await;
    assert!(!outcome.is_error, "{}", outcome.all_text());
    assert!(outcome.first_text().unwrap().starts_with("Figure({"), "{}", outcome.all_text());
    let display = &outcome.structured["displays"][0];
    assert_eq!(display["type"], "html");
    assert!(display["html"].as_str().unwrap().contains("plotly"));
    bench.close().await;
}

#[tokio::test]
async fn arrays_keep_their_own_bounds() {
    let Some(bench) = packaged() else { return };
    assert_eq!(
        result(&bench.python("import numpy as np\nnp.arange(100_000)").await),
        "array([    0,     1,     2, ..., 99997, 99998, 99999], shape=(100000,))"
    );
    assert_eq!(result(&bench.python("np.float64(1.5)").await), "np.float64(1.5)");
    bench.close().await;
}

#[tokio::test]
async fn what_is_drawn_through_ipythons_own_display_is_shown_too() {
    let Some(bench) = packaged() else { return };
    let code = "from IPython.display import display as show, HTML, Markdown\nshow(HTML('<b>x</b>'))\nMarkdown('# *m*')";
    let outcome = bench.python(code).await;
    assert_eq!(pieces(&outcome), ["<IPython.core.display.HTML object>\n# *m*"]);
    assert_eq!(outcome.structured["displays"][0]["html"], "<b>x</b>");
    bench.close().await;
}

#[tokio::test]
async fn compiled_code_that_cannot_be_interrupted_at_once_ends_in_a_true_answer() {
    let Some(bench) = packaged() else { return };
    bench.python("import numpy as np\nkept = 1").await;
    let code = "a = np.random.rand(5000, 5000)\nwhile True: b = a @ a";
    let outcome = bench.impatient("python", code, 1).await;
    let kept = outcome.structured["state_kept"].as_bool().unwrap();
    assert_eq!(result(&bench.python("'kept' in globals()").await), if kept { "True" } else { "False" });
    bench.close().await;
}

const SHAPES: &str = r#"
class Html:
    def _repr_html_(self): return "<i>h</i>"
class Broken:
    def __repr__(self): raise ValueError("no")
class BrokenHtml:
    def _repr_html_(self): raise ValueError("no html")
    def __repr__(self): return "<plain>"
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None): return {"text/plain": "bundled", "application/json": {"a": 1}}, {"meta": 1}
class Own:
    def _ipython_display_(self): print("displays itself")
class Anything:
    def __getattr__(self, name): return lambda *a, **k: Anything()
    def __repr__(self): return "anything"
class Markdown:
    def _repr_markdown_(self): return "*m*"
"#;

#[tokio::test]
async fn the_best_form_of_a_value_is_taken_and_no_repr_fails_a_cell() {
    let bench = Bench::new();
    bench.python(SHAPES).await;
    let more = "class Closed:
    def __getattribute__(self, name): raise RuntimeError(name)
class Leaves:
    def __repr__(self): raise SystemExit(3)";
    assert!(!bench.python(more).await.is_error);
    for (code, shown) in [
        ("Broken()", "<Broken: its repr raised ValueError: no>"),
        ("BrokenHtml()", "<plain>\n[_repr_html_ raised ValueError: no html]"),
        ("Bundle()", "bundled"),
        ("Own()", "displays itself"),
        ("Markdown()", "*m*"),
        ("[Broken(), 1]", "[<Broken: its repr raised ValueError: no>, 1]"),
        ("Anything()", "anything"),
        ("Closed()", "<Closed: showing it raised RuntimeError: __class__>"),
        ("Leaves()", "<Leaves: its repr raised SystemExit: 3>"),
        ("Html", "<class '__main__.Html'>"),
        (
            "(1,), {'a': {1}}, [], frozenset({2}), b'x', {}",
            "((1,), {'a': {1}}, [], frozenset({2}), b'x', {})",
        ),
        ("a = [1]; a.append(a); a", "[1, ...]"),
        ("'caf\u{e9} \\n'", "'caf\u{e9} \\n'"),
        ("'\\ud800'", "'\\ud800'"),
    ] {
        let outcome = bench.python(code).await;
        assert_eq!((code, outcome.is_error, pieces(&outcome).join("|").as_str()), (code, false, shown));
    }
    let outcome = bench.python("Html()").await;
    assert_eq!(outcome.structured["displays"][0]["html"], "<i>h</i>");
    // Large values: bounded, and quick.
    let outcome = bench.python("list(range(10 ** 6))").await;
    let text = outcome.all_text();
    assert!(
        text.starts_with("[0, 1, 2, ") && text.ends_with("998, 999, … (1000000 in all)]"),
        "{}",
        &text[text.len() - 60..]
    );
    let outcome = bench.python("'x' * 10 ** 7").await;
    assert!(outcome.all_text().len() < 20_000);
    assert!(outcome.all_text().contains("(10000000 in all)"));
    bench.close().await;
}

#[tokio::test]
async fn a_display_with_an_id_is_updated_in_its_place() {
    let bench = Bench::new();
    let outcome = bench.python("h = display('one', display_id=True)\nprint('between')\nh.update('two')\nupdate_display('three', display_id=h.display_id)").await;
    assert_eq!(pieces(&outcome), ["'three'\nbetween"]);
    // In a later cell there is nothing left to replace.
    assert_eq!(pieces(&bench.python("h.update('four')").await), ["'four'"]);
    let outcome = bench.python("for i in range(60): display(i)").await;
    assert!(
        outcome
            .all_text()
            .ends_with("38\n39\n[20 more displays were left out: 40 is the most that one cell shows]"),
        "{}",
        outcome.all_text()
    );
    bench.close().await;
}

#[tokio::test]
async fn javascript_values_are_shown_as_node_inspects_them() {
    let bench = Bench::new();
    for (code, shown) in [
        ("new Map([[1, {a: [1, 2]}]])", "Map(1) { 1 => { a: [ 1, 2 ] } }"),
        ("'text'", "'text'"),
        ("-0", "-0"),
        ("2n ** 64n", "18446744073709551616n"),
        ("Symbol('s')", "Symbol(s)"),
        ("NaN", "NaN"),
        ("null", "null"),
        ("undefined", "(no output)"),
        ("[1, 2, 3]", "[ 1, 2, 3 ]"),
        ("Promise.resolve(7)", "7"),
        ("(() => { throw 5 }).name", "''"),
        ("[{a: 1}, {a: 2, b: 'x'}]", "Array: 2 rows × 2 columns|<table [\"a\", \"b\"] 2 rows>"),
        ("display({html: '<b>1</b>'}); undefined", "<HTML>"),
        ("class A { #p = 1; q = 2 }; new A()", "A { q: 2 }"),
        ("const { a, ...rest } = await Promise.resolve({ a: 1, b: 2 }); rest", "{ b: 2 }"),
    ] {
        let outcome = bench.javascript(code).await;
        assert_eq!((code, pieces(&outcome).join("|").as_str(), outcome.is_error), (code, shown, false));
    }
    let png = "Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')";
    for code in [png.to_owned(), format!("display.image({png})"), format!("({{ 'image/png': {png} }})")] {
        assert_eq!(pieces(&bench.javascript(&code).await), ["<image/png 1x1>"], "{code}");
    }
    bench.close().await;
}

#[tokio::test]
async fn javascript_cells_import_and_declare_again() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("lib.mjs"), "export const one = 1; export default 'def'").unwrap();
    std::fs::write(bench.path().join("data.json"), "{\"k\": 5}").unwrap();
    let code = "import fallback, { one as uno } from './lib.mjs'\nimport * as os from 'node:os'\nconst { readFileSync } = await import('fs');\n[fallback, uno, typeof os.EOL, typeof readFileSync, typeof require('path').join]";
    assert_eq!(result(&bench.javascript(code).await), "[ 'def', 1, 'string', 'function', 'function' ]");
    // A changed file is loaded again, and constants are declared again.
    std::fs::write(bench.path().join("lib.mjs"), "export const one = 'changed'; export default 'def 2'")
        .unwrap();
    assert_eq!(
        result(&bench.javascript(code).await),
        "[ 'def 2', 'changed', 'string', 'function', 'function' ]"
    );
    let outcome = bench.javascript("import { nothing } from './lib.mjs'").await;
    assert_eq!(
        outcome.structured["error"]["message"],
        "The requested module './lib.mjs' does not provide an export named 'nothing'"
    );
    let outcome = bench.javascript("\n\nnull.x").await;
    let traceback = outcome.structured["error"]["traceback"].as_str().unwrap().to_owned();
    assert!(traceback.contains("cell-4:3:6") && !traceback.contains("node:"), "{traceback}");
    let outcome = bench.javascript("const x = ;").await;
    assert_eq!(outcome.structured["error"]["name"], "SyntaxError");
    // A failed initialiser does not spoil the name.
    bench.javascript("const bad = (() => { throw new Error('x') })()").await;
    assert_eq!(result(&bench.javascript("const bad = 2; bad").await), "2");
    let outcome = bench
        .javascript(
            "Promise.reject(new Error('nobody waits')); await new Promise((r) => setTimeout(r, 20)); 1",
        )
        .await;
    assert_eq!(result(&outcome), "1");
    assert!(outcome.structured["stderr"].as_str().unwrap().contains("nobody waits"));
    bench.close().await;
}
