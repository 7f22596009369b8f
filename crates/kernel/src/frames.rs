//! What Haft and a worker say to each other over the private channel: length (four bytes, little end first), then JSON.

use std::io;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    sync::mpsc,
};

use crate::limits::{CHUNK, FRAME, QUEUED_FRAMES};

/// From a worker.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum Frame {
    /// It is ready for cells.
    Ready { version: String, program: String },
    /// It begins with a cell; without this the cell has not been run.
    Started { cell: u32 },
    /// Something to be shown; the mark `dN` in its stdout says where.
    Display {
        n: u64,
        #[serde(default)]
        result: bool,
        #[serde(default)]
        update: bool,
        #[serde(default)]
        id: Option<String>,
        data: Map<String, Value>,
        #[serde(default)]
        table: Option<Table>,
        /// Pixels of a picture that the worker has made smaller.
        #[serde(default)]
        original: Option<(u32, u32)>,
    },
    /// A call of a tool.
    Call { id: u64, tool: String, arguments: Value },
    /// A call whose arguments do not read: numbers or depths that JSON has and Haft's reader has not.
    #[serde(skip)]
    Unread { id: u64, why: String },
    /// The cell has ended; the mark `eCELL` in both streams says where its output ends.
    Done {
        cell: u32,
        status: Status,
        error: Option<CellError>,
        #[serde(default)]
        cwd: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Ok,
    Error,
    Interrupted,
}

/// What a cell raised.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct CellError {
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) traceback: String,
}

/// A frame of data, cut to what is shown.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Table {
    pub(crate) kind: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// Rows and columns of the whole.
    pub(crate) shape: [u64; 2],
    pub(crate) head: u64,
    pub(crate) tail: u64,
    #[serde(default)]
    pub(crate) dtypes: Vec<String>,
    #[serde(default)]
    pub(crate) columns_cut: bool,
}

/// The bytes of a frame.
pub(crate) fn encode(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 4);
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A frame, or what can be said of one whose values do not read. That must not cost the kernel.
fn decode(body: &[u8]) -> serde_json::Result<Frame> {
    #[derive(Deserialize)]
    struct Head {
        op: String,
        #[serde(default)]
        id: Value,
        #[serde(default)]
        n: u64,
        #[serde(default)]
        result: bool,
    }
    let error = match serde_json::from_slice(body) {
        Ok(frame) => return Ok(frame),
        Err(error) => error,
    };
    let head = serde_json::from_slice(body);
    // What goes into a tool is not changed in silence.
    if head.as_ref().is_ok_and(|Head { op, .. }| op != "call")
        && let Ok(frame) = serde_json::from_slice(&haft_system::without_halves(body))
    {
        return Ok(frame);
    }
    match head {
        Ok(Head { op, id, .. }) if op == "call" && id.is_u64() => {
            Ok(Frame::Unread { id: id.as_u64().unwrap_or_default(), why: error.to_string() })
        }
        Ok(Head { op, n, result, .. }) if op == "display" => {
            let text = format!("<a value that could not be passed on: {error}>");
            let data = Map::from_iter([("text/plain".to_owned(), text.into())]);
            let (update, id, table, original) = (false, None, None, None);
            Ok(Frame::Display { n, result, update, id, data, table, original })
        }
        _ => Err(error),
    }
}

/// Reads frames; a read that is given up loses nothing.
pub(crate) struct Reader {
    half: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(half: OwnedReadHalf) -> Self {
        Reader { half, buffer: Vec::new() }
    }

    /// The next frame; `None` at the end of the channel. A frame that does not read is an error, and the end of the kernel.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(prefix) = self.buffer.first_chunk::<4>() {
                let length = u32::from_le_bytes(*prefix) as usize;
                if length > FRAME {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
                }
                if self.buffer.len() >= 4 + length {
                    let frame = decode(&self.buffer[4..4 + length]).map_err(io::Error::other);
                    self.buffer.drain(..4 + length);
                    if self.buffer.capacity() > 4 * CHUNK && self.buffer.is_empty() {
                        self.buffer = Vec::new();
                    }
                    return frame.map(Some);
                }
                self.buffer.reserve(4 + length - self.buffer.len());
            }
            if self.half.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// Writes frames from a task of its own, so that a worker that does not read holds up nobody.
pub(crate) fn writer(mut half: OwnedWriteHalf) -> mpsc::Sender<Vec<u8>> {
    let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(QUEUED_FRAMES);
    tokio::spawn(async move {
        while let Some(frame) = receiver.recv().await {
            if half.write_all(&frame).await.is_err() {
                return;
            }
        }
    });
    sender
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_read_do_not_cost_the_kernel() {
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        for value in [deep.as_str(), "1e999", "[-1e400]"] {
            let call = format!(r#"{{"op":"call","id":7,"tool":"read","arguments":{{"path":{value}}}}}"#);
            assert!(matches!(decode(call.as_bytes()), Ok(Frame::Unread { id: 7, .. })), "{value}");
            let display =
                format!(r#"{{"op":"display","n":3,"result":true,"data":{{"application/json":{value}}}}}"#);
            let decoded = decode(display.as_bytes());
            assert!(
                matches!(&decoded, Ok(Frame::Display { n: 3, result: true, data, .. }) if data["text/plain"].as_str().is_some_and(|text| text.starts_with("<a value"))),
                "{decoded:?}"
            );
        }
        let half = r#"{"op":"call","id":7,"tool":"read","arguments":{"path":"\ud83d"}}"#;
        assert!(matches!(decode(half.as_bytes()), Ok(Frame::Unread { id: 7, .. })));
        assert!(decode(br#"{"op":"call","id":7,"tool":"#).is_err());
        assert!(decode(br#"{"op":"done","cell":-1}"#).is_err());
    }
}
