//! Pictures and long outputs.
//!
//! Small ones are rows. Large ones are files beside the database, `artifacts/ab/cdef…`, and their rows say so. A file is complete and on
//! the disk before its row exists, so a crash can leave a file without a row (the same bytes put again take it over) and never the
//! reverse. Bytes are compared with their name whenever they are read.

use std::{
    fs, io,
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::Once,
};

use rusqlite::{Connection, OptionalExtension};

use super::{fault::Fault, schema::private_directory};
use crate::{Artifact, ArtifactId, StoreError, limits};

/// The name of an artifact: BLAKE3 over the media type, a zero byte and the bytes, in hexadecimal.
pub(super) fn name(artifact: &Artifact) -> ArtifactId {
    let mut hasher = blake3::Hasher::new();
    hasher.update(artifact.mime.as_bytes()).update(&[0]).update(&artifact.data);
    ArtifactId(hasher.finalize().to_hex().to_string())
}

/// The name that a file's bytes have as an artifact, and how many there are. Never more than a piece of it is in memory.
fn name_of_file(mime: &str, path: &Path) -> Result<(ArtifactId, u64), Fault> {
    let read = || -> io::Result<(ArtifactId, u64)> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(mime.as_bytes()).update(&[0]);
        let mut file = fs::File::open(path)?;
        let mut piece = vec![0; limits::FILE_PIECE];
        let mut bytes = 0;
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok((ArtifactId(hasher.finalize().to_hex().to_string()), bytes)),
                Ok(count) => {
                    hasher.update(&piece[..count]);
                    bytes += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    read().map_err(|error| Fault::Io("reading a file to be kept", error))
}

/// What a file's bytes are as an artifact.
pub(super) enum Held {
    /// Small enough for a row.
    Small(Artifact),
    /// Among the files.
    File { id: ArtifactId, mime: String, bytes: u64 },
}

/// Takes in a file's bytes; a row for them is still to be written.
pub(super) fn keep_file(files: &Files, mime: String, from: &Path, now_ms: i64) -> Result<Held, Fault> {
    let wrong = |error| Fault::Io("reading a file to be kept", error);
    if fs::metadata(from).map_err(wrong)?.len() <= limits::INLINE_ARTIFACT as u64 {
        let data = fs::read(from).map_err(wrong)?;
        return Ok(Held::Small(Artifact { mime, data }));
    }
    let (id, bytes) = name_of_file(&mime, from)?;
    files.keep_file(&id, &mime, from, now_ms)?;
    Ok(Held::File { id, mime, bytes })
}

/// Where the large ones are.
pub(super) struct Files {
    root: PathBuf,
    swept: Once,
}

impl Files {
    pub(super) fn beside(database: &Path) -> Files {
        Files { root: database.with_file_name("artifacts"), swept: Once::new() }
    }

    fn path(&self, id: &ArtifactId) -> PathBuf {
        let (first, rest) = id.0.split_at_checked(2).unwrap_or((&id.0, ""));
        self.root.join(first).join(rest)
    }

    /// Makes sure that the file is there, whole and on the disk.
    pub(super) fn keep(&self, id: &ArtifactId, artifact: &Artifact, now_ms: i64) -> Result<(), Fault> {
        let path = self.path(id);
        if fs::read(&path).is_ok_and(|data| data == artifact.data) {
            return Ok(());
        }
        let waiting = self.root.join("tmp");
        let directory = path.parent().unwrap_or(&self.root);
        private_directory(&waiting)?;
        private_directory(directory)?;
        self.swept.call_once(|| sweep(&waiting, now_ms));
        let temporary = waiting.join(uuid::Uuid::now_v7().to_string());
        write_through(&temporary, &path, &artifact.data)
            .inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        for directory in [directory, &self.root] {
            fs::File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| Fault::Io("writing an artifact's directory to the disk", error))?;
        }
        Ok(())
    }
}

impl Files {
    /// [`Files::keep`] for bytes that are in a file already. The artifact is the same file under a second name where the file system can do
    /// that, else a copy, so whoever made the file must not write to it any more.
    fn keep_file(&self, id: &ArtifactId, mime: &str, from: &Path, now_ms: i64) -> Result<(), Fault> {
        let path = self.path(id);
        let write = |error| Fault::Io("writing an artifact", error);
        if path.exists() && name_of_file(mime, &path).is_ok_and(|(there, _)| there == *id) {
            return Ok(());
        }
        let waiting = self.root.join("tmp");
        let directory = path.parent().unwrap_or(&self.root);
        private_directory(&waiting)?;
        private_directory(directory)?;
        self.swept.call_once(|| sweep(&waiting, now_ms));
        let temporary = waiting.join(uuid::Uuid::now_v7().to_string());
        let made = || -> io::Result<()> {
            if fs::hard_link(from, &temporary).is_err() {
                fs::copy(from, &temporary)?;
            }
            fs::File::open(&temporary)?.sync_all()?;
            fs::rename(&temporary, &path)
        };
        made().map_err(write).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        for directory in [directory, &self.root] {
            fs::File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| Fault::Io("writing an artifact's directory to the disk", error))?;
        }
        Ok(())
    }
}

fn write_through(temporary: &Path, path: &Path, data: &[u8]) -> Result<(), Fault> {
    use std::os::unix::fs::OpenOptionsExt;
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
        file.write_all(data)?;
        file.sync_all()?;
        fs::rename(temporary, path)
    };
    write().map_err(|error| Fault::Io("writing an artifact", error))
}

/// Removes what crashes left behind. Failing at it does no harm: the next start tries again.
fn sweep(waiting: &Path, now_ms: i64) {
    for entry in fs::read_dir(waiting).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = modified
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
            .map(|since| now_ms - since.as_millis() as i64);
        if age.is_some_and(|age| age > limits::STALE_TEMPORARY_MS)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(path = %entry.path().display(), %error, "an old temporary file stays");
        }
    }
}

/// Writes the row; `data` is absent where there is a file.
pub(super) fn insert(
    connection: &Connection,
    id: &ArtifactId,
    mime: &str,
    size: usize,
    data: Option<&[u8]>,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO artifacts (id, mime, size, data) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(rusqlite::params![id.0, mime, size as i64, data])?;
    Ok(())
}

/// The bytes, checked against their name.
pub(super) fn read(connection: &Connection, files: &Files, id: &ArtifactId) -> Result<Artifact, Fault> {
    let row: Option<(String, Option<Vec<u8>>)> = connection
        .prepare_cached("SELECT mime, data FROM artifacts WHERE id = ?1")?
        .query_row([&id.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((mime, inline)) = row else {
        return Err(StoreError::NotFound { what: "artifact", name: id.0.clone() }.into());
    };
    let path = files.path(id);
    let data = match inline {
        Some(data) => data,
        None => fs::read(&path).map_err(|error| {
            let message = format!("The artifact's file cannot be read: {error}. Restore the `artifacts` directory from a backup.");
            StoreError::Database { path: path.display().to_string(), message }
        })?,
    };
    let artifact = Artifact { mime, data };
    if name(&artifact) != *id {
        return Err(Fault::Other(format!(
            "Artifact {} is damaged: its bytes do not match its name. Restore it from a backup.",
            id.0
        )));
    }
    Ok(artifact)
}
