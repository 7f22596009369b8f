//! Text files, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use haft_system::{EncodeError, Encoding, LineEnding, NotText, TextFile};
use pretty_assertions::assert_eq;
use proptest::prelude::*;

fn parsed(bytes: &[u8]) -> TextFile {
    TextFile::parse(bytes).unwrap()
}

fn file(text: &str, encoding: Encoding, line_ending: LineEnding) -> TextFile {
    TextFile { text: text.to_owned(), encoding, line_ending }
}

const UTF8: Encoding = Encoding::Utf8 { bom: false };

#[test]
fn encodings_are_recognised_and_kept() {
    let cases: &[(&[u8], TextFile)] = &[
        (b"", file("", UTF8, LineEnding::None)),
        (b"one", file("one", UTF8, LineEnding::None)),
        ("gr\u{fc}n\n".as_bytes(), file("gr\u{fc}n\n", UTF8, LineEnding::Lf)),
        (b"\xEF\xBB\xBFa\r\nb\r\n", file("a\r\nb\r\n", Encoding::Utf8 { bom: true }, LineEnding::CrLf)),
        (b"\xEF\xBB\xBF", file("", Encoding::Utf8 { bom: true }, LineEnding::None)),
        // A second mark is a character of the text.
        (b"\xEF\xBB\xBF\xEF\xBB\xBFa", file("\u{FEFF}a", Encoding::Utf8 { bom: true }, LineEnding::None)),
        (b"\xFF\xFEa\0\n\0\x3D\xD8\x00\xDE", file("a\n\u{1F600}", Encoding::Utf16Le, LineEnding::Lf)),
        (b"\xFE\xFF\0a\0\r\0\n", file("a\r\n", Encoding::Utf16Be, LineEnding::CrLf)),
        (b"\xFF\xFE", file("", Encoding::Utf16Le, LineEnding::None)),
        (
            b"// a greeting: gr\xFC\xDFe \x80 5, d\xE9j\xE0\r",
            file(
                "// a greeting: gr\u{fc}\u{df}e \u{20ac} 5, d\u{e9}j\u{e0}\r",
                Encoding::Latin1,
                LineEnding::Cr,
            ),
        ),
        (
            b"\x1B[31mred\x1B[0m\tand\x0Cfeed\n",
            file("\x1B[31mred\x1B[0m\tand\x0Cfeed\n", UTF8, LineEnding::Lf),
        ),
    ];
    for (bytes, expected) in cases {
        let parsed = TextFile::parse(bytes);
        assert_eq!(parsed.as_ref(), Ok(expected));
        assert_eq!(parsed.unwrap().encode(&expected.text).unwrap(), *bytes);
    }
}

#[test]
fn line_endings_are_told_apart() {
    let kinds = ["a", "a\nb", "a\r\nb", "a\rb", "a\nb\r\n", "a\r\r\n", "\n\r"]
        .map(|text| parsed(text.as_bytes()).line_ending);
    assert_eq!(
        kinds,
        [
            LineEnding::None,
            LineEnding::Lf,
            LineEnding::CrLf,
            LineEnding::Cr,
            LineEnding::Mixed,
            LineEnding::Mixed,
            LineEnding::Mixed,
        ]
    );
}

#[test]
fn new_text_gets_the_file_s_line_ending() {
    let new = "x\ny\r\nz\n";
    let given = ["a\nb", "a\r\nb", "a\rb", "a\r\nb\r\nc\n", "a\nb\nc\r\n", "a\r\nb\n", "a"]
        .map(|text| parsed(text.as_bytes()).with_endings(new));
    assert_eq!(
        given,
        [
            "x\ny\r\nz\n",
            "x\r\ny\r\nz\r\n",
            "x\ry\r\nz\r",
            "x\r\ny\r\nz\r\n",
            "x\ny\r\nz\n",
            "x\ny\r\nz\n",
            "x\ny\r\nz\n",
        ]
    );
}

#[test]
fn what_is_not_text_is_said() {
    let mut tar = vec![0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let cases: &[&[u8]] = &[
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"\xFF\xD8\xFF\xE0\0\x10JFIF",
        b"GIF89a\x01\0\x01\0",
        b"RIFF\x24\0\0\0WEBPVP8 ",
        b"RIFF\x24\0\0\0WAVEfmt ",
        b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n",
        b"PK\x03\x04\x14\0\0\0",
        b"\x1F\x8B\x08\0",
        b"\x7FELF\x02\x01\x01\0",
        b"MZ\x90\0",
        b"\0asm\x01\0\0\0",
        b"SQLite format 3\0",
        b"\0\0\0\x20ftypisom",
        b"BM\x36\0\0\0",
        &tar,
        b"text with a \0 in it",
        b"a\0b\0c\0d\0",
        b"\0a\0b\0c\0d",
        b"\xFF\xFEa\0b",
        b"\xFF\xFE\x00\xD8a\0",
        b"\xFF\xFE\0\0a\0\0\0",
        // UTF-8 with one bad byte: as windows-1252 its other letters would be wrong.
        b"gr\xC3\xBCn gr\xC3\xBCn gr\xFCn",
        // KOI8-R, Shift-JIS and random bytes are not western text.
        b"\xF0\xD2\xC9\xD7\xC5\xD4 \xCD\xC9\xD2",
        b"// \x93\xFA\x96{\x8C\xEA\n",
        b"\x80\x03\x05ab\xFF\xFE",
        b"BZh91AY&SY\xFF\x01",
    ];
    let said: Vec<String> = cases
        .iter()
        .map(|bytes| {
            let NotText { why, mime } = TextFile::parse(bytes).unwrap_err();
            format!("{why} ({})", mime.unwrap_or("no type"))
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn text_that_begins_like_a_binary_format_is_text() {
    for text in ["GIF89a is a format", "BMW", "MZ", "%PDF- in words", "ID3 tags", "PK"] {
        assert_eq!(parsed(text.as_bytes()), file(text, UTF8, LineEnding::None));
    }
    assert_eq!(parsed(b"BM caf\xE9 menu").encoding, Encoding::Latin1);
}

#[test]
fn what_the_encoding_lacks_is_an_error_and_never_a_question_mark() {
    let latin1 = parsed(b"caf\xE9 menu");
    let error = latin1.encode("na\u{ef}ve \u{2192} \u{2192} \u{1F600}").unwrap_err();
    assert_eq!(error, EncodeError { encoding: Encoding::Latin1, characters: vec!['\u{2192}', '\u{1F600}'] });
    insta::assert_snapshot!(error.to_string());
    assert_eq!(latin1.encode("na\u{ef}ve").unwrap(), b"na\xEFve");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_read_is_written_back_byte_for_byte(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            // Bytes that look like western text now and then.
            prop::collection::vec(prop_oneof![9 => 0x20u8..0x7F, 1 => 0x80u8..=0xFF, 1 => Just(b'\r'), 1 => Just(b'\n')], 0..64),
            any::<String>().prop_map(String::into_bytes),
            any::<String>().prop_map(|text| [b"\xEF\xBB\xBF", text.as_bytes()].concat()),
            prop::collection::vec(any::<u8>(), 0..32).prop_map(|rest| [b"\xFF\xFE".as_slice(), &rest].concat()),
            prop::collection::vec(any::<u8>(), 0..32).prop_map(|rest| [b"\xFE\xFF".as_slice(), &rest].concat()),
        ]
    ) {
        if let Ok(file) = TextFile::parse(&bytes) {
            prop_assert_eq!(file.encode(&file.text).unwrap(), bytes);
        }
    }

    #[test]
    fn any_text_survives_every_encoding_that_can_hold_it(text in "[^\0\u{FEFF}]{0,40}") {
        for encoding in [UTF8, Encoding::Utf8 { bom: true }, Encoding::Utf16Le, Encoding::Utf16Be] {
            let bytes = file("", encoding, LineEnding::None).encode(&text).unwrap();
            let back = TextFile::parse(&bytes).unwrap();
            prop_assert_eq!((back.text, back.encoding), (text.clone(), encoding));
        }
    }
}
