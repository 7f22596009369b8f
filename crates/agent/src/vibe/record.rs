//! What the events of a conversation say about its workers.

use std::{collections::BTreeMap, fmt};

use haft_store::ConversationId;
use haft_tool::CallId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::worktree::Worktree;

/// Which of the configured models a worker has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerTier {
    /// Mechanical work with a clear specification.
    #[default]
    Fast,
    /// Design, judgement, review.
    Good,
}

impl JsonSchema for WorkerTier {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WorkerTier".into()
    }

    // Derived, it would be a choice of schemas, and an error about it would speak of schemas.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["fast", "good"]})
    }
}

impl fmt::Display for WorkerTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WorkerTier::Fast => "fast",
            WorkerTier::Good => "good",
        })
    }
}

/// How a worker's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerEnd {
    /// It has said what it wanted.
    Settled,
    /// It could not go on, or ran into a bound.
    Failed,
    /// Haft ended while it worked, or a person left vibe mode. It can be sent on.
    Interrupted,
    /// By its director. It stays dead.
    Killed,
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerStatus {
    /// Waits for a place.
    Queued,
    /// Works.
    Running,
    /// See [`WorkerEnd`].
    Settled,
    /// See [`WorkerEnd`].
    Failed,
    /// See [`WorkerEnd`].
    Interrupted,
    /// See [`WorkerEnd`].
    Killed,
}

impl WorkerStatus {
    /// Whether nothing more will come unless somebody sends it on.
    pub fn is_over(self) -> bool {
        !matches!(self, WorkerStatus::Queued | WorkerStatus::Running)
    }
}

impl fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WorkerStatus::Queued => "queued",
            WorkerStatus::Running => "running",
            WorkerStatus::Settled => "settled",
            WorkerStatus::Failed => "failed",
            WorkerStatus::Interrupted => "interrupted",
            WorkerStatus::Killed => "killed",
        })
    }
}

impl From<WorkerEnd> for WorkerStatus {
    fn from(end: WorkerEnd) -> Self {
        match end {
            WorkerEnd::Settled => WorkerStatus::Settled,
            WorkerEnd::Failed => WorkerStatus::Failed,
            WorkerEnd::Interrupted => WorkerStatus::Interrupted,
            WorkerEnd::Killed => WorkerStatus::Killed,
        }
    }
}

/// What a worker's turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerResult {
    /// Counted per worker from 1.
    pub turn: u64,
    /// How it ended.
    pub end: WorkerEnd,
    /// The worker's last words, or why there are none.
    pub report: String,
}

/// A worker as the events tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Counted in the conversation from 1.
    pub number: u64,
    /// What its director calls it.
    pub label: String,
    /// Its model.
    pub tier: WorkerTier,
    /// Its own conversation.
    pub conversation: ConversationId,
    /// Its own worktree, if it has one.
    pub worktree: Option<Worktree>,
    /// What it is doing.
    pub status: WorkerStatus,
    /// Time of the turns that came to an end, in milliseconds.
    pub worked_ms: u64,
    /// Messages that it has not read yet, the brief first.
    pub pending: Vec<String>,
    /// Turns that came to an end.
    pub turns: u64,
    /// Results that its director has not been given yet.
    pub undelivered: Vec<WorkerResult>,
    /// What its last turn came to.
    pub last: Option<WorkerResult>,
}

impl Worker {
    /// `w1`.
    pub fn id(&self) -> String {
        worker_id(self.number)
    }
}

/// `w1` for 1.
pub(crate) fn worker_id(number: u64) -> String {
    format!("w{number}")
}

/// Something that happened to a worker. Recorded in its director's conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum WorkerEvent {
    /// It was put to work.
    Spawned {
        /// What its director calls it.
        label: String,
        /// Its model.
        tier: WorkerTier,
        /// Its own conversation.
        conversation: ConversationId,
        /// What it is to do.
        brief: String,
        /// Its own worktree, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Worktree>,
    },
    /// Its director has sent it more.
    Sent {
        /// What.
        message: String,
    },
    /// It has a place and goes to work.
    Started,
    /// So many messages, the oldest first, are in its own conversation now.
    Read {
        /// How many.
        count: usize,
    },
    /// Its turn came to an end.
    Ended {
        /// How.
        end: WorkerEnd,
        /// Its last words, or why there are none.
        report: String,
        /// How long the turn took, in milliseconds.
        ms: u64,
    },
    /// Its director was given a result with the reminder that is recorded beside this event.
    Delivered {
        /// The result's turn.
        turn: u64,
    },
}

/// All workers of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workers {
    all: BTreeMap<u64, Worker>,
}

impl Workers {
    /// Takes in the next event.
    pub(crate) fn apply(&mut self, number: u64, event: &WorkerEvent) {
        if let WorkerEvent::Spawned { label, tier, conversation, brief, worktree } = event {
            let worker = Worker {
                number,
                label: label.clone(),
                tier: *tier,
                conversation: conversation.clone(),
                worktree: worktree.clone(),
                status: WorkerStatus::Queued,
                worked_ms: 0,
                pending: vec![brief.clone()],
                turns: 0,
                undelivered: Vec::new(),
                last: None,
            };
            self.all.insert(number, worker);
            return;
        }
        let Some(worker) = self.all.get_mut(&number) else { return };
        match event {
            WorkerEvent::Spawned { .. } => {}
            WorkerEvent::Sent { message } => {
                worker.pending.push(message.clone());
                if worker.status.is_over() {
                    worker.status = WorkerStatus::Queued;
                }
            }
            WorkerEvent::Started => worker.status = WorkerStatus::Running,
            WorkerEvent::Read { count } => drop(worker.pending.drain(..(*count).min(worker.pending.len()))),
            WorkerEvent::Ended { end, report, ms } => {
                worker.worked_ms += ms;
                worker.status = (*end).into();
                if *end == WorkerEnd::Killed {
                    worker.pending.clear();
                    return;
                }
                worker.turns += 1;
                let result = WorkerResult { turn: worker.turns, end: *end, report: report.clone() };
                worker.undelivered.push(result.clone());
                worker.last = Some(result);
                // Something came in after its last step: it is as good as queued again.
                if *end != WorkerEnd::Interrupted && !worker.pending.is_empty() {
                    worker.status = WorkerStatus::Queued;
                }
            }
            WorkerEvent::Delivered { turn } => worker.undelivered.retain(|result| result.turn != *turn),
        }
    }

    /// A result of `vibe_wait` delivers what it says it does: in the same event, so that neither can be recorded without the other.
    pub(crate) fn delivered_by(&mut self, structured: &Map<String, Value>) {
        let Some(Value::Array(delivered)) = structured.get(DELIVERED) else { return };
        for one in delivered {
            let (Some(id), Some(turn)) = (one["worker_id"].as_str(), one["turn"].as_u64()) else { continue };
            if let Some(number) = id.strip_prefix('w').and_then(|number| number.parse().ok()) {
                self.apply(number, &WorkerEvent::Delivered { turn });
            }
        }
    }

    /// The worker of that number.
    pub fn get(&self, number: u64) -> Option<&Worker> {
        self.all.get(&number)
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.all.values()
    }

    /// The next one's number.
    pub(crate) fn next(&self) -> u64 {
        self.all.keys().next_back().map_or(1, |last| last + 1)
    }
}

/// The field of `structured` that says which results a call delivers.
pub(crate) const DELIVERED: &str = "delivered";

/// Its value.
pub(crate) fn delivered(results: &[(u64, u64)]) -> Value {
    results.iter().map(|(number, turn)| json!({"worker_id": worker_id(*number), "turn": turn})).collect()
}

/// Results that somebody is about to deliver, by worker and turn.
pub(crate) type Claims = BTreeMap<(u64, u64), Claim>;

/// Who is about to deliver a result.
pub(crate) enum Claim {
    /// A call; the claim holds as long as the call is open.
    Call(CallId),
    /// A reminder that is being recorded.
    Reminder,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn spawned() -> Workers {
        let mut workers = Workers::default();
        let spawned = WorkerEvent::Spawned {
            label: "one".into(),
            tier: WorkerTier::Fast,
            conversation: ConversationId("c".into()),
            brief: "Work.".into(),
            worktree: None,
        };
        workers.apply(1, &spawned);
        workers
    }

    fn events() -> impl Strategy<Value = Vec<WorkerEvent>> {
        let end = prop_oneof![
            Just(WorkerEnd::Settled),
            Just(WorkerEnd::Failed),
            Just(WorkerEnd::Interrupted),
            Just(WorkerEnd::Killed)
        ];
        let event = prop_oneof![
            Just(WorkerEvent::Started),
            "[a-z]{1,3}".prop_map(|message| WorkerEvent::Sent { message }),
            (0usize..4).prop_map(|count| WorkerEvent::Read { count }),
            end.prop_map(|end| WorkerEvent::Ended { end, report: "r".into(), ms: 1 }),
            (1u64..6).prop_map(|turn| WorkerEvent::Delivered { turn }),
        ];
        prop::collection::vec(event, 0..40)
    }

    proptest! {
        /// Every turn that came to an end, a kill apart, waits to be delivered until it is, and never comes back.
        #[test]
        fn a_result_is_never_lost_and_never_there_twice(events in events()) {
            let mut workers = spawned();
            let (mut turns, mut delivered) = (0, BTreeSet::new());
            for event in &events {
                workers.apply(1, event);
                match event {
                    WorkerEvent::Ended { end, .. } if *end != WorkerEnd::Killed => turns += 1,
                    WorkerEvent::Delivered { turn } if *turn <= turns => {
                        delivered.insert(*turn);
                    }
                    _ => {}
                }
                let worker = workers.get(1).unwrap();
                let waiting: Vec<u64> = worker.undelivered.iter().map(|result| result.turn).collect();
                let expected: Vec<u64> = (1..=turns).filter(|turn| !delivered.contains(turn)).collect();
                prop_assert_eq!(waiting, expected);
            }
        }

        /// A message stays until it is read, in its order, unless the worker is killed.
        #[test]
        fn a_message_is_read_once_and_in_order(events in events()) {
            let (mut workers, mut inbox) = (spawned(), vec!["Work.".to_owned()]);
            for event in &events {
                workers.apply(1, event);
                match event {
                    WorkerEvent::Sent { message } => inbox.push(message.clone()),
                    WorkerEvent::Read { count } => drop(inbox.drain(..(*count).min(inbox.len()))),
                    WorkerEvent::Ended { end: WorkerEnd::Killed, .. } => inbox.clear(),
                    _ => {}
                }
                prop_assert_eq!(&workers.get(1).unwrap().pending, &inbox);
            }
        }
    }

    #[test]
    fn what_a_wait_says_it_delivers_is_delivered() {
        let mut workers = spawned();
        for _ in 0..2 {
            workers.apply(1, &WorkerEvent::Ended { end: WorkerEnd::Settled, report: "r".into(), ms: 1 });
        }
        let structured = Map::from_iter([(DELIVERED.to_owned(), delivered(&[(1, 2), (7, 1)]))]);
        workers.delivered_by(&structured);
        let waiting: Vec<u64> =
            workers.get(1).unwrap().undelivered.iter().map(|result| result.turn).collect();
        assert_eq!(waiting, [1]);
    }
}
