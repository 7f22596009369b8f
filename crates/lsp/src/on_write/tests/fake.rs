//! A language server without a language: a line with `BAD<word>` is an error. How and when it says so is what tests are about. It lives on the far end of a
//! pair of pipes in the same process, so the clock of a test is its clock too.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{io::BufReader, sync::Mutex as AsyncMutex, time::sleep};

use crate::{client::framing, supervisor::testing::FarEnd, uri};

/// How it delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Publishes with versions; also about older versions, twice, and in parts.
    Versioned,
    /// Publishes without versions, one analysis after the other, each of the text as it is when it begins.
    Unversioned,
    /// Is asked; gives up now and then because something changed.
    Pull,
    /// Is asked, but registers that only after the first document is open.
    PullLate,
    /// `BAD` is found natively and pulled; `CHECK` by a checker after a save, in the file on disk, pushed in parts; and the old findings are published again
    /// under every new version.
    Flycheck,
}

/// A reproducible source of chance.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

struct Open {
    version: i64,
    text: String,
}

pub(crate) struct Fake {
    kind: Kind,
    /// One in so many answers never comes; 0 for none.
    silent: u64,
    dice: Mutex<Dice>,
    open: Mutex<HashMap<String, Open>>,
    /// What the checker last published, by URI.
    checked: Mutex<HashMap<String, Vec<Value>>>,
    writer: AsyncMutex<tokio::io::WriteHalf<tokio::io::DuplexStream>>,
    /// One analysis at a time.
    worker: AsyncMutex<()>,
    checks: Mutex<u64>,
}

impl Fake {
    pub(crate) fn capabilities(kind: Kind) -> Value {
        match kind {
            Kind::Versioned | Kind::Unversioned | Kind::PullLate => json!({ "documentSymbolProvider": true }),
            Kind::Pull | Kind::Flycheck => json!({ "diagnosticProvider": { "interFileDependencies": true } }),
        }
    }

    /// Serves until the near end closes.
    pub(crate) fn serve(kind: Kind, silent: u64, seed: u64, far: FarEnd) {
        let FarEnd { reader, writer, ended } = far;
        let fake = Arc::new(Fake {
            kind,
            silent,
            dice: Mutex::new(Dice::new(seed)),
            open: Mutex::default(),
            checked: Mutex::default(),
            writer: AsyncMutex::new(writer),
            worker: AsyncMutex::new(()),
            checks: Mutex::new(0),
        });
        tokio::spawn(async move {
            let _ended = ended;
            let mut reader = BufReader::new(reader);
            while let Ok(body) = framing::read(&mut reader).await {
                let message: Value = serde_json::from_slice(&body).unwrap();
                fake.clone().take(message).await;
            }
        });
    }

    fn roll(&self, sides: u64) -> u64 {
        self.dice.lock().unwrap().roll(sides)
    }

    fn delay(&self) -> Duration {
        // Mostly quick, now and then longer than anybody waits inline.
        let most = [3, 40, 40, 120, 900][self.roll(5) as usize];
        Duration::from_millis(self.roll(most))
    }

    fn is_silent(&self) -> bool {
        self.silent > 0 && self.roll(self.silent) == 0
    }

    async fn send(&self, message: Value) {
        use tokio::io::AsyncWriteExt;
        let framed = framing::frame(message.to_string().as_bytes());
        let _ = self.writer.lock().await.write_all(&framed).await;
    }

    async fn notify(&self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    async fn publish(&self, uri: &str, version: Option<i64>, list: Vec<Value>) {
        let mut params = json!({ "uri": uri, "diagnostics": list });
        if let Some(version) = version {
            params["version"] = json!(version);
        }
        self.notify("textDocument/publishDiagnostics", params).await;
    }

    async fn take(self: Arc<Self>, message: Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "textDocument/didOpen" => {
                let document = &params["textDocument"];
                let first = self.open.lock().unwrap().is_empty();
                let text = document["text"].as_str().unwrap();
                self.changed(document["uri"].as_str().unwrap(), document["version"].as_i64().unwrap(), text)
                    .await;
                if first && self.kind == Kind::PullLate {
                    let registration = json!({ "id": "d", "method": "textDocument/diagnostic", "registerOptions": { "identifier": "fake" } });
                    self.send(json!({ "jsonrpc": "2.0", "id": "reg", "method": "client/registerCapability", "params": { "registrations": [registration] } })).await;
                }
            }
            "textDocument/didChange" => {
                let document = &params["textDocument"];
                let text = params["contentChanges"][0]["text"].as_str().unwrap();
                self.changed(document["uri"].as_str().unwrap(), document["version"].as_i64().unwrap(), text)
                    .await;
            }
            "textDocument/didSave" if self.kind == Kind::Flycheck => {
                let number = {
                    let mut checks = self.checks.lock().unwrap();
                    *checks += 1;
                    *checks
                };
                tokio::spawn(self.clone().check(number));
            }
            "textDocument/didClose" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap();
                self.open.lock().unwrap().remove(uri);
            }
            "textDocument/diagnostic" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap().to_owned();
                let id = message["id"].clone();
                tokio::spawn(self.clone().pulled(id, uri));
            }
            "textDocument/documentSymbol" => {
                let id = message["id"].clone();
                if self.is_silent() {
                    return;
                }
                if self.roll(2) == 0 {
                    self.send(json!({ "jsonrpc": "2.0", "id": id, "result": [] })).await;
                } else {
                    let fake = self.clone();
                    tokio::spawn(async move {
                        sleep(fake.delay()).await;
                        fake.send(json!({ "jsonrpc": "2.0", "id": id, "result": [] })).await;
                    });
                }
            }
            // In its turn, as the protocol has it.
            method if !method.is_empty() && !message["id"].is_null() => {
                let error = json!({ "code": -32601, "message": "unknown method" });
                self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })).await;
            }
            _ => {}
        }
    }

    async fn changed(self: &Arc<Self>, uri: &str, version: i64, text: &str) {
        let old = self.open.lock().unwrap().insert(uri.to_owned(), Open { version, text: text.to_owned() });
        let found = problems(text, "BAD");
        match self.kind {
            Kind::Versioned => {
                if let Some(old) = old
                    && self.roll(3) == 0
                {
                    self.publish(uri, Some(old.version), problems(&old.text, "BAD")).await;
                }
                if self.is_silent() {
                    return;
                }
                let (fake, uri) = (self.clone(), uri.to_owned());
                tokio::spawn(async move {
                    sleep(fake.delay()).await;
                    if fake.roll(3) == 0 {
                        let half = found[..found.len() / 2].to_vec();
                        fake.publish(&uri, Some(version), half).await;
                        sleep(Duration::from_millis(1)).await;
                    }
                    fake.publish(&uri, Some(version), found).await;
                });
            }
            Kind::Unversioned => {
                if self.is_silent() {
                    return;
                }
                // Some publish while they read the change, before they answer anything that came after it.
                if self.roll(4) == 0 && self.worker.try_lock().is_ok() {
                    self.publish(uri, None, found).await;
                    return;
                }
                let (fake, uri) = (self.clone(), uri.to_owned());
                tokio::spawn(async move {
                    let _turn = fake.worker.lock().await;
                    let text = fake.open.lock().unwrap().get(&uri).map(|open| open.text.clone());
                    let Some(text) = text else { return };
                    sleep(fake.delay()).await;
                    fake.publish(&uri, None, problems(&text, "BAD")).await;
                });
            }
            Kind::Flycheck => {
                let old = self.checked.lock().unwrap().get(uri).cloned();
                if let Some(old) = old {
                    self.publish(uri, Some(version), old).await;
                }
            }
            Kind::Pull | Kind::PullLate => {
                if self.roll(5) == 0 {
                    self.send(
                        json!({ "jsonrpc": "2.0", "id": "ref", "method": "workspace/diagnostic/refresh" }),
                    )
                    .await;
                }
            }
        }
    }

    async fn pulled(self: Arc<Self>, id: Value, uri: String) {
        let begun = self.open.lock().unwrap().get(&uri).map(|open| (open.version, open.text.clone()));
        if self.is_silent() {
            return;
        }
        sleep(self.delay()).await;
        let now = self.open.lock().unwrap().get(&uri).map(|open| open.version);
        let Some((version, text)) = begun else {
            self.send(
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "not open" } }),
            )
            .await;
            return;
        };
        if now != Some(version) || self.roll(6) == 0 {
            let error = json!({ "code": -32801, "message": "content modified" });
            self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
            return;
        }
        let report = json!({ "kind": "full", "items": problems(&text, "BAD") });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": report })).await;
    }

    /// A check of everything on the disk; a later one ends it.
    async fn check(self: Arc<Self>, number: u64) {
        sleep(Duration::from_millis(20 + self.roll(400))).await;
        let is_last = |fake: &Fake| *fake.checks.lock().unwrap() == number;
        if !is_last(&self) {
            return;
        }
        let _turn = self.worker.lock().await;
        if !is_last(&self) {
            return;
        }
        let progress = |kind: &str| json!({ "token": "rust-analyzer/flycheck/0", "value": { "kind": kind, "title": "cargo check" } });
        self.notify("$/progress", progress("begin")).await;
        if self.is_silent() {
            return;
        }
        let open: Vec<(String, i64)> = {
            let open = self.open.lock().unwrap();
            open.iter().map(|(uri, open)| (uri.clone(), open.version)).collect()
        };
        for (uri, version) in open {
            let path = uri::to_path(&uri).unwrap();
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let found = problems(&text, "CHECK");
            sleep(self.delay()).await;
            for part in 0..=found.len() {
                self.publish(&uri, Some(version), found[..part].to_vec()).await;
            }
            self.checked.lock().unwrap().insert(uri, found);
        }
        self.notify("$/progress", progress("end")).await;
    }
}

/// An error for every line with the word.
fn problems(text: &str, word: &str) -> Vec<Value> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains(word));
    lines
        .map(|(at, line)| {
            let message = line.split_whitespace().find(|one| one.contains(word)).unwrap();
            let at = json!({ "line": at, "character": 0 });
            json!({ "range": { "start": at, "end": at }, "severity": 1, "message": message, "source": "fake" })
        })
        .collect()
}
