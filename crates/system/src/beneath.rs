//! Opening what a canonical path names, provided that no part of it has become a symbolic link in the meantime.
//!
//! A path is checked once and used later; between the two somebody can put a symbolic link in its way. So the later use goes
//! through these functions, which never follow one.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path},
};

use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};

const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A handle on the directory, good for `…at` calls but not for reading.
pub(crate) fn directory(path: &Path) -> io::Result<OwnedFd> {
    match fs::openat2(CWD, path, PLACE, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(fd) => Ok(fd),
        // Old kernels do not have the call, some containers forbid it.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => step_by_step(path),
        Err(error) => Err(error.into()),
    }
}

fn step_by_step(path: &Path) -> io::Result<OwnedFd> {
    let mut at = fs::openat(CWD, "/", PLACE, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                at = fs::openat(&at, name, PLACE | OFlags::NOFOLLOW, Mode::empty())?;
            }
            Component::ParentDir | Component::Prefix(_) => return Err(rustix::io::Errno::INVAL.into()),
        }
    }
    Ok(at)
}

/// The parent of a canonical path and the last component.
pub(crate) fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{}` does not name a file", path.display()),
        )),
    }
}

/// Opens an existing file of any kind for reading without following a symbolic link and without waiting for the writer of a pipe.
pub(crate) fn open_for_reading(directory: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(fs::openat(directory, name, flags, Mode::empty())?)
}

/// Whether a name is git's own, on file systems that ignore case too.
pub(crate) fn is_git(name: &OsStr) -> bool {
    name.as_bytes().eq_ignore_ascii_case(b".git")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn neither_way_of_opening_follows_a_symbolic_link() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        for open in [directory, step_by_step] {
            assert!(open(&root.join("real/deep")).is_ok());
            assert!(open(&root.join("link/deep")).is_err());
            assert!(open(&root.join("link")).is_err());
            assert!(open(&root.join("missing")).is_err());
        }
    }
}
