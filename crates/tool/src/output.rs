use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One piece of what a tool answers, as a model or a person gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Content {
    /// Words.
    Text {
        /// The text, UTF-8.
        text: String,
    },
    /// A picture.
    Image {
        /// Media type, such as `image/png`.
        mime: String,
        /// The encoded bytes (not pixels); base64 in JSON.
        #[serde(with = "base64_bytes")]
        data: Vec<u8>,
    },
    /// Rows under named columns.
    Table {
        /// Column names, in order.
        columns: Vec<String>,
        /// Rows; each has one value per column.
        rows: Vec<Vec<Value>>,
    },
}

impl Content {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text { text: text.into() }
    }
}

/// What a tool answers when it could do its work.
///
/// `content` is what a model gets, `structured` is for programs (SPEC section 10) and always a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Pieces in the order in which they are to be read.
    pub content: Vec<Content>,
    /// Fields for programs.
    pub structured: Map<String, Value>,
}

impl Output {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Output { content: vec![Content::text(text)], structured: Map::new() }
    }

    /// Adds a piece of content.
    pub fn with(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// Sets the fields for programs; anything but a JSON object is a mistake of the tool and is kept under `value`.
    pub fn structured(mut self, fields: Value) -> Self {
        self.structured = object(fields);
        self
    }
}

/// What a call came to, whoever issued it: the tool's output, or an error in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Whether the call failed. A tool that did its work and has bad news (a failing test) did not fail.
    pub is_error: bool,
    /// Pieces in the order in which they are to be read; an error's first piece is its text.
    pub content: Vec<Content>,
    /// Fields for programs; may be filled for errors too.
    #[serde(default)]
    pub structured: Map<String, Value>,
}

impl Outcome {
    /// A failed call, in words for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Outcome { is_error: true, content: vec![Content::text(text)], structured: Map::new() }
    }

    /// The first text, if there is one.
    pub fn first_text(&self) -> Option<&str> {
        self.content.iter().find_map(|piece| match piece {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        })
    }

    /// All texts, joined by line breaks.
    pub fn all_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|piece| match piece {
                Content::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Outcome { is_error: false, content: output.content, structured: output.structured }
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

mod base64_bytes {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}
