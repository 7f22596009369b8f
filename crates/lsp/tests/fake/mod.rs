//! A language server that does what a script says, misbehaviour of every kind included.
//!
//! The test binary is its own fake: started again with [`MARKER`] and a script it never comes to its `main`. A script is JSON:
//!
//! ```json
//! {
//!   "capabilities": {"hoverProvider": true},
//!   "analyse": {"mode": "push", "version": true, "delay_ms": [0, 5]},
//!   "rules": [{"on": "textDocument/hover", "times": 1, "start": 1, "do": [{"sleep_ms": 10}, {"reply": {"contents": "x"}}]}]
//! }
//! ```
//!
//! `rules`: the first one for the method that has `times` left (and, with `start`, only in that start of the program) is carried out instead of
//! the default, in a thread of its own. Without a rule `initialize` answers the capabilities, `shutdown` and all other requests `null`, and
//! `exit` ends the program. Steps: `reply`, `error {code, message}`, `send {method, params}` (a notification), `ask {id, method, params}` (a
//! request), `raw` (text onto stdout), `stderr` (that many bytes), `flood {method, params, count}`, `large` (reply with that many bytes),
//! `sleep_ms`, `exit` (code), `deaf` (stop reading stdin), `stubborn` (ignore SIGTERM and the end of stdin). In strings `{uri}` and, as a whole value,
//! `"{version}"` stand for the document of the message.
//!
//! `analyse`: every line of an open text with `ERROR word` is a diagnostic with the message `word`. `mode`: `push`, `pull`, `both`; `version`: whether
//! pushes carry it; `delay_ms`: from and to, drawn anew each time; `twice`: each push comes a second time, the first without its last diagnostic.
//!
//! Everything that the fake receives is appended to a log beside the script, one JSON text a line.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_lsp::servers::{ServerOverride, Table};
use serde_json::{Value, json};

/// The first argument of a fake.
const MARKER: &str = "haft-lsp-fake";

#[ctor::ctor]
fn become_fake() {
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|marker| marker == OsStr::new(MARKER)) {
        let code = arguments.get(2).map_or(2, |script| run(Path::new(script)));
        std::process::exit(code);
    }
}

/// A fake to be started by the code under test.
pub(crate) struct Fake {
    script: PathBuf,
    _place: tempfile::TempDir,
}

impl Fake {
    pub(crate) fn new(script: Value) -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("script.json");
        fs::write(&path, script.to_string()).unwrap();
        Fake { script: path, _place: place }
    }

    /// Other behaviour from the next start on.
    pub(crate) fn rescript(&self, script: Value) {
        fs::write(&self.script, script.to_string()).unwrap();
    }

    /// The shipped table and this fake under `id`, for files `*.fake` below a `fake.toml`.
    pub(crate) fn table(&self, id: &str) -> Table {
        let program = std::env::current_exe().unwrap().display().to_string();
        let entry = ServerOverride {
            command: Some(vec![program, MARKER.into(), self.script.display().to_string()]),
            languages: Some([("fake".to_owned(), "fake".to_owned())].into()),
            markers: Some(vec!["fake.toml".into()]),
            ..ServerOverride::default()
        };
        Table::shipped().unwrap().with(&[(id.to_owned(), entry)].into()).unwrap()
    }

    /// What it has received, in order, over all starts.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(log_of(&self.script)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The methods that it has received, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.log().iter().filter_map(|message| Some(message.get("method")?.as_str()?.to_owned())).collect()
    }

    /// How often it was started.
    pub(crate) fn starts(&self) -> usize {
        self.log().iter().filter(|message| message.get("started").is_some()).count()
    }
}

fn log_of(script: &Path) -> PathBuf {
    script.with_extension("log")
}

struct State {
    script: Value,
    log: Mutex<fs::File>,
    start: usize,
    used: Mutex<Vec<u64>>,
    texts: Mutex<HashMap<String, (Value, String)>>,
    random: Mutex<u64>,
}

fn run(path: &Path) -> i32 {
    let script: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let earlier = fs::read_to_string(log_of(path)).unwrap_or_default();
    let start = 1 + earlier.lines().filter(|line| line.starts_with("{\"started\"")).count();
    let mut log = OpenOptions::new().append(true).create(true).open(log_of(path)).unwrap();
    writeln!(log, "{}", json!({ "started": std::process::id() })).unwrap();
    let rules = script["rules"].as_array().map_or(0, Vec::len);
    let state = Arc::new(State {
        start,
        log: Mutex::new(log),
        used: Mutex::new(vec![0; rules]),
        texts: Mutex::default(),
        random: Mutex::new(script["analyse"]["seed"].as_u64().unwrap_or(1)),
        script,
    });
    let mut input = BufReader::new(std::io::stdin());
    while let Some(message) = read(&mut input) {
        writeln!(state.log.lock().unwrap(), "{message}").unwrap();
        if let Some(code) = take(&state, message) {
            return code;
        }
    }
    0
}

fn read(input: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length:") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn write(bytes: &[u8]) {
    let mut output = std::io::stdout().lock();
    // Whoever closed the pipe does not want it.
    let _ = output.write_all(bytes).and_then(|()| output.flush());
}

fn send(message: &Value) {
    let body = message.to_string();
    write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// Deals with a message; an answer ends the program with that code.
fn take(state: &Arc<State>, message: Value) -> Option<i32> {
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    remember(state, &method, &message);
    if let Some(steps) = rule_for(state, &method) {
        // Deafness is the reading thread's own.
        if steps.iter().any(|step| step.get("deaf").is_some()) {
            loop {
                std::thread::sleep(Duration::from_mins(1));
            }
        }
        if let Some(code) = steps.first().and_then(|step| step.get("exit")) {
            return Some(code.as_i64().unwrap_or(1) as i32);
        }
        let state = state.clone();
        std::thread::spawn(move || {
            for step in steps {
                carry_out(&state, &message, &step);
            }
        });
        return None;
    }
    let id = message.get("id").cloned();
    match (method.as_str(), id) {
        ("initialize", Some(id)) => {
            let result = json!({ "capabilities": state.script["capabilities"], "serverInfo": { "name": "fake", "version": "1.2" } });
            send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        ("exit", _) => return Some(0),
        ("textDocument/diagnostic", Some(id)) => {
            let items = message["params"]["textDocument"]["uri"].as_str().map(|uri| analysed(state, uri).1);
            let state = state.clone();
            std::thread::spawn(move || {
                std::thread::sleep(delay(&state));
                send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "kind": "full", "items": items } }));
            });
        }
        ("", _) => {}
        (_, Some(id)) => send(&json!({ "jsonrpc": "2.0", "id": id, "result": null })),
        ("textDocument/didOpen" | "textDocument/didChange", None) => {
            if matches!(state.script["analyse"]["mode"].as_str(), Some("push" | "both")) {
                let uri = message["params"]["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
                let (version, diagnostics) = analysed(state, &uri);
                let state = state.clone();
                std::thread::spawn(move || push(&state, &uri, &version, &diagnostics));
            }
        }
        _ => {}
    }
    None
}

fn remember(state: &State, method: &str, message: &Value) {
    let document = &message["params"]["textDocument"];
    let Some(uri) = document["uri"].as_str() else { return };
    let text = match method {
        "textDocument/didOpen" => document["text"].as_str(),
        "textDocument/didChange" => message["params"]["contentChanges"][0]["text"].as_str(),
        "textDocument/didClose" => {
            state.texts.lock().unwrap().remove(uri);
            None
        }
        _ => None,
    };
    if let Some(text) = text {
        state.texts.lock().unwrap().insert(uri.to_owned(), (document["version"].clone(), text.to_owned()));
    }
}

fn analysed(state: &State, uri: &str) -> (Value, Vec<Value>) {
    let texts = state.texts.lock().unwrap();
    let Some((version, text)) = texts.get(uri) else { return (Value::Null, Vec::new()) };
    let found = text.lines().enumerate().filter_map(|(number, line)| {
        let word = line.split_once("ERROR ")?.1.split_whitespace().next()?;
        let at = |character: usize| json!({ "line": number, "character": character });
        Some(json!({ "range": { "start": at(0), "end": at(5) }, "severity": 1, "source": "fake", "message": word }))
    });
    (version.clone(), found.collect())
}

fn push(state: &State, uri: &str, version: &Value, diagnostics: &[Value]) {
    let with_version = state.script["analyse"]["version"] != json!(false);
    let publish = |list: &[Value]| {
        let mut params = json!({ "uri": uri, "diagnostics": list });
        if with_version {
            params["version"] = version.clone();
        }
        send(&json!({ "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params }));
    };
    std::thread::sleep(delay(state));
    if state.script["analyse"]["twice"] == json!(true) {
        publish(&diagnostics[..diagnostics.len().saturating_sub(1)]);
        std::thread::sleep(delay(state));
    }
    publish(diagnostics);
}

fn delay(state: &State) -> Duration {
    let bound = |index: usize| state.script["analyse"]["delay_ms"][index].as_u64().unwrap_or(0);
    let (from, to) = (bound(0), bound(1).max(bound(0)));
    let mut random = state.random.lock().unwrap();
    // xorshift: the same delays for the same seed.
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    Duration::from_millis(from + *random % (to - from + 1))
}

fn rule_for(state: &State, method: &str) -> Option<Vec<Value>> {
    let rules = state.script["rules"].as_array()?;
    let mut used = state.used.lock().unwrap();
    let fits = |index: usize, rule: &Value| {
        rule["on"] == method
            && rule["times"].as_u64().is_none_or(|times| used[index] < times)
            && rule["start"].as_u64().is_none_or(|start| start as usize == state.start)
    };
    let index = rules.iter().enumerate().position(|(index, rule)| fits(index, rule))?;
    used[index] += 1;
    Some(rules[index]["do"].as_array().cloned().unwrap_or_default())
}

fn carry_out(state: &State, message: &Value, step: &Value) {
    let id = &message["id"];
    let fill = |value: &Value| filled(state, value, message);
    let Some((name, value)) = step.as_object().and_then(|fields| fields.iter().next()) else { return };
    match name.as_str() {
        "reply" => send(&json!({ "jsonrpc": "2.0", "id": id, "result": fill(value) })),
        "reply_as_text" => send(&json!({ "jsonrpc": "2.0", "id": id.to_string(), "result": fill(value) })),
        "error" => send(&json!({ "jsonrpc": "2.0", "id": id, "error": value })),
        "send" => {
            send(&json!({ "jsonrpc": "2.0", "method": value["method"], "params": fill(&value["params"]) }))
        }
        "ask" => send(
            &json!({ "jsonrpc": "2.0", "id": value["id"], "method": value["method"], "params": fill(&value["params"]) }),
        ),
        "flood" => {
            for number in 0..value["count"].as_u64().unwrap_or(0) {
                send(
                    &json!({ "jsonrpc": "2.0", "id": format!("flood-{number}"), "method": value["method"], "params": value["params"] }),
                );
            }
        }
        "large" => {
            let text = "x".repeat(value.as_u64().unwrap_or(0) as usize);
            send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "contents": text } }));
        }
        "raw" => write(value.as_str().unwrap_or_default().as_bytes()),
        "stderr" => {
            let line = "a long line of the server's log\n";
            let mut left = value.as_u64().unwrap_or(0) as usize;
            let mut stderr = std::io::stderr().lock();
            while left > 0 {
                let _ = stderr.write_all(line.as_bytes());
                left = left.saturating_sub(line.len());
            }
        }
        "say" => {
            let _ = writeln!(std::io::stderr().lock(), "{}", value.as_str().unwrap_or_default());
        }
        "sleep_ms" => std::thread::sleep(Duration::from_millis(value.as_u64().unwrap_or(0))),
        "exit" => std::process::exit(value.as_i64().unwrap_or(1) as i32),
        _ => {}
    }
}

fn filled(state: &State, value: &Value, message: &Value) -> Value {
    let uri = message["params"]["textDocument"]["uri"].as_str().unwrap_or_default();
    match value {
        Value::String(text) if text == "{version}" => {
            state.texts.lock().unwrap().get(uri).map_or(Value::Null, |(version, _)| version.clone())
        }
        Value::String(text) => Value::String(text.replace("{uri}", uri)),
        Value::Array(list) => Value::Array(list.iter().map(|one| filled(state, one, message)).collect()),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), filled(state, value, message))).collect(),
        ),
        other => other.clone(),
    }
}
