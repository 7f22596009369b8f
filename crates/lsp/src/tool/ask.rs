//! What every question has in common: the file in the server, the symbol in the file, and an empty answer that is not believed while the
//! server is still loading (SPEC L5, L6).

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_system::PathState;
use haft_tool::{Access, ToolError};
use serde_json::{Map, Value, json};

use super::{Lsp, LspArguments, target, target::Target};
use crate::{
    Document, RequestError, Server,
    limits::{OPEN_DOCUMENTS, READY, READY_FILE, REGISTRATION_GRACE, UNINDEXED},
    ready::{self, Wait},
    supervisor::SyncError,
};

/// A file in its language server.
pub(super) struct Opened {
    pub(super) server: Arc<Server>,
    pub(super) document: Document,
    pub(super) path: PathBuf,
    pub(super) shown: String,
}

/// An answer, and how far it is to be believed.
pub(super) struct Answer {
    pub(super) value: Value,
    /// Said where the answer may not be all there is.
    pub(super) caveat: Option<String>,
}

/// Whether a question needs all of the project or the file it is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    File,
    Project,
}

impl Lsp {
    pub(super) fn file(&self, arguments: &LspArguments) -> Result<(PathBuf, String), ToolError> {
        let Some(file) = arguments.file.as_deref() else {
            return Err(ToolError::model("`file` is missing: a file of the working directory."));
        };
        let resolved = self.checkout.workdir().resolve(file, Access::Read)?;
        match resolved.state {
            PathState::File => Ok((resolved.real, resolved.shown)),
            PathState::Missing => Err(ToolError::model(format!("There is no file `{}`.", resolved.shown))),
            PathState::Directory => {
                Err(ToolError::model(format!("`{}` is a directory; name a file.", resolved.shown)))
            }
            PathState::Other(what) => {
                Err(ToolError::model(format!("`{}` is {what}, not a file.", resolved.shown)))
            }
        }
    }

    /// The file of the arguments in its language server, as it is on disk now.
    pub(super) async fn open(&self, arguments: &LspArguments) -> Result<Opened, ToolError> {
        let (path, shown) = self.file(arguments)?;
        let server = self.checkout.language_server_for(&path).await?;
        let document = sync(&server, &path)?;
        Ok(Opened { server, document, path, shown })
    }
}

impl Opened {
    /// The symbol of the arguments in a file.
    pub(super) fn target(&self, arguments: &LspArguments) -> Result<Target, ToolError> {
        let language = self.server.spec().language_of(&self.path).unwrap_or_default();
        let dollar = language.starts_with("javascript")
            || language.starts_with("typescript")
            || matches!(language, "vue" | "svelte");
        let symbol = arguments.symbol.as_deref();
        target::find(&self.document.lines, &self.shown, arguments.line, symbol, dollar)
    }

    /// `textDocument` and `position` for a symbol, with more fields.
    pub(super) fn at(&self, target: &Target, more: Value) -> Value {
        let position = self.document.lines.position(target.span.start, self.server.encoding());
        let mut params = json!({ "textDocument": { "uri": &*self.document.uri }, "position": position });
        merge(&mut params, more);
        params
    }

    /// Fails where the server does not offer a method. Registrations may come a moment after the start.
    pub(super) async fn needs(&self, method: &str, what: &str) -> Result<(), ToolError> {
        if offered(&self.server, method).await {
            return Ok(());
        }
        Err(ToolError::model(format!(
            "{} does not offer {what}. Another action may answer the question; `search` finds text.",
            self.server.id()
        )))
    }

    /// Waits until the server has loaded its project, in bounds, and asks; asks again when it has loaded where an answer before that is empty.
    /// A question that reaches over the project waits longer.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Value,
        reach: Reach,
        limit: Duration,
    ) -> Result<Answer, ToolError> {
        ask(&self.server, method, params, reach, limit).await
    }
}

/// See [`Opened::ask`].
pub(super) async fn ask(
    server: &Server,
    method: &str,
    params: Value,
    reach: Reach,
    limit: Duration,
) -> Result<Answer, ToolError> {
    // Before a server has loaded, what it answers is not only empty but may be wrong: the first place that it knows of, a part of the uses.
    let patience = if reach == Reach::Project { READY } else { READY_FILE };
    let mut waited = ready::wait(server, patience).await;
    server.catch_up().await;
    let first = server.ask(method, params.clone(), limit).await;
    let doubtful = match &first {
        Ok(value) => is_empty(value),
        Err(RequestError::Refused { .. }) => true,
        Err(_) => false,
    };
    let answer = if doubtful && waited != Wait::Ready {
        waited = ready::wait(server, READY).await;
        if waited == Wait::Ready { server.ask(method, params, limit).await } else { first }
    } else {
        first
    };
    let still = match waited {
        Wait::StillLoading(what) => Some(format!(
            "{} was still loading ({what}), so this may be incomplete or wrong: ask again later.",
            server.id()
        )),
        _ => None,
    };
    let left_out = if reach == Reach::Project { left_out(server) } else { None };
    let left_out = left_out.map(|left_out| format!("{}. {}", left_out.what, left_out.remedy));
    let caveat = match (still, left_out) {
        (Some(still), Some(left_out)) => Some(format!("{still} {left_out}")),
        (still, left_out) => still.or(left_out),
    };
    match answer {
        Ok(value) => Ok(Answer { value, caveat }),
        // Some servers say "nothing here" with an error (gopls: "Greet is a function, not a method"); the words are worth passing on.
        Err(RequestError::Refused { code: 0, message, .. }) => {
            let words = format!("{} says: {message}.", server.id());
            let caveat = caveat.map_or(words.clone(), |caveat| format!("{words} {caveat}"));
            Ok(Answer { value: Value::Null, caveat: Some(caveat) })
        }
        Err(error) => Err(failed(server, method, &error)),
    }
}

/// Why a server leaves out files that are not open, after its name.
pub(crate) const NO_INDEX: &str = "has no compile_commands.json here";

/// What a server leaves out of every answer about its project.
pub(crate) struct LeftOut {
    /// A sentence without its end.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

pub(crate) fn left_out(server: &Server) -> Option<LeftOut> {
    let (id, files, busy) = (server.id(), server.not_taken_in().len(), server.not_settled());
    let anew = "`lsp` with action \"reload\" starts it anew, with all of them.";
    if let Some(path) = server.not_read() {
        let what = format!("{id} has not read {} since it changed", path.display());
        return Some(LeftOut { what, remedy: "Ask again later." });
    }
    let (what, remedy) = match files {
        0 if busy == 0 => return None,
        0 => (format!("{id} was still at work on {busy} files that it was given"), "Ask again later."),
        _ if server.lacks_index() => (
            format!("{id} {NO_INDEX} and knows only files that are open; it leaves out {}", counted(files)),
            "`cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -B build` or `bear -- make` writes one; after that `lsp` with action \"reload\".",
        ),
        _ if server.spec().indexes_once => (
            format!("{id} knows {files} files that have come or changed since it started only as they were"),
            anew,
        ),
        _ => (format!("{id} leaves out {files} files that have come since it started"), anew),
    };
    Some(LeftOut { what, remedy })
}

fn counted(files: usize) -> String {
    if files + OPEN_DOCUMENTS >= UNINDEXED {
        format!("{files} or more others")
    } else {
        format!("{files} others")
    }
}

/// Waits a moment for a registration where a server does not offer a method from the start.
pub(crate) async fn offered(server: &Server, method: &str) -> bool {
    let until = tokio::time::Instant::now() + REGISTRATION_GRACE.saturating_sub(server.since_initialized());
    let mut changes = server.changes();
    loop {
        changes.borrow_and_update();
        if server.can(method) {
            return true;
        }
        match tokio::time::timeout_at(until, changes.changed()).await {
            Ok(Ok(())) => {}
            _ => return server.can(method),
        }
    }
}

pub(crate) fn sync(server: &Server, path: &std::path::Path) -> Result<Document, ToolError> {
    server.sync(path).map_err(|error| match error {
        SyncError::Document { .. } => ToolError::model(format!("{error}.")),
        SyncError::Request(error) => failed(server, "sync", &error),
    })
}

/// A failed request in words for the model.
pub(crate) fn failed(server: &Server, method: &str, error: &RequestError) -> ToolError {
    let id = server.id();
    ToolError::model(match error {
        RequestError::Gone(why) => {
            format!("{id} is gone: {}. The next call starts it again.", why.trim_end_matches('.'))
        }
        RequestError::Stuck => {
            format!("{id} has stopped reading its input. `lsp` with action \"reload\" restarts it.")
        }
        RequestError::TimedOut(limit) if server.gone().is_some() => format!(
            "{id} did not answer {method} within {} s. Nothing is known. {}, so Haft has ended it; the next call starts it again.",
            limit.as_secs_f32(),
            sentence(&server.gone().unwrap_or_default())
        ),
        RequestError::TimedOut(limit) => format!(
            "{id} did not answer {method} within {} s, and was told to give it up. Nothing is known. Try again, or `lsp` with action \"reload\" restarts it.",
            limit.as_secs_f32()
        ),
        RequestError::Refused { code: -32601, .. } => {
            format!("{id} does not offer {method}, though it said so.")
        }
        RequestError::Refused { code, message, .. } => {
            format!("{id} refused {method}: {} (error {code}).", message.trim_end_matches('.'))
        }
    })
}

/// Words with a capital, of several lines the first.
fn sentence(words: &str) -> String {
    let first = words.lines().next().unwrap_or_default().trim_end_matches(['.', ':']);
    let mut characters = first.chars();
    characters.next().map(|c| c.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn merge(params: &mut Value, more: Value) {
    if let (Some(fields), Value::Object(more)) = (params.as_object_mut(), more) {
        fields.extend::<Map<String, Value>>(more);
    }
}

/// Puts the parts of an answer together: the answer, then what has to be known about it.
pub(super) fn with_notes(text: String, notes: [Option<&str>; 2]) -> String {
    notes.into_iter().flatten().fold(text, |text, note| format!("{text}\n({note})"))
}
