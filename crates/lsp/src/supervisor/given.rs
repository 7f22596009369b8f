//! Texts that are not (or no longer) on the disk.

use std::{path::Path, sync::atomic::Ordering};

use serde_json::json;

use super::{Document, Server, SyncError};
use crate::{position::Lines, uri};

impl Server {
    /// Gives the server a text of the caller's for a file, as if it were on the disk: the state from before a write, when the server comes to it only
    /// after the write. Nothing is sent if the server has that text already. The next [`Server::sync`] of the file brings back what is on the disk.
    pub(crate) fn give(&self, path: &Path, text: &str) -> Result<Document, SyncError> {
        let mut documents = self.documents();
        let version = documents.next_version();
        let lines = match documents.get(path) {
            Some(open) if **open.lines.text() == *text => return Ok(open.clone()),
            _ => Lines::new(text),
        };
        let (uri, method, params) = match documents.get(path) {
            Some(open) => {
                let document = json!({ "uri": &*open.uri, "version": version });
                let params = json!({ "textDocument": document, "contentChanges": [self.replacement(&open.lines, text)] });
                (open.uri.clone(), "textDocument/didChange", params)
            }
            None => {
                let uri = uri::from_path(path);
                let language = self.spec.language_of(path).unwrap_or("plaintext");
                let document =
                    json!({ "uri": uri, "languageId": language, "version": version, "text": text });
                (uri.into(), "textDocument/didOpen", json!({ "textDocument": document }))
            }
        };
        self.notify(method, params)?;
        let document = documents.put(path, uri, lines, None);
        let surplus = documents.surplus();
        drop(documents);
        for path in surplus {
            self.close(&path)?;
        }
        let now = self.started.elapsed().as_millis().max(1) as u64;
        let _ = self.opened.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        Ok(document)
    }
}
