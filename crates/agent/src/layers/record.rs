use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use haft_store::ArtifactId;
use haft_tool::{Admission, CallId, Context, Layer, Next, Outcome, Place};

use crate::transcript::{Event, Journal, KeptFile};

/// What is kept of long output of calls under way, from whoever cut it to the layer that records it.
#[derive(Clone, Default)]
pub(crate) struct Wholes(Arc<Mutex<HashMap<CallId, Held>>>);

#[derive(Default)]
struct Held {
    /// The whole text of the call's answer.
    whole: Option<ArtifactId>,
    kept: Vec<KeptFile>,
}

impl Wholes {
    /// The whole text of a call's answer.
    pub(crate) fn put(&self, call: CallId, artifact: ArtifactId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default().whole = Some(artifact);
    }

    /// A file that the answer names.
    pub(crate) fn put_file(&self, call: CallId, kept: KeptFile) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default().kept.push(kept);
    }

    fn take(&self, call: &CallId) -> Held {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(call).unwrap_or_default()
    }
}

/// How the record names a file in a conversation's directory for outputs.
pub(crate) fn kept_name(outputs: &Path, file: &Path) -> String {
    let last = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    format!("outputs/{}/{}", last(outputs), last(file))
}

/// Writes a call into the transcript before it is made and its outcome after it, refused calls too. A call that cannot be recorded is not
/// made.
pub(crate) struct Record {
    pub(crate) journal: Arc<Journal>,
    pub(crate) wholes: Wholes,
}

#[async_trait]
impl Layer for Record {
    fn place(&self) -> Place {
        Place::Record
    }

    async fn around(&self, admission: Admission<'_>, context: Context, next: Next<'_>) -> Outcome {
        let started = Event::CallStarted { call: admission.call.clone(), surface: admission.surface.kind() };
        if let Err(error) = self.journal.append_soon(vec![started]).await {
            tracing::error!(%error, "a call could not be recorded");
            return Outcome::error(format!(
                "Not done: the call could not be recorded in the transcript ({error})."
            ));
        }
        let begin = Instant::now();
        let outcome = next.run(context).await;
        let id = admission.call.id.clone();
        let Held { whole, kept } = self.wholes.take(&id);
        let finished = Event::CallFinished {
            id,
            outcome: outcome.clone(),
            ms: begin.elapsed().as_secs_f64() * 1e3,
            whole,
            kept,
        };
        // Not waited for until it is on the disk: the model's next answer takes it there, or the next second.
        match self.journal.append_soon(vec![finished]).await {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(%error, "an outcome could not be recorded");
                let mut outcome = outcome;
                outcome.is_error = true;
                outcome.content.insert(
                    0,
                    haft_tool::Content::text(format!(
                        "The call was made, but its outcome could not be recorded ({error})."
                    )),
                );
                outcome
            }
        }
    }
}
