//! Text under line numbers; files too large to hold are streamed.

use std::{
    fs::File,
    io::{self, BufReader, Read},
};

use haft_system::{Encoding, LineEnding, ResolvedPath, TextFile};
use haft_tool::{Output, ToolError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Range, binary};
use crate::{
    limits::{COUNT_BYTES, READ_BYTES, READ_LINE_CHARS},
    lines::{self, count, cut, size},
};

/// The first `most` bytes.
pub(super) fn head(file: &mut File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is left of the file, behind what was already read, up to `most` bytes in all.
pub(super) fn whole(file: File, mut bytes: Vec<u8>, most: u64) -> io::Result<Vec<u8>> {
    file.take(most.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Lines on their way into an answer.
struct Page {
    /// 1-based.
    first: u64,
    lines: Vec<String>,
    bytes: usize,
    /// Numbers of lines that were too long.
    cut: Vec<u64>,
    /// The answer is as large as it may be, although more lines were asked for.
    full: bool,
}

impl Page {
    fn new(range: Range) -> Self {
        Page { first: range.offset, lines: Vec::new(), bytes: 0, cut: Vec::new(), full: false }
    }

    fn next(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    /// Takes a line that is already cut to size; answers whether there was room.
    fn push(&mut self, line: String, was_cut: bool) -> bool {
        let bytes = line.len() + 8;
        if !self.lines.is_empty() && self.bytes + bytes > READ_BYTES {
            self.full = true;
            return false;
        }
        if was_cut {
            self.cut.push(self.next());
        }
        self.bytes += bytes;
        self.lines.push(line);
        true
    }

    fn text(&self) -> String {
        lines::numbered(self.first as usize, self.lines.iter().map(String::as_str), usize::MAX)
    }
}

/// Part of a file that is in memory.
pub(super) fn shown(path: &ResolvedPath, bytes: &[u8], range: Range) -> Result<Output, ToolError> {
    let file = TextFile::parse(bytes)
        .map_err(|not_text| binary(path, &not_text.why, not_text.mime, bytes.len() as u64))?;
    let all = lines::split(&file.text);
    let total = all.len() as u64;
    let mut page = Page::new(range);
    for line in all.iter().skip(range.offset as usize - 1).take(range.limit.min(usize::MAX as u64) as usize) {
        let shown = cut(line.text, READ_LINE_CHARS);
        let was_cut = shown.len() > line.text.len() || !line.text.starts_with(&shown);
        if !page.push(shown, was_cut) {
            break;
        }
    }
    let mut traits = Vec::new();
    if !matches!(file.encoding, Encoding::Utf8 { bom: false }) {
        traits.push(format!("The file is stored as {}.", file.encoding.as_str()));
    }
    match file.line_ending {
        LineEnding::CrLf => traits.push("Its line endings are CRLF.".into()),
        LineEnding::Cr => traits.push("Its line endings are CR.".into()),
        LineEnding::Mixed => traits.push("Its line endings are mixed.".into()),
        LineEnding::Lf | LineEnding::None => {}
    }
    answer(path, &page, Total::Known(total), file.encoding.as_str(), &traits, bytes.len() as u64)
}

/// How many lines a file has, as far as that was found out.
#[derive(Clone, Copy)]
enum Total {
    Known(u64),
    AtLeast(u64),
}

fn answer(
    path: &ResolvedPath,
    page: &Page,
    total: Total,
    encoding: &str,
    traits: &[String],
    bytes: u64,
) -> Result<Output, ToolError> {
    let known = match total {
        Total::Known(total) => Some(total),
        Total::AtLeast(_) => None,
    };
    if let (Some(total), true) = (known, page.lines.is_empty())
        && (total > 0 || page.first > 1)
    {
        return Err(ToolError::model(format!(
            "Line {} is beyond the end: `{}` has {}.",
            page.first,
            path.shown,
            count(total as usize, "line", "lines")
        ))
        .with_structured(json!({ "file": path.shown, "total_lines": total })));
    }
    let last = page.next() - 1;
    let mut text = if page.lines.is_empty() { format!("`{}` is empty.", path.shown) } else { page.text() };
    if text.ends_with('\n') {
        text.pop();
    }
    let mut notes = Vec::new();
    let more = match total {
        Total::Known(total) => (total > last).then(|| format!("of {total}")),
        Total::AtLeast(least) => Some(format!("of more than {}", least.max(last))),
    };
    if let Some(of) = more {
        let why = if page.full { " (the answer would be too large)" } else { "" };
        notes.push(format!(
            "Lines {}-{last} {of} are shown{why}; read on with offset {}.",
            page.first,
            last + 1
        ));
    } else if page.first > 1 {
        notes.push(format!("Lines {}-{last} of {last} are shown.", page.first));
    }
    if !page.cut.is_empty() {
        let numbers: Vec<String> = page.cut.iter().take(5).map(u64::to_string).collect();
        let others = page.cut.len().saturating_sub(numbers.len());
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        notes.push(format!(
            "Only the first {READ_LINE_CHARS} characters of line {}{others} are shown; `search` finds text in the rest.",
            numbers.join(", ")
        ));
    }
    if !traits.is_empty() {
        notes.push(traits.join(" "));
    }
    if !notes.is_empty() {
        text.push_str(&format!("\n[{}]", notes.join(" ")));
    }
    Ok(Output::text(text).structured(json!({
        "file": path.shown,
        "line": page.first,
        "end_line": last,
        "total_lines": known,
        "encoding": encoding,
        "bytes": bytes,
    })))
}

/// A line that is being read, of which only as much is kept as is shown.
#[derive(Default)]
struct Partial {
    kept: Vec<u8>,
    length: u64,
}

impl Partial {
    /// Four bytes are the longest character; one character more than is shown tells that there is more.
    const KEPT: usize = (READ_LINE_CHARS + 1) * 4;

    fn extend(&mut self, bytes: &[u8]) {
        let room = Self::KEPT.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        self.length += bytes.len() as u64;
    }

    /// The line as it is shown, and whether that is not all of it.
    fn take(&mut self) -> (String, bool) {
        let Partial { mut kept, length } = std::mem::take(self);
        let whole = kept.len() as u64 == length;
        if whole && kept.last() == Some(&b'\r') {
            kept.pop();
        }
        let text = String::from_utf8_lossy(&kept);
        match text.char_indices().nth(READ_LINE_CHARS) {
            Some((at, _)) => (format!("{}… [line of {} cut]", &text[..at], size(length)), true),
            None => (text.into_owned(), !whole),
        }
    }
}

/// Part of a file that is too large to hold. `head` is what was read of it already.
pub(super) fn streamed(
    path: &ResolvedPath,
    file: File,
    head: Vec<u8>,
    length: u64,
    range: Range,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    // The head may end within a character, which says nothing about the file.
    let whole_characters = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |at| at + 1);
    let sniffed = TextFile::parse(&head[..whole_characters])
        .map_err(|not_text| binary(path, &not_text.why, not_text.mime, length))?;
    if matches!(sniffed.encoding, Encoding::Utf16Le | Encoding::Utf16Be) {
        return Err(ToolError::model(format!(
            "`{}` is {} and has {}, which is too large to convert here. Convert it with `iconv` in the shell.",
            path.shown,
            sniffed.encoding.as_str(),
            size(length)
        )));
    }
    let bom = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut reader = BufReader::with_capacity(256 * 1024, io::Cursor::new(head).chain(file));
    let mut buffer = vec![0; 256 * 1024];
    let mut page = Page::new(range);
    let mut partial = Partial::default();
    let (mut number, mut position, mut in_line) = (1_u64, 0_u64, false);
    let mut done = false;
    let mut total = None;
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        if done && position >= COUNT_BYTES {
            break;
        }
        let read = reader
            .read(&mut buffer)
            .map_err(|error| ToolError::model(format!("`{}` cannot be read: {error}", path.shown)))?;
        if read == 0 {
            if in_line && !done && number >= range.offset {
                let (line, was_cut) = partial.take();
                page.push(line, was_cut);
            }
            total = Some(if in_line { number } else { number - 1 });
            break;
        }
        let skip = if position == 0 { bom.min(read) } else { 0 };
        position += read as u64;
        let mut rest = &buffer[skip..read];
        while !rest.is_empty() {
            let wanted = !done && number >= range.offset;
            let Some(at) = memchr::memchr(b'\n', rest) else {
                if wanted {
                    partial.extend(rest);
                }
                in_line = true;
                break;
            };
            if wanted {
                partial.extend(&rest[..at]);
                let (line, was_cut) = partial.take();
                done = !page.push(line, was_cut) || page.lines.len() as u64 >= range.limit;
            }
            number += 1;
            in_line = false;
            rest = &rest[at + 1..];
        }
    }
    let traits = vec![format!("The file has {}, so it is read in parts, as UTF-8.", size(length))];
    let total = total.map_or(Total::AtLeast(number - 1), Total::Known);
    answer(path, &page, total, "UTF-8 (assumed)", &traits, length)
}
