//! Pictures are kept as artifacts beside the events: an event holds `{"type": "image", "mime": …, "artifact": …}` where the
//! value in memory holds `data` in base64.

use base64::{Engine, engine::general_purpose::STANDARD};
use haft_store::{Artifact, ArtifactId, Store, StoreError};
use serde_json::{Map, Value};

fn images<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            if object.get("type").and_then(Value::as_str) == Some("image") && object.contains_key("mime") {
                found.push(object);
            } else {
                object.values_mut().for_each(|value| images(value, found));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| images(item, found)),
        _ => {}
    }
}

/// Moves the pictures of an event's data into artifacts.
pub(super) async fn take_out(store: &dyn Store, data: &mut Value) -> Result<(), StoreError> {
    let mut found = Vec::new();
    images(data, &mut found);
    for image in found {
        let Some(bytes) =
            image.get("data").and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok())
        else {
            continue;
        };
        let mime = image.get("mime").and_then(Value::as_str).unwrap_or_default().to_owned();
        let ArtifactId(id) = store.put_artifact(Artifact { mime, data: bytes }).await?;
        image.remove("data");
        image.insert("artifact".into(), Value::String(id));
    }
    Ok(())
}

/// Puts the pictures back.
pub(super) async fn put_back(store: &dyn Store, data: &mut Value) -> Result<(), StoreError> {
    let mut found = Vec::new();
    images(data, &mut found);
    for image in found {
        let Some(Value::String(id)) = image.remove("artifact") else { continue };
        let artifact = store.artifact(&ArtifactId(id)).await?;
        image.insert("data".into(), Value::String(STANDARD.encode(artifact.data)));
    }
    Ok(())
}
