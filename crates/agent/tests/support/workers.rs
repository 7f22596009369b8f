//! A director's calls, for tests of workers.

use haft_agent::{Approve, Conversation, Event, Mode, RunEnd, Transcript, WorkerStatus};
use haft_model::{Answer as Said, ModelError};
use haft_tool::{Origin, Outcome};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{World, calls, never, wait_until};

pub(crate) async fn call(conversation: &Conversation, tool: &str, arguments: Value) -> Outcome {
    conversation.call(tool, arguments, Origin::Console, never()).await
}

pub(crate) async fn spawn(conversation: &Conversation, label: &str, brief: &str) -> Outcome {
    let outcome = call(conversation, "vibe_spawn", json!({"brief": brief, "label": label})).await;
    assert!(!outcome.is_error, "{outcome:?}");
    outcome
}

pub(crate) async fn wait(conversation: &Conversation, id: &str) -> Outcome {
    call(conversation, "vibe_wait", json!({"worker_id": id, "timeout_seconds": 60})).await
}

pub(crate) fn status(conversation: &Conversation, number: usize) -> WorkerStatus {
    conversation.workers()[number - 1].status
}

pub(crate) async fn until(conversation: &Conversation, number: usize, wanted: WorkerStatus) {
    wait_until(&format!("w{number} {wanted}"), || status(conversation, number) == wanted).await;
}

/// A shell command that ends when the file `go` is there, so that a test decides how long a worker works.
pub(crate) fn held(step: usize) -> Result<Said, ModelError> {
    let command = "until [ -e go ]; do sleep 0.02; done; echo went";
    calls(&format!("hold{step}"), &[("shell", json!({"command": command, "timeout_seconds": 60}))])
}

pub(crate) fn told(outcome: &Outcome) -> String {
    format!("{}{}", if outcome.is_error { "ERROR " } else { "" }, outcome.all_text())
}

/// Nothing is open, in the conversation or in those of its workers, and all can be taken up at once.
pub(crate) async fn nothing_is_left(world: &World, conversation: &Conversation) {
    conversation.close().await.unwrap();
    assert_eq!(conversation.with_transcript(Transcript::closing), []);
    for record in world.host.store().conversations(None).await.unwrap() {
        let setup = world.staffed(Mode::Agent, Approve::None);
        let again = world.host.resume(&record.id, setup).await.unwrap();
        let events = world.events(&again).await;
        let lost = Event::RunFinished { end: RunEnd::Lost };
        assert!(!events.contains(&lost), "{}: a run was left open", record.title);
        again.close().await.unwrap();
    }
}
