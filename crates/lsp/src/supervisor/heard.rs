//! What a server has said of its own accord: registrations, diagnostics, progress. One lock, one counter that tells waiters to look again.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use crate::{
    client::Inbound,
    limits::{COMPLAINT_CHARS, MISREAD_ONCE, PROGRESS_TOKENS, PUBLISHED_FILES, REGISTRATIONS},
    uri,
};

/// The method by which servers ask to be told of changes on the disk, and are told.
pub(super) const WATCHED_FILES: &str = "workspace/didChangeWatchedFiles";

/// The last diagnostics that a server pushed for a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The document version that the server says they are for; many servers do not say.
    pub version: Option<i64>,
    /// As the server sent them.
    pub diagnostics: Arc<[Value]>,
    /// Counts everything that the server has said: of two publications the one with the higher number came later. Compare with
    /// [`super::Server::serial`] taken before a change.
    pub serial: u64,
    /// When it came.
    pub at: Instant,
}

/// Work that a server reports on, by its token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// What it says it does: the title with the last message.
    pub title: String,
    /// How often it has begun.
    pub begun: u64,
    /// How often it has ended.
    pub ended: u64,
    /// The serial of the last begin.
    pub begun_at: u64,
    /// The serial of the last end.
    pub ended_at: u64,
}

impl Work {
    /// Whether it is going on.
    pub fn is_active(&self) -> bool {
        self.begun > self.ended
    }
}

/// A capability that a server has registered while running.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Registration {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) options: Value,
}

/// See the module.
pub(super) struct Heard {
    root: PathBuf,
    settings: Value,
    /// [`crate::servers::ServerSpec::misread`].
    misread: Vec<String>,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) serial: u64,
    pub(super) capabilities: Value,
    pub(super) registrations: Vec<Registration>,
    /// It has published about a version of a text by its number.
    pub(super) names_versions: bool,
    pub(super) published: HashMap<PathBuf, Published>,
    pub(super) work: BTreeMap<String, Work>,
    /// From `experimental/serverStatus`; `None` until it has come.
    pub(super) quiescent: Option<bool>,
    pub(super) health: Option<String>,
    /// How often the server asked that pulled diagnostics be pulled again.
    pub(super) refreshes: u64,
    /// When it last did.
    pub(super) refreshed: Option<Instant>,
    pub(super) closed: Option<String>,
    /// Files that the server has said it could not run for.
    pub(super) failing: Vec<PathBuf>,
    /// The last error that it has told people of.
    pub(super) complaint: Option<String>,
    /// What it has said of its configuration, as far as it did not take it as it is.
    pub(super) misread: Option<Misread>,
}

/// A complaint of a server about its configuration.
#[derive(Clone, Debug)]
pub(super) struct Misread {
    /// Which part of [`crate::servers::ServerSpec::misread`] it has; the first ones say more.
    rank: usize,
    pub(super) words: String,
    pub(super) at: Instant,
}

impl Heard {
    pub(super) fn new(root: PathBuf, settings: Value, misread: Vec<String>) -> Self {
        Heard { root, settings, misread, state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fires whenever there is something new.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Notes something and wakes the waiters.
    pub(super) fn note(&self, change: impl FnOnce(&mut State)) {
        let serial = {
            let mut state = self.state();
            state.serial += 1;
            change(&mut state);
            state.serial
        };
        self.changed.send_replace(serial);
    }

    /// The one name of a file: servers answer with links resolved or not.
    pub(super) fn name_of(&self, uri: &str) -> Option<PathBuf> {
        let path = uri::to_path(uri)?;
        if path.starts_with(&self.root) {
            return Some(path);
        }
        Some(path.canonicalize().unwrap_or(path))
    }

    /// Takes in an error that the server has told people of, or written down.
    pub(super) fn error(&self, words: &str) {
        let Some(rank) = self.misread.iter().position(|part| words.contains(part.as_str())) else { return };
        let line = words.lines().next().unwrap_or_default();
        // What a log has before it.
        let line = line.split_once("ERROR ").map_or(line, |(_, rest)| rest).trim().trim_end_matches('.');
        let at = Instant::now();
        self.note(|state| {
            let says_less = |known: &Misread| known.rank < rank && at.duration_since(known.at) < MISREAD_ONCE;
            if !state.misread.as_ref().is_some_and(says_less) {
                let words = line.chars().take(COMPLAINT_CHARS).collect();
                state.misread = Some(Misread { rank, words, at });
            }
        });
    }

    fn publish(&self, params: &Value) {
        let Some(path) = params.get("uri").and_then(Value::as_str).and_then(|uri| self.name_of(uri)) else {
            return;
        };
        let list = params.get("diagnostics").and_then(Value::as_array).cloned().unwrap_or_default();
        let version = params.get("version").and_then(Value::as_i64);
        let at = Instant::now();
        self.note(|state| {
            state.names_versions |= version.is_some();
            let full = state.published.len() >= PUBLISHED_FILES && !state.published.contains_key(&path);
            if full {
                // The oldest ones that say nothing go first, then the oldest.
                let oldest =
                    state.published.iter().min_by_key(|(_, one)| (!one.diagnostics.is_empty(), one.serial));
                if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                    state.published.remove(&oldest);
                }
            }
            let serial = state.serial;
            state.published.insert(path, Published { version, diagnostics: list.into(), serial, at });
        });
    }

    fn progress(&self, params: &Value) {
        let token = match params.get("token") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return,
        };
        let Some(value) = params.get("value") else { return };
        let words = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = words("kind");
        if !matches!(kind, "begin" | "report" | "end") {
            return;
        }
        self.note(|state| {
            if state.work.len() >= PROGRESS_TOKENS && !state.work.contains_key(&token) {
                let done = state
                    .work
                    .iter()
                    .filter(|(_, work)| !work.is_active())
                    .min_by_key(|(_, work)| work.ended_at);
                match done.map(|(token, _)| token.clone()) {
                    Some(done) => drop(state.work.remove(&done)),
                    None => return,
                }
            }
            let serial = state.serial;
            let work = state.work.entry(token).or_default();
            match kind {
                "begin" => {
                    work.title = words("title").to_owned();
                    work.begun += 1;
                    work.begun_at = serial;
                }
                "end" => {
                    work.ended = work.begun;
                    work.ended_at = serial;
                }
                _ => {}
            }
        });
    }

    fn register(&self, params: &Value) {
        let list = params.get("registrations").and_then(Value::as_array).cloned().unwrap_or_default();
        self.note(|state| {
            for entry in list {
                let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
                let (Some(id), Some(method)) = (text("id"), text("method")) else { continue };
                let options = entry.get("registerOptions").cloned().unwrap_or(Value::Null);
                let new = Registration { id, method, options };
                // pyrefly registers more files to watch under the id that it has, and means both.
                let stays = |known: &Registration| {
                    known.id != new.id
                        || (new.method == WATCHED_FILES && known.method == WATCHED_FILES && *known != new)
                };
                state.registrations.retain(stays);
                if state.registrations.len() < REGISTRATIONS {
                    state.registrations.push(new);
                }
            }
        });
    }

    fn unregister(&self, params: &Value) {
        // The protocol's own field has a spelling mistake in it; both spellings are seen.
        let list = params.get("unregisterations").or_else(|| params.get("unregistrations"));
        let ids: Vec<&str> = list
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.get("id").and_then(Value::as_str))
            .collect();
        self.note(|state| state.registrations.retain(|known| !ids.contains(&known.id.as_str())));
    }

    /// The answer to `workspace/configuration`: what the settings say, and an empty object where they say nothing. `null` has been seen to
    /// switch a server's diagnostics off without a word.
    fn configuration(&self, params: &Value) -> Value {
        let items = params.get("items").and_then(Value::as_array);
        let answers = items.into_iter().flatten().map(|item| {
            let section = item.get("section").and_then(Value::as_str).unwrap_or_default();
            section_of(&self.settings, section)
        });
        Value::Array(answers.collect())
    }
}

fn is_error(message: &Value) -> bool {
    message.get("type").and_then(Value::as_u64) == Some(1)
}

/// One section of the settings: `""` is all of them, `a` and `a.b` are looked up.
fn section_of(settings: &Value, section: &str) -> Value {
    if section.is_empty() {
        return if settings.is_null() { json!({}) } else { settings.clone() };
    }
    if let Some(found) = settings.get(section) {
        return found.clone();
    }
    let mut found = Some(settings);
    for part in section.split('.') {
        found = found.and_then(|found| found.get(part));
    }
    found.cloned().unwrap_or_else(|| json!({}))
}

impl Inbound for Heard {
    fn notification(&self, method: &str, params: Value) {
        match method {
            "textDocument/publishDiagnostics" => self.publish(&params),
            "$/progress" => self.progress(&params),
            "experimental/serverStatus" => self.note(|state| {
                state.quiescent = params.get("quiescent").and_then(Value::as_bool);
                let health = params.get("health").and_then(Value::as_str).filter(|health| *health != "ok");
                let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
                state.health = health
                    .map(|health| format!("{health}: {message}").trim_end_matches([':', ' ']).to_owned());
            }),
            // eslint's own: 1 it is well, 2 with warnings, 3 it could not run. Its answers are empty lists then.
            "eslint/status" => {
                let uri = params.get("uri").and_then(Value::as_str);
                if let Some(path) = uri.and_then(|uri| self.name_of(uri)) {
                    let failed = params.get("state").and_then(Value::as_u64) == Some(3);
                    self.note(|state| {
                        state.failing.retain(|known| *known != path);
                        if failed && state.failing.len() < PUBLISHED_FILES {
                            state.failing.push(path);
                        }
                    });
                }
            }
            "window/logMessage" | "window/showMessage" if is_error(&params) => {
                let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
                self.error(message);
                self.note(|state| state.complaint = Some(message.chars().take(COMPLAINT_CHARS).collect()));
            }
            "window/logMessage" | "window/showMessage" | "$/logTrace" => {
                tracing::debug!(root = %self.root.display(), %params, "a language server says");
            }
            _ => {}
        }
    }

    fn request(&self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        match method {
            "workspace/configuration" => Ok(self.configuration(&params)),
            "client/registerCapability" => {
                self.register(&params);
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                self.unregister(&params);
                Ok(Value::Null)
            }
            "workspace/diagnostic/refresh" => {
                self.note(|state| {
                    state.refreshes += 1;
                    state.refreshed = Some(Instant::now());
                });
                Ok(Value::Null)
            }
            // Edits are applied by the change set and by nothing else: `lsp` is a tool of the read tier.
            "workspace/applyEdit" => Ok(
                json!({ "applied": false, "failureReason": "edits are only taken as answers to requests" }),
            ),
            "window/workDoneProgress/create" | "window/showMessageRequest" => Ok(Value::Null),
            "window/showDocument" => Ok(json!({ "success": false })),
            "workspace/workspaceFolders" => Ok(folders(&self.root)),
            _ if method.starts_with("workspace/") && method.ends_with("/refresh") => Ok(Value::Null),
            _ => Err((-32601, format!("{method} is not known here"))),
        }
    }

    fn closed(&self, why: &str) {
        self.note(|state| state.closed = Some(why.to_owned()));
    }
}

/// The one workspace folder of a server.
pub(super) fn folders(root: &Path) -> Value {
    let name = root.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned());
    json!([{ "uri": uri::from_path(root), "name": name }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn heard(settings: Value) -> Heard {
        Heard::new(PathBuf::from("/w"), settings, vec!["cannot parse".into(), "see the log".into()])
    }

    #[test]
    fn configuration_is_never_null() {
        let heard = heard(json!({ "python": { "analysis": { "x": 1 } }, "js/ts": { "y": 2 } }));
        let items =
            ["python.analysis", "js/ts", "css", "a.b", ""].map(|section| json!({ "section": section }));
        let answer = heard.request("workspace/configuration", json!({ "items": items }));
        let all = json!({ "python": { "analysis": { "x": 1 } }, "js/ts": { "y": 2 } });
        assert_eq!(answer, Ok(json!([{ "x": 1 }, { "y": 2 }, {}, {}, all])));
    }

    #[test]
    fn no_edit_is_applied_and_unknown_requests_are_answered() {
        let heard = heard(Value::Null);
        let answer = heard.request("workspace/applyEdit", json!({ "edit": {} })).unwrap();
        assert_eq!(answer.get("applied"), Some(&json!(false)));
        assert_eq!(heard.request("x/y", Value::Null), Err((-32601, "x/y is not known here".into())));
        assert_eq!(heard.request("workspace/codeLens/refresh", Value::Null), Ok(Value::Null));
    }

    #[test]
    fn registrations_come_and_go() {
        let heard = heard(Value::Null);
        let one = json!({ "registrations": [{ "id": "1", "method": "textDocument/diagnostic", "registerOptions": { "identifier": "x" } }] });
        heard.request("client/registerCapability", one).unwrap();
        assert_eq!(heard.state().registrations.len(), 1);
        heard
            .request(
                "client/unregisterCapability",
                json!({ "unregisterations": [{ "id": "1", "method": "x" }] }),
            )
            .unwrap();
        assert_eq!(heard.state().registrations, []);
    }

    #[test]
    fn published_diagnostics_are_kept_under_the_decoded_path() {
        let heard = heard(Value::Null);
        heard.notification(
            "textDocument/publishDiagnostics",
            json!({ "uri": "file:///w/a%20[x]/é.rs", "version": 3, "diagnostics": [{ "message": "m" }] }),
        );
        let state = heard.state();
        let found = state.published.get(Path::new("/w/a [x]/é.rs"));
        let diagnostics = [json!({ "message": "m" })].into();
        let at = found.unwrap().at;
        assert_eq!(found, Some(&Published { version: Some(3), diagnostics, serial: 1, at }));
    }

    #[test]
    fn a_complaint_about_the_configuration_is_kept_with_its_reason() {
        let heard = heard(Value::Null);
        let words = || heard.state().misread.as_ref().map(|misread| misread.words.clone());
        heard.error("something else");
        assert_eq!(words(), None);
        heard.error("2026-11-30 ERROR cannot parse /w/a.toml: line 1, column 2\n  |\n1 | [x\n");
        let said = Some("cannot parse /w/a.toml: line 1, column 2".to_owned());
        assert_eq!(words(), said);
        let message = |kind: u8, message: &str| {
            heard.notification("window/showMessage", json!({ "type": kind, "message": message }));
        };
        // It says the same to people, and less of it.
        message(1, "Error, please see the log.");
        message(3, "I cannot parse that well");
        assert_eq!(words(), said);
        message(1, "cannot parse /w/b.toml.");
        assert_eq!(words().as_deref(), Some("cannot parse /w/b.toml"));
    }

    #[test]
    fn progress_begins_and_ends_by_number_or_name() {
        let heard = heard(Value::Null);
        let step = |token: Value, kind: &str| {
            heard.notification(
                "$/progress",
                json!({ "token": token, "value": { "kind": kind, "title": "Indexing" } }),
            );
        };
        step(json!(7), "begin");
        step(json!("a"), "begin");
        step(json!("a"), "end");
        let state = heard.state();
        let active: Vec<(&str, bool)> =
            state.work.iter().map(|(token, work)| (token.as_str(), work.is_active())).collect();
        assert_eq!(active, [("7", true), ("a", false)]);
    }
}
