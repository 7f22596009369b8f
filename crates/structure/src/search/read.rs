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

/// How a text that was searched in another form is written back.
#[derive(Debug)]
pub(crate) enum Recode {
    /// As the file it was decoded from. Its own text is empty.
    Utf16(TextFile),
    /// With carriage returns alone for line ends.
    Returns,
}

impl Recode {
    /// A new text in the file's own form.
    pub(crate) fn encode(&self, text: Vec<u8>) -> Result<Vec<u8>, String> {
        match self {
            Recode::Utf16(file) => {
                let text = std::str::from_utf8(&text)
                    .map_err(|error| format!("the new text is not UTF-8: {error}"))?;
                file.encode(text).map_err(|error| error.to_string())
            }
            Recode::Returns => {
                let returns = |byte| if byte == b'\n' { b'\r' } else { byte };
                Ok(text.into_iter().map(returns).collect())
            }
        }
    }
}

/// The text to search: the bytes themselves, whatever they are, except for UTF-16, which no grammar reads, and lines that end with a
/// carriage return alone, which most grammars take for no ends at all.
pub(crate) fn searched(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, Option<Recode>), String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return match TextFile::parse(bytes) {
            Ok(mut file) => {
                let text = std::mem::take(&mut file.text);
                Ok((Cow::Owned(text.into_bytes()), Some(Recode::Utf16(file))))
            }
            Err(_) => Err("not text: it begins like UTF-16 and is not".to_owned()),
        };
    }
    if memchr::memchr(b'\n', bytes).is_none() && memchr::memchr(b'\r', bytes).is_some() {
        // As many bytes, so that places stay the same.
        let lines = bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte });
        return Ok((Cow::Owned(lines.collect()), Some(Recode::Returns)));
    }
    Ok((Cow::Borrowed(bytes), None))
}

/// Whether this is no text at all. A grammar would make errors of it, and an ending (`.ts`, `.m`, `.v`) says little.
pub(crate) fn is_binary(text: &[u8]) -> bool {
    memchr::memchr(0, &text[..text.len().min(8 << 10)]).is_some()
}
