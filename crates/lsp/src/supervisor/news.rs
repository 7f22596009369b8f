//! Telling a server what has changed around it, and knowing what it was told.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::{Path, PathBuf},
    sync::{MutexGuard, PoisonError, atomic::Ordering},
};

use serde_json::json;
use tokio::time::Instant;

use super::{
    Server, SyncError,
    disk::{DiskChange, DiskWatch},
    heard::{WATCHED_FILES, folders},
    interest::Interest,
    told::Told,
};
use crate::{
    client::RequestError,
    limits::{
        ARRIVED_COMPILED, ARRIVED_OPEN, CHANGES_AT_ONCE, FLOOD_QUIET, FLOODED, OPENED_CREATED,
        PACKAGES_ASKED, READ_LATE, READ_LATE_POLL, RECHECK, RECHECK_BEGINS, RECHECK_QUIET, REQUEST,
        SETTLE_OTHERS,
    },
    uri,
};

/// The command by which the servers around tsserver pass requests on to it.
pub(crate) const TSSERVER: &str = "typescript.tsserverRequest";

impl Server {
    /// Whether the server offers a command.
    pub(crate) fn takes(&self, command: &str) -> bool {
        self.offers("workspace/executeCommand")
            .iter()
            .filter_map(|options| options.get("commands")?.as_array())
            .flatten()
            .any(|offered| offered == command)
    }

    /// Tells the server what others have done to files, and brings the open copies up to date.
    pub(crate) fn tell_disk_changes(&self) -> Result<(), SyncError> {
        let changes = {
            let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
            disk.as_mut().map(DiskWatch::take).unwrap_or_default()
        };
        let mut list = Vec::new();
        let mut created: Vec<PathBuf> = Vec::new();
        let mut packages: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let mut came_or_went = false;
        let mut interesting: HashSet<PathBuf> = HashSet::new();
        if !changes.files.is_empty() {
            let interest = Interest::of(&self.spec, &self.root, &self.heard.state().registrations);
            for (path, change) in changes.files.iter().filter(|(path, _)| interest.covers(path)) {
                // A rename over an open file is a change of it.
                let open = self.documents().peek(path).is_some();
                if self.spec.loads_open_only && self.spec.language_of(path).is_some() {
                    match change {
                        DiskChange::Created => drop(self.arrived().insert(path.clone())),
                        DiskChange::Deleted => drop(self.arrived().remove(path)),
                        DiskChange::Changed if self.spec.indexes_once => {
                            self.arrived().insert(path.clone());
                        }
                        DiskChange::Changed => {}
                    }
                }
                let change =
                    if open && *change == DiskChange::Created { DiskChange::Changed } else { *change };
                if change == DiskChange::Created && self.spec.language_of(path).is_some() {
                    created.push(path.clone());
                }
                if change == DiskChange::Created
                    && self.spec.loads_when_asked
                    && self.spec.language_of(path).is_some()
                    && let Some(directory) = path.parent()
                {
                    packages.entry(directory.to_owned()).or_insert_with(|| path.clone());
                }
                // It may have been away for a moment, in which such a server has looked: only that it came makes it look again.
                let told = match change {
                    DiskChange::Changed if self.spec.rechecks => DiskChange::Created,
                    change => change,
                };
                came_or_went |= told != DiskChange::Changed;
                // Of an open file the new text is told itself, in a moment. gopls runs the `go` command for every event beside it (40 ms).
                if !(open && told == DiskChange::Changed) {
                    list.push(json!({ "uri": uri::from_path(path), "type": told as u8 }));
                }
                if !open && self.spec.reads_late.is_some() && self.spec.language_of(path).is_some() {
                    *self.unread() = Some((path.clone(), Instant::now() + READ_LATE));
                }
                interesting.insert(path.clone());
            }
        }
        if !list.is_empty() {
            let now = self.tick();
            self.told().changed(None, now);
            if came_or_went {
                self.told().came_or_went = now;
            }
        }
        // One that was there is looked at again by itself.
        let is_created = |path: &Path| changes.files.get(path) == Some(&DiskChange::Created);
        packages.retain(|directory, _| {
            let mut files = std::fs::read_dir(directory).into_iter().flatten().flatten();
            !files.any(|file| self.spec.language_of(&file.path()).is_some() && !is_created(&file.path()))
        });
        self.unloaded().extend(packages.into_values());
        let is_marker = |path: &&PathBuf| {
            self.spec
                .markers
                .iter()
                .any(|marker| path.file_name().is_some_and(|name| name == marker.as_str()))
        };
        for path in interesting.iter().filter(is_marker) {
            self.told().marked.insert(path.clone(), Instant::now());
        }
        // Closed first: to gopls the file of an open document is there, and that it is not is then no news.
        for path in
            changes.files.iter().filter(|(_, change)| **change == DiskChange::Deleted).map(|(path, _)| path)
        {
            if self.document(path).is_some() && !path.exists() {
                self.close(path)?;
            }
        }
        for part in list.chunks(CHANGES_AT_ONCE) {
            self.notify(WATCHED_FILES, json!({ "changes": part }))?;
        }
        let is_open = |path: &PathBuf| self.documents().peek(path).is_some();
        let mut foreign = interesting.iter().any(|path| !is_open(path));
        let doubtful = self.documents().doubtful();
        // From before the saves that are announced now: a checker that one of them starts sees all of it.
        let now = if foreign || !doubtful.is_empty() { self.tick() } else { 0 };
        for path in doubtful {
            let before = self.document(&path).map(|document| document.version);
            match self.sync_one(&path) {
                Ok(document) => foreign |= before != Some(document.version),
                // It cannot be open any more; whoever asks for it hears why.
                Err(SyncError::Document { .. }) => self.close(&path)?,
                Err(error) => return Err(error),
            }
        }
        if foreign {
            self.foreign.fetch_add(1, Ordering::Relaxed);
            self.told().foreign = now;
        }
        if self.spec.opens_created {
            if created.len() > OPENED_CREATED {
                self.told().flooded = Some(Instant::now());
            }
            for path in created.iter().take(OPENED_CREATED) {
                match self.sync_one(path) {
                    Ok(_) | Err(SyncError::Document { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if self.spec.resync_dependants {
            let may_be_included = |path: &&PathBuf| !is_translation_unit(path) && interesting.contains(*path);
            let included: Vec<&PathBuf> = changes.files.keys().filter(may_be_included).collect();
            let outdated = self.documents().outdate(&included);
            for path in outdated.iter().filter(|path| !changes.files.contains_key(*path)) {
                self.give_again(path, false)?;
            }
        }
        Ok(())
    }

    /// Has the server take in what it was told and does not heed by itself, before it is asked something.
    ///
    /// One that answers questions about one file from what it knew of the others before their last change is asked something about each of those first: it deals with the changes
    /// and questions of a file in their order. tsserver hears of files that come and go a second later, from watches of its own, and of some never; it can be made to look.
    pub(crate) async fn catch_up(&self) {
        let (came_or_went, reloaded) = {
            let told = self.told();
            (told.came_or_went, told.reloaded)
        };
        if came_or_went > reloaded && self.takes(TSSERVER) {
            let params = json!({ "command": TSSERVER, "arguments": ["reloadProjects", {}, {}] });
            if self.request("workspace/executeCommand", params, REQUEST).await.is_ok() {
                self.told().reloaded = came_or_went;
            }
        }
        self.load_packages().await;
        self.open_arrived();
        self.take_in_flood().await;
        self.recheck().await;
        self.read_files().await;
        let paths = std::mem::take(&mut *self.unsettled.lock().unwrap_or_else(PoisonError::into_inner));
        let questions = paths.iter().filter_map(|path| {
            let document = self.document(path)?;
            let params = json!({ "textDocument": { "uri": &*document.uri } });
            // Whatever the answer is: the question after it counts.
            Some(async move {
                let answer = self.request("textDocument/documentSymbol", params, SETTLE_OTHERS).await;
                matches!(answer, Err(RequestError::TimedOut(_))).then_some(path)
            })
        });
        let late = futures::future::join_all(questions).await;
        self.unsettled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(late.into_iter().flatten().cloned());
    }

    /// Has packages looked at that have come. Without that gopls leaves them out of references and renames, and what breaks in them is not reported.
    async fn load_packages(&self) {
        // Forgotten only when that is done: whoever waits for it may be broken off.
        let files = self.unloaded().clone();
        if files.len() > PACKAGES_ASKED {
            // Each is a run of `go list`. With the folder taken away and given again it looks at all of it at once.
            let folder = folders(&self.root);
            let event = json!({ "event": { "removed": folder, "added": folder } });
            if self.notify("workspace/didChangeWorkspaceFolders", event).is_ok() {
                self.unloaded().retain(|path| !files.contains(path));
            }
            return;
        }
        let questions = files.iter().map(|path| async move {
            let document = json!({ "uri": uri::from_path(path) });
            let start = json!({ "line": 0, "character": 0 });
            let params = json!({ "textDocument": document, "position": start });
            let answer = self.request("textDocument/documentHighlight", params, REQUEST).await;
            if matches!(answer, Ok(_) | Err(RequestError::Refused { .. })) || !path.is_file() {
                self.unloaded().retain(|other| other != path);
            }
        });
        futures::future::join_all(questions).await;
    }

    /// Waits until a server has taken in files of which not all were opened in it: it asks for a refresh then, once or for each.
    async fn take_in_flood(&self) {
        let Some(since) = self.told().flooded else { return };
        let until = since + FLOODED;
        while Instant::now() < until {
            let last = self.refreshed().filter(|refreshed| *refreshed > since);
            if last.is_some_and(|last| last.elapsed() > FLOOD_QUIET) {
                break;
            }
            tokio::time::sleep(FLOOD_QUIET / 4).await;
        }
        let mut told = self.told();
        told.flooded = told.flooded.filter(|later| *later > since);
    }

    /// Waits until a server has looked again at what it knows, after files have come or gone: it begins to within a few milliseconds, and answers from before until it has.
    async fn recheck(&self) {
        let (since, rechecked) = {
            let told = self.told();
            (told.came_or_went, told.rechecked)
        };
        if !self.spec.rechecks || since <= rechecked {
            return;
        }
        let mut changes = self.changes();
        let begun = || self.work().iter().map(|(_, work)| work.begun_at).max().unwrap_or_default();
        let is_over = || self.gone().is_some() || !self.work().iter().any(|(_, work)| work.is_active());
        // An error means that the server is gone, or that it has nothing to look at.
        let _ = tokio::time::timeout(RECHECK_BEGINS, changes.wait_for(|_| begun() > since)).await;
        let until = Instant::now() + RECHECK;
        loop {
            let last = begun();
            if tokio::time::timeout_at(until, changes.wait_for(|_| is_over())).await.is_err() {
                return;
            }
            // What went and what came are looked at one after the other.
            let again = changes.wait_for(|_| begun() > last || !is_over());
            if self.gone().is_some() || tokio::time::timeout(RECHECK_QUIET, again).await.is_err() {
                break;
            }
        }
        let mut told = self.told();
        told.rechecked = told.rechecked.max(since);
    }

    /// Waits until a server has read the files that it was told of: it reads them one after the other, and until then answers from what they were.
    async fn read_files(&self) {
        let (Some(method), Some((path, until))) = (&self.spec.reads_late, self.unread().clone()) else {
            return;
        };
        let mut pause = READ_LATE_POLL;
        loop {
            let asked = self.request(method, json!({ "uri": uri::from_path(&path) }), REQUEST).await;
            let on_disk = std::fs::read(&path).ok().map(String::from_utf8);
            let has_read = match (&asked, &on_disk) {
                // It leaves out what is no text.
                (_, Some(Err(_))) => true,
                (Ok(has), Some(Ok(text))) => {
                    has.as_str().is_some_and(|has| without_line_ends(has).eq(without_line_ends(text)))
                }
                // An older one cannot be asked; and a file that is gone is not known.
                (Err(error), _) if error.is_unknown_method() => true,
                (Err(RequestError::Refused { .. }), None) => true,
                (Ok(_), None) | (Err(RequestError::Refused { .. }), Some(_)) => false,
                (Err(_), _) => return,
            };
            if has_read {
                break;
            }
            // It is said with the answer.
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(READ_LATE_POLL * 16);
        }
        let mut unread = self.unread();
        if unread.as_ref().is_some_and(|(last, at)| *last == path && *at == until) {
            *unread = None;
        }
    }

    /// A file that it was told of and has not read, although it was given the time to.
    pub(crate) fn not_read(&self) -> Option<PathBuf> {
        self.unread().clone().filter(|(_, until)| Instant::now() >= *until).map(|(path, _)| path)
    }

    fn unread(&self) -> MutexGuard<'_, Option<(PathBuf, Instant)>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_arrived(&self) {
        let missing = self.not_taken_in();
        let limit = if self.spec.resync_dependants { ARRIVED_COMPILED } else { ARRIVED_OPEN };
        let room = limit.saturating_sub(self.arrived().len() - missing.len());
        for path in missing.iter().take(room) {
            // What cannot be opened is named with the answer.
            if self.sync_one(path).is_err() {
                return;
            }
            if self.spec.resync_dependants {
                self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
            }
        }
    }

    /// Files whose text the server has been given and has not worked in yet, as far as that has to be asked.
    pub(crate) fn not_settled(&self) -> usize {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether it knows of some files only while they are open because nothing says that they belong to the project.
    pub(crate) fn lacks_index(&self) -> bool {
        self.lacks_index
    }

    /// Files that have come, or have changed, and that the server leaves out of whatever it answers, for they are not open.
    pub(crate) fn not_taken_in(&self) -> Vec<PathBuf> {
        let documents = self.documents();
        self.arrived()
            .iter()
            .filter(|path| documents.peek(path).is_none() && path.is_file())
            .cloned()
            .collect()
    }

    pub(super) fn arrived(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unloaded(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.unloaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`Server::serial`] when it was last told that something else than this file had changed, which may change what it thinks of it.
    pub(crate) fn told_of_others(&self, path: &Path) -> u64 {
        self.told().of_others(path)
    }

    /// [`Server::serial`] when it was last told of any change.
    pub(crate) fn told_last(&self) -> u64 {
        self.told().last()
    }

    /// [`Server::serial`] when it was last noticed that others had changed files.
    pub(crate) fn told_of_foreign(&self) -> u64 {
        self.told().foreign
    }

    /// When it was last told that a file of such a name at a root had changed.
    pub(crate) fn reconfigured(&self, names: &[&str]) -> Option<Instant> {
        let has_name =
            |path: &PathBuf| names.iter().any(|name| path.file_name().is_some_and(|own| own == *name));
        let told = self.told();
        told.marked.iter().filter(|(path, _)| has_name(path)).map(|(_, at)| *at).max()
    }

    /// What it has said of its configuration, where it has not taken it as it is and has not been told of a change since: words that follow "not verified by SERVER: ".
    pub fn misread(&self) -> Option<String> {
        let misread = self.heard.state().misread.clone()?;
        let told = self.told();
        let mut since = told.marked.iter().filter(|(_, at)| **at >= misread.at).map(|(path, _)| path);
        // One that it has not complained of has nothing to do with it; one at the root has it look at all of them.
        let is_over = since.any(|path| {
            path.parent() == Some(&self.root) || misread.words.contains(&*path.to_string_lossy())
        });
        (!is_over)
            .then(|| format!("it did not take the project's configuration as it is ({})", misread.words))
    }

    /// [`Server::told_of_others`] up to which it has looked at all of its root, as far as it was asked to and has answered.
    pub(crate) fn diagnosed(&self) -> u64 {
        self.told().diagnosed
    }

    /// Held by whoever has it look at all of its root.
    pub(crate) fn diagnosing(&self) -> &tokio::sync::Mutex<()> {
        &self.diagnosing
    }

    /// Notes that it has looked at all of its root, on a request of this [`Server::serial`].
    pub(crate) fn has_diagnosed(&self, asked_at: u64) {
        let mut told = self.told();
        told.diagnosed = told.diagnosed.max(asked_at);
    }
}

/// What a text is apart from line ends and a byte order mark, which servers may take out.
fn without_line_ends(text: &str) -> impl Iterator<Item = char> {
    text.trim_start_matches('\u{feff}').chars().filter(|c| *c != '\r')
}

/// A file that others do not include.
fn is_translation_unit(path: &Path) -> bool {
    let extension = path.extension().and_then(std::ffi::OsStr::to_str);
    matches!(extension, Some("c" | "cc" | "cpp" | "cxx" | "m" | "mm" | "cu"))
}
