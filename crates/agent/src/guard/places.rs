use std::path::{Component, Path, PathBuf};

use haft_system::{PathError, Workdir};
use haft_tool::Access;

/// A path that a call touches, in the forms that rules are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// For people.
    pub(crate) shown: String,
    /// What happens to it.
    pub(crate) access: Access,
    /// Where it leads after symbolic links, absolute. `None` where that is not known.
    pub(crate) real: Option<PathBuf>,
    /// As it is written, made absolute, links not followed. `None` where it is not known before the shell runs.
    pub(crate) written: Option<PathBuf>,
    /// Whether the working directory (with the places added to it) holds it for this access.
    pub(crate) inside: bool,
}

impl Place {
    /// Looks where `path` leads.
    pub(crate) fn of(workdir: &Workdir, path: &Path, access: Access) -> Self {
        let written = Some(plain(&workdir.root().join(path)));
        let (real, inside) = match workdir.resolve(path, access) {
            Ok(resolved) => (Some(resolved.real), true),
            Err(PathError::Outside { leads_to, .. }) => (Some(PathBuf::from(leads_to)), false),
            Err(_) => (None, false),
        };
        Place { shown: path.display().to_string(), access, real, written, inside }
    }

    /// A path that is not known before the shell runs.
    pub(crate) fn unknown(shown: String, access: Access) -> Self {
        Place { shown, access, real: None, written: None, inside: false }
    }

    pub(crate) fn forms(&self) -> impl Iterator<Item = &Path> {
        self.real.iter().chain(self.written.iter()).map(PathBuf::as_path)
    }
}

/// `.` and `..` taken out by their names alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
