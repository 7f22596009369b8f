//! Giving a server texts: what is on the disk, and what is not (or no longer) there.

use std::{
    path::Path,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use serde_json::{Value, json};

use super::{
    Document, Server, SyncError,
    documents::{self, DocumentError, Documents, Stamped},
    preamble::preamble,
};
use crate::{
    position::{Lines, Position, Range},
    uri,
};

impl Server {
    /// Gives the server a text of the caller's for a file, as if it were on the disk: the state from before a write, when the server comes to it only
    /// after the write. Nothing is sent if the server has that text already. The next [`Server::sync`] of the file brings back what is on the disk.
    pub(crate) fn give(&self, path: &Path, text: &str) -> Result<Document, SyncError> {
        let mut documents = self.documents();
        let outdated = match documents.get(path) {
            Some(open) if **open.lines.text() == *text && !open.outdated => return Ok(open.clone()),
            open => open.is_some_and(|open| open.outdated),
        };
        let document = self.send(&mut documents, path, Lines::new(text), None, outdated)?;
        drop(documents);
        self.close_surplus()?;
        Ok(document)
    }

    /// The server's copy becomes what is on the disk.
    pub(super) fn sync_one(&self, path: &Path) -> Result<Document, SyncError> {
        let (text, stamp) = match documents::read(path) {
            Ok(read) => read,
            Err(error) => {
                if error == DocumentError::Missing {
                    self.close(path)?;
                    self.heard.note(|state| drop(state.published.remove(path)));
                }
                return Err(SyncError::Document { path: path.to_owned(), error });
            }
        };
        let mut documents = self.documents();
        let before = documents.get(path).cloned();
        if let Some(open) = &before
            && **open.lines.text() == *text
            && !open.outdated
        {
            documents.seen(path, stamp);
            return Ok(open.clone());
        }
        let outdated = before.as_ref().is_some_and(|open| open.outdated);
        let document = self.send(&mut documents, path, Lines::new(text), Some(stamp), outdated)?;
        drop(documents);
        if before.is_some() {
            self.saved(&document)?;
        }
        self.close_surplus()?;
        Ok(document)
    }

    /// Gives the server the text again that it has, as if it had changed: for one that does not look at what a file includes by itself. `anew` makes a server that compiles with preambles
    /// work the file out from nothing, and publish even if it finds what it found before.
    pub(crate) fn give_again(&self, path: &Path, anew: bool) -> Result<(), SyncError> {
        let mut documents = self.documents();
        let Some(lines) = documents.peek(path).map(|open| open.lines.clone()) else { return Ok(()) };
        let document = self.send(&mut documents, path, lines, None, anew)?;
        drop(documents);
        self.saved(&document)
    }

    /// Opens a document, or changes it.
    ///
    /// clangd compiles the directives at the top of a file by themselves (the "preamble"). Where what they include has changed, it publishes at once what it finds with the old ones, under
    /// the new version, and only a moment later what is true: after the removal of an `#include`, that nothing is wrong. A document that is closed and opened has no old preamble. `anew`
    /// has that done in any case.
    fn send(
        &self,
        documents: &mut Documents,
        path: &Path,
        lines: Lines,
        stamp: Option<Stamped>,
        anew: bool,
    ) -> Result<Document, SyncError> {
        let version = documents.next_version();
        let open = documents.get(path).cloned();
        let uri: Arc<str> =
            open.as_ref().map_or_else(|| uri::from_path(path).into(), |open| open.uri.clone());
        let is_stale = |open: &Document| anew || preamble(open.lines.text()) != preamble(lines.text());
        let kept = open.as_ref().filter(|open| !(self.spec.resync_dependants && is_stale(open)));
        let is_kept = kept.is_some();
        if let Some(open) = kept {
            let change = self.replacement(&open.lines, lines.text());
            let document = json!({ "uri": &*uri, "version": version });
            let params = json!({ "textDocument": document, "contentChanges": [change] });
            self.notify("textDocument/didChange", params)?;
        } else {
            if open.is_some() {
                self.notify("textDocument/didClose", json!({ "textDocument": { "uri": &*uri } }))?;
            }
            let language = self.spec.language_of(path).unwrap_or("plaintext");
            let document =
                json!({ "uri": &*uri, "languageId": language, "version": version, "text": &**lines.text() });
            self.notify("textDocument/didOpen", json!({ "textDocument": document }))?;
            let now = self.started.elapsed().as_millis().max(1) as u64;
            let _ = self.opened.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
        let serial = self.tick();
        // A file that is opened as it is on the disk is as it was.
        if open.map_or(stamp.is_none(), |open| open.lines.text() != lines.text()) {
            self.told().changed(Some(path), serial);
        }
        Ok(documents.put(path, uri, lines, stamp, (is_kept, serial)))
    }

    fn close_surplus(&self) -> Result<(), SyncError> {
        let surplus = self.documents().surplus();
        for path in surplus {
            self.close(&path)?;
        }
        Ok(())
    }

    /// The change of a document that puts `new` in the place of all of its text.
    fn replacement(&self, old: &Lines, new: &str) -> Value {
        if !self.spec.ranged_changes {
            return json!({ "text": new });
        }
        let range = Range { start: Position::default(), end: old.position(old.text().len(), self.encoding) };
        json!({ "range": range, "text": new })
    }

    /// Announces that a file was saved.
    pub(crate) fn saved(&self, document: &Document) -> Result<(), SyncError> {
        self.last_save.store(self.serial(), Ordering::Relaxed);
        if self.spec.indexes_once {
            self.arrived().insert(document.path.clone());
        }
        if self.spec.resync_dependants {
            let mut unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
            if !unsettled.contains(&document.path) {
                unsettled.push(document.path.clone());
            }
        }
        let with_text = self
            .offers("textDocument/didSave")
            .iter()
            .any(|options| options.get("includeText").and_then(Value::as_bool) == Some(true));
        let mut params = json!({ "textDocument": { "uri": &*document.uri } });
        if with_text && let Some(fields) = params.as_object_mut() {
            fields.insert("text".into(), json!(&**document.lines.text()));
        }
        Ok(self.notify("textDocument/didSave", params)?)
    }
}
