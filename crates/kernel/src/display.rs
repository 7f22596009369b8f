//! What a cell shows: values by media type, tables, pictures within limits.

use std::io::Cursor;

use base64::{Engine, engine::general_purpose::STANDARD};
use image::{DynamicImage, ImageFormat, ImageReader, Limits, imageops::FilterType};
use serde_json::{Map, Value};

use crate::{
    frames::Table,
    limits::{DISPLAYS, IMAGE_BYTES, IMAGE_DECODE_BYTES, IMAGE_EDGE},
};

/// One display.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Display {
    pub(crate) n: u64,
    /// It is the value of the cell.
    pub(crate) result: bool,
    pub(crate) id: Option<String>,
    /// Where it stands in stdout: bytes before it.
    pub(crate) at: u64,
    /// By media type; pictures as base64.
    pub(crate) data: Map<String, Value>,
    pub(crate) table: Option<Table>,
    /// Pixels of the picture before the worker made it smaller.
    pub(crate) original: Option<(u32, u32)>,
}

/// Media types of pictures that models are shown, best first.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

impl Display {
    /// Puts it where it belongs: an update in the place of the last display of that id, anything else behind the others.
    pub(crate) fn keep(self, update: bool, displays: &mut Vec<Display>, dropped: &mut usize) {
        if update
            && self.id.is_some()
            && let Some(old) = displays.iter_mut().rev().find(|display| display.id == self.id)
        {
            old.data = self.data;
            old.table = self.table;
            old.original = self.original;
            return;
        }
        // The result is what was asked for.
        if displays.len() < DISPLAYS || self.result {
            displays.push(self);
        } else {
            *dropped += 1;
        }
    }

    pub(crate) fn text(&self, mime: &str) -> Option<&str> {
        self.data.get(mime).and_then(Value::as_str)
    }

    /// Whether there is something to be decoded.
    pub(crate) fn has_picture(&self) -> bool {
        PICTURES.into_iter().any(|mime| self.data.contains_key(mime))
    }

    /// The encoded picture and its media type.
    pub(crate) fn picture(&self) -> Option<(&'static str, Vec<u8>)> {
        PICTURES.into_iter().find_map(|mime| {
            let text: String = self.text(mime)?.split_ascii_whitespace().collect();
            STANDARD.decode(text).ok().map(|bytes| (mime, bytes))
        })
    }
}

/// A picture as it can be shown, and how large it was where it was made smaller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fitted {
    pub(crate) mime: String,
    pub(crate) data: Vec<u8>,
    pub(crate) size: (u32, u32),
    pub(crate) original: Option<(u32, u32)>,
}

/// Brings a picture within the limits of model providers; the error says why it cannot be shown.
pub(crate) fn fit(mime: &str, data: Vec<u8>) -> Result<Fitted, String> {
    let format =
        ImageFormat::from_mime_type(mime).ok_or_else(|| format!("{mime} is not a known picture format"))?;
    let reader = || {
        let mut reader = ImageReader::with_format(Cursor::new(&data), format);
        let mut limits = Limits::default();
        limits.max_alloc = Some(IMAGE_DECODE_BYTES);
        reader.limits(limits);
        reader
    };
    let size = reader().into_dimensions().map_err(|error| error.to_string())?;
    if size.0.max(size.1) <= IMAGE_EDGE && data.len() <= IMAGE_BYTES {
        return Ok(Fitted { mime: mime.to_owned(), data, size, original: None });
    }
    let picture = reader().decode().map_err(|error| error.to_string())?;
    let mut edge = IMAGE_EDGE;
    loop {
        let small = if picture.width().max(picture.height()) > edge {
            picture.resize(edge, edge, FilterType::Triangle)
        } else {
            picture.clone()
        };
        let (mime, bytes) = encode(&small)?;
        if bytes.len() <= IMAGE_BYTES || edge < 64 {
            return Ok(Fitted {
                mime: mime.to_owned(),
                data: bytes,
                size: (small.width(), small.height()),
                original: Some(size),
            });
        }
        edge /= 2;
    }
}

fn encode(picture: &DynamicImage) -> Result<(&'static str, Vec<u8>), String> {
    let mut png = Cursor::new(Vec::new());
    picture.write_to(&mut png, ImageFormat::Png).map_err(|error| error.to_string())?;
    if png.get_ref().len() <= IMAGE_BYTES || picture.color().has_alpha() {
        return Ok(("image/png", png.into_inner()));
    }
    let mut jpeg = Cursor::new(Vec::new());
    picture.to_rgb8().write_to(&mut jpeg, ImageFormat::Jpeg).map_err(|error| error.to_string())?;
    Ok(("image/jpeg", jpeg.into_inner()))
}
