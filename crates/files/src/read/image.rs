//! Pictures, made small enough for a model.
//!
//! A picture is decoded even where it goes out as it is: one that is broken would make a provider refuse the whole conversation.

use std::io::Cursor;

use haft_system::ResolvedPath;
use haft_tool::{Content, Output, ToolError};
use image::{
    DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, codecs::jpeg::JpegEncoder,
    imageops::FilterType, metadata::Orientation,
};
use serde_json::json;

use crate::{
    limits::{IMAGE_ANSWER_BYTES, IMAGE_DECODE_BYTES, IMAGE_EDGE, IMAGE_PIXELS, IMAGE_SIDE},
    lines::size,
};

/// Whether the bytes begin like a picture that can be shown.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    format(bytes).is_some()
}

/// The format and, where providers take it as it is, its media type.
fn format(bytes: &[u8]) -> Option<(ImageFormat, Option<&'static str>)> {
    match image::guess_format(bytes).ok()? {
        // Two letters are no proof: text may begin with `BM`. A bitmap's header gives its own size in the next four bytes.
        ImageFormat::Bmp if bytes.get(6..10) != Some(&[0; 4]) => None,
        ImageFormat::Bmp => Some((ImageFormat::Bmp, None)),
        format @ ImageFormat::Png => Some((format, Some("image/png"))),
        format @ ImageFormat::Jpeg => Some((format, Some("image/jpeg"))),
        format @ ImageFormat::Gif => Some((format, Some("image/gif"))),
        format @ ImageFormat::WebP => Some((format, Some("image/webp"))),
        _ => None,
    }
}

/// The picture, scaled down and converted where it has to be, with a line that says so.
pub(super) fn show(path: &ResolvedPath, bytes: &[u8]) -> Result<Output, ToolError> {
    let Some((format, mime)) = format(bytes) else {
        return Err(ToolError::Bug("a picture lost its format".into()));
    };
    let name = format!("{format:?}").to_uppercase();
    let refused = |why: String| ToolError::model(format!("`{}` is a {name} picture {why}", path.shown));
    let broken = |error: image::ImageError| refused(format!("that cannot be decoded: {error}"));
    let reader = || ImageReader::with_format(Cursor::new(bytes), format);

    let (width, height) = reader().into_dimensions().map_err(broken)?;
    if u64::from(width) * u64::from(height) > IMAGE_PIXELS || width.max(height) > IMAGE_SIDE {
        return Err(refused(format!(
            "of {width}×{height} pixels, which is more than is decoded here ({IMAGE_PIXELS} pixels, {IMAGE_SIDE} on a side). Scale it down first."
        )));
    }
    let mut limited = reader();
    let mut limits = Limits::default();
    limits.max_alloc = Some(IMAGE_DECODE_BYTES);
    limited.limits(limits);
    let mut decoder = limited.into_decoder().map_err(broken)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(broken)?;

    let fits = width.max(height) <= IMAGE_EDGE && bytes.len() <= IMAGE_ANSWER_BYTES;
    if let (true, Some(mime), Orientation::NoTransforms) = (fits, mime, orientation) {
        let text = format!(
            "`{}`: {name} picture, {width}×{height} pixels, {}.",
            path.shown,
            size(bytes.len() as u64)
        );
        return Ok(answer(path, text, mime, bytes.to_vec(), (width, height), (width, height)));
    }
    picture.apply_orientation(orientation);
    if picture.width().max(picture.height()) > IMAGE_EDGE {
        picture = picture.resize(IMAGE_EDGE, IMAGE_EDGE, FilterType::Triangle);
    }
    let (mime, data) = encode(&picture, format).map_err(broken)?;
    let shown = (picture.width(), picture.height());
    let text = format!(
        "`{}`: {name} picture, {width}×{height} pixels, {}; shown as {mime}, {}×{} pixels, {}.",
        path.shown,
        size(bytes.len() as u64),
        shown.0,
        shown.1,
        size(data.len() as u64)
    );
    Ok(answer(path, text, mime, data, (width, height), shown))
}

fn answer(
    path: &ResolvedPath,
    text: String,
    mime: &'static str,
    data: Vec<u8>,
    original: (u32, u32),
    shown: (u32, u32),
) -> Output {
    Output::text(text).with(Content::Image { mime: mime.into(), data }).structured(json!({
        "file": path.shown,
        "mime": mime,
        "width": original.0,
        "height": original.1,
        "shown_width": shown.0,
        "shown_height": shown.1,
    }))
}

/// PNG keeps text on screenshots sharp; photographs, and whatever is too large as PNG, become JPEG on white.
fn encode(picture: &DynamicImage, format: ImageFormat) -> Result<(&'static str, Vec<u8>), image::ImageError> {
    if format != ImageFormat::Jpeg {
        let mut data = Vec::new();
        picture.write_to(&mut Cursor::new(&mut data), ImageFormat::Png)?;
        if data.len() <= IMAGE_ANSWER_BYTES {
            return Ok(("image/png", data));
        }
    }
    let mut flat = picture.to_rgba8();
    for pixel in flat.pixels_mut() {
        let alpha = u16::from(pixel[3]);
        for channel in 0..3 {
            pixel[channel] = ((u16::from(pixel[channel]) * alpha + 255 * (255 - alpha)) / 255) as u8;
        }
        pixel[3] = 255;
    }
    let rgb = DynamicImage::ImageRgba8(flat).to_rgb8();
    let mut data = Vec::new();
    for quality in [90, 75, 50] {
        data.clear();
        JpegEncoder::new_with_quality(&mut data, quality).encode_image(&rgb)?;
        if data.len() <= IMAGE_ANSWER_BYTES {
            break;
        }
    }
    Ok(("image/jpeg", data))
}
