//! How workers are spoken of.

use std::time::Duration;

use haft_store::ConversationId;
use haft_tool::{Output, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::record::{Worker, WorkerEnd, WorkerResult, WorkerStatus, WorkerTier, Workers};
use crate::limits::WORKER_LISTED;

/// A worker as lists show it (SPEC section 10, `workers[]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerLine {
    /// `w1`.
    pub worker_id: String,
    /// What its director calls it.
    pub label: String,
    /// Its model.
    pub tier: WorkerTier,
    /// What it is doing.
    pub status: WorkerStatus,
    /// Time that it has worked, all turns together, in milliseconds. Waiting for a place does not count.
    pub elapsed_ms: u64,
    /// The beginning of what its last turn came to.
    pub last_result: Option<String>,
    /// Its own conversation.
    pub conversation: ConversationId,
}

impl WorkerLine {
    /// `working` is the time of the turn that is going on.
    pub(super) fn new(worker: &Worker, working: Option<&Duration>) -> Self {
        let now = working.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        WorkerLine {
            worker_id: worker.id(),
            label: worker.label.clone(),
            tier: worker.tier,
            status: worker.status,
            elapsed_ms: worker.worked_ms.saturating_add(now),
            last_result: worker.last.as_ref().map(|result| short(&result.report)),
            conversation: worker.conversation.clone(),
        }
    }

    /// `w1 (tests), fast, running for 12.0 s`.
    pub fn in_words(&self) -> String {
        let WorkerLine { worker_id, label, tier, status, elapsed_ms, .. } = self;
        let seconds = *elapsed_ms as f64 / 1e3;
        format!("{worker_id} ({label}), {tier}: {status}, worked {seconds:.1} s")
    }
}

/// `w1 (tests)`.
pub(super) fn name(worker: &Worker) -> String {
    format!("{} ({})", worker.id(), worker.label)
}

/// An answer about one worker.
pub(super) fn about(text: impl Into<String>, id: &str, lines: Vec<WorkerLine>) -> Output {
    Output::text(text).structured(fields(id, lines))
}

/// The fields of an answer about one worker.
pub(super) fn fields(id: &str, lines: Vec<WorkerLine>) -> Value {
    let own: Vec<WorkerLine> = lines.into_iter().filter(|line| line.worker_id == id).collect();
    json!({"worker_id": id, "workers": own})
}

/// The error for an id that no worker has.
pub(super) fn unknown(id: &str, workers: &Workers) -> ToolError {
    let known: Vec<String> =
        workers.iter().map(|worker| format!("{}, {}", name(worker), worker.status)).collect();
    ToolError::model(if known.is_empty() {
        format!("There is no worker `{id}`: none was spawned in this conversation.")
    } else {
        format!("There is no worker `{id}`. There are: {}.", known.join("; "))
    })
}

/// Results, each under a line that says whose it is and how its turn ended.
pub(super) fn results(results: &[(Worker, WorkerResult)]) -> String {
    let mut text = String::new();
    for (worker, result) in results {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&result_words(worker, result));
    }
    text
}

fn result_words(worker: &Worker, result: &WorkerResult) -> String {
    let (name, report) = (name(worker), &result.report);
    match result.end {
        WorkerEnd::Settled if report.is_empty() => format!("Worker {name} has settled without a word."),
        WorkerEnd::Settled => format!("Worker {name} has settled. Its report:\n{report}"),
        WorkerEnd::Failed => format!("Worker {name} failed: {report}"),
        WorkerEnd::Interrupted => format!(
            "Worker {name} was interrupted: {}. What it had done by then stands; `vibe_send` lets it go on.",
            if report.is_empty() { "Haft ended" } else { report }
        ),
        WorkerEnd::Killed => format!("Worker {name} was killed."),
    }
}

/// At most so many characters; what is left out is said, and where it is.
pub(super) fn cut(text: &str, most: usize, conversation: &ConversationId) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!(
            "{}\n[… {} more characters; the whole is in the worker's conversation {conversation}]",
            &text[..at],
            text[at..].chars().count()
        ),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(WORKER_LISTED) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
