//! Which project files a person has said yes to, by content.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use haft_system::{Environment, clock};
use serde::{Deserialize, Serialize};

use super::{ConfigError, source::Source};

/// The list, as it stands in `trust.json` in the state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trusted {
    files: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    /// BLAKE3 of the content, in hex. A changed file has to be trusted again.
    hash: String,
    /// When, in milliseconds since 1970.
    trusted_ms: i64,
}

impl Trusted {
    /// Reads the list; a missing one is empty.
    pub(crate) fn load(environment: &Environment) -> Result<Self, ConfigError> {
        let Some(file) = file(environment) else { return Ok(Trusted::default()) };
        let wrong = |why: String| ConfigError::Trust { file: file.clone(), why };
        let metadata = match fs::metadata(&file) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Trusted::default()),
            Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
        };
        if metadata.mode() & 0o022 != 0 {
            return Err(wrong(
                "can be written by others and is not believed; make it private with `chmod 600`".into(),
            ));
        }
        let text = fs::read_to_string(&file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        serde_json::from_str(&text)
            .map_err(|error| wrong(format!("is damaged ({error}); remove it and trust again what you trust")))
    }

    pub(crate) fn holds(&self, source: &Source) -> bool {
        self.files.iter().any(|entry| entry.path == source.path && entry.hash == source.hash)
    }

    /// Replaces what was trusted at this path before.
    pub(crate) fn add(&mut self, source: &Source) {
        self.remove(source);
        self.files.push(Entry {
            path: source.path.clone(),
            hash: source.hash.clone(),
            trusted_ms: clock::now_ms(),
        });
    }

    /// Whether there was something to remove.
    pub(crate) fn remove(&mut self, source: &Source) -> bool {
        let before = self.files.len();
        self.files.retain(|entry| entry.path != source.path);
        self.files.len() != before
    }

    /// Writes the list, readable by its owner alone, whole or not at all.
    pub(crate) fn save(&self, environment: &Environment) -> Result<(), ConfigError> {
        let file = file(environment).ok_or(ConfigError::NoState)?;
        self.write(&file).map_err(|error| ConfigError::Trust {
            file: file.clone(),
            why: format!("cannot be written: {error}"),
        })
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let directory = file.parent().unwrap_or(Path::new("/"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let beside = directory.join(format!(".trust-{}", uuid::Uuid::now_v7().simple()));
        let written = (|| {
            let mut target = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            target.write_all(&serde_json::to_vec_pretty(self)?)?;
            target.sync_all()?;
            fs::rename(&beside, file)?;
            fs::File::open(directory)?.sync_all()
        })();
        if written.is_err() {
            // Nothing more can be done about a file that cannot be removed either; the error says what went wrong.
            let _ = fs::remove_file(&beside);
        }
        written
    }
}

fn file(environment: &Environment) -> Option<PathBuf> {
    environment.state_dir().map(|directory| directory.join("trust.json"))
}
