//! From a change set to single steps on single files, and the check that the disk is as the set expects it.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::FileType;

use super::{
    Before, Captured, Change, ChangeError, ChangeKind, ChangeSet, Engine, FileChange, Fingerprint, Planned,
    disk::{self, Dress, Seen},
};
use crate::{
    beneath,
    paths::{ResolvedPath, Workdir},
};

/// A change set that makes sense by itself; the disk has not been asked yet.
pub(super) struct Plan {
    pub(super) slots: Vec<Slot>,
    pub(super) planned: Vec<Planned>,
}

/// One name and what it shall hold. A move is two of them.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) path: PathBuf,
    pub(super) shown: String,
    pub(super) before: Option<Arc<[u8]>>,
    pub(super) after: Option<Arc<[u8]>>,
    /// The slot whose mode, owner and attributes the new file gets: for the new place of a moved file.
    pub(super) like: Option<usize>,
    /// Before the change this name is another spelling of the file in that slot: a rename that only changes the case, on a file
    /// system that ignores it.
    pub(super) alias_of: Option<usize>,
}

impl Slot {
    fn new(captured: &Captured, after: Option<Arc<[u8]>>) -> Self {
        Slot {
            path: captured.path.real.clone(),
            shown: captured.path.shown.clone(),
            before: captured.before.bytes().cloned(),
            after,
            like: None,
            alias_of: None,
        }
    }

    /// The new content is the old one. The new place of a moved file still gets that file's mode.
    pub(super) fn is_idle(&self) -> bool {
        self.before == self.after && self.like.is_none()
    }
}

impl Plan {
    pub(super) fn new(set: ChangeSet) -> Result<Self, ChangeError> {
        let mut plan = Plan { slots: Vec::new(), planned: Vec::new() };
        let mut seen = Names::default();
        for change in set.changes {
            match change {
                Change::Write { at, after } => {
                    seen.add(&at)?;
                    let after: Arc<[u8]> = after.into();
                    let kind =
                        if at.before == Before::Absent { ChangeKind::Created } else { ChangeKind::Modified };
                    let slot = Slot::new(&at, Some(Arc::clone(&after)));
                    if !slot.is_idle() {
                        plan.planned.push(planned(&at.path, kind, None, at.before.bytes(), Some(after)));
                    }
                    plan.slots.push(slot);
                }
                Change::Delete { at } => {
                    seen.add(&at)?;
                    must_exist(&at)?;
                    plan.planned.push(planned(&at.path, ChangeKind::Deleted, None, at.before.bytes(), None));
                    plan.slots.push(Slot::new(&at, None));
                }
                Change::Move { from, to, after } => plan.add_move(&mut seen, &from, &to, after)?,
            }
        }
        seen.check_nesting()?;
        Ok(plan)
    }

    fn add_move(
        &mut self,
        seen: &mut Names,
        from: &Captured,
        to: &Captured,
        after: Option<Vec<u8>>,
    ) -> Result<(), ChangeError> {
        seen.add(from)?;
        let Before::File { bytes, print } = &from.before else { return must_exist(from) };
        let after = after.map_or_else(|| Arc::clone(bytes), Arc::from);
        let path = Some(from.path.clone());
        self.planned.push(planned(&to.path, ChangeKind::Moved, path, Some(bytes), Some(Arc::clone(&after))));
        let index = self.slots.len();
        let same_file = matches!(&to.before, Before::File { print: other, .. }
            if (other.device, other.inode) == (print.device, print.inode));
        if same_file && from.path.real != to.path.real {
            if !differs_in_case_only(&from.path.real, &to.path.real) {
                return Err(refused(
                    &to.path.shown,
                    format!(
                        "is the same file as {} (a hard link), so it cannot be moved there",
                        from.path.shown
                    ),
                ));
            }
            seen.add_name(&to.path)?;
            self.slots.push(Slot::new(from, None));
            let slot = Slot::new(to, Some(after));
            self.slots.push(Slot { before: None, like: Some(index), alias_of: Some(index), ..slot });
        } else {
            seen.add(to)?;
            // The new file first, so that there is no moment without either.
            self.slots.push(Slot { like: Some(index + 1), ..Slot::new(to, Some(after)) });
            self.slots.push(Slot::new(from, None));
        }
        Ok(())
    }

    pub(super) fn files(&self) -> Vec<FileChange> {
        let file = |planned: &Planned| FileChange {
            file: planned.file.shown.clone(),
            change: planned.kind,
            from: planned.from.as_ref().map(|from| from.shown.clone()),
        };
        self.planned.iter().map(file).collect()
    }

    pub(super) fn unchanged(&self) -> Vec<String> {
        self.slots.iter().filter(|slot| slot.is_idle()).map(|slot| slot.shown.clone()).collect()
    }
}

fn planned(
    file: &ResolvedPath,
    kind: ChangeKind,
    from: Option<ResolvedPath>,
    before: Option<&Arc<[u8]>>,
    after: Option<Arc<[u8]>>,
) -> Planned {
    Planned { file: file.clone(), kind, from, before: before.cloned(), after }
}

pub(super) fn refused(file: &str, why: impl Into<String>) -> ChangeError {
    ChangeError::Refused { file: file.to_owned(), why: why.into() }
}

fn must_exist(captured: &Captured) -> Result<(), ChangeError> {
    match captured.before {
        Before::File { .. } => Ok(()),
        Before::Absent => Err(refused(&captured.path.shown, "does not exist")),
    }
}

fn differs_in_case_only(a: &Path, b: &Path) -> bool {
    let lower = |path: &Path| path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    a.parent() == b.parent() && lower(a) == lower(b)
}

/// The names of a set, to find two changes that meet.
#[derive(Default)]
struct Names {
    paths: HashMap<PathBuf, String>,
    inodes: HashMap<(u64, u64), String>,
}

impl Names {
    fn add(&mut self, captured: &Captured) -> Result<(), ChangeError> {
        self.add_name(&captured.path)?;
        if let Before::File { print, .. } = &captured.before
            && let Some(other) = self.inodes.insert((print.device, print.inode), captured.path.shown.clone())
        {
            return Err(refused(
                &captured.path.shown,
                format!(
                    "and {other} are one and the same file (a hard link), so they cannot be changed together"
                ),
            ));
        }
        Ok(())
    }

    fn add_name(&mut self, path: &ResolvedPath) -> Result<(), ChangeError> {
        match self.paths.insert(path.real.clone(), path.shown.clone()) {
            None => Ok(()),
            Some(_) => Err(refused(
                &path.shown,
                "is named by two changes of one set; put them together into one change",
            )),
        }
    }

    fn check_nesting(&self) -> Result<(), ChangeError> {
        for (path, shown) in &self.paths {
            if let Some(above) = path.ancestors().skip(1).find_map(|above| self.paths.get(above)) {
                return Err(refused(
                    shown,
                    format!("lies below {above}, which the same set changes as a file; make two change sets"),
                ));
            }
        }
        Ok(())
    }
}

/// A slot that was checked against the disk.
pub(super) struct Checked {
    pub(super) slot: Slot,
    /// What stands there now; `None` if nothing (or only an alias).
    pub(super) seen: Option<Seen>,
    /// What the file there wears.
    pub(super) dress: Option<Dress>,
    /// The file cannot be replaced by renaming, because it is a mount point by itself.
    pub(super) mount_point: bool,
}

enum Problem {
    Stale(String),
    Other(ChangeError),
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        Problem::Other(error)
    }
}

/// See [`super::Changes::capture`].
pub(super) fn capture(path: ResolvedPath) -> Result<Captured, ChangeError> {
    let shown = path.shown.clone();
    let failed = |source| ChangeError::Io { file: shown.clone(), doing: "reading", source };
    let (parent, name) = beneath::split(&path.real).map_err(failed)?;
    let directory = match beneath::directory(parent) {
        Ok(directory) => directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Captured { path, before: Before::Absent });
        }
        Err(error) => return Err(failed(error)),
    };
    let Some(seen) = disk::look(&directory, name).map_err(failed)? else {
        return Ok(Captured { path, before: Before::Absent });
    };
    if seen.kind() != FileType::RegularFile {
        return Err(refused(&shown, format!("is {}, not a regular file", in_words(seen.kind()))));
    }
    let (bytes, seen, _) = disk::read(&directory, name).map_err(failed)?;
    let print = Fingerprint {
        device: seen.device,
        inode: seen.inode,
        mode: seen.mode,
        size: seen.size,
        modified_ns: seen.modified_ns,
        blake3: blake3::hash(&bytes).into(),
    };
    Ok(Captured { path, before: Before::File { bytes: bytes.into(), print } })
}

impl Engine {
    /// Compares every file with what the set expects, by content. Answers the checked slots and the directories that have to be made,
    /// outermost first.
    pub(super) fn check(&self, slots: Vec<Slot>) -> Result<(Vec<Checked>, BTreeSet<PathBuf>), ChangeError> {
        let mut stale = Vec::new();
        let mut checked: Vec<Checked> = Vec::with_capacity(slots.len());
        let mut missing = BTreeSet::new();
        for slot in slots {
            let original = slot.alias_of.and_then(|index| checked.get(index)).and_then(|other| other.seen);
            match check(&self.workdir, &slot, original, &mut missing) {
                Ok((seen, dress, mount_point)) => checked.push(Checked { slot, seen, dress, mount_point }),
                Err(Problem::Stale(why)) => {
                    stale.push((slot.shown.clone(), why));
                    // Keeps the indices right; nothing comes of it, as the set is refused below.
                    checked.push(Checked { slot, seen: None, dress: None, mount_point: false });
                }
                Err(Problem::Other(error)) => return Err(error),
            }
        }
        if stale.is_empty() { Ok((checked, missing)) } else { Err(ChangeError::Stale { files: stale }) }
    }
}

type Found = (Option<Seen>, Option<Dress>, bool);

fn check(
    workdir: &Workdir,
    slot: &Slot,
    original: Option<Seen>,
    missing: &mut BTreeSet<PathBuf>,
) -> Result<Found, Problem> {
    let failed = |source| ChangeError::Io { file: slot.shown.clone(), doing: "checking", source };
    let resolved = workdir.resolve(&slot.path, haft_tool::Access::Write).map_err(ChangeError::from)?;
    if resolved.real != slot.path {
        return Err(Problem::Stale(format!(
            "a symbolic link has been put in its way, it now leads to {}",
            resolved.shown
        )));
    }
    let (parent, name) = beneath::split(&slot.path).map_err(failed)?;
    let (directory, nearest, there) = nearest_directory(parent, missing, slot).map_err(failed)?;
    if !slot.is_idle() {
        check_directory(&directory, nearest, workdir, slot)?;
    }
    let seen = if there { disk::look(&directory, name).map_err(failed)? } else { None };
    match (seen, &slot.before) {
        (None, None) => Ok((None, None, false)),
        (Some(seen), None) if slot.alias_of.is_some() => {
            check_alias(parent, name, &seen, original, slot)?;
            Ok((None, None, false))
        }
        (Some(_), None) => Err(Problem::Stale("it has been created in the meantime".to_owned())),
        (None, Some(_)) => Err(Problem::Stale("it has been deleted".to_owned())),
        (Some(seen), Some(_)) if seen.kind() != FileType::RegularFile => {
            Err(Problem::Stale(format!("it has become {}", in_words(seen.kind()))))
        }
        (Some(_), Some(before)) => {
            let (bytes, seen, file) = disk::read(&directory, name).map_err(failed)?;
            if bytes[..] != before[..] {
                return Err(Problem::Stale("its content has changed".to_owned()));
            }
            if !slot.is_idle() && seen.mode & 0o222 == 0 {
                let mode = seen.mode & 0o777;
                return Err(refused(&slot.shown, format!("is read-only (mode {mode:03o})")).into());
            }
            if !slot.is_idle() && !disk::may_write(&directory, name) {
                return Err(refused(&slot.shown, "may not be written by the user that Haft runs as").into());
            }
            let dress = Dress::of(&file, &seen).map_err(failed)?;
            Ok((Some(seen), Some(dress), disk::is_mount_point(&directory, name)))
        }
    }
}

/// The directory, or if it is missing the nearest one above that is there.
fn nearest_directory<'a>(
    parent: &'a Path,
    missing: &mut BTreeSet<PathBuf>,
    slot: &Slot,
) -> io::Result<(OwnedFd, &'a Path, bool)> {
    let mut there = true;
    for at in parent.ancestors() {
        match beneath::directory(at) {
            Ok(directory) => return Ok((directory, at, there)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                there = false;
                if slot.after.is_some() && slot.before.is_none() {
                    missing.insert(at.to_owned());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// The mode is looked at too, because to root everything looks writable.
fn check_directory(
    directory: &OwnedFd,
    at: &Path,
    workdir: &Workdir,
    slot: &Slot,
) -> Result<(), ChangeError> {
    let failed = |source| ChangeError::Io { file: slot.shown.clone(), doing: "checking", source };
    let seen = disk::look_at(directory).map_err(failed)?;
    if seen.mode & 0o222 == 0 {
        let why = format!(
            "lies in the directory {}, which is read-only (mode {:03o})",
            workdir.show(at),
            seen.mode & 0o777
        );
        return Err(refused(&slot.shown, why));
    }
    if !disk::may_write(directory, OsStr::new(".")) {
        let why = format!(
            "lies in the directory {}, which may not be written by the user that Haft runs as",
            workdir.show(at)
        );
        return Err(refused(&slot.shown, why));
    }
    Ok(())
}

fn check_alias(
    parent: &Path,
    name: &OsStr,
    seen: &Seen,
    original: Option<Seen>,
    slot: &Slot,
) -> Result<(), Problem> {
    if original.is_none_or(|original| (original.device, original.inode) != (seen.device, seen.inode)) {
        return Err(Problem::Stale("another file has been put there".to_owned()));
    }
    let failed = |source| ChangeError::Io { file: slot.shown.clone(), doing: "checking", source };
    let listed = std::fs::read_dir(parent).map_err(failed)?.flatten().any(|entry| entry.file_name() == name);
    if listed {
        // Two names on a file system that tells them apart.
        return Err(refused(&slot.shown, "is a hard link to the file that would be moved there").into());
    }
    Ok(())
}

pub(super) fn in_words(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::paths::PathState;

    fn captured(path: &str, inode: u64) -> Captured {
        let path = ResolvedPath {
            real: PathBuf::from("/work").join(path),
            shown: path.to_owned(),
            state: PathState::File,
            via_symlink: false,
        };
        let print =
            Fingerprint { device: 1, inode, mode: 0o100_644, size: 3, modified_ns: 0, blake3: [0; 32] };
        Captured { path, before: Before::File { bytes: Arc::from(*b"old"), print } }
    }

    /// The name, whether there is something before and after, and the slots it refers to.
    type Summary = (String, bool, bool, Option<usize>, Option<usize>);

    fn steps(from: &Captured, to: &Captured) -> Vec<Summary> {
        let change = Change::Move { from: from.clone(), to: to.clone(), after: None };
        let plan = Plan::new(ChangeSet { changes: vec![change] }).unwrap();
        let step =
            |slot: Slot| (slot.shown, slot.before.is_some(), slot.after.is_some(), slot.like, slot.alias_of);
        plan.slots.into_iter().map(step).collect()
    }

    #[test]
    fn where_case_is_ignored_the_old_name_goes_first_or_the_new_file_would_go_with_it() {
        assert_eq!(
            steps(&captured("Readme", 7), &captured("README", 7)),
            [
                ("Readme".to_owned(), true, false, None, None),
                ("README".to_owned(), false, true, Some(0), Some(0)),
            ]
        );
        // Two files: the new one first, so that there is no moment without either.
        assert_eq!(
            steps(&captured("Readme", 7), &captured("README", 8)),
            [
                ("README".to_owned(), true, true, Some(1), None),
                ("Readme".to_owned(), true, false, None, None),
            ]
        );
    }
}
