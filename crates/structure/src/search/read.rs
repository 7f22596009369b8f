//! The bytes of a file, as they are searched.

use std::{
    borrow::Cow,
    fs::OpenOptions,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use haft_system::TextFile;
use rustix::fs::OFlags;

use crate::limits::MAX_FILE_BYTES;

/// Small enough to stay in the processor's cache, large enough for nearly every source file.
const FIRST_READ: usize = 128 << 10;

/// A buffer that is used for one file after another.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// Reads a whole regular file. A symbolic link in the file's place is refused: it was a file when it was listed.
    pub(crate) fn read(&mut self, path: &Path) -> Result<&[u8], String> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
        let mut file = opened.map_err(|error| reason(&error))?;
        if self.bytes.len() < FIRST_READ {
            self.bytes.resize(FIRST_READ, 0);
        }
        self.len = 0;
        loop {
            match file.read(&mut self.bytes[self.len..]) {
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(reason(&error)),
            }
            // A regular file gives less than was asked for only at its end.
            if self.len < self.bytes.len() {
                return Ok(&self.bytes[..self.len]);
            }
            let size = file.metadata().map_err(|error| reason(&error))?.len();
            if size > MAX_FILE_BYTES || self.len as u64 > MAX_FILE_BYTES {
                return Err(too_large(size));
            }
            let room = (size as usize + 1).max(self.bytes.len() * 2).min(MAX_FILE_BYTES as usize + 1);
            self.bytes.resize(room, 0);
        }
    }
}

fn too_large(size: u64) -> String {
    format!("too large: {} MB, at most {} MB are parsed", size >> 20, MAX_FILE_BYTES >> 20)
}

/// What the system said, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words);
    format!("unreadable: {}", words.to_lowercase())
}

/// The text to search: the bytes themselves, whatever they are, except for UTF-16, which no grammar reads.
pub(crate) fn searched(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, Option<TextFile>), String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return match TextFile::parse(bytes) {
            Ok(mut file) => {
                let text = std::mem::take(&mut file.text);
                Ok((Cow::Owned(text.into_bytes()), Some(file)))
            }
            Err(_) => Err("not text: it begins like UTF-16 and is not".to_owned()),
        };
    }
    Ok((Cow::Borrowed(bytes), None))
}

/// Whether this is no text at all. A grammar would make errors of it, and an ending (`.ts`, `.m`, `.v`) says little.
pub(crate) fn is_binary(text: &[u8]) -> bool {
    memchr::memchr(0, &text[..text.len().min(8 << 10)]).is_some()
}
