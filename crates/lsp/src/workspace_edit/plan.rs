use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_system::{Before, Captured, Change, ChangeSet, Changes, PathState, ResolvedPath, TextFile};
use haft_tool::Access;

use super::{EditError, Step, TextEdit, WorkspaceEdit, ignored, text};
use crate::{
    limits::MOVED_FILES,
    position::{Lines, PositionEncoding},
};

/// What a server has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The version that was sent last.
    pub version: i64,
    /// The text that was sent with it.
    pub text: Arc<str>,
}

/// Turns a server's edit into a change set.
pub struct Planner<'a> {
    /// Where it will be committed.
    pub changes: &'a Changes,
    /// What the server counts columns in.
    pub encoding: PositionEncoding,
    /// What the server has open, by canonical path.
    pub open: &'a (dyn Fn(&Path) -> Option<Open> + Sync),
    /// The file that the edit was asked for; it may be changed though it is ignored by git.
    pub named: Option<&'a Path>,
    /// A text that every replaced stretch contains, if that is known (the old name of a rename).
    pub replaces: Option<&'a str>,
}

/// A workspace edit, worked out.
#[derive(Clone, Debug, Default)]
pub struct EditPlan {
    /// To be staged or committed.
    pub set: ChangeSet,
    /// What it does to each file.
    pub files: Vec<PlannedFile>,
    /// Directories that the change leaves empty because the server renamed or deleted them, deepest first.
    pub emptied: Vec<PathBuf>,
}

/// What a plan does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// As shown; the new name of a file that moves.
    pub file: String,
    /// The old name of a file that moves.
    pub from: Option<String>,
    /// How many places in it change.
    pub edits: usize,
}

/// The files of the edit as they will be, in the order in which they were first mentioned.
#[derive(Default)]
struct Virtual {
    order: Vec<PathBuf>,
    files: HashMap<PathBuf, Entry>,
    emptied: Vec<PathBuf>,
}

struct Entry {
    captured: Captured,
    now: Option<Now>,
    pending: Vec<TextEdit>,
    edits: usize,
}

/// A file as it will be.
struct Now {
    bytes: Arc<[u8]>,
    /// Which file it was before.
    origin: Option<PathBuf>,
}

impl Planner<'_> {
    /// Works an edit out, or says why it is refused. Reads files; writes nothing.
    pub async fn plan(&self, edit: &WorkspaceEdit) -> Result<EditPlan, EditError> {
        let mut files = Virtual::default();
        for step in &edit.steps {
            match step {
                Step::Edit { path, version, edits } => {
                    let real = self.load(&mut files, path).await?;
                    self.check_version(&files, &real, *version)?;
                    let entry = files.entry(&real)?;
                    if entry.now.is_none() {
                        return Err(entry.refused("does not exist"));
                    }
                    // Edits of one file speak of the same text until the file itself is moved or replaced.
                    entry.pending.extend(edits.iter().cloned());
                }
                Step::Create { path, overwrite, ignore_if_exists } => {
                    let real = self.load(&mut files, path).await?;
                    let entry = files.entry(&real)?;
                    match (&entry.now, overwrite, ignore_if_exists) {
                        (None, ..) | (Some(_), true, _) => {
                            entry.pending.clear();
                            entry.now = Some(Now { bytes: Arc::default(), origin: None });
                        }
                        (Some(_), false, true) => {}
                        (Some(_), false, false) => {
                            return Err(entry.refused("exists already (it was to be created)"));
                        }
                    }
                }
                Step::Delete { path, ignore_if_missing } => {
                    let doomed = match self.directory(path).await? {
                        Some((directory, inside)) => {
                            files.emptied.extend(directory);
                            inside
                        }
                        None => vec![path.clone()],
                    };
                    for path in doomed {
                        let real = self.load(&mut files, &path).await?;
                        let entry = files.entry(&real)?;
                        entry.pending.clear();
                        if entry.now.take().is_none() && !ignore_if_missing {
                            return Err(entry.refused("does not exist (it was to be deleted)"));
                        }
                    }
                }
                Step::Rename { from, to, overwrite, ignore_if_exists } => {
                    let moves = match self.directory(from).await? {
                        Some((directories, inside)) => {
                            files.emptied.extend(directories);
                            let moved = |path: PathBuf| {
                                let below = path.strip_prefix(from).unwrap_or(&path).to_owned();
                                (path, to.join(below))
                            };
                            inside.into_iter().map(moved).collect()
                        }
                        None => vec![(from.clone(), to.clone())],
                    };
                    for (from, to) in moves {
                        self.rename(&mut files, &from, &to, *overwrite, *ignore_if_exists).await?;
                    }
                }
            }
        }
        for path in files.order.clone() {
            self.settle(files.entry(&path)?)?;
        }
        Ok(files.into_plan())
    }

    async fn rename(
        &self,
        files: &mut Virtual,
        from: &Path,
        to: &Path,
        overwrite: bool,
        ignore_if_exists: bool,
    ) -> Result<(), EditError> {
        let old = self.load(files, from).await?;
        let new = self.load(files, to).await?;
        if old == new {
            return Ok(());
        }
        let source = files.entry(&old)?;
        self.settle(source)?;
        let edits = source.edits;
        let Some(moving) = source.now.take() else {
            return Err(source.refused("does not exist (it was to be renamed)"));
        };
        source.edits = 0;
        let target = files.entry(&new)?;
        if target.now.is_some() && !overwrite {
            if ignore_if_exists {
                let source = files.entry(&old)?;
                source.now = Some(moving);
                source.edits = edits;
                return Ok(());
            }
            return Err(target.refused("exists already (another file was to get its name)"));
        }
        target.pending.clear();
        target.edits = edits;
        target.now = Some(Now { origin: Some(moving.origin.unwrap_or(old)), bytes: moving.bytes });
        Ok(())
    }

    /// Captures a file on first mention, with every check that does not depend on what is to happen to it. The result is its canonical path.
    async fn load(&self, files: &mut Virtual, path: &Path) -> Result<PathBuf, EditError> {
        let resolved = self.resolve(path)?;
        let real = resolved.real.clone();
        if !files.files.contains_key(&real) {
            let is_named = self.named == Some(real.as_path());
            if let Some(why) = ignored::why_not(self.changes.workdir().root(), &real)
                && !(is_named && why.starts_with("is ignored"))
            {
                return Err(EditError::Refused { file: resolved.shown, why });
            }
            let captured = self.changes.capture(&resolved).await?;
            let now = captured.before.bytes().map(|bytes| Now { bytes: Arc::clone(bytes), origin: None });
            files.order.push(real.clone());
            files.files.insert(real.clone(), Entry { captured, now, pending: Vec::new(), edits: 0 });
        }
        Ok(real)
    }

    fn resolve(&self, path: &Path) -> Result<ResolvedPath, EditError> {
        self.changes.workdir().resolve(path, Access::Write).map_err(|error| EditError::Refused {
            file: self.changes.workdir().show(path),
            why: format!("must not be written: {}", error.to_string().trim_end_matches('.')),
        })
    }

    /// The directories (deepest first) and files below `path`, if it is a directory.
    async fn directory(&self, path: &Path) -> Result<Option<(Vec<PathBuf>, Vec<PathBuf>)>, EditError> {
        let resolved = self.resolve(path)?;
        if resolved.state != PathState::Directory {
            return Ok(None);
        }
        let root = path.to_owned();
        let shown = resolved.shown.clone();
        let listed = tokio::task::spawn_blocking(move || list(&root))
            .await
            .map_err(|error| EditError::Failed(format!("listing {shown} ended early: {error}")))?;
        match listed {
            Ok(found) => Ok(Some(found)),
            Err(why) => Err(EditError::Refused { file: resolved.shown, why }),
        }
    }

    fn check_version(&self, files: &Virtual, real: &Path, version: Option<i64>) -> Result<(), EditError> {
        let Some(entry) = files.files.get(real) else { return Ok(()) };
        let Some(open) = (self.open)(real) else { return Ok(()) };
        let shown = &entry.captured.path.shown;
        if let Some(version) = version
            && version != open.version
        {
            return Err(EditError::Stale {
                file: shown.clone(),
                why: format!("its edit is for version {version}, and version {} was sent last", open.version),
            });
        }
        let on_disk = entry.captured.before.bytes().map(|bytes| TextFile::parse(bytes));
        match on_disk {
            Some(Ok(file)) if file.text == *open.text => Ok(()),
            _ => {
                Err(EditError::Stale { file: shown.clone(), why: "the file changed in the meantime".into() })
            }
        }
    }

    /// Carries out the text edits that were collected for a file.
    fn settle(&self, entry: &mut Entry) -> Result<(), EditError> {
        if entry.pending.is_empty() {
            return Ok(());
        }
        let shown = entry.captured.path.shown.clone();
        let Some(now) = &mut entry.now else { return Err(entry.refused("does not exist")) };
        let file = TextFile::parse(&now.bytes)
            .map_err(|why| EditError::Refused { file: shown.clone(), why: format!("is not text: {why}") })?;
        let lines = Lines::new(file.text.as_str());
        if let Some(name) = self.replaces {
            for edit in &entry.pending {
                let old = &lines.text()[lines.bytes(edit.range, self.encoding)];
                if !old.is_empty() && !old.to_lowercase().contains(&name.to_lowercase()) {
                    return Err(EditError::Stale {
                        file: shown,
                        why: format!(
                            "line {} has `{}` where the server wants to replace `{name}`",
                            edit.range.start.line + 1,
                            old.chars().take(60).collect::<String>()
                        ),
                    });
                }
            }
        }
        for edit in &mut entry.pending {
            edit.text = file.with_endings(&edit.text);
        }
        let text = text::apply(&lines, &entry.pending, self.encoding)
            .map_err(|overlap| EditError::Overlap { file: shown.clone(), line: overlap.0 as u32 + 1 })?;
        let bytes = file.encode(&text).map_err(|error| EditError::Refused {
            file: shown,
            why: format!("cannot hold the new text: {error}"),
        })?;
        now.bytes = bytes.into();
        entry.edits += std::mem::take(&mut entry.pending).len();
        Ok(())
    }
}

impl Entry {
    fn refused(&self, why: &str) -> EditError {
        EditError::Refused { file: self.captured.path.shown.clone(), why: why.to_owned() }
    }
}

impl Virtual {
    fn entry(&mut self, path: &Path) -> Result<&mut Entry, EditError> {
        self.files
            .get_mut(path)
            .ok_or_else(|| EditError::Failed(format!("{} was not captured", path.display())))
    }

    fn into_plan(self) -> EditPlan {
        let mut plan = EditPlan { emptied: self.emptied, ..EditPlan::default() };
        // A file can only be moved away as such if nothing else takes its place in the same edit.
        let moved_away = |path: &Path| self.files.get(path).is_some_and(|entry| entry.now.is_none());
        let origins: Vec<&PathBuf> = self
            .files
            .values()
            .filter_map(|entry| entry.now.as_ref()?.origin.as_ref())
            .filter(|origin| moved_away(origin))
            .collect();
        for path in &self.order {
            let Some(entry) = self.files.get(path) else { continue };
            let at = entry.captured.clone();
            let mut from = None;
            match (&entry.captured.before, &entry.now) {
                (Before::Absent, None) => continue,
                (Before::File { .. }, None) => {
                    if origins.contains(&path) {
                        continue;
                    }
                    plan.set.changes.push(Change::Delete { at });
                }
                (before, Some(now)) => {
                    let origin = now.origin.as_ref().filter(|origin| moved_away(origin));
                    if let Some(source) = origin.and_then(|origin| self.files.get(origin)) {
                        let same = source.captured.before.bytes() == Some(&now.bytes);
                        let after = (!same).then(|| now.bytes.to_vec());
                        from = Some(source.captured.path.shown.clone());
                        plan.set.changes.push(Change::Move { from: source.captured.clone(), to: at, after });
                    } else if before.bytes() == Some(&now.bytes) {
                        continue;
                    } else {
                        plan.set.changes.push(Change::Write { at, after: now.bytes.to_vec() });
                    }
                }
            }
            plan.files.push(PlannedFile {
                file: entry.captured.path.shown.clone(),
                from,
                edits: entry.edits,
            });
        }
        plan
    }
}

/// Everything below a directory: directories deepest first, the directory itself last, and files. Anything but plain files and directories is refused.
fn list(root: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), String> {
    let mut directories = vec![root.to_owned()];
    let mut files = Vec::new();
    let mut at = 0;
    while let Some(directory) = directories.get(at).cloned() {
        at += 1;
        let entries = std::fs::read_dir(&directory).map_err(|error| format!("cannot be listed: {error}"))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("cannot be listed: {error}"))?;
            let kind = entry.file_type().map_err(|error| format!("cannot be listed: {error}"))?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            } else {
                return Err(format!(
                    "contains `{}`, which is neither a file nor a directory",
                    entry.file_name().display()
                ));
            }
            if files.len() + directories.len() > MOVED_FILES {
                return Err(format!("contains more than {MOVED_FILES} files"));
            }
        }
    }
    directories.reverse();
    files.sort();
    Ok((directories, files))
}

#[cfg(test)]
mod tests;
