//! The way of a cell's `tool(…)` back into the registry of its run (SPEC E4, R7).

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use haft_kernel::Bridge;
use haft_tool::{Call, CallId, Context, Origin, Outcome, Registry, Surface};
use serde_json::Value;

use crate::{
    Transcript,
    layers::{Wholes, kept_name},
    transcript::{Journal, KeptFile},
};

/// What a cell prints is text, in whatever encoding.
const OUTPUT_MIME: &str = "text/plain";

/// Made before the registry that it leads to, because the registry holds the tool that holds it.
pub(crate) struct Cells {
    registry: OnceLock<Weak<Registry>>,
    journal: Arc<Journal>,
    /// The surface, where it does not follow the mode.
    surface: Option<Surface>,
    calls: AtomicU64,
    wholes: Wholes,
    /// Where files with long output are.
    outputs: PathBuf,
}

impl Cells {
    pub(crate) fn new(
        journal: Arc<Journal>,
        surface: Option<Surface>,
        wholes: Wholes,
        outputs: PathBuf,
    ) -> Self {
        Cells { registry: OnceLock::new(), journal, surface, calls: AtomicU64::new(0), wholes, outputs }
    }

    /// Says where calls go; the first word counts.
    pub(crate) fn lead_to(&self, registry: &Arc<Registry>) {
        let _ = self.registry.set(Arc::downgrade(registry));
    }
}

#[async_trait]
impl Bridge for Cells {
    async fn call(&self, tool: String, arguments: Value, from: Context) -> Outcome {
        let Some(registry) = self.registry.get().and_then(Weak::upgrade) else {
            return Outcome::error("The conversation is ending; no tool is called any more.");
        };
        // As it is now: a person may have changed the mode while the cell runs.
        let surface =
            self.surface.unwrap_or_else(|| self.journal.with_transcript(Transcript::mode).surface());
        // The cell's call is unique in the conversation, and so is this one.
        let id = CallId(format!("{}.{}", from.call, self.calls.fetch_add(1, Ordering::Relaxed) + 1));
        registry.call(&surface, Call { id, tool, arguments, origin: Origin::Cell }, from).await
    }

    async fn keep(&self, file: &Path, from: &Context) -> Result<Option<String>, String> {
        let (artifact, bytes) =
            self.journal.store().put_file(OUTPUT_MIME, file).await.map_err(|error| error.to_string())?;
        let name = artifact.0.clone();
        let kept = KeptFile { file: kept_name(&self.outputs, file), artifact, bytes };
        self.wholes.put_file(from.call.clone(), kept);
        Ok(Some(name))
    }
}
