//! The framing of the Debug Adapter Protocol: `Content-Length: N`, an empty line, N bytes of JSON.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::limits::{HEADER_BYTES, JUNK_BYTES, MESSAGE_BYTES};

/// Reads the body of the next message; `None` at the end of the stream. What stands between messages and is no header (a banner,
/// a stray print of the adapter's runtime) is skipped and handed to `junk`.
pub(crate) async fn read(
    from: &mut (impl AsyncBufRead + Unpin),
    junk: &mut (dyn FnMut(&[u8]) + Send),
) -> io::Result<Option<Vec<u8>>> {
    let mut skipped = 0;
    loop {
        let Some(line) = read_line(from).await? else { return Ok(None) };
        let Some(length) = content_length(&line) else {
            if !is_blank(&line) {
                skipped += line.len();
                if skipped > JUNK_BYTES {
                    return Err(invalid("it writes something else than debug adapter messages"));
                }
                junk(&line);
            }
            continue;
        };
        // Other headers (Content-Type) may follow, up to an empty line.
        loop {
            match read_line(from).await? {
                None => return Ok(None),
                Some(line) if is_blank(&line) => break,
                Some(_) => {}
            }
        }
        if length > MESSAGE_BYTES {
            return Err(invalid("it announced a message of more than 64 MiB"));
        }
        // Grown as the bytes come, so that a length alone costs nothing.
        let mut body = Vec::with_capacity(length.min(64 << 10));
        let read = (&mut *from).take(length as u64).read_to_end(&mut body).await?;
        return Ok((read == length).then_some(body));
    }
}

/// A message with its header, ready to be written.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let mut message = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    message.extend_from_slice(body);
    message
}

async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = (&mut *from).take(HEADER_BYTES as u64).read_until(b'\n', &mut line).await?;
    Ok((read > 0).then_some(line))
}

/// The number in a `Content-Length` header. Junk without a line break may stand before it on the same line.
fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &str = "content-length:";
    let lower = String::from_utf8_lossy(line).to_ascii_lowercase();
    let at = lower.rfind(NAME)?;
    lower[at + NAME.len()..].trim().parse().ok()
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> (Vec<String>, Vec<String>, Option<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut from = bytes;
        let (mut bodies, mut junk) = (Vec::new(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        loop {
            match runtime.block_on(read(&mut from, &mut |line| junk.push(text(line)))) {
                Ok(Some(body)) => bodies.push(text(&body)),
                Ok(None) => return (bodies, junk, None),
                Err(error) => return (bodies, junk, Some(error.to_string())),
            }
        }
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn headers_in_any_case_and_more_of_them() {
        let stream = b"content-LENGTH:2\r\nContent-Type: x\r\n\r\n{}Content-Length: 4\n\n\"\xc3\xa9\"";
        assert_eq!(all(stream), (strings(&["{}", "\"é\""]), vec![], None));
    }

    #[test]
    fn junk_between_messages_is_skipped() {
        let stream =
            b"Listening...\n\n{\"a\":1}\nContent-Length: 2\r\n\r\n{}warning: xContent-Length: 3\r\n\r\n[1]";
        assert_eq!(all(stream), (strings(&["{}", "[1]"]), strings(&["Listening...\n", "{\"a\":1}\n"]), None));
    }

    #[test]
    fn a_body_cut_by_the_end_of_the_stream_is_no_message() {
        assert_eq!(all(b"Content-Length: 20\r\n\r\n{\"a\""), (vec![], vec![], None));
        assert_eq!(all(b"Content-Len"), (vec![], strings(&["Content-Len"]), None));
    }

    #[test]
    fn a_length_beyond_all_measure_ends_it() {
        let (bodies, _, error) = all(b"Content-Length: 99999999999\r\n\r\n{}");
        assert_eq!((bodies, error.is_some()), (vec![], true));
        let (bodies, _, error) = all(&b"junk\n".repeat(JUNK_BYTES / 4));
        assert_eq!((bodies, error.is_some()), (vec![], true));
    }

    proptest! {
        #[test]
        fn what_was_framed_is_read_back(bodies in prop::collection::vec("[^\u{0}]{0,40}", 0..6)) {
            let stream: Vec<u8> = bodies.iter().flat_map(|body| frame(body.as_bytes())).collect();
            prop_assert_eq!(all(&stream), (bodies, vec![], None));
        }
    }
}
