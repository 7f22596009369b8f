//! Cutting a byte stream into frames: server-sent events, or one JSON text a line.

use crate::{fault::Fault, limits::FRAME_BYTES};

/// One event of a stream as it came over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The event's name, where the format has names.
    pub(crate) event: Option<String>,
    pub(crate) data: String,
}

/// How a provider frames its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream` (WHATWG HTML, section 9.2).
    Events,
    /// One JSON text a line.
    Lines,
    /// The whole body is one frame: a server that was asked for a stream and answered at once.
    Whole,
}

/// Takes bytes in whatever pieces the network brings and gives frames.
pub(crate) struct Framer {
    framing: Framing,
    line: Vec<u8>,
    event: Option<String>,
    data: Option<String>,
    after_cr: bool,
    first_line: bool,
}

impl Framer {
    pub(crate) fn new(framing: Framing) -> Self {
        Framer { framing, line: Vec::new(), event: None, data: None, after_cr: false, first_line: true }
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), Fault> {
        if self.framing == Framing::Whole {
            self.line.extend_from_slice(bytes);
            return self.check_size();
        }
        while !bytes.is_empty() {
            // CR, LF and CR LF all end a line; the two halves of the last may come in two pieces.
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            match bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(end) => {
                    self.line.extend_from_slice(&bytes[..end]);
                    self.after_cr = bytes[end] == b'\r';
                    bytes = &bytes[end + 1..];
                    self.end_line(frames);
                }
                None => {
                    self.line.extend_from_slice(bytes);
                    bytes = &[];
                }
            }
            self.check_size()?;
        }
        Ok(())
    }

    /// The stream has ended. The standard drops an event without its closing empty line; servers that forget the line exist, and an
    /// event that was cut in the middle is not valid JSON, so it is given out.
    pub(crate) fn finish(&mut self, frames: &mut Vec<Frame>) {
        if !self.line.is_empty() {
            self.end_line(frames);
        }
        if self.framing == Framing::Events {
            self.dispatch(frames);
        }
    }

    fn check_size(&self) -> Result<(), Fault> {
        if self.line.len() + self.data.as_ref().map_or(0, String::len) > FRAME_BYTES {
            return Err(Fault::transient(format!(
                "an event of the stream is larger than {FRAME_BYTES} bytes"
            )));
        }
        Ok(())
    }

    fn end_line(&mut self, frames: &mut Vec<Frame>) {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if self.framing != Framing::Events {
            if !line.trim().is_empty() {
                frames.push(Frame { event: None, data: line.to_owned() });
            }
            return;
        }
        if line.is_empty() {
            return self.dispatch(frames);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.event = Some(value.to_owned()),
            // Comments (an empty field name), ids, retry times, and what nobody knows.
            _ => {}
        }
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let event = self.event.take();
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            frames.push(Frame { event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn cut(framing: Framing, pieces: &[&[u8]]) -> Vec<Frame> {
        let mut framer = Framer::new(framing);
        let mut frames = Vec::new();
        for piece in pieces {
            framer.push(piece, &mut frames).unwrap();
        }
        framer.finish(&mut frames);
        frames
    }

    fn frame(event: Option<&str>, data: &str) -> Frame {
        Frame { event: event.map(str::to_owned), data: data.to_owned() }
    }

    #[test]
    fn events_with_every_line_end_comments_and_unknown_fields() {
        let text = "\u{feff}: hello\nevent: a\ndata: 1\ndata:2\n\nid: 7\r\nevent: b\r\ndata: {\"x\": \"é\"}\r\n\r\ndata: 3\r\rdata\n\nevent: none\n\ndata: last";
        assert_eq!(
            cut(Framing::Events, &[text.as_bytes()]),
            [
                frame(Some("a"), "1\n2"),
                frame(Some("b"), "{\"x\": \"é\"}"),
                frame(None, "3"),
                frame(None, "last")
            ]
        );
    }

    #[test]
    fn lines_and_whole_bodies() {
        assert_eq!(
            cut(Framing::Lines, &[b"{\"a\":1}\n\n{\"b\"", b":2}\r\n{}"]),
            [frame(None, "{\"a\":1}"), frame(None, "{\"b\":2}"), frame(None, "{}")]
        );
        assert_eq!(cut(Framing::Whole, &[b"{\n\"a\"", b":1\n}"]), [frame(None, "{\n\"a\":1\n}")]);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(0usize..120, 0..12)) {
            let text = "event: a\r\ndata: grüße 🦀\r\n\r\ndata: 1\ndata: 2\r\rdata: {\"x\":\"\\n\"}\n\n: c\n\nevent: z\ndata: end\n\n".as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&text[from..cut]);
                from = cut;
            }
            pieces.push(&text[from..]);
            prop_assert_eq!(cut(Framing::Events, &pieces), cut(Framing::Events, &[text]));
        }
    }
}
