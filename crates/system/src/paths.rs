//! The working-directory jail: which file a path really names, and whether it may be touched.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{File, FileType},
    io,
    os::unix::{ffi::OsStrExt, fs::FileTypeExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_tool::{Access, ToolError};

use crate::{
    beneath,
    limits::{MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_SYMLINKS},
};

/// A working directory and the few other places that were allowed beside it.
///
/// Every path that a caller names goes through [`Workdir::resolve`], which follows all symbolic links (the last component and
/// links to nothing included) before it decides. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workdir {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    root: PathBuf,
    extras: Vec<(PathBuf, Access)>,
    withheld: Vec<PathBuf>,
}

/// What a path really names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Canonical and absolute; no part of it was a symbolic link when it was resolved.
    pub real: PathBuf,
    /// For people and `structured`: relative to the working directory where it lies inside.
    pub shown: String,
    /// What was there.
    pub state: PathState,
    /// Whether a symbolic link was followed on the way, so that the path as given and `shown` differ for a reason.
    pub via_symlink: bool,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Nothing, and perhaps no parent directory either.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something else, in words: "a named pipe", "a socket", "a device".
    Other(&'static str),
}

/// Why a path was refused. The text is for the model: what, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// An empty path.
    #[error("The path is empty. Name a file or directory; `.` is the working directory.")]
    Empty,
    /// A path with a NUL byte in it.
    #[error("The path `{given}` contains a NUL character, which no file name can.")]
    Nul {
        /// As the caller wrote it.
        given: String,
    },
    /// Inside a place that is kept from the tools.
    #[error("`{given}` lies in `{place}`, which is Haft's own and not to be touched through tools.")]
    Withheld {
        /// As the caller wrote it.
        given: String,
        /// The place.
        place: String,
    },
    /// Longer than the system allows.
    #[error("The path `{given}…` is too long: {what}.")]
    TooLong {
        /// The beginning of what the caller wrote.
        given: String,
        /// Which limit it breaks.
        what: String,
    },
    /// `~`, which only a shell expands.
    #[error(
        "`{given}`: `~` is not expanded here. Use a path relative to the working directory, or an absolute one."
    )]
    Tilde {
        /// As the caller wrote it.
        given: String,
    },
    /// Leads out of the working directory and every other allowed place.
    #[error("`{given}` {}outside the working directory `{root}`{also}. {advice}", whither(given, leads_to))]
    Outside {
        /// As the caller wrote it.
        given: String,
        /// Where it leads after symbolic links and `..`.
        leads_to: String,
        /// The working directory.
        root: String,
        /// The other allowed places, in words, or empty.
        also: String,
        /// What to do.
        advice: &'static str,
    },
    /// Inside a place that may only be read.
    #[error(
        "`{given}` lies in `{place}`, which may be read but not written. Write inside the working directory."
    )]
    ReadOnly {
        /// As the caller wrote it.
        given: String,
        /// The place.
        place: String,
    },
    /// Inside a `.git`.
    #[error(
        "`{given}` lies inside `.git`. Files there are git's own and a change to them can run programs (hooks, config), so they are \
         not written directly; use git commands."
    )]
    Git {
        /// As the caller wrote it.
        given: String,
    },
    /// A file used as a directory.
    #[error("`{given}` cannot exist: `{at}` is {what}, not a directory.")]
    NotADirectory {
        /// As the caller wrote it.
        given: String,
        /// The part that is not a directory.
        at: String,
        /// What it is.
        what: &'static str,
    },
    /// `missing/..`
    #[error("`{given}` goes up from `{at}`, which does not exist. Write the path without it.")]
    UpFromNowhere {
        /// As the caller wrote it.
        given: String,
        /// The part that does not exist.
        at: String,
    },
    /// A new file whose name ends with a slash.
    #[error(
        "`{given}` ends with a slash, so it names a directory, and there is none. Leave the slash out to name a file."
    )]
    TrailingSlash {
        /// As the caller wrote it.
        given: String,
    },
    /// Symbolic links that lead in a circle.
    #[error("`{given}` cannot be resolved: symbolic links lead in a circle at `{at}`.")]
    Loop {
        /// As the caller wrote it.
        given: String,
        /// Where it was given up.
        at: String,
    },
    /// The system refuses to look.
    #[error("`{given}` cannot be resolved: `{at}`: {why}.")]
    Unreadable {
        /// As the caller wrote it.
        given: String,
        /// Where it stopped.
        at: String,
        /// What the system said.
        why: String,
    },
    /// The working directory itself is unusable.
    #[error("`{path}` cannot be a working directory: {why}.")]
    Root {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
}

fn whither(given: &str, leads_to: &str) -> String {
    if given == leads_to { "is ".to_owned() } else { format!("leads to `{leads_to}`, which is ") }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Root { .. } => ToolError::operator(error.to_string()),
            other => ToolError::model(other.to_string()),
        }
    }
}

impl Workdir {
    /// The jail around `root`, which must be a directory. Symbolic links in `root` itself are resolved once, here.
    pub fn new(root: impl AsRef<Path>) -> Result<Self, PathError> {
        Ok(Workdir {
            inner: Arc::new(Inner { root: place(root.as_ref())?, extras: Vec::new(), withheld: Vec::new() }),
        })
    }

    /// The same jail with another directory (or file) in it. `Access::Write` allows reading too. A relative path is relative to
    /// the working directory; it must exist.
    pub fn with_extra(self, path: impl AsRef<Path>, access: Access) -> Result<Self, PathError> {
        let path = self.root().join(path);
        let real = path.canonicalize().map_err(|error| root_error(&path, &error))?;
        let mut inner = Arc::unwrap_or_clone(self.inner);
        inner.extras.push((real, access));
        Ok(Workdir { inner: Arc::new(inner) })
    }

    /// The same jail with a directory taken out of it, wherever it lies; places inside it that were added by
    /// [`Workdir::with_extra`] stay. For Haft's own state: a tool that opens and closes the database in this process would also
    /// drop the locks that SQLite holds on it (fcntl(2), "record locks").
    pub fn without(self, path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = self.root().join(path);
        let real = path.canonicalize().map_err(|error| root_error(&path, &error))?;
        let mut inner = Arc::unwrap_or_clone(self.inner);
        inner.withheld.push(real);
        Ok(Workdir { inner: Arc::new(inner) })
    }

    /// Whether a canonical path lies in a place that was taken out. Walks leave such directories out.
    pub fn withholds(&self, real: &Path) -> bool {
        self.inner.withheld.iter().any(|place| real.starts_with(place))
            && !self.inner.extras.iter().any(|(place, _)| real.starts_with(place))
    }

    /// The working directory, canonical.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Finds out what `path` really names and whether it may be touched that way.
    ///
    /// Relative paths start at the working directory; `~` is not expanded; `..` goes up from where a symbolic link led, as the
    /// system does it. The target may not exist yet. Writing inside `.git` is refused.
    pub fn resolve(&self, path: impl AsRef<Path>, access: Access) -> Result<ResolvedPath, PathError> {
        let path = path.as_ref();
        let given = path.display().to_string();
        check_form(path)?;
        let mut walk = Walk::new(self.root());
        if let Err(stop) = walk.follow(path) {
            // What lies outside is nobody's business, not even whether it exists.
            if self.access_at(&walk.at).is_none() {
                return Err(self.outside(given, &walk.at));
            }
            return Err(stop.explain(given, self.show(&walk.at)));
        }
        let Some((place, allowed)) = self.access_at(&walk.at) else {
            return Err(self.outside(given, &walk.at));
        };
        if self.withholds(&walk.at) {
            return Err(PathError::Withheld { given, place: walk.at.display().to_string() });
        }
        if walk.at.as_os_str().len() > MAX_PATH_BYTES {
            return Err(too_long(
                &given,
                format!("with symbolic links followed it has more than {MAX_PATH_BYTES} bytes"),
            ));
        }
        if path.starts_with("~") && walk.state == PathState::Missing {
            return Err(PathError::Tilde { given });
        }
        if access == Access::Write {
            if allowed == Access::Read {
                return Err(PathError::ReadOnly { given, place: place.display().to_string() });
            }
            let below = walk.at.strip_prefix(place).unwrap_or(&walk.at);
            if walk.through_git_link || below.components().any(|part| beneath::is_git(part.as_os_str())) {
                return Err(PathError::Git { given });
            }
            if walk.state == PathState::Missing && wants_directory(path) {
                return Err(PathError::TrailingSlash { given });
            }
        }
        Ok(ResolvedPath {
            shown: self.show(&walk.at),
            real: walk.at,
            state: walk.state,
            via_symlink: walk.links > 0,
        })
    }

    /// How a path is shown: relative to the working directory where it lies inside (`.` for the directory itself), else as it is.
    /// Bytes that are not UTF-8 become `\u{fffd}`.
    pub fn show(&self, path: &Path) -> String {
        match path.strip_prefix(self.root()) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// The allowed place that holds a canonical path, and what is allowed there. Of several, one that may be written.
    fn access_at(&self, real: &Path) -> Option<(&Path, Access)> {
        if real.starts_with(self.root()) {
            return Some((self.root(), Access::Write));
        }
        let mut holding = self.inner.extras.iter().filter(|(place, _)| real.starts_with(place));
        let first = holding.clone().next()?;
        let best = holding.find(|(_, access)| *access == Access::Write).unwrap_or(first);
        Some((&best.0, best.1))
    }

    fn outside(&self, given: String, at: &Path) -> PathError {
        let places: Vec<String> =
            self.inner.extras.iter().map(|(place, _)| format!("`{}`", place.display())).collect();
        let also = if places.is_empty() {
            String::new()
        } else {
            format!(" and the other allowed places ({})", places.join(", "))
        };
        PathError::Outside {
            given,
            leads_to: at.display().to_string(),
            root: self.root().display().to_string(),
            also,
            advice: "Use a path inside it; a person can allow more in the configuration.",
        }
    }
}

impl ResolvedPath {
    /// Opens what stands there for reading. Fails if a part of the path has become a symbolic link since it was resolved, so
    /// that nobody can swap one in between the check and the use. Never waits for the other end of a pipe.
    pub fn open(&self) -> io::Result<File> {
        let Some(name) = self.real.file_name() else {
            return Ok(File::from(beneath::open_for_reading(
                beneath::directory(&self.real)?,
                OsStr::new("."),
            )?));
        };
        let (parent, _) = beneath::split(&self.real)?;
        Ok(File::from(beneath::open_for_reading(beneath::directory(parent)?, name)?))
    }
}

fn place(path: &Path) -> Result<PathBuf, PathError> {
    let real = path.canonicalize().map_err(|error| root_error(path, &error))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(PathError::Root { path: path.display().to_string(), why: "it is not a directory".to_owned() })
    }
}

fn root_error(path: &Path, error: &io::Error) -> PathError {
    PathError::Root { path: path.display().to_string(), why: plain(error) }
}

/// An error of the system without its number, which tells a reader nothing.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

fn too_long(given: &str, what: String) -> PathError {
    PathError::TooLong { given: given.chars().take(60).collect(), what }
}

fn check_form(path: &Path) -> Result<(), PathError> {
    let bytes = path.as_os_str().as_bytes();
    let given = || path.display().to_string();
    if bytes.is_empty() {
        return Err(PathError::Empty);
    }
    if bytes.contains(&0) {
        return Err(PathError::Nul { given: given().replace('\0', "\u{2400}") });
    }
    if bytes.len() > MAX_PATH_BYTES {
        return Err(too_long(
            &given(),
            format!("it has {} bytes, at most {MAX_PATH_BYTES} are possible", bytes.len()),
        ));
    }
    if let Some(name) = bytes.split(|byte| *byte == b'/').find(|name| name.len() > MAX_NAME_BYTES) {
        let what = format!("a name in it has {} bytes, at most {MAX_NAME_BYTES} are possible", name.len());
        return Err(too_long(&given(), what));
    }
    Ok(())
}

fn wants_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes == b"."
}

enum Part {
    Up,
    Name(OsString),
}

enum Stop {
    NotADirectory(&'static str),
    UpFromNowhere,
    Loop,
    Unreadable(String),
}

impl Stop {
    fn explain(self, given: String, at: String) -> PathError {
        match self {
            Stop::NotADirectory(what) => PathError::NotADirectory { given, at, what },
            Stop::UpFromNowhere => PathError::UpFromNowhere { given, at },
            Stop::Loop => PathError::Loop { given, at },
            Stop::Unreadable(why) => PathError::Unreadable { given, at, why },
        }
    }
}

/// Goes along a path as the system would, one component at a time.
struct Walk {
    /// Canonical so far; after an error, where it happened.
    at: PathBuf,
    state: PathState,
    links: usize,
    through_git_link: bool,
}

impl Walk {
    fn new(root: &Path) -> Self {
        Walk { at: root.to_owned(), state: PathState::Directory, links: 0, through_git_link: false }
    }

    fn follow(&mut self, path: &Path) -> Result<(), Stop> {
        let mut rest = VecDeque::new();
        self.enqueue(path, &mut rest);
        while let Some(part) = rest.pop_front() {
            match (part, self.state) {
                (_, PathState::File) => return Err(Stop::NotADirectory("a file")),
                (_, PathState::Other(what)) => return Err(Stop::NotADirectory(what)),
                (Part::Up, PathState::Missing) => return Err(Stop::UpFromNowhere),
                (Part::Up, PathState::Directory) => {
                    self.at.pop();
                }
                (Part::Name(name), PathState::Missing) => self.at.push(name),
                (Part::Name(name), PathState::Directory) => self.enter(name, &mut rest)?,
            }
        }
        match self.state {
            PathState::File if wants_directory(path) => Err(Stop::NotADirectory("a file")),
            PathState::Other(what) if wants_directory(path) => Err(Stop::NotADirectory(what)),
            _ => Ok(()),
        }
    }

    /// One component below a directory that is there.
    fn enter(&mut self, name: OsString, rest: &mut VecDeque<Part>) -> Result<(), Stop> {
        self.at.push(&name);
        let kind = match self.at.symlink_metadata() {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.state = PathState::Missing;
                return Ok(());
            }
            Err(error) => return Err(Stop::Unreadable(plain(&error))),
        };
        if !kind.is_symlink() {
            self.state = state_of(kind);
            return Ok(());
        }
        self.links += 1;
        if self.links > MAX_SYMLINKS {
            return Err(Stop::Loop);
        }
        let target = self.at.read_link().map_err(|error| Stop::Unreadable(plain(&error)))?;
        self.through_git_link |= beneath::is_git(&name);
        self.at.pop();
        self.enqueue(&target, rest);
        Ok(())
    }

    /// Puts the components of `path` in front of the rest; an absolute one starts over at the top.
    fn enqueue(&mut self, path: &Path, rest: &mut VecDeque<Part>) {
        let bytes = path.as_os_str().as_bytes();
        if bytes.starts_with(b"/") {
            self.at = PathBuf::from("/");
            self.state = PathState::Directory;
        }
        for name in bytes.split(|byte| *byte == b'/').rev() {
            match name {
                b"" | b"." => {}
                b".." => rest.push_front(Part::Up),
                name => rest.push_front(Part::Name(OsStr::from_bytes(name).to_owned())),
            }
        }
    }
}

fn state_of(kind: FileType) -> PathState {
    if kind.is_file() {
        PathState::File
    } else if kind.is_dir() {
        PathState::Directory
    } else if kind.is_fifo() {
        PathState::Other("a named pipe")
    } else if kind.is_socket() {
        PathState::Other("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        PathState::Other("a device")
    } else {
        PathState::Other("neither a file nor a directory")
    }
}
