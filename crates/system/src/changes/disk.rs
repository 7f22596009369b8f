//! The steps that change the disk, one function each, with a place where a test can make any of them fail.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::{
    fs::{
        self, Access, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, StatxAttributes, StatxFlags, Uid,
        XattrFlags,
    },
    io::{Errno, retry_on_intr},
};
use serde::{Deserialize, Serialize};

use crate::{beneath, limits::MAX_FILE_BYTES};

/// Called before a step with its number (from 0, per [`super::Changes`]) and its name.
pub type StepHook = Arc<dyn Fn(usize, &'static str) -> io::Result<()> + Send + Sync>;

#[derive(Default)]
pub(super) struct Disk {
    hook: Option<StepHook>,
    steps: AtomicUsize,
}

/// What `stat` says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) size: u64,
    pub(super) modified_ns: i128,
    /// Changes with every change of content, mode, owner, links and attributes.
    pub(super) changed_ns: i128,
}

/// What a file has apart from content and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dress {
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// How dressing a new file went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dressed {
    Fully,
    /// The owner or group could not be given.
    NotItsOwner,
}

impl Seen {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    fn of(stat: &fs::Stat) -> Self {
        let ns =
            |seconds: i64, nanoseconds: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        #[allow(
            clippy::unnecessary_cast,
            clippy::useless_conversion,
            clippy::cast_lossless,
            reason = "the types of these fields differ between architectures"
        )]
        Seen {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            owner: stat.st_uid,
            group: stat.st_gid,
            size: stat.st_size as u64,
            modified_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

/// What a name in a directory stands for, if anything. Links are not followed.
pub(super) fn look(directory: impl AsFd, name: &OsStr) -> io::Result<Option<Seen>> {
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Seen::of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn look_at(file: impl AsFd) -> io::Result<Seen> {
    Ok(Seen::of(&fs::fstat(file)?))
}

/// Whether a file is itself a mount point (a single file mounted into a container), so that nothing can be renamed over it.
pub(super) fn is_mount_point(directory: impl AsFd, name: &OsStr) -> bool {
    fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE).is_ok_and(|stat| {
        stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
            && stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    })
}

/// Whether this process may write there, by its effective user.
pub(super) fn may_write(directory: impl AsFd, name: &OsStr) -> bool {
    // Where the question cannot be asked, the write itself will tell.
    !matches!(
        fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS),
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM)
    )
}

/// Reads a whole regular file and says what it was while it was read.
pub(super) fn read(directory: impl AsFd, name: &OsStr) -> io::Result<(Vec<u8>, Seen, OwnedFd)> {
    let mut file = File::from(beneath::open_for_reading(directory, name)?);
    let mut seen = look_at(&file)?;
    if seen.kind() != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if seen.size > MAX_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has {} bytes, and files above {MAX_FILE_BYTES} bytes are not changed", seen.size),
        ));
    }
    // A file that is being written is read again, a few times.
    for _ in 0..3 {
        let mut bytes = Vec::with_capacity(usize::try_from(seen.size).unwrap_or(0));
        (&mut file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        let now = look_at(&file)?;
        if now == seen && bytes.len() as u64 == now.size {
            return Ok((bytes, seen, file.into()));
        }
        seen = now;
        io::Seek::rewind(&mut file)?;
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is being written by somebody else right now"))
}

impl Dress {
    /// Reads what an open file wears.
    pub(super) fn of(file: impl AsFd, seen: &Seen) -> io::Result<Self> {
        Ok(Dress {
            mode: seen.mode & 0o7777,
            owner: seen.owner,
            group: seen.group,
            attributes: attributes(file)?,
        })
    }
}

/// Where Linux keeps a file's POSIX access list.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Attributes that the system keeps by itself, or that must not survive a change of content.
fn not_copied(name: &[u8]) -> bool {
    name == b"security.capability" || name == b"security.ima" || name == b"security.evm"
}

fn attributes(file: impl AsFd) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let unsupported = |error: Errno| matches!(error, Errno::NOTSUP | Errno::NOSYS | Errno::PERM);
    let size = match fs::flistxattr_query(&file) {
        Ok(size) => size,
        Err(error) if unsupported(error) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut names = vec![0u8; size];
    let size = if size == 0 { 0 } else { fs::flistxattr(&file, &mut names[..])? };
    let mut attributes = Vec::new();
    for name in names[..size].split(|byte| *byte == 0).filter(|name| !name.is_empty() && !not_copied(name)) {
        let key = OsStr::from_bytes(name);
        let size = match fs::fgetxattr_query(&file, key) {
            Ok(size) => size,
            Err(error) if unsupported(error) || error == Errno::NODATA => continue,
            Err(error) => return Err(error.into()),
        };
        let mut value = vec![0u8; size];
        let size = if size == 0 { 0 } else { fs::fgetxattr(&file, key, &mut value[..])? };
        value.truncate(size);
        attributes.push((name.to_vec(), value));
    }
    Ok(attributes)
}

impl Disk {
    pub(super) fn with_hook(hook: StepHook) -> Self {
        Disk { hook: Some(hook), steps: AtomicUsize::new(0) }
    }

    pub(super) fn step(&self, name: &'static str) -> io::Result<()> {
        match &self.hook {
            None => Ok(()),
            Some(hook) => hook(self.steps.fetch_add(1, Ordering::Relaxed), name),
        }
    }

    /// A new file with this content, not yet synced. `mode` is subject to the umask.
    pub(super) fn create(
        &self,
        directory: impl AsFd,
        name: &OsStr,
        bytes: &[u8],
        mode: u32,
    ) -> io::Result<File> {
        self.step("create")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| fs::openat(&directory, name, flags, Mode::from_raw_mode(mode)))?;
        let mut file = File::from(fd);
        self.write_through(&mut file, bytes)?;
        Ok(file)
    }

    /// Two pieces, so that a test can stop in the middle of a file.
    fn write_through(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.step("write the first half")?;
        file.write_all(first)?;
        self.step("write the second half")?;
        file.write_all(second)
    }

    /// Writes over an existing file, which keeps its inode. The old content must be safe elsewhere.
    pub(super) fn overwrite(
        &self,
        directory: impl AsFd,
        name: &OsStr,
        expected: Option<&Seen>,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.step("open to write in place")?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut file = File::from(retry_on_intr(|| fs::openat(&directory, name, flags, Mode::empty()))?);
        let old = look_at(&file)?;
        if expected.is_some_and(|expected| (expected.device, expected.inode) != (old.device, old.inode)) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another file has taken its place"));
        }
        self.write_through(&mut file, bytes)?;
        self.step("cut to length")?;
        retry_on_intr(|| fs::ftruncate(&file, bytes.len() as u64))?;
        differ_in_time(&file, old.modified_ns)?;
        self.sync(&file)
    }

    /// Gives a new file the mode, owner and attributes of the one it stands for.
    pub(super) fn dress(&self, file: &File, dress: &Dress) -> io::Result<Dressed> {
        self.step("set owner and mode")?;
        let now = look_at(file)?;
        let (mut mode, mut dressed) = (dress.mode, Dressed::Fully);
        if (now.owner, now.group) != (dress.owner, dress.group) {
            match fs::fchown(file, Some(Uid::from_raw(dress.owner)), Some(Gid::from_raw(dress.group))) {
                Ok(()) => {}
                Err(Errno::PERM | Errno::NOTSUP | Errno::INVAL) => {
                    // Never somebody else's set-user-id bit on a file of ours.
                    mode &= 0o777;
                    dressed = Dressed::NotItsOwner;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // A new file inherits the access list that its directory prescribes; the old one may have had none.
        if !dress.attributes.iter().any(|(name, _)| name == ACCESS_LIST.as_bytes()) {
            match fs::fremovexattr(file, ACCESS_LIST) {
                Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for (name, value) in &dress.attributes {
            match fs::fsetxattr(file, OsStr::from_bytes(name), value, XattrFlags::empty()) {
                Ok(()) | Err(Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Last: a change of owner clears the set-user-id bit, and an access list changes the group bits.
        fs::fchmod(file, Mode::from_raw_mode(mode))?;
        Ok(dressed)
    }

    pub(super) fn sync(&self, file: &impl AsFd) -> io::Result<()> {
        self.step("sync")?;
        retry_on_intr(|| fs::fsync(file))?;
        Ok(())
    }

    pub(super) fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.step("sync directory")?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            match beneath::directory(path).map(|place| fs::openat(&place, ".", flags, Mode::empty())) {
                Ok(Ok(directory)) => directory,
                // A directory that may be written but not listed.
                Ok(Err(Errno::ACCESS)) => return Ok(()),
                Ok(Err(error)) => return Err(error.into()),
                Err(error) => return Err(error),
            };
        match retry_on_intr(|| fs::fsync(&directory)) {
            // Some file systems do not know it.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames within a directory. Unless `over`, an existing target is an error of the kind `AlreadyExists`.
    pub(super) fn rename(
        &self,
        directory: impl AsFd,
        from: &OsStr,
        to: &OsStr,
        over: bool,
    ) -> io::Result<()> {
        self.step("rename")?;
        let plain = || retry_on_intr(|| fs::renameat(&directory, from, &directory, to));
        let result = if over {
            plain()
        } else {
            let flags = RenameFlags::NOREPLACE;
            match retry_on_intr(|| fs::renameat_with(&directory, from, &directory, to, flags)) {
                // Not every file system has it; the caller has looked just before.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => plain(),
                other => other,
            }
        };
        Ok(result?)
    }

    /// Removes a name; one that is not there is fine.
    pub(super) fn remove(&self, directory: impl AsFd, name: &OsStr) -> io::Result<()> {
        self.step("remove")?;
        match retry_on_intr(|| fs::unlinkat(&directory, name, AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory; says whether it was not there before.
    pub(super) fn make_directory(&self, path: &Path) -> io::Result<bool> {
        self.step("make directory")?;
        let (parent, name) = beneath::split(path)?;
        match fs::mkdirat(beneath::directory(parent)?, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a directory if it is empty; one that is gone or has something in it is fine.
    pub(super) fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.step("remove directory")?;
        let (parent, name) = beneath::split(path)?;
        let parent = match beneath::directory(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        match fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Build tools and editors notice a change by its time, so it must differ even when both were written within one tick of the clock.
pub(super) fn differ_in_time(file: &File, before_ns: i128) -> io::Result<()> {
    let now = look_at(file)?;
    if now.modified_ns == before_ns {
        let at = now.modified_ns + 1_000_000;
        let time = fs::Timespec {
            tv_sec: (at.div_euclid(1_000_000_000)) as _,
            tv_nsec: (at.rem_euclid(1_000_000_000)) as _,
        };
        let unchanged = fs::Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
        fs::futimens(file, &fs::Timestamps { last_access: unchanged, last_modification: time })?;
    }
    Ok(())
}

const TEMP_MARK: &str = ".haft-";
const TEMP_END: &str = ".tmp";

/// Whether a file of this name is the new content of another, which a commit is about to put into place.
pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".")
        && name.ends_with(TEMP_END.as_bytes())
        && name.windows(TEMP_MARK.len()).any(|part| part == TEMP_MARK.as_bytes())
}

/// The hidden name beside a target that holds its new content until it is renamed into place.
pub(super) fn temp_name(target: &OsStr, id: &str) -> OsString {
    let suffix = format!("{TEMP_MARK}{id}{TEMP_END}");
    let room = crate::limits::MAX_NAME_BYTES - 1 - suffix.len();
    let name = target.as_bytes();
    let mut kept = name.len().min(room);
    // Not in the middle of a UTF-8 character: some file systems refuse such names.
    while kept > 0 && kept < name.len() && name[kept] & 0xC0 == 0x80 {
        kept -= 1;
    }
    let mut temp = vec![b'.'];
    temp.extend_from_slice(&name[..kept]);
    temp.extend_from_slice(suffix.as_bytes());
    OsString::from_vec(temp)
}
