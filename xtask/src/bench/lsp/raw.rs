//! The peer: a client that does nothing but speak JSON-RPC to a server of its own, in a copy of the same project.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::samples::{Place, Rule};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// After this a server that does not name versions is taken to have nothing to say about a write.
const SILENCE: Duration = Duration::from_secs(3);
/// Messages of a server that may wait to be looked at.
const WAITING: usize = 1 << 16;
/// Haft's own table, so that both give a server the same settings.
const TABLE: &str = include_str!("../../../../crates/lsp/src/servers/table.toml");

/// What a server needs to be told, from Haft's table.
#[derive(Clone, Debug)]
pub(super) struct Told {
    settings: Value,
    options: Value,
}

impl Told {
    pub(super) fn of(server: &str, program: &Path) -> Result<Told> {
        let table: toml::Table = toml::from_str(TABLE).context("the table of servers cannot be read")?;
        let entry = serde_json::to_value(table.get(server).context("the table does not have this server")?)?;
        let mut options = entry.get("initialization_options").cloned().unwrap_or(Value::Null);
        // The one thing that Haft adds by looking at the machine and that matters here.
        if server == "rust-analyzer" && program.starts_with("/usr/bin") {
            let found = fs::read_dir("/usr/src").into_iter().flatten().flatten();
            let mut sources: Vec<PathBuf> =
                found.map(|entry| entry.path().join("library")).filter(|path| path.is_dir()).collect();
            sources.sort();
            if let Some(sources) = sources.pop() {
                options["cargo"]["sysrootSrc"] = sources.display().to_string().into();
            }
        }
        Ok(Told { settings: entry.get("settings").cloned().unwrap_or_else(|| json!({})), options })
    }

    fn section(&self, name: &str) -> Value {
        if name.is_empty() {
            return self.settings.clone();
        }
        let by_parts = || name.split('.').try_fold(&self.settings, |found, part| found.get(part));
        self.settings.get(name).or_else(by_parts).cloned().unwrap_or_else(|| json!({}))
    }
}

/// What was published last about a file.
#[derive(Clone, Debug)]
struct Published {
    version: Option<i64>,
    messages: Vec<String>,
    /// Which publication it was.
    number: u64,
}

pub(super) struct Raw {
    child: Child,
    to: Arc<Mutex<ChildStdin>>,
    from: Receiver<Value>,
    root: PathBuf,
    next: i64,
    version: i64,
    capabilities: Value,
    registered: Vec<(String, Value)>,
    published: HashMap<String, Published>,
    publications: u64,
    /// Progress that has begun and not ended, and how often any has ended.
    active: BTreeSet<String>,
    checks_ended: u64,
    quiescent: Option<bool>,
    opened: BTreeSet<String>,
}

impl Raw {
    /// Starts the program with these arguments in `root` and waits for its answer to `initialize`.
    pub(super) fn start(
        program: &Path,
        arguments: &[String],
        environment: &[(String, std::ffi::OsString)],
        root: &Path,
        told: &Told,
    ) -> Result<Raw> {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().cloned())
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let to = Arc::new(Mutex::new(stdin));
        let (sender, from) = sync_channel(WAITING);
        let (answers, told_too, folders) = (to.clone(), told.clone(), folders(root));
        thread::spawn(move || listen(stdout, &answers, &told_too, &folders, &sender));
        let mut raw = Raw {
            child,
            to,
            from,
            root: root.to_owned(),
            next: 0,
            version: 0,
            capabilities: Value::Null,
            registered: Vec::new(),
            published: HashMap::new(),
            publications: 0,
            active: BTreeSet::new(),
            checks_ended: 0,
            quiescent: None,
            opened: BTreeSet::new(),
        };
        let mut params = json!({
            "processId": null,
            "clientInfo": { "name": "bench" },
            "rootPath": root,
            "rootUri": uri(root),
            "workspaceFolders": raw.folders(),
            "capabilities": capabilities(),
        });
        if !told.options.is_null() {
            params["initializationOptions"] = told.options.clone();
        }
        let answer = raw.request("initialize", params)?.context("`initialize` was refused")?;
        raw.capabilities = answer["capabilities"].clone();
        raw.notify("initialized", json!({}))?;
        raw.notify("workspace/didChangeConfiguration", json!({ "settings": told.settings }))?;
        Ok(raw)
    }

    fn folders(&self) -> Value {
        folders(&self.root)
    }

    fn uri(&self, file: &str) -> String {
        uri(&self.root.join(file))
    }

    fn send(&self, message: &Value) -> Result<()> {
        send(&self.to, message)
    }

    fn notify(&self, method: &str, params: Value) -> Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<i64> {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }))?;
        Ok(self.next)
    }

    /// The answer; `None` when the server refuses.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Result<Option<Value>> {
        let id = self.ask(method, params)?;
        self.answer(id)
    }

    fn answer(&mut self, id: i64) -> Result<Option<Value>> {
        let until = Instant::now() + PATIENCE;
        loop {
            let message = self.receive(until)?.with_context(|| format!("no answer in {PATIENCE:?}"))?;
            if message.get("method").is_none() && message["id"] == id {
                return Ok(message.get("result").cloned());
            }
        }
    }

    /// The next message, taken in; `None` when there is none until then.
    fn receive(&mut self, until: Instant) -> Result<Option<Value>> {
        match self.from.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => {
                self.take_in(&message);
                Ok(Some(message))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the server of the raw client is gone"),
        }
    }

    /// Takes in what has come until now.
    fn catch_up(&mut self) {
        while let Ok(message) = self.from.try_recv() {
            self.take_in(&message);
        }
    }

    fn take_in(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "textDocument/publishDiagnostics" => {
                self.publications += 1;
                let published = Published {
                    version: params["version"].as_i64(),
                    messages: messages(&params["diagnostics"]),
                    number: self.publications,
                };
                let path = decoded(params["uri"].as_str().unwrap_or_default());
                self.published.insert(path, published);
            }
            "client/registerCapability" => {
                for one in params["registrations"].as_array().into_iter().flatten() {
                    let method = one["method"].as_str().unwrap_or_default().to_owned();
                    self.registered.push((method, one["registerOptions"].clone()));
                }
            }
            "$/progress" => {
                let token = params["token"].to_string();
                match params["value"]["kind"].as_str() {
                    Some("begin") => drop(self.active.insert(token)),
                    Some("end") => {
                        self.checks_ended += u64::from(token.contains("flycheck"));
                        self.active.remove(&token);
                    }
                    _ => {}
                }
            }
            "experimental/serverStatus" => self.quiescent = params["quiescent"].as_bool(),
            _ => {}
        }
    }

    /// Whether the server offers what a field of its capabilities, or a registration, is about.
    pub(super) fn offers(&self, field: &str, method: &str) -> bool {
        !matches!(self.capabilities[field], Value::Null | Value::Bool(false))
            || self.registered.iter().any(|(known, _)| known == method)
    }

    pub(super) fn open(&mut self, file: &str, language: &str) -> Result<()> {
        if !self.opened.insert(file.to_owned()) {
            return Ok(());
        }
        let text = fs::read_to_string(self.root.join(file))?;
        self.version += 1;
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": self.uri(file), "languageId": language, "version": self.version, "text": text } }),
        )
    }

    /// Waits until the server has loaded its project as far as it says: nothing reported for `quiet`, and nothing under way.
    pub(super) fn loaded(&mut self, quiet: Duration) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let is_busy = !self.active.is_empty() || self.quiescent == Some(false);
            match self.receive(Instant::now() + quiet)? {
                None if !is_busy => return Ok(()),
                _ => {}
            }
        }
        bail!("the server of the raw client was still loading after {PATIENCE:?}")
    }

    /// A question about a place.
    pub(super) fn at(&mut self, method: &str, place: &Place) -> Result<Value> {
        let mut params = json!({
            "textDocument": { "uri": self.uri(&place.file) },
            "position": { "line": place.line - 1, "character": place.character },
        });
        if method == "textDocument/references" {
            params["context"] = json!({ "includeDeclaration": true });
        }
        self.request(method, params)?.with_context(|| format!("{method} was refused"))
    }

    pub(super) fn outline(&mut self, file: &str) -> Result<Value> {
        let params = json!({ "textDocument": { "uri": self.uri(file) } });
        self.request("textDocument/documentSymbol", params)?.context("an outline was refused")
    }

    pub(super) fn search(&mut self, query: &str) -> Result<Value> {
        self.request("workspace/symbol", json!({ "query": query }))?.context("a search was refused")
    }

    /// Writes a file and tells the server, as an editor does; then waits for what decides by the server's rule. The messages of the problems that it
    /// has then. Without versions a publication does not say which text it is about: there the first one counts that is `expected`, which a client that does not
    /// know what to expect could not do. `None` when such a server says nothing, as it may where nothing has changed.
    pub(super) fn write(
        &mut self,
        file: &str,
        text: &str,
        rule: Rule,
        expected: impl Fn(&[String]) -> bool,
    ) -> Result<Option<Vec<String>>> {
        self.catch_up();
        let (publications, checks) = (self.publications, self.checks_ended);
        let (path, uri) = (self.root.join(file), self.uri(file));
        let key = path.display().to_string();
        fs::write(&path, text)?;
        self.version += 1;
        let version = self.version;
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": [{ "text": text }] }),
        )?;
        self.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri } }))?;
        let until = Instant::now() + if rule == Rule::NoVersion { SILENCE } else { PATIENCE };
        loop {
            let published = self.published.get(&key).filter(|published| published.number > publications);
            match rule {
                Rule::Pull => return self.pull(&uri).map(Some),
                Rule::Version => {
                    if let Some(found) = published.filter(|found| found.version == Some(version)) {
                        return Ok(Some(found.messages.clone()));
                    }
                }
                Rule::NoVersion => {
                    if let Some(found) = published.filter(|found| expected(&found.messages)) {
                        return Ok(Some(found.messages.clone()));
                    }
                }
                Rule::Check if self.checks_ended > checks => {
                    let pushed = self.published.get(&key).map(|found| found.messages.clone());
                    let mut all = self.pull(&uri)?;
                    all.extend(pushed.unwrap_or_default());
                    return Ok(Some(all));
                }
                Rule::Check => {}
            }
            if self.receive(until)?.is_none() {
                if rule == Rule::NoVersion {
                    return Ok(None);
                }
                bail!("no diagnostics of {file} in {PATIENCE:?}");
            }
        }
    }

    /// What Haft asks before it writes: what there is to complain about now (SPEC W3), and, where the server speaks only of open files, who uses the function that
    /// changes (SPEC W5).
    pub(super) fn before(&mut self, changed: &Place, rule: Rule, is_searched: bool) -> Result<()> {
        if rule == Rule::Pull {
            let uri = self.uri(&changed.file);
            self.pull(&uri)?;
        }
        if is_searched {
            self.outline(&changed.file)?;
            self.at("textDocument/references", changed)?;
        }
        Ok(())
    }

    /// What Haft asks gopls after a write: to say all that it has to say about other files (SPEC W5).
    pub(super) fn diagnose(&mut self, file: &str) -> Result<()> {
        let arguments = json!([{ "Files": [self.uri(file)] }]);
        let params = json!({ "command": "gopls.diagnose_files", "arguments": arguments });
        self.request("workspace/executeCommand", params)?.context("gopls refused to diagnose")?;
        Ok(())
    }

    fn pull(&mut self, uri: &str) -> Result<Vec<String>> {
        let mut identifiers: Vec<Value> = Vec::new();
        let of_registrations =
            self.registered.iter().filter(|(method, _)| method == "textDocument/diagnostic");
        let offers = std::iter::once(&self.capabilities["diagnosticProvider"])
            .filter(|offer| !offer.is_null())
            .chain(of_registrations.map(|(_, options)| options));
        for offer in offers {
            if !identifiers.contains(&offer["identifier"]) {
                identifiers.push(offer["identifier"].clone());
            }
        }
        let mut asked = Vec::new();
        for identifier in identifiers {
            let mut params = json!({ "textDocument": { "uri": uri } });
            if !identifier.is_null() {
                params["identifier"] = identifier;
            }
            asked.push(self.ask("textDocument/diagnostic", params)?);
        }
        let mut all = Vec::new();
        for id in asked {
            let report = self.answer(id)?.context("a pull was refused")?;
            all.extend(messages(&report["items"]));
        }
        Ok(all)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.send(&json!({ "jsonrpc": "2.0", "id": -1, "method": "shutdown" }));
        let _ = self.send(&json!({ "jsonrpc": "2.0", "method": "exit" }));
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(to: &Mutex<ChildStdin>, message: &Value) -> Result<()> {
    let body = message.to_string();
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
    to.write_all(framed.as_bytes())?;
    Ok(to.flush()?)
}

/// Reads what the server says and answers what it asks: some servers wait for that.
fn listen(
    stdout: ChildStdout,
    to: &Mutex<ChildStdin>,
    told: &Told,
    folders: &Value,
    sender: &SyncSender<Value>,
) {
    let mut reader = BufReader::new(stdout);
    while let Ok(message) = read(&mut reader) {
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            let result = match method {
                "workspace/configuration" => {
                    let items = message["params"]["items"].as_array();
                    let section = |item: &Value| told.section(item["section"].as_str().unwrap_or_default());
                    items.into_iter().flatten().map(section).collect()
                }
                "workspace/applyEdit" => json!({ "applied": false }),
                "workspace/workspaceFolders" => folders.clone(),
                _ => Value::Null,
            };
            if send(to, &json!({ "jsonrpc": "2.0", "id": id, "result": result })).is_err() {
                return;
            }
        }
        if sender.send(message).is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Result<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            bail!("closed");
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

fn messages(diagnostics: &Value) -> Vec<String> {
    let message = |one: &Value| one["message"].as_str().unwrap_or_default().to_owned();
    diagnostics.as_array().into_iter().flatten().map(message).collect()
}

fn folders(root: &Path) -> Value {
    json!([{ "uri": uri(root), "name": root.file_name().map(|name| name.to_string_lossy()) }])
}

/// A path as a URI, everything encoded that may be.
pub(super) fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.display().to_string().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// The path that a URI names. Servers encode more or less than was encoded for them.
pub(super) fn decoded(uri: &str) -> String {
    let text = uri.strip_prefix("file://").unwrap_or(uri);
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let code = (byte == b'%').then(|| rest.clone().take(2).map(char::from).collect::<String>());
        match code.and_then(|code| u8::from_str_radix(&code, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest.nth(1);
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What Haft says that it can do, as far as servers act on it.
fn capabilities() -> Value {
    let dynamic = json!({ "dynamicRegistration": true });
    json!({
        "general": { "positionEncodings": ["utf-8", "utf-32", "utf-16"] },
        "workspace": {
            "configuration": true, "workspaceFolders": true,
            "didChangeConfiguration": dynamic,
            "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
            "symbol": dynamic,
            "diagnostics": { "refreshSupport": true },
        },
        "textDocument": {
            "synchronization": { "didSave": true, "dynamicRegistration": true },
            "definition": { "linkSupport": true, "dynamicRegistration": true },
            "typeDefinition": { "linkSupport": true, "dynamicRegistration": true },
            "references": dynamic,
            "hover": { "contentFormat": ["markdown", "plaintext"], "dynamicRegistration": true },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true, "dynamicRegistration": true },
            "publishDiagnostics": {
                "relatedInformation": true, "versionSupport": true, "codeDescriptionSupport": true, "dataSupport": true,
            },
            "diagnostic": { "dynamicRegistration": true, "relatedDocumentSupport": true },
        },
        "window": { "workDoneProgress": true, "showMessage": {} },
        "experimental": { "serverStatusNotification": true },
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn uris_go_there_and_back_however_much_is_encoded() {
        let path = Path::new("/a b/é [x]/100%25");
        assert_eq!(uri(path), "file:///a%20b/%C3%A9%20%5Bx%5D/100%2525");
        assert_eq!(decoded(&uri(path)), "/a b/é [x]/100%25");
        assert_eq!(decoded("file:///a b/[x]"), "/a b/[x]");
    }

    #[test]
    fn the_settings_are_those_of_the_table() {
        let told = Told::of("tsgo", Path::new("/x/tsc")).unwrap();
        assert_eq!(told.section("typescript"), json!({ "preferences": { "useAliasesForRenames": false } }));
        assert_eq!(told.section("nothing.here"), json!({}));
        assert_eq!(told.options, Value::Null);
    }
}
