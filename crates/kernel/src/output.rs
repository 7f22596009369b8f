//! A cell's output: marks taken out, the ends kept, the whole in a file.

use std::{collections::VecDeque, path::PathBuf};

use tokio::{fs::File, io::AsyncWriteExt};

use crate::limits::{CHUNK, KEPT, SPOOLED};

/// A stretch of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    /// What the worker wrote to say where something stands.
    Mark(String),
}

/// Tells text from marks, however the stream is cut into pieces.
pub(crate) struct Splitter {
    /// NUL, nonce, colon.
    prefix: Vec<u8>,
    pending: Vec<u8>,
}

/// What stands between prefix and closing NUL is short.
const MARK_BYTES: usize = 32;

impl Splitter {
    pub(crate) fn new(nonce: &str) -> Self {
        Splitter { prefix: format!("\0{nonce}:").into_bytes(), pending: Vec::new() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Piece> {
        self.pending.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        loop {
            let Some(at) = memchr::memmem::find(&self.pending, &self.prefix) else {
                // What could be the beginning of a mark waits for the rest.
                let from = self.pending.len().saturating_sub(self.prefix.len() - 1);
                let held = memchr::memchr_iter(0, &self.pending[from..])
                    .map(|n| from + n)
                    .find(|n| self.prefix.starts_with(&self.pending[*n..]))
                    .unwrap_or(self.pending.len());
                let rest = self.pending.split_off(held);
                let text = std::mem::replace(&mut self.pending, rest);
                push(&mut pieces, text);
                return pieces;
            };
            let inner = at + self.prefix.len();
            match memchr::memchr(0, &self.pending[inner..]) {
                Some(length) if length <= MARK_BYTES => {
                    let mark = String::from_utf8_lossy(&self.pending[inner..inner + length]).into_owned();
                    let rest = self.pending.split_off(inner + length + 1);
                    let mut text = std::mem::replace(&mut self.pending, rest);
                    text.truncate(at);
                    push(&mut pieces, text);
                    pieces.push(Piece::Mark(mark));
                }
                None if self.pending.len() - inner <= MARK_BYTES => {
                    let rest = self.pending.split_off(at);
                    let text = std::mem::replace(&mut self.pending, rest);
                    push(&mut pieces, text);
                    return pieces;
                }
                // Somebody writes the nonce by hand: text.
                _ => {
                    let rest = self.pending.split_off(inner);
                    let text = std::mem::replace(&mut self.pending, rest);
                    push(&mut pieces, text);
                }
            }
        }
    }

    /// What was held back, at the end of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}

fn push(pieces: &mut Vec<Piece>, text: Vec<u8>) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// What is kept of one stream of one cell.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: VecDeque<u8>,
    /// Bytes that there were.
    pub(crate) total: u64,
    /// Where the whole goes once it is more than is shown, or more than the head.
    place: Option<PathBuf>,
    /// Bytes of it that an answer shows.
    shown: usize,
    spool: Option<File>,
    /// What the file lacks: a line at a time would be a hop to another thread for each.
    unwritten: Vec<u8>,
    /// Bytes in the file.
    pub(crate) spooled: u64,
    /// Why there is no file though there should be one.
    pub(crate) trouble: Option<String>,
}

impl Kept {
    pub(crate) fn new(place: Option<PathBuf>, shown: usize) -> Self {
        Kept { place, shown, ..Kept::default() }
    }

    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = KEPT - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            return;
        }
        self.spool(rest, false).await;
        let rest = &rest[rest.len().saturating_sub(KEPT)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(KEPT);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// Takes more of the whole in; `last` when nothing comes any more.
    async fn spool(&mut self, rest: &[u8], last: bool) {
        let Some(place) = &self.place else { return };
        if self.trouble.is_some() || self.spooled >= SPOOLED {
            return;
        }
        self.unwritten.extend_from_slice(rest);
        if self.unwritten.len() < CHUNK && !last {
            return;
        }
        let written = async {
            if self.spool.is_none() {
                // What had this name before may be an artifact by now: the new one must be another file.
                let _ = tokio::fs::remove_file(place).await;
                let mut file = File::create_new(place).await?;
                file.write_all(&self.head).await?;
                self.spooled = self.head.len() as u64;
                self.spool = Some(file);
            }
            if let Some(file) = &mut self.spool {
                file.write_all(&self.unwritten).await?;
                self.spooled += self.unwritten.len() as u64;
                self.unwritten.clear();
            }
            Ok::<(), std::io::Error>(())
        }
        .await;
        if let Err(error) = written {
            self.spool = None;
            self.trouble = Some(error.to_string());
        }
    }

    /// Whether more output still counts as a sign of life.
    pub(crate) fn counts(&self) -> bool {
        self.total < SPOOLED
    }

    /// Closes the file; answers where the whole is, if there is one.
    pub(crate) async fn finish(mut self) -> Stored {
        if !self.unwritten.is_empty() || (self.spool.is_none() && self.total > self.shown as u64) {
            self.spool(&[], true).await;
        }
        if let Some(file) = &mut self.spool
            && let Err(error) = file.flush().await
        {
            self.trouble = Some(error.to_string());
        }
        let whole = self.spool.is_some() && self.trouble.is_none();
        Stored {
            file: if whole { self.place } else { None },
            artifact: None,
            file_bytes: self.spooled,
            trouble: self.trouble,
            head: self.head,
            tail: self.tail.into(),
            total: self.total,
        }
    }
}

/// A stream of a cell that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    pub(crate) total: u64,
    /// Where the whole is (its first `file_bytes`), if it was more than is kept here.
    pub(crate) file: Option<PathBuf>,
    /// What the transcript calls the same bytes.
    pub(crate) artifact: Option<String>,
    pub(crate) file_bytes: u64,
    pub(crate) trouble: Option<String>,
}

impl Stored {
    pub(crate) fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Bytes `from..to` of the stream, of those that were kept, and whether some of the range were dropped.
    pub(crate) fn range(&self, from: u64, to: u64) -> (Vec<u8>, bool) {
        let head_end = self.head.len() as u64;
        let tail_start = self.total - self.tail.len() as u64;
        let clamp = |value: u64, low: u64, high: u64| (value.clamp(low, high) - low) as usize;
        let mut bytes = self.head[clamp(from, 0, head_end)..clamp(to, 0, head_end)].to_vec();
        let missing = from.max(head_end) < to.min(tail_start);
        bytes.extend_from_slice(
            &self.tail[clamp(from, tail_start, self.total)..clamp(to, tail_start, self.total)],
        );
        (bytes, missing)
    }

    /// All that was kept as text, with a line where something is missing.
    pub(crate) fn text(&self) -> String {
        match self.dropped() {
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat()).into_owned(),
            dropped => format!(
                "{}\n[… {dropped} bytes left out …]\n{}",
                String::from_utf8_lossy(&self.head),
                String::from_utf8_lossy(&self.tail)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
        let mut out: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (out.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text)) => before.extend(text),
                (_, piece) => out.push(piece),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn marks_are_found_however_the_stream_is_cut(
            texts in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0_u8), Just(b'n'), Just(b':'), any::<u8>()], 0..12), 1..5),
            cuts in prop::collection::vec(1_usize..9, 1..60),
        ) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for (number, text) in texts.iter().enumerate() {
                // Random text that happens to hold a mark is not what this is about.
                let text: Vec<u8> = String::from_utf8_lossy(text).replace("nonce", "").replace('\0', "\0\0").into_bytes();
                if !text.is_empty() {
                    expected.push(Piece::Text(text.clone()));
                }
                expected.push(Piece::Mark(format!("d{number}")));
                stream.extend(text);
                stream.extend(format!("\0nonce:d{number}\0").bytes());
            }
            let mut splitter = Splitter::new("nonce");
            let mut pieces = Vec::new();
            let mut rest = stream.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                pieces.extend(splitter.feed(now));
                rest = later;
            }
            push(&mut pieces, splitter.finish());
            prop_assert_eq!(joined(pieces), joined(expected));
        }

        #[test]
        fn a_range_says_whether_it_is_whole(total in 0_u64..200, kept in 0_u64..80, from in 0_u64..200, to in 0_u64..200) {
            let bytes: Vec<u8> = (0..total).map(|n| n as u8).collect();
            let head = kept.min(total);
            let tail = kept.min(total - head);
            let stored = Stored {
                head: bytes[..head as usize].to_vec(),
                tail: bytes[(total - tail) as usize..].to_vec(),
                total,
                ..Stored::default()
            };
            let (from, to) = (from.min(to).min(total), to.max(from).min(total));
            let (found, missing) = stored.range(from, to);
            let wanted: Vec<u8> = (from..to).filter(|n| *n < head || *n >= total - tail).map(|n| n as u8).collect();
            prop_assert_eq!(missing, wanted.len() as u64 != to - from);
            prop_assert_eq!(found, wanted);
        }
    }
}
