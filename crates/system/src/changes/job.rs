//! One commit on its way: stage, journal, put into place, and back again if need be.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use tokio::sync::oneshot;

use super::{
    ChangeError, Engine,
    disk::{self, Disk, Dressed, Seen},
    error::LostFile,
    journal::{self, COMMITTED, Content, Entry, Journal, Name, State},
    plan::{Checked, Plan},
};
use crate::{beneath, clock};

impl Engine {
    /// Carries out a plan: everything that leaves the files alone at once, the rest when `go` says so. Holds the lock on the journal throughout.
    pub(super) fn commit(
        &self,
        plan: Plan,
        by: &str,
        go: oneshot::Receiver<()>,
    ) -> Result<Done, ChangeError> {
        let _lock = journal::lock(&self.journal_dir)?;
        let mut warnings: Vec<String> = self.recover()?.into_iter().map(|recovery| recovery.text).collect();
        let (mut checked, missing) = self.check(plan.slots)?;
        for index in 0..checked.len() {
            if let Some(like) = checked[index].slot.like {
                checked[index].dress = checked.get(like).and_then(|other| other.dress.clone());
            }
        }
        checked.retain(|checked| !checked.slot.is_idle());
        if checked.is_empty() {
            return Ok(Done { warnings, unsynced: BTreeSet::new() });
        }
        let mut job = Job::new(self, checked, missing, by);
        job.run(go)?;
        warnings.append(&mut job.warnings);
        // Where there is a marker, they were synced before it.
        let unsynced = if job.prepared { BTreeSet::new() } else { job.directories() };
        Ok(Done { warnings, unsynced })
    }

    /// Makes what was put into place survive a loss of power; answers with a warning where that is not certain.
    pub(super) fn sync(&self, directories: &BTreeSet<PathBuf>) -> Option<String> {
        let failed = directories.iter().find_map(|directory| self.disk.sync_directory(directory).err())?;
        tracing::warn!(error = %failed, "the directory of a changed file could not be synced");
        Some(NOT_DURABLE.to_owned())
    }
}

/// What a commit did.
pub(super) struct Done {
    pub(super) warnings: Vec<String>,
    /// Directories that have to be synced before the change survives a loss of power.
    pub(super) unsynced: BTreeSet<PathBuf>,
}

const NOT_DURABLE: &str = "The disk reports errors: after a loss of power the change may be gone.";

/// What stopped a commit.
enum Trouble {
    /// Somebody else changed a file after the check.
    Stale { file: String, why: String },
    /// A system call failed.
    Failed { file: String, doing: &'static str, source: io::Error },
    /// The commit was given up before anything was put into place.
    CalledOff,
}

struct Step {
    checked: Checked,
    /// The new content beside the target.
    temp: Option<Temp>,
    /// Why the file is written over instead of being replaced.
    in_place: Option<String>,
    touched: bool,
}

struct Temp {
    name: OsString,
    seen: Seen,
}

impl Step {
    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Trouble {
        let file = self.checked.slot.shown.clone();
        move |source| Trouble::Failed { file, doing, source }
    }

    fn path(&self) -> &Path {
        &self.checked.slot.path
    }

    /// Whether what stands there is what this commit put there.
    fn is_ours(&self, now: Option<Seen>) -> bool {
        match (now, &self.temp) {
            (None, None) => true,
            (Some(now), Some(Temp { seen, .. })) => {
                let identity = |seen: &Seen| (seen.device, seen.inode, seen.size, seen.modified_ns);
                identity(&now) == identity(seen)
            }
            _ => false,
        }
    }
}

struct Job<'a> {
    engine: &'a Engine,
    folder: PathBuf,
    id: String,
    by: &'a str,
    steps: Vec<Step>,
    missing: BTreeSet<PathBuf>,
    made: Vec<PathBuf>,
    prepared: bool,
    warnings: Vec<String>,
}

impl<'a> Job<'a> {
    fn new(engine: &'a Engine, checked: Vec<Checked>, missing: BTreeSet<PathBuf>, by: &'a str) -> Self {
        let unique = uuid::Uuid::now_v7().simple().to_string();
        // The end is the random part; the beginning is a time, which makes the folders sort by age.
        let id = unique[unique.len() - 12..].to_owned();
        let step = |checked: Checked| {
            let in_place = reason_for_in_place(&checked);
            Step { checked, temp: None, in_place, touched: false }
        };
        Job {
            engine,
            folder: engine.journal_dir.join(unique),
            id,
            by,
            steps: checked.into_iter().map(step).collect(),
            missing,
            made: Vec::new(),
            prepared: false,
            warnings: Vec::new(),
        }
    }

    fn disk(&self) -> &'a Disk {
        &self.engine.disk
    }

    fn run(&mut self, go: oneshot::Receiver<()>) -> Result<(), ChangeError> {
        // An error means that nobody waits for the change any more, for the process is about to end.
        let go = || go.blocking_recv().map_err(|_| Trouble::CalledOff);
        let result = self.stage().and_then(|()| go()).and_then(|()| self.put_into_place());
        match result {
            Ok(()) => {
                self.finish();
                Ok(())
            }
            Err(trouble) => Err(self.take_back(trouble)),
        }
    }

    /// Everything that leaves the targets alone.
    fn stage(&mut self) -> Result<(), Trouble> {
        let in_journal = |source| Trouble::Failed { file: "the journal".into(), doing: "writing", source };
        // Not synced: it is for the case that this process dies. After a loss of power, temporary files may be left lying about, no more.
        self.begin_journal().map_err(in_journal)?;
        for directory in self.missing.clone() {
            let shown = self.engine.workdir.show(&directory);
            let failed = |source| Trouble::Failed { file: shown, doing: "making the directory", source };
            if self.disk().make_directory(&directory).map_err(failed)? {
                self.made.push(directory);
            }
        }
        for index in 0..self.steps.len() {
            let id = self.temp_id(index);
            let step = &mut self.steps[index];
            if step.in_place.is_none() && step.checked.slot.after.is_some() {
                let warning = stage_step(&self.engine.disk, step, &id).map_err(step.failed("writing"))?;
                self.warnings.extend(warning);
            }
        }
        // All are written before the first is synced: the file system then does the work of most of them at once.
        for step in &self.steps {
            if let Some(temp) = &step.temp {
                sync_temp(&self.engine.disk, step.path(), temp).map_err(step.failed("writing"))?;
            }
        }
        // One file that is replaced as a whole needs no more: a rename happens or it does not.
        if self.steps.len() > 1 || self.steps.iter().any(|step| step.in_place.is_some()) {
            self.prepare().map_err(in_journal)?;
        }
        Ok(())
    }

    fn begin_journal(&self) -> io::Result<()> {
        self.disk().step("make journal folder")?;
        journal::make_private(&self.folder)?;
        self.document(State::Staging).save(self.disk(), &self.folder, false)
    }

    /// Makes it certain that the old contents survive whatever happens from now on.
    fn prepare(&mut self) -> io::Result<()> {
        let mut backups = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let slot = &step.checked.slot;
            if let Some(before) = &slot.before {
                backups.push((format!("{index}.before"), before));
            }
            if let (Some(_), Some(after)) = (&step.in_place, &slot.after) {
                backups.push((format!("{index}.after"), after));
            }
        }
        for (name, bytes) in &backups {
            journal::put(self.disk(), &self.folder, name, bytes, false)?;
        }
        for (name, _) in &backups {
            self.disk().sync(&File::open(self.folder.join(name))?)?;
        }
        self.document(State::Prepared).save(self.disk(), &self.folder, true)?;
        self.disk().sync_directory(&self.canonical_folder()?)?;
        self.disk().sync_directory(&self.engine.journal_dir.canonicalize()?)?;
        self.prepared = true;
        Ok(())
    }

    fn canonical_folder(&self) -> io::Result<PathBuf> {
        self.folder.canonicalize()
    }

    fn document(&self, state: State) -> Journal {
        let entry = |step: &Step| Entry {
            path: Name::of(step.path()),
            shown: step.checked.slot.shown.clone(),
            before: step.checked.slot.before.as_deref().map(Content::of),
            after: step.checked.slot.after.as_deref().map(Content::of),
            dress: step.checked.dress.clone(),
            in_place: step.in_place.is_some(),
        };
        Journal {
            version: 1,
            id: self.id.clone(),
            by: self.by.to_owned(),
            started_ms: clock::now_ms(),
            root: Name::of(self.engine.workdir.root()),
            state,
            directories: self.missing.iter().map(|path| Name::of(path)).collect(),
            entries: self.steps.iter().map(entry).collect(),
        }
    }

    fn temp_id(&self, index: usize) -> String {
        format!("{}-{index}", self.id)
    }

    fn put_into_place(&mut self) -> Result<(), Trouble> {
        for step in &mut self.steps {
            put_step(&self.engine.disk, step)?;
        }
        if !self.prepared {
            return Ok(());
        }
        // Before the marker: a marker that survives a loss of power which the renames do not would make them final.
        for directory in self.directories() {
            let file = self.engine.workdir.show(&directory);
            let failed = |source| Trouble::Failed { file, doing: "syncing the directory", source };
            self.disk().sync_directory(&directory).map_err(failed)?;
        }
        self.mark_committed()
    }

    fn mark_committed(&mut self) -> Result<(), Trouble> {
        let mark = || {
            journal::put(self.disk(), &self.folder, COMMITTED, b"", true)?;
            self.disk().sync_directory(&self.canonical_folder()?)
        };
        let Err(source) = mark() else { return Ok(()) };
        // With the marker there, nothing may be taken back any more: a crash in the middle of that would be taken for success.
        if let Err(error) = journal::unmark(self.disk(), &self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "the end of a change could not be recorded durably");
            self.warnings.push(NOT_DURABLE.to_owned());
            return Ok(());
        }
        Err(Trouble::Failed { file: "the journal".into(), doing: "writing", source })
    }

    /// Every directory whose entries changed.
    fn directories(&self) -> BTreeSet<PathBuf> {
        let paths = self.steps.iter().map(Step::path).chain(self.made.iter().map(PathBuf::as_path));
        paths.filter_map(Path::parent).map(Path::to_owned).collect()
    }

    /// It is done; what fails now is no more than litter.
    fn finish(&mut self) {
        if let Err(error) = journal::discard(self.disk(), &self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "the journal of a finished change could not be removed");
        }
        for step in &self.steps {
            let shown = &step.checked.slot.shown;
            match (&step.in_place, step.checked.seen) {
                (Some(reason), _) => {
                    self.warnings.push(format!("{shown} {reason}, so it was written in place."));
                }
                (None, Some(seen)) if seen.links > 1 && step.checked.slot.after.is_none() => {
                    let others = seen.links - 1;
                    self.warnings.push(format!(
                        "{shown} was one of {} hard links to a file; the other {others} still have the old content.",
                        seen.links
                    ));
                }
                _ => {}
            }
        }
    }

    fn take_back(&mut self, trouble: Trouble) -> ChangeError {
        let had_begun = self.steps.iter().filter(|step| step.touched).count() > 1;
        let mut lost = Vec::new();
        for index in (0..self.steps.len()).rev() {
            let id = format!("{}-back", self.temp_id(index));
            let step = &self.steps[index];
            if step.touched
                && let Err(why) = restore_step(self.disk(), step, &id)
            {
                lost.push((index, why));
            }
        }
        let clean = self.clean_up();
        if lost.is_empty() {
            // Where something was left lying about, the journal stays, and whoever looks at it next clears up.
            if clean && self.folder.exists() {
                self.worked(journal::discard(self.disk(), &self.folder));
            }
            return trouble.into_error(had_begun);
        }
        // What could not be put back is tried again by the next commit and the next start; for that the journal has to be complete.
        if !self.prepared {
            let prepared = self.prepare();
            self.worked(prepared);
        }
        let lost_file = |(index, why): (usize, String)| {
            let backup = self.folder.join(format!("{index}.before"));
            LostFile {
                file: self.steps[index].checked.slot.shown.clone(),
                why,
                backup: backup.exists().then_some(backup),
            }
        };
        let files = lost.into_iter().rev().map(lost_file).collect();
        ChangeError::RollbackFailed { why: trouble.in_words(), files }
    }

    /// Removes temporary files and the directories that were made. Says whether all of that worked.
    fn clean_up(&self) -> bool {
        let mut clean = true;
        for (index, step) in self.steps.iter().enumerate() {
            let Ok((parent, name)) = beneath::split(step.path()) else { continue };
            let Ok(directory) = beneath::directory(parent) else { continue };
            let id = self.temp_id(index);
            for id in [id.clone(), format!("{id}-back")] {
                let temp = disk::temp_name(name, &id);
                if !matches!(disk::look(&directory, &temp), Ok(None)) {
                    clean &= self.worked(self.disk().remove(&directory, &temp));
                }
            }
        }
        for directory in self.made.iter().rev() {
            clean &= self.worked(self.disk().remove_directory(directory));
        }
        for directory in self.directories() {
            // A directory that was made for this is gone by now.
            if directory.exists() {
                clean &= self.worked(self.disk().sync_directory(&directory));
            }
        }
        clean
    }

    fn worked(&self, result: io::Result<()>) -> bool {
        if let Err(error) = &result {
            tracing::warn!(%error, folder = %self.folder.display(), "cleaning up after a change that failed did not work");
        }
        result.is_ok()
    }
}

impl Trouble {
    fn into_error(self, had_begun: bool) -> ChangeError {
        match self {
            Trouble::Stale { file, why } => ChangeError::Stale { files: vec![(file, why)] },
            Trouble::Failed { file, doing, source } if had_begun => {
                ChangeError::RolledBack { file, doing, source }
            }
            Trouble::Failed { file, doing, source } => ChangeError::Io { file, doing, source },
            Trouble::CalledOff => ChangeError::Bug(self.in_words()),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Trouble::Stale { file, why } => format!("{file} was not as expected any more: {why}"),
            Trouble::Failed { file, doing, source } => {
                format!("{doing} {file} failed: {}", crate::paths::plain(source))
            }
            Trouble::CalledOff => "the change was called off, for the process is ending".to_owned(),
        }
    }
}

/// Why this file must keep its inode, as the middle of a sentence.
fn reason_for_in_place(checked: &Checked) -> Option<String> {
    let seen = checked.seen?;
    checked.slot.after.as_ref()?;
    if checked.slot.like.is_some() {
        return None;
    }
    if seen.links > 1 {
        Some(format!("has {} hard links, which all show the change", seen.links))
    } else if checked.mount_point {
        Some("is a mount point by itself, which cannot be replaced".to_owned())
    } else {
        None
    }
}

/// Writes the new content beside the target. A file whose owner cannot be kept becomes one to be written in place.
fn stage_step(disk: &Disk, step: &mut Step, id: &str) -> io::Result<Option<String>> {
    let Checked { slot, seen, dress, .. } = &step.checked;
    let Some(after) = &slot.after else { return Ok(None) };
    let (parent, name) = beneath::split(&slot.path)?;
    let directory = beneath::directory(parent)?;
    let temp = disk::temp_name(name, id);
    // Nobody else may read a private file's new content while it is being written.
    let mode = if dress.is_some() { 0o600 } else { 0o666 };
    let file = disk.create(&directory, &temp, after, mode)?;
    let mut warning = None;
    if let Some(dress) = dress
        && disk.dress(&file, dress)? == Dressed::NotItsOwner
    {
        if seen.is_some() && slot.like.is_none() {
            step.in_place =
                Some("belongs to another user or group, which only root could give it again".to_owned());
            disk.remove(&directory, &temp)?;
            return Ok(None);
        }
        warning = Some(format!("{} could not be given the owner that the file had before.", slot.shown));
    }
    if let Some(seen) = seen {
        disk::differ_in_time(&file, seen.modified_ns)?;
    }
    step.temp = Some(Temp { name: temp, seen: disk::look_at(&file)? });
    Ok(warning)
}

fn sync_temp(disk: &Disk, target: &Path, temp: &Temp) -> io::Result<()> {
    let directory = beneath::directory(beneath::split(target)?.0)?;
    disk.sync(&beneath::open_for_reading(directory, &temp.name)?)
}

/// The one moment at which a file changes, with a last look before it. It is short, but somebody can still slip in between.
fn put_step(disk: &Disk, step: &mut Step) -> Result<(), Trouble> {
    let stale = |why: &str| Trouble::Stale { file: step.checked.slot.shown.clone(), why: why.to_owned() };
    let reading = |source| step.failed("checking")(source);
    disk.step("look again").map_err(reading)?;
    let path = step.path().to_owned();
    let (parent, name) = beneath::split(&path).map_err(reading)?;
    let directory = match beneath::directory(parent) {
        Ok(directory) => directory,
        Err(error) if disappeared(&error) => return Err(stale("its directory has been moved or replaced")),
        Err(error) => return Err(reading(error)),
    };
    let seen = step.checked.seen;
    match (disk::look(&directory, name).map_err(reading)?, seen) {
        (now, seen) if now == seen => {}
        (None, Some(_)) => return Err(stale("it was deleted while the change was being made")),
        (Some(_), None) => return Err(stale("it was created while the change was being made")),
        _ => return Err(stale("it was changed while the change was being made")),
    }
    step.touched = true;
    match (&step.checked.slot.after, &step.temp) {
        (None, _) => disk.remove(&directory, name).map_err(step.failed("deleting")),
        (Some(_), Some(temp)) => {
            let result = disk.rename(&directory, &temp.name, name, seen.is_some());
            match result {
                Err(error) if seen.is_none() && error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(stale("it was created while the change was being made"))
                }
                other => other.map_err(step.failed("renaming the new content into place for")),
            }
        }
        (Some(after), None) => {
            disk.overwrite(&directory, name, seen.as_ref(), after).map_err(step.failed("writing in place"))
        }
    }
}

fn disappeared(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP]
        .iter()
        .any(|gone| Some(gone.raw_os_error()) == error.raw_os_error())
}

/// Puts the old content back, unless somebody else has been there since.
fn restore_step(disk: &Disk, step: &Step, id: &str) -> Result<(), String> {
    let words = |error: io::Error| crate::paths::plain(&error);
    let Checked { slot, seen, dress, .. } = &step.checked;
    let (parent, name) = beneath::split(&slot.path).map_err(words)?;
    let directory = beneath::directory(parent).map_err(words)?;
    if let (Some(_), Some(before)) = (&step.in_place, &slot.before) {
        return disk.overwrite(&directory, name, seen.as_ref(), before).map_err(words);
    }
    let now = disk::look(&directory, name).map_err(words)?;
    // The step failed before it did anything.
    if now == *seen {
        return Ok(());
    }
    if !step.is_ours(now) {
        return Err("somebody else has changed it in the meantime, so it was left alone".to_owned());
    }
    match &slot.before {
        None => disk.remove(&directory, name).map_err(words),
        Some(before) => {
            let temp = disk::temp_name(name, id);
            let put_back = || {
                let file = disk.create(&directory, &temp, before, 0o600)?;
                if let Some(dress) = dress {
                    disk.dress(&file, dress)?;
                }
                disk.sync(&file)?;
                disk.rename(&directory, &temp, name, now.is_some())
            };
            put_back().map_err(words)
        }
    }
}
