//! Halves of characters in JSON.

/// JSON with U+FFFD for every half of a surrogate pair that stands alone: strings of Python and JavaScript may hold one (a text that was cut in the middle of a character), and programs written in
/// them write it out; Rust's strings cannot, and the whole message would be lost.
pub fn without_halves(json: &[u8]) -> Vec<u8> {
    // Whether an escape is the first half of a pair; `None` where it is no half.
    let first_half = |at: &[u8]| match at {
        [b'\\', b'u', b'd' | b'D', second, _, _, ..] => match second.to_ascii_lowercase() {
            b'8' | b'9' | b'a' | b'b' => Some(true),
            b'c'..=b'f' => Some(false),
            _ => None,
        },
        _ => None,
    };
    let mut json = json.to_vec();
    let mut from = 0;
    while let Some(found) = json.get(from..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let at = from + found;
        from = match first_half(&json[at..]) {
            Some(true) if first_half(&json[at + 6..]) == Some(false) => at + 12,
            Some(_) => {
                json[at..at + 6].copy_from_slice(br"\ufffd");
                at + 6
            }
            None => at + 2,
        };
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn halves_of_characters_are_mended() {
        for (halves, whole) in [
            (r"\ud83d", r"\ufffd"),
            (r"\uD83D\uDE00", r"\uD83D\uDE00"),
            (r"\ude00\ud83d", r"\ufffd\ufffd"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\\\ud83d\n", r"\\\ufffd\n"),
            (r"\ud7ff\ue000", r"\ud7ff\ue000"),
            (r"\", r"\"),
        ] {
            let mended = without_halves(halves.as_bytes());
            assert_eq!(String::from_utf8_lossy(&mended), whole, "{halves}");
        }
    }
}
