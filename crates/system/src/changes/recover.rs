//! Putting right what a process that died left half done.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use haft_tool::Access;
use rustix::fs::FileType;

use super::{
    ChangeError, Engine, Recovery,
    disk::{self, Dress},
    journal::{self, COMMITTED, DOCUMENT, Entry, Journal, State},
    plan::in_words,
};
use crate::{beneath, paths::plain};

/// What became of one file.
enum Outcome {
    AsBefore,
    PutBack,
    LeftAlone(String),
}

impl Engine {
    /// See [`super::Changes::open`].
    pub(super) fn recover_at_start(&self) -> Result<Vec<Recovery>, ChangeError> {
        match journal::lock(&self.journal_dir) {
            Ok(_lock) => self.recover(),
            // Somebody is alive and at work. Every commit looks for leftovers first, so nothing is lost by going on.
            Err(ChangeError::Busy(seconds)) => Ok(vec![Recovery {
                text: format!(
                    "Another Haft process has been changing files for {seconds} seconds; interrupted changes will be looked for later."
                ),
                needs_attention: false,
            }]),
            Err(error) => Err(error),
        }
    }

    /// With the lock held: every journal that is there belongs to a process that died, or to a rollback that failed.
    pub(super) fn recover(&self) -> Result<Vec<Recovery>, ChangeError> {
        let unusable = |error: io::Error| journal::unusable(&self.journal_dir, &error);
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.journal_dir).map_err(unusable)? {
            let entry = entry.map_err(unusable)?;
            let path = entry.path();
            if entry.file_type().map_err(unusable)?.is_dir() && path.extension().is_none() {
                folders.push(path);
            }
        }
        // Oldest first: the names begin with the time.
        folders.sort();
        let mut recovered = Vec::new();
        for folder in folders {
            match self.recover_folder(&folder) {
                Ok(recovery) => recovered.extend(recovery),
                Err(error) => recovered.push(Recovery {
                    text: format!(
                        "An interrupted change could not be put right: {}. Its journal is in {}; this will be tried again.",
                        plain(&error),
                        folder.display()
                    ),
                    needs_attention: true,
                }),
            }
        }
        for recovery in &recovered {
            tracing::warn!(%recovery, "an interrupted change was found");
        }
        Ok(recovered)
    }

    fn recover_folder(&self, folder: &Path) -> io::Result<Option<Recovery>> {
        let document = match fs::read(folder.join(DOCUMENT)) {
            Ok(document) => document,
            // It was never begun, or is finished and was being cleared away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.step("remove journal folder")?;
                fs::remove_dir_all(folder)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let journal = match serde_json::from_slice::<Journal>(&document) {
            Ok(journal) if journal.version == 1 => journal,
            other => {
                let why = other.map_or_else(
                    |error| error.to_string(),
                    |journal| format!("version {} is not known here", journal.version),
                );
                let kept = self.set_aside(folder)?;
                return Ok(Some(Recovery {
                    text: format!(
                        "The journal of an interrupted change cannot be read ({why}); it is kept in {}.",
                        kept.display()
                    ),
                    needs_attention: true,
                }));
            }
        };
        if journal.root.path() != self.workdir.root() {
            return Ok(None);
        }
        let committed = folder.join(COMMITTED).try_exists()?;
        if committed || journal.state == State::Staging {
            self.clear(&journal, !committed)?;
            journal::discard(&self.disk, folder)?;
            return Ok(Some(describe_finished(&journal, committed)));
        }
        self.roll_back(&journal, folder).map(Some)
    }

    fn roll_back(&self, journal: &Journal, folder: &Path) -> io::Result<Recovery> {
        let mut put_back = Vec::new();
        let mut alone = Vec::new();
        // Backwards, as a rename that only changes the case needs it.
        for (index, entry) in journal.entries.iter().enumerate().rev() {
            match self.restore(entry, &journal.id, index, folder)? {
                Outcome::AsBefore => {}
                Outcome::PutBack => put_back.push(entry),
                Outcome::LeftAlone(why) => alone.push((index, entry, why)),
            }
        }
        self.clear(journal, true)?;
        for entry in &journal.entries {
            if let Some(parent) = entry.path.path().parent()
                && parent.is_dir()
            {
                self.disk.sync_directory(parent)?;
            }
        }
        let mut words = vec![format!(
            "A change to {} (by {}) was interrupted half-way.",
            shown(journal.entries.iter()),
            journal.by
        )];
        words.push(if put_back.is_empty() {
            "No file had to be put back.".to_owned()
        } else {
            let names = shown(put_back.into_iter().rev());
            format!("It was taken back: the old content of {names} was restored.")
        });
        let needs_attention = !alone.is_empty();
        if needs_attention {
            let kept = self.set_aside(folder)?;
            for (index, entry, why) in alone.into_iter().rev() {
                words.push(format!("{} was left as it is: {why}.", entry.shown));
                let backup = kept.join(format!("{index}.before"));
                if backup.exists() {
                    words.push(format!("What it was before the change is in {}.", backup.display()));
                }
            }
        } else {
            journal::discard(&self.disk, folder)?;
        }
        Ok(Recovery { text: words.join(" "), needs_attention })
    }

    fn restore(&self, entry: &Entry, id: &str, index: usize, folder: &Path) -> io::Result<Outcome> {
        let path = entry.path.path();
        let alone = |why: &str| Ok(Outcome::LeftAlone(why.to_owned()));
        // A journal is only a file; it must not lead anywhere that a tool could not have written.
        if !self.is_allowed(&path) {
            return alone("its path now leads somewhere else");
        }
        let before = match &entry.before {
            None => None,
            Some(content) => match fs::read(folder.join(format!("{index}.before"))) {
                Ok(bytes) if content.is(&bytes) => Some(bytes),
                _ => return alone("its old content in the journal is damaged"),
            },
        };
        let now = match content(&path)? {
            Found::Nothing => None,
            Found::File(bytes) => Some(bytes),
            Found::Other(what) => return alone(&format!("it has become {what}")),
        };
        if now == before {
            return Ok(Outcome::AsBefore);
        }
        let is_after = match (&now, &entry.after) {
            (None, None) => true,
            (Some(now), Some(after)) => after.is(now),
            _ => false,
        };
        let half =
            entry.in_place && !is_after && is_half_written(now.as_deref(), before.as_deref(), folder, index);
        if !is_after && !half {
            return alone("somebody has changed it since");
        }
        let (parent, name) = beneath::split(&path)?;
        let directory = match beneath::directory(parent) {
            Ok(directory) => directory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return alone("its directory is gone"),
            Err(error) => return Err(error),
        };
        match before {
            None => self.disk.remove(&directory, name)?,
            Some(before) if entry.in_place => self.disk.overwrite(&directory, name, None, &before)?,
            Some(before) => {
                // What stands there now was dressed like the old file when it was put there.
                let dress = if now.is_some() {
                    let (_, seen, file) = disk::read(&directory, name)?;
                    Some(Dress::of(&file, &seen)?)
                } else {
                    entry.dress.clone()
                };
                let temp = disk::temp_name(name, &format!("{id}-{index}-back"));
                // One may be left from a recovery that was interrupted itself.
                self.disk.remove(&directory, &temp)?;
                let file = self.disk.create(&directory, &temp, &before, 0o600)?;
                if let Some(dress) = dress {
                    self.disk.dress(&file, &dress)?;
                }
                self.disk.sync(&file)?;
                self.disk.rename(&directory, &temp, name, now.is_some())?;
            }
        }
        Ok(Outcome::PutBack)
    }

    fn is_allowed(&self, path: &Path) -> bool {
        self.workdir.resolve(path, Access::Write).is_ok_and(|resolved| resolved.real == path)
    }

    /// Removes temporary files, and the directories that were made if they are empty.
    fn clear(&self, journal: &Journal, directories: bool) -> io::Result<()> {
        for (index, entry) in journal.entries.iter().enumerate() {
            let path = entry.path.path();
            let (parent, name) = beneath::split(&path)?;
            let Ok(directory) = beneath::directory(parent) else { continue };
            if !self.is_allowed(&path) {
                continue;
            }
            for suffix in ["", "-back"] {
                let temp = disk::temp_name(name, &format!("{}-{index}{suffix}", journal.id));
                self.disk.remove(&directory, &temp)?;
            }
        }
        if directories {
            for directory in journal.directories.iter().rev() {
                let path = directory.path();
                if self.is_allowed(&path) {
                    self.disk.remove_directory(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps a journal for a person, out of the way of further recoveries.
    fn set_aside(&self, folder: &Path) -> io::Result<PathBuf> {
        let kept = folder.with_extension("unresolved");
        self.disk.step("set journal aside")?;
        fs::rename(folder, &kept)?;
        Ok(kept)
    }
}

fn describe_finished(journal: &Journal, committed: bool) -> Recovery {
    let names = shown(journal.entries.iter());
    let complete = committed
        || journal.entries.iter().all(|entry| {
            matches!((content(&entry.path.path()), &entry.after), (Ok(Found::File(bytes)), Some(after)) if after.is(&bytes))
                || matches!((content(&entry.path.path()), &entry.after), (Ok(Found::Nothing), None))
        });
    let what = if complete {
        "had been completed"
    } else {
        "had not begun to take effect; nothing was changed by it"
    };
    Recovery {
        text: format!(
            "A change to {names} (by {}) was interrupted. It {what}; its temporary files were removed.",
            journal.by
        ),
        needs_attention: false,
    }
}

enum Found {
    Nothing,
    File(Vec<u8>),
    Other(&'static str),
}

fn content(path: &Path) -> io::Result<Found> {
    let (parent, name) = beneath::split(path)?;
    let directory = match beneath::directory(parent) {
        Ok(directory) => directory,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    match disk::look(&directory, name)? {
        None => Ok(Found::Nothing),
        Some(seen) if seen.kind() == FileType::RegularFile => {
            Ok(Found::File(disk::read(&directory, name)?.0))
        }
        Some(seen) => Ok(Found::Other(in_words(seen.kind()))),
    }
}

/// Whether a file that was being written in place is the beginning of the new content and the rest of the old one.
fn is_half_written(now: Option<&[u8]>, before: Option<&[u8]>, folder: &Path, index: usize) -> bool {
    let (Some(now), Some(before)) = (now, before) else { return false };
    let Ok(after) = fs::read(folder.join(format!("{index}.after"))) else { return false };
    is_mixture(now, before, &after)
}

fn shown<'a>(entries: impl Iterator<Item = &'a Entry>) -> String {
    const NAMED: usize = 8;
    let mut names: Vec<&str> = entries.map(|entry| entry.shown.as_str()).collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// What writing from the front and then cutting to length can leave behind: `after[..k] + before[k..]`, and when putting that back was
/// interrupted too, `before[..j] + after[j..k] + before[k..]`.
fn is_mixture(now: &[u8], before: &[u8], after: &[u8]) -> bool {
    let lengths = before.len().min(after.len())..=before.len().max(after.len());
    let mut at = 0;
    // Taking as much as possible from each in turn finds such a division if there is one.
    for source in [before, after, before] {
        let rest = source.get(at..).unwrap_or_default();
        at += now[at..].iter().zip(rest).take_while(|(a, b)| a == b).count();
    }
    at == now.len() && lengths.contains(&now.len())
}

#[cfg(test)]
mod tests {
    use super::is_mixture;

    #[test]
    fn a_half_written_file_is_recognised_and_another_is_not() {
        let (before, after) = (b"old text, long".as_slice(), b"new words".as_slice());
        for k in 0..=after.len() {
            let now = [&after[..k], &before[k..]].concat();
            assert!(is_mixture(&now, before, after), "{k}");
        }
        for k in before.len()..=after.len() + before.len() {
            let longer = [after, before].concat();
            let now = &longer[..k];
            assert!(is_mixture(now, before, &longer), "{k}");
        }
        for (j, k) in (0..after.len()).flat_map(|k| (0..k).map(move |j| (j, k))) {
            let now = [&before[..j], &after[j..k], &before[k..]].concat();
            assert!(is_mixture(&now, before, after), "{j} {k}");
        }
        assert!(is_mixture(after, before, after));
        assert!(!is_mixture(b"something else", before, after));
        assert!(!is_mixture(b"new words, and more", before, after));
    }
}
