//! File URIs as text. They are never compared: servers echo, decode or encode anew as they like (`[x]` and `a+b@c` come back raw from
//! some, `é` from others), so what is compared is the decoded path.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// The URI of an absolute path, with everything encoded but unreserved characters and `/`, which every server decodes to the same path.
pub fn from_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let mut uri = String::with_capacity(bytes.len() + 16);
    uri.push_str("file://");
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The path of a file URI, decoded; `None` for other schemes (`jdt://`, `untitled:`) and for hosts other than this one. Lenient: raw
/// brackets, spaces and letters are taken as they are, and so is a `%` that no two hexadecimal digits follow.
pub fn to_path(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        // `file:/path` has no authority at all; some servers write it so.
        None => rest,
        Some(rest) => {
            let slash = rest.find('/')?;
            let host = &rest[..slash];
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            &rest[slash..]
        }
    };
    if !path.starts_with('/') {
        return None;
    }
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = (byte == b'%').then(|| Some((hex(*bytes.get(at + 1)?)?, hex(*bytes.get(at + 2)?)?)));
        match pair.flatten() {
            Some((high, low)) => {
                decoded.push(high * 16 + low);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    Some(PathBuf::from(OsString::from_vec(decoded)))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    #[test]
    fn every_odd_name_comes_back() {
        let path = Path::new("/w/dír é 日本 #1 [x] 100%25 a+b@c/🦀?.ts");
        assert_eq!(
            from_path(path),
            "file:///w/d%C3%ADr%20%C3%A9%20%E6%97%A5%E6%9C%AC%20%231%20%5Bx%5D%20100%2525%20a%2Bb%40c/%F0%9F%A6%80%3F.ts"
        );
        assert_eq!(to_path(&from_path(path)).as_deref(), Some(path));
    }

    #[test]
    fn raw_brackets_spaces_and_letters_are_taken() {
        let taken = [
            ("file:///x/[x]/main.rs", Some("/x/[x]/main.rs")),
            ("file:///x/a b/é.rs", Some("/x/a b/é.rs")),
            ("file:///x/a%20b%2fc", Some("/x/a b/c")),
            ("file:///x/100%", Some("/x/100%")),
            ("file:///x/%zz%4", Some("/x/%zz%4")),
            ("FILE://localhost/x", Some("/x")),
            ("file:/x/y", Some("/x/y")),
            ("file://elsewhere/x", None),
            ("file:x", None),
            ("untitled:Untitled-1", None),
            ("/x/y", None),
        ];
        for (uri, path) in taken {
            assert_eq!(to_path(uri).as_deref(), path.map(Path::new), "{uri}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(1u8..=255, 0..64)) {
            let path = PathBuf::from(OsString::from_vec([b"/".as_slice(), &bytes].concat()));
            prop_assert_eq!(to_path(&from_path(&path)), Some(path));
        }
    }
}
