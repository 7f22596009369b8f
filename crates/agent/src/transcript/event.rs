use haft_model::{AssistantPart, Message, StopReason, Usage, UserPart};
use haft_store::{ArtifactId, NewEvent, StoredEvent};
use haft_tool::{Call, CallId, Outcome, SurfaceKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Mode,
    cards::{Answer, Card},
    guard::Rule,
    undo::FileRecord,
    vibe::WorkerEvent,
};

/// Something that happened in a conversation. Events are appended and never changed; everything that is shown of a
/// conversation is a fold over them ([`super::Transcript`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Event {
    /// A run began.
    RunStarted {
        /// The mode it began in.
        mode: Mode,
        /// `provider/NAME`; none for a console, whose calls come from outside.
        model: Option<String>,
    },
    /// A person said something.
    UserMessage {
        /// The pieces.
        parts: Vec<UserPart>,
    },
    /// The model said something, calls included.
    AssistantMessage {
        /// The pieces, in order.
        parts: Vec<AssistantPart>,
        /// Why it ended.
        stop: StopReason,
        /// The provider's count.
        usage: Usage,
        /// US dollars, where the model's prices are known.
        cost: Option<f64>,
        /// `provider/NAME`.
        model: String,
    },
    /// A call is about to be made. Written before anything is done.
    CallStarted {
        /// The call.
        call: Call,
        /// Through which surface.
        surface: SurfaceKind,
    },
    /// A call came to an end.
    CallFinished {
        /// Which.
        id: CallId,
        /// What it came to, as the model got it.
        outcome: Outcome,
        /// Wall time in milliseconds.
        ms: f64,
        /// The whole text, where the model got a part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<ArtifactId>,
        /// Files that the model was told to read the rest in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<KeptFile>,
    },
    /// A person was asked.
    CardOpened {
        /// What.
        card: Card,
    },
    /// A card was answered, or nobody will answer it any more.
    CardClosed {
        /// Which.
        number: u64,
        /// The answer.
        answer: Answer,
    },
    /// A person changed the mode.
    ModeChanged {
        /// The new one.
        mode: Mode,
    },
    /// "Always allow" wrote a rule for this conversation.
    RuleAdded {
        /// The rule.
        rule: Rule,
    },
    /// What came before was replaced, for the model, by these messages. The record keeps it all.
    Compacted {
        /// What the model is given from here on instead.
        messages: Vec<Message>,
    },
    /// Haft itself tells the model something between its steps.
    Reminder {
        /// Complete sentences.
        text: String,
    },
    /// Something happened to a worker of this conversation.
    Worker {
        /// Which: 1 for `w1`.
        worker: u64,
        /// What.
        event: WorkerEvent,
    },
    /// Files were changed through the change set.
    FilesChanged {
        /// In the order in which it was done.
        files: Vec<FileRecord>,
    },
    /// A person has undone the file changes of the last run.
    ChangesUndone {
        /// As shown to people.
        files: Vec<String>,
    },
    /// Something that people should know: a crash recovery, settings that were not used.
    Notice {
        /// Complete sentences.
        text: String,
    },
    /// A run ended.
    RunFinished {
        /// How.
        end: RunEnd,
    },
}

/// A file with the whole of long output, and the artifact that holds the same bytes (SPEC E6, H7). Where the file is gone, it is made
/// again from the artifact when the conversation is taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its place in the state directory: `outputs/CONVERSATION/NAME`.
    pub file: String,
    /// The bytes.
    pub artifact: ArtifactId,
    /// How many there are.
    pub bytes: u64,
}

impl KeptFile {
    /// `CONVERSATION/NAME`, where `file` is what this version writes.
    pub fn place(&self) -> Option<(&str, &str)> {
        let plain = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        let (conversation, name) = self.file.strip_prefix("outputs/")?.split_once('/')?;
        (plain(conversation) && plain(name)).then_some((conversation, name))
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum RunEnd {
    /// The model had said what it wanted.
    Completed,
    /// A person stopped it.
    Interrupted,
    /// It ran into a bound: steps, or a loop that does not get on.
    Stopped {
        /// Which bound, in words.
        why: String,
    },
    /// It could not go on.
    Failed {
        /// Why, in words.
        error: String,
    },
    /// Haft ended while it ran: killed, crashed, or the machine went down.
    Lost,
}

impl Event {
    /// The event as the store keeps it.
    pub fn to_new(&self, at_ms: i64) -> NewEvent {
        let (kind, data) = match serde_json::to_value(self) {
            Ok(Value::Object(mut object)) => {
                let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
                (kind, object.remove("data").unwrap_or(Value::Null))
            }
            // Every event is a struct of plain data with string keys, which always serialises to an object.
            _ => (String::new(), Value::Null),
        };
        NewEvent { kind, data, at_ms }
    }

    /// The event that the store kept; the error says which one does not read.
    pub fn from_stored(stored: &StoredEvent) -> Result<Self, String> {
        let object = serde_json::json!({"kind": stored.event.kind, "data": stored.event.data});
        serde_json::from_value(object).map_err(|error| {
            format!("event {} ({}) does not read: {error}", stored.sequence, stored.event.kind)
        })
    }
}
