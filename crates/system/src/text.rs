//! Text files: which encoding, which line endings, and back into the same bytes.

use encoding_rs::WINDOWS_1252;

/// A file's text, and what is needed to write it back as it was: `encode(parse(bytes).text) == bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The exact text without a byte order mark; line endings are as in the file.
    pub text: String,
    /// How it is stored.
    pub encoding: Encoding,
    /// Which line endings it has.
    pub line_ending: LineEnding,
}

/// How a text is stored in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, perhaps with a byte order mark.
    Utf8 {
        /// Whether the file starts with EF BB BF.
        bom: bool,
    },
    /// UTF-16, little-endian, with a byte order mark.
    Utf16Le,
    /// UTF-16, big-endian, with a byte order mark.
    Utf16Be,
    /// windows-1252, which contains Latin-1. A guess, taken only where the bytes look like western text and are not UTF-8.
    Latin1,
}

impl Encoding {
    /// The name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Utf8 { bom: false } => "UTF-8",
            Encoding::Utf8 { bom: true } => "UTF-8 with byte order mark",
            Encoding::Utf16Le => "UTF-16 LE",
            Encoding::Utf16Be => "UTF-16 BE",
            Encoding::Latin1 => "windows-1252",
        }
    }
}

/// Which line endings a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n` only.
    Lf,
    /// `\r\n` only.
    CrLf,
    /// `\r` only.
    Cr,
    /// More than one kind.
    Mixed,
    /// A single line without an end.
    None,
}

/// Why bytes are not taken as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotText {
    /// In words, without a full stop: "it is a PNG image".
    pub why: String,
    /// The media type, where the first bytes show it.
    pub mime: Option<&'static str>,
}

/// A text that the file's encoding cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The file is stored as {}, which has no {}. Use other characters, or rewrite the whole file as UTF-8 first.",
    encoding.as_str(),
    characters.iter().map(|c| format!("`{c}` (U+{:04X})", u32::from(*c))).collect::<Vec<_>>().join(", ")
)]
pub struct EncodeError {
    /// The file's encoding.
    pub encoding: Encoding,
    /// The first few characters that it lacks, each once.
    pub characters: Vec<char>,
}

impl TextFile {
    /// Reads bytes as text, or says why they are none.
    pub fn parse(bytes: &[u8]) -> Result<TextFile, NotText> {
        let (encoding, text) = decode(bytes)?;
        let line_ending = Endings::count(&text).kind();
        Ok(TextFile { text, encoding, line_ending })
    }

    /// Puts a text into the file's encoding, with its byte order mark. A character that the encoding lacks is an error, never
    /// a replacement.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, EncodeError> {
        match self.encoding {
            Encoding::Utf8 { bom: false } => Ok(text.as_bytes().to_vec()),
            Encoding::Utf8 { bom: true } => Ok([UTF8_BOM, text.as_bytes()].concat()),
            Encoding::Utf16Le => Ok(encode_utf16(text, u16::to_le_bytes)),
            Encoding::Utf16Be => Ok(encode_utf16(text, u16::to_be_bytes)),
            Encoding::Latin1 => match WINDOWS_1252.encode(text) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                (_, _, true) => {
                    Err(EncodeError { encoding: self.encoding, characters: lacking_in_latin1(text) })
                }
            },
        }
    }

    /// Gives new text the file's line ending: every `\n` that has no `\r` before it becomes the file's own; where they are
    /// mixed, the one that is used most.
    pub fn with_endings(&self, text: &str) -> String {
        let ending = match self.line_ending {
            LineEnding::Lf | LineEnding::None => "\n",
            LineEnding::CrLf => "\r\n",
            LineEnding::Cr => "\r",
            LineEnding::Mixed => Endings::count(&self.text).most_used(),
        };
        if ending == "\n" {
            return text.to_owned();
        }
        let mut result = String::with_capacity(text.len() + text.len() / 16);
        let mut before = '\0';
        for character in text.chars() {
            if character == '\n' && before != '\r' {
                result.push_str(ending);
            } else {
                result.push(character);
            }
            before = character;
        }
        result
    }
}

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

fn decode(bytes: &[u8]) -> Result<(Encoding, String), NotText> {
    if let Some(rest) = bytes.strip_prefix(UTF8_BOM) {
        let text =
            std::str::from_utf8(rest).map_err(|error| not_utf8(error.valid_up_to() + UTF8_BOM.len()))?;
        return without_nul(text).map(|text| (Encoding::Utf8 { bom: true }, text));
    }
    if bytes.starts_with(b"\xFF\xFE\0\0") || bytes.starts_with(b"\0\0\xFE\xFF") {
        return Err(not_text("it is UTF-32 text, which is not supported", None));
    }
    if let Some(rest) = bytes.strip_prefix(b"\xFF\xFE") {
        return decode_utf16(rest, u16::from_le_bytes).map(|text| (Encoding::Utf16Le, text));
    }
    if let Some(rest) = bytes.strip_prefix(b"\xFE\xFF") {
        return decode_utf16(rest, u16::from_be_bytes).map(|text| (Encoding::Utf16Be, text));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => without_nul(text).map(|text| (Encoding::Utf8 { bom: false }, text)),
        Err(error) => decode_other(bytes, error.valid_up_to()),
    }
}

fn decode_other(bytes: &[u8], bad_at: usize) -> Result<(Encoding, String), NotText> {
    if let Some(known) = sniff(bytes) {
        return Err(known);
    }
    if bytes.contains(&0) {
        return Err(binary());
    }
    // What is UTF-8 almost everywhere is damaged UTF-8: as windows-1252 its other characters would be shown wrong.
    let (valid, invalid) = utf8_sequences(bytes);
    if valid > invalid || !plausible_latin1(bytes) {
        return Err(not_utf8(bad_at));
    }
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
    match WINDOWS_1252.encode(&text) {
        (back, _, false) if *back == *bytes => Ok((Encoding::Latin1, text.into_owned())),
        _ => Err(not_utf8(bad_at)),
    }
}

fn not_text(why: impl Into<String>, mime: Option<&'static str>) -> NotText {
    NotText { why: why.into(), mime }
}

fn binary() -> NotText {
    not_text("it is binary: it contains NUL bytes", None)
}

fn not_utf8(at: usize) -> NotText {
    not_text(
        format!(
            "it is not valid UTF-8 (the first wrong byte is at offset {at}) and no other encoding could be recognised"
        ),
        None,
    )
}

fn without_nul(text: &str) -> Result<String, NotText> {
    if !text.as_bytes().contains(&0) {
        return Ok(text.to_owned());
    }
    if let Some(known) = sniff(text.as_bytes()) {
        return Err(known);
    }
    let nul = text.bytes().filter(|byte| *byte == 0).count();
    // Half of UTF-16 text in Latin letters is NUL; much more than half is no text.
    if text.len() >= 4 && nul * 5 >= text.len() * 2 && nul * 5 <= text.len() * 3 {
        return Err(not_text(
            "it looks like UTF-16 text without a byte order mark, which is not supported",
            None,
        ));
    }
    Err(binary())
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<String, _>>();
    match text {
        Ok(text) if rest.is_empty() && !text.contains('\0') => Ok(text),
        Ok(text) if rest.is_empty() && text.contains('\0') => Err(binary()),
        _ => Err(not_text("it begins like UTF-16 text but is damaged", None)),
    }
}

fn encode_utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(bytes).collect()
}

fn lacking_in_latin1(text: &str) -> Vec<char> {
    const NAMED: usize = 5;
    let mut lacking = Vec::new();
    for character in text.chars().filter(|character| !character.is_ascii()) {
        let mut buffer = [0; 4];
        let (_, _, lost) = WINDOWS_1252.encode(character.encode_utf8(&mut buffer));
        if lost && !lacking.contains(&character) {
            lacking.push(character);
            if lacking.len() == NAMED {
                break;
            }
        }
    }
    lacking
}

/// How many characters beyond ASCII are valid UTF-8, and how many stretches are not.
fn utf8_sequences(bytes: &[u8]) -> (usize, usize) {
    bytes.utf8_chunks().fold((0, 0), |(valid, invalid), chunk| {
        let more = chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        (valid + more, invalid + usize::from(!chunk.invalid().is_empty()))
    })
}

/// Western text in windows-1252 is mostly ASCII, its other letters hardly ever come three in a row (`Müller`, `größte`), and it has no
/// control characters. Text in Cyrillic, Greek or East Asian encodings has them in long rows and would come out as nonsense.
fn plausible_latin1(bytes: &[u8]) -> bool {
    let high = |byte: Option<&u8>| byte.is_some_and(|byte| *byte >= 0x80);
    let mut count = 0usize;
    let mut in_a_row = 0usize;
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            // Not assigned in windows-1252.
            0x81 | 0x8D | 0x8F | 0x90 | 0x9D | 0x7F => return false,
            0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F => return false,
            0x80.. => {
                count += 1;
                let before = index.checked_sub(1).and_then(|before| bytes.get(before));
                in_a_row += usize::from(high(before) && high(bytes.get(index + 1)));
            }
            _ => {}
        }
    }
    count * 4 <= bytes.len() && in_a_row * 20 <= count
}

/// What the first bytes of a file show, for files that are not text.
fn sniff(bytes: &[u8]) -> Option<NotText> {
    const KNOWN: &[(&[u8], &str, &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "a PNG image", "image/png"),
        (b"\xFF\xD8\xFF", "a JPEG image", "image/jpeg"),
        (b"GIF87a", "a GIF image", "image/gif"),
        (b"GIF89a", "a GIF image", "image/gif"),
        (b"II*\0", "a TIFF image", "image/tiff"),
        (b"MM\0*", "a TIFF image", "image/tiff"),
        (b"\0\0\x01\0", "an icon", "image/vnd.microsoft.icon"),
        (b"%PDF-", "a PDF document", "application/pdf"),
        (b"PK\x03\x04", "a zip archive (or a document that is one inside)", "application/zip"),
        (b"PK\x05\x06", "an empty zip archive", "application/zip"),
        (b"\x1F\x8B", "gzip data", "application/gzip"),
        (b"BZh91AY&SY", "bzip2 data", "application/x-bzip2"),
        (b"\xFD7zXZ\0", "xz data", "application/x-xz"),
        (b"\x28\xB5\x2F\xFD", "zstd data", "application/zstd"),
        (b"7z\xBC\xAF\x27\x1C", "a 7z archive", "application/x-7z-compressed"),
        (b"\x7FELF", "an ELF program or library", "application/x-elf"),
        (b"\xCF\xFA\xED\xFE", "a Mach-O program or library", "application/x-mach-binary"),
        (b"\xCA\xFE\xBA\xBE", "a Java class or a Mach-O program", "application/octet-stream"),
        (b"MZ", "a Windows program or library", "application/vnd.microsoft.portable-executable"),
        (b"\0asm", "a WebAssembly module", "application/wasm"),
        (b"SQLite format 3\0", "an SQLite database", "application/vnd.sqlite3"),
        (b"OggS", "Ogg audio or video", "application/ogg"),
        (b"ID3", "MP3 audio", "audio/mpeg"),
        (b"fLaC", "FLAC audio", "audio/flac"),
        (b"\x1A\x45\xDF\xA3", "Matroska or WebM video", "video/webm"),
        (b"wOFF", "a WOFF font", "font/woff"),
        (b"wOF2", "a WOFF2 font", "font/woff2"),
        (b"BM", "a BMP image", "image/bmp"),
    ];
    let riff = |kind: &[u8]| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(kind);
    let found = if riff(b"WEBP") {
        Some(("a WebP image", "image/webp"))
    } else if riff(b"WAVE") {
        Some(("WAVE audio", "audio/wav"))
    } else if bytes.get(4..8) == Some(b"ftyp") {
        Some(("an MP4 or similar video", "video/mp4"))
    } else if bytes.get(257..262) == Some(b"ustar") {
        Some(("a tar archive", "application/x-tar"))
    } else {
        // Two or three letters can also begin a text, but these formats never do without NUL bytes.
        let enough = |magic: &[u8]| magic.len() > 3 || !magic.is_ascii() || bytes.contains(&0);
        KNOWN
            .iter()
            .find(|(magic, ..)| bytes.starts_with(magic) && enough(magic))
            .map(|(_, name, mime)| (*name, *mime))
    };
    found.map(|(name, mime)| not_text(format!("it is {name}"), Some(mime)))
}

struct Endings {
    lf: usize,
    crlf: usize,
    cr: usize,
}

impl Endings {
    fn count(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut endings = Endings { lf: 0, crlf: 0, cr: 0 };
        for (index, byte) in bytes.iter().enumerate() {
            match byte {
                b'\r' if bytes.get(index + 1) == Some(&b'\n') => endings.crlf += 1,
                b'\r' => endings.cr += 1,
                b'\n' if index == 0 || bytes.get(index - 1) != Some(&b'\r') => endings.lf += 1,
                _ => {}
            }
        }
        endings
    }

    fn kind(&self) -> LineEnding {
        match (self.lf > 0, self.crlf > 0, self.cr > 0) {
            (false, false, false) => LineEnding::None,
            (true, false, false) => LineEnding::Lf,
            (false, true, false) => LineEnding::CrLf,
            (false, false, true) => LineEnding::Cr,
            _ => LineEnding::Mixed,
        }
    }

    fn most_used(&self) -> &'static str {
        if self.lf >= self.crlf && self.lf >= self.cr {
            "\n"
        } else if self.crlf >= self.cr {
            "\r\n"
        } else {
            "\r"
        }
    }
}
