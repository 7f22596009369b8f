//! `tool(…)` in a cell: the way back into the registry (SPEC E4).

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "tests look at the machine by hand")]

mod support;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use support::*;

#[tokio::test]
async fn a_result_is_text_with_fields_pictures_and_tables() {
    let bench = Bench::new();
    let code = "r = tool('echo', {'text': 'hello', 'picture': True})
print(r, r.upper(), r.structured['nested'], r['length'], r.text == r['text'] == 'hello')
print(r.images[0], r.images[0].data[:4], r.tables)
print(len(r), r[0], r == 'hello', 'ell' in r, r.get('nothing', 'none'))";
    let expected = "hello HELLO {'list': [1, 2]} 5 True
<image/png, 88 bytes> b'\\x89PNG' [{'columns': ['a'], 'rows': [[1], [2]]}]
5 h True True none
";
    assert_eq!(gist(&bench.python(code).await), fine(Value::Null, expected));
    // Shown as what it is.
    let outcome = bench.python("r.images[0]").await;
    assert_eq!(outcome.content.len(), 1, "{:?}", outcome.content);
    assert_eq!(outcome.structured["displays"][0]["type"], "image");
    assert_eq!(result(&bench.python("r").await), "hello");

    let code = "const r = await tool('echo', {text: 'hello', picture: true});
console.log(`${r}`, r.toUpperCase(), r.structured.nested, r.length, r.text === 'hello', r.images[0].mime, r.images[0].data.length, r.tables);
r";
    let outcome = bench.javascript(code).await;
    assert_eq!(
        (stdout(&outcome), result(&outcome)),
        (
            "hello HELLO { list: [ 1, 2 ] } 5 true image/png 88 [ { columns: [ 'a' ], rows: [ [Array], [Array] ] } ]\n",
            "hello"
        )
    );
    let outcome = bench.javascript("r.images[0]").await;
    assert_eq!(outcome.structured["displays"][0]["type"], "image");
    bench.close().await;
}

#[tokio::test]
async fn a_failure_raises_in_the_tools_own_words() {
    let bench = Bench::new();
    let code = "try: tool('echo', {'text': 'fail'})\nexcept ToolError as e: print(e, e.structured)";
    assert_eq!(
        gist(&bench.python(code).await),
        fine(Value::Null, "The echo failed, in its own words. {'why': 'asked to'}\n")
    );
    let outcome = bench.python("tool('nothing')").await;
    assert_eq!(outcome.structured["error"]["message"], "unknown tool: nothing");
    let outcome = bench.python("tool('echo', {'txt': 1})").await;
    assert_eq!(outcome.structured["error"]["name"], "ToolError");
    let code = "try { await tool('echo', {text: 'fail'}) } catch (e) { console.log(e instanceof ToolError, e.message, e.structured) }";
    assert_eq!(
        stdout(&bench.javascript(code).await),
        "true The echo failed, in its own words. { why: 'asked to' }\n"
    );
    let outcome = bench.javascript("await tool('nothing')").await;
    assert_eq!(outcome.structured["error"]["name"], "ToolError");
    bench.close().await;
}

#[tokio::test]
async fn calls_run_beside_each_other_from_threads_and_tasks() {
    let bench = Bench::new();
    let code = "from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda n: tool('sleep', {'milliseconds': 150}), range(8)))
max(r['at_once'] for r in found)";
    assert_eq!(result(&bench.python(code).await), "8");
    let code = "import asyncio
found = await asyncio.gather(*(tool_async('echo', {'text': str(n)}) for n in range(20)))
[str(r) for r in found] == [str(n) for n in range(20)]";
    assert_eq!(result(&bench.python(code).await), "True");
    // From within a coroutine, and mixed with threads that call in other orders.
    let code = "import threading, random
wrong = []
def work(n):
    for i in range(30):
        text = f'{n}-{i}'
        if tool('echo', {'text': text}) != text: wrong.append(text)
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]
async def inner(): return str(tool('echo', {'text': 'inner'}))
print(await inner())
work('main')
[t.join() for t in threads]
wrong";
    assert_eq!(gist(&bench.python(code).await), fine("[]", "inner\n"));
    let code =
        "const all = await Promise.all([...Array(20).keys()].map((n) => tool('echo', {text: String(n)})));
all.map(String).join() === [...Array(20).keys()].join()";
    assert_eq!(result(&bench.javascript(code).await), "true");
    bench.close().await;
}

#[tokio::test]
async fn an_interrupted_call_is_given_up_and_the_next_works() {
    let bench = Bench::new();
    let dropped = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        bench.python("tool('sleep', {'milliseconds': 100000})"),
    )
    .await;
    assert!(dropped.is_err());
    assert_eq!(result(&bench.python("tool('echo', {'text': 'after'})").await), "after");
    let dropped = tokio::time::timeout(
        std::time::Duration::from_millis(500),
        bench.javascript("await tool('sleep', {milliseconds: 100000})"),
    )
    .await;
    assert!(dropped.is_err());
    assert_eq!(result(&bench.javascript("await tool('echo', {text: 'after'})").await), "after");
    bench.close().await;
}

/// NaN in an argument once ended the kernel, and half a surrogate pair was written as a question mark.
#[tokio::test]
async fn arguments_that_cannot_be_passed_on_are_errors_of_the_cell() {
    let bench = Bench::new();
    assert!(!bench.python("kept = 1\ndeep = 1\nfor _ in range(200): deep = [deep]").await.is_error);
    for (arguments, name) in [
        ("{'text': float('nan')}", "ValueError"),
        ("{'text': object()}", "TypeError"),
        ("{'text': '\\ud800'}", "UnicodeEncodeError"),
        ("{'text': 10 ** 400}", "ToolError"),
        ("{'text': deep}", "ToolError"),
        ("'text'", "TypeError"),
    ] {
        let outcome = bench.python(&format!("tool('echo', {arguments})")).await;
        assert_eq!(
            (&outcome.structured["error"]["name"], &outcome.structured["state_kept"]),
            (&json!(name), &json!(true)),
            "{arguments}"
        );
    }
    // The same in what is shown.
    let code = "class Odd:
    def _repr_json_(self): return {'nan': float('nan')}
class Deep:
    def _repr_json_(self): return deep
display(Odd(), Deep()); kept";
    let outcome = bench.python(code).await;
    assert_eq!((result(&outcome), outcome.is_error), ("1", false));
    let outcome = bench
        .javascript(
            "let deep = 1; for (let i = 0; i < 200; i++) deep = [deep]; await tool('echo', {text: deep})",
        )
        .await;
    assert_eq!(
        (&outcome.structured["error"]["name"], &outcome.structured["state_kept"]),
        (&json!("ToolError"), &json!(true))
    );
    bench.close().await;
}

#[tokio::test]
async fn a_cell_cannot_run_a_cell() {
    let bench = Bench::new();
    let code = "tool('eval', {'code': '1', 'description': 'a cell within a cell'})";
    let outcome = bench.python(code).await;
    assert_eq!(
        outcome.structured["error"]["message"],
        "A cell cannot run another cell: its kernel is busy with it. Call the code as a function instead."
    );
    assert_eq!(result(&bench.python("2").await), "2");
    bench.close().await;
}

#[tokio::test]
async fn a_thread_that_outlives_its_cell_is_told_that_it_is_too_late() {
    let bench = Bench::new();
    let code = "import threading
gate, said = threading.Event(), []
def late():
    gate.wait()
    try: said.append(tool('echo', {'text': 'x'}))
    except ToolError as e: said.append(str(e))
thread = threading.Thread(target=late); thread.start()";
    assert!(!bench.python(code).await.is_error);
    // The gate is opened behind the cell's end, by a timer of the kernel's own.
    bench.python("threading.Timer(0.1, gate.set).start()").await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(
        result(&bench.python("thread.join(); said").await),
        "['tool() works while a cell runs. This call came from a thread or task that a cell has left running.']"
    );
    bench.close().await;
}

#[tokio::test]
async fn keyword_arguments_and_many_calls_work() {
    let bench = Bench::new();
    assert_eq!(result(&bench.python("tool('echo', text='kw')").await), "kw");
    let outcome = bench.python("for n in range(300): tool('echo', text=str(n))").await;
    assert_eq!((outcome.is_error, &outcome.structured["tool_calls"]), (false, &json!(300)));
    bench.close().await;
}
