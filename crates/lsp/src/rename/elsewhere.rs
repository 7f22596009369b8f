//! Names that a rename did not reach: a server knows its own root, and of that what it takes to be part of the project.

use std::path::{Path, PathBuf};

use crate::{
    limits::{DOCUMENT_BYTES, RESCANNED_FILES},
    servers::{ServerSpec, is_foreign},
};

/// Files of a server's languages below `workdir` with `name` as a word, each with the first line (from 1) that it is on. Blocks.
pub(super) fn with_word(workdir: &Path, spec: &ServerSpec, name: &str) -> Vec<(PathBuf, usize)> {
    if name.is_empty() {
        return Vec::new();
    }
    let walk = ignore::WalkBuilder::new(workdir)
        .require_git(false)
        .filter_entry(|entry| {
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            !(is_directory && is_foreign(entry.file_name().to_str()))
        })
        .sort_by_file_path(Ord::cmp)
        .build();
    let files = walk.flatten().take(RESCANNED_FILES).filter(|entry| {
        entry.file_type().is_some_and(|kind| kind.is_file())
            && spec.language_of(entry.path()).is_some()
            && entry.metadata().is_ok_and(|metadata| metadata.len() <= DOCUMENT_BYTES)
    });
    files
        .filter_map(|entry| {
            let text = std::fs::read(entry.path()).ok()?;
            let at = word(&text, name.as_bytes())?;
            let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
            Some((entry.into_path(), line))
        })
        .collect()
}

/// Where `name` stands in a text and is not a part of a longer word.
fn word(text: &[u8], name: &[u8]) -> Option<usize> {
    let is_part = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80)
    };
    memchr::memmem::find_iter(text, name).find(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        !is_part(before) && !is_part(text.get(at + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn only_whole_words_count() {
        let found = |text: &str| word(text.as_bytes(), b"name");
        assert_eq!(found("rename names name_ éname name"), Some(26));
        assert_eq!(found("rename"), None);
        assert_eq!(found("name"), Some(0));
    }
}
