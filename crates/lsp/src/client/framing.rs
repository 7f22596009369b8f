//! Messages in a stream of bytes: `Content-Length`, an empty line, JSON. Counted in bytes; tolerant of what servers print before a header.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::limits::{JUNK_BYTES, MESSAGE_BYTES};

/// Why no further message can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// The stream ended between two messages.
    #[error("it closed its output")]
    End,
    #[error("it closed its output in the middle of a message")]
    Cut,
    #[error("it announced a message of {0} bytes, and at most {MESSAGE_BYTES} are taken")]
    TooLarge(u64),
    #[error("it wrote more than {JUNK_BYTES} bytes that are no message")]
    Junk,
    #[error("its output cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// Reads the body of the next message. Lines that are no header (log output on stdout) are skipped.
pub(crate) async fn read<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Vec<u8>, FrameError> {
    let mut length: Option<u64> = None;
    let mut skipped = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let room = (JUNK_BYTES - skipped) as u64 + 1;
        let count = (&mut *reader).take(room).read_until(b'\n', &mut line).await?;
        if count == 0 {
            return Err(if length.is_none() { FrameError::End } else { FrameError::Cut });
        }
        skipped += count;
        if skipped > JUNK_BYTES {
            return Err(FrameError::Junk);
        }
        if line.last() != Some(&b'\n') {
            return Err(FrameError::Cut);
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            // An empty line before any header is as much junk as a full one.
            if length.is_some() {
                break;
            }
        } else if let Some(found) = content_length(text) {
            length = Some(found);
        }
    }
    let length = length.unwrap_or_default();
    if length > MESSAGE_BYTES as u64 {
        return Err(FrameError::TooLarge(length));
    }
    let mut body = vec![0; length as usize];
    reader.read_exact(&mut body).await.map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof { FrameError::Cut } else { error.into() }
    })?;
    Ok(body)
}

fn content_length(line: &[u8]) -> Option<u64> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    // Something may have been printed right before the header without a line end.
    let name = name.trim_ascii_end();
    let at = name.len().checked_sub(b"content-length".len())?;
    if !name[at..].eq_ignore_ascii_case(b"content-length") {
        return None;
    }
    std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok()
}

/// A message with its header.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let mut framed = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    framed.extend_from_slice(body);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use tokio::io::BufReader;

    async fn all(bytes: &[u8]) -> (Vec<String>, String) {
        let mut reader = BufReader::new(bytes);
        let mut bodies = Vec::new();
        loop {
            match read(&mut reader).await {
                Ok(body) => bodies.push(String::from_utf8(body).unwrap()),
                Err(error) => return (bodies, error.to_string()),
            }
        }
    }

    #[tokio::test]
    async fn headers_in_any_case_other_headers_and_junk_before_them() {
        let stream = "Starting up...\n\nINFO: ready\ncontent-LENGTH: 4\r\nContent-Type: x\r\n\r\n\"é\"logContent-Length: 2\n\n{}";
        let expected = (vec!["\"é\"".to_owned(), "{}".to_owned()], "it closed its output".to_owned());
        assert_eq!(all(stream.as_bytes()).await, expected);
    }

    #[tokio::test]
    async fn lengths_count_bytes() {
        let body = "{\"text\":\"日本🦀\"}".as_bytes();
        let stream = [frame(body), frame(body)].concat();
        assert_eq!(all(&stream).await.0.len(), 2);
    }

    #[tokio::test]
    async fn ends_cuts_and_lies_are_told_apart() {
        let cases = [
            ("", "it closed its output"),
            ("Content-Length: 5\r\n", "it closed its output in the middle of a message"),
            ("Content-Length: 5\r\n\r\n{", "it closed its output in the middle of a message"),
            (
                "Content-Length: 99999999999\r\n\r\n",
                "it announced a message of 99999999999 bytes, and at most 67108864 are taken",
            ),
        ];
        for (stream, expected) in cases {
            assert_eq!(all(stream.as_bytes()).await, (vec![], expected.to_owned()));
        }
        let flood = vec![b'x'; JUNK_BYTES + 2];
        assert_eq!(all(&flood).await.1, "it wrote more than 1048576 bytes that are no message");
    }
}
