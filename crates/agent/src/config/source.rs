//! Where settings stand: which files there are, and the bytes in them.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use haft_system::Environment;

use super::ConfigError;
use crate::limits::CONFIG_FILE;

/// The name of the file, in a project and in the person's own directory.
pub(crate) const FILE_NAME: &str = "haft.toml";

/// A file with settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Canonical.
    pub(crate) path: PathBuf,
    /// For people: relative to the working directory where it is inside, else with `~`, else absolute.
    pub(crate) shown: String,
    pub(crate) text: String,
    /// Of the bytes, BLAKE3 in hex.
    pub(crate) hash: String,
    /// Whether it is a project's, and so needs trust.
    pub(crate) of_project: bool,
}

impl Source {
    /// The directory it is in.
    pub(crate) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// The person's file, if there is one, then the project's from the outermost to the nearest: a later one wins.
pub(crate) fn find(environment: &Environment, directory: &Path) -> Result<Vec<Source>, ConfigError> {
    let mut sources: Vec<Source> = Vec::new();
    let own = environment.config_dir().map(|directory| directory.join(FILE_NAME));
    let project =
        project_directories(directory).into_iter().map(|directory| (directory.join(FILE_NAME), true));
    for (path, of_project) in own.map(|path| (path, false)).into_iter().chain(project) {
        if let Some(source) = read(environment, directory, &path, of_project)?
            && !sources.iter().any(|known| known.path == source.path)
        {
            sources.push(source);
        }
    }
    Ok(sources)
}

/// The directory and its ancestors up to the root of the repository that it is in, outermost first; without a repository the
/// directory alone.
pub(crate) fn project_directories(directory: &Path) -> Vec<PathBuf> {
    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let root = directory.ancestors().find(|ancestor| ancestor.join(".git").exists());
    let Some(root) = root else { return vec![directory] };
    let mut found: Vec<PathBuf> =
        directory.ancestors().take_while(|ancestor| ancestor.starts_with(root)).map(Path::to_owned).collect();
    found.reverse();
    found
}

fn read(
    environment: &Environment,
    directory: &Path,
    path: &Path,
    of_project: bool,
) -> Result<Option<Source>, ConfigError> {
    let shown = shown(environment, directory, path);
    let wrong = |why: String| ConfigError::Read { file: shown.clone(), why };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        // A link that leads nowhere was meant to lead somewhere.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if !metadata.is_file() {
        return Err(wrong("it is not a file".into()));
    }
    let canonical = fs::canonicalize(path).map_err(|error| wrong(error.to_string()))?;
    let file = fs::File::open(&canonical).map_err(|error| wrong(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(CONFIG_FILE + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > CONFIG_FILE {
        return Err(wrong(format!("it is larger than {CONFIG_FILE} bytes")));
    }
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".into()))?;
    // A byte order mark is allowed by TOML and not known to its parser.
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    Ok(Some(Source { path: canonical, shown, text, hash, of_project }))
}

/// A path for people.
pub(crate) fn shown(environment: &Environment, directory: &Path, path: &Path) -> String {
    if let Ok(inside) = path.strip_prefix(fs::canonicalize(directory).as_deref().unwrap_or(directory)) {
        return inside.display().to_string();
    }
    match environment.home().and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
