use std::collections::BTreeMap;

use haft_model::{AssistantPart, Message, ToolResult, Usage, UserPart};
use haft_tool::{CallId, Origin, Outcome};
use serde::Serialize;

use super::{Event, KeptFile, RunEnd};
use crate::{
    Mode,
    cards::{Answer, Card},
    guard::Rule,
    undo::FileRecord,
    vibe::{WorkerEnd, WorkerEvent, WorkerStatus, Workers},
};

/// What a conversation has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Tokens, by the providers' counts.
    pub usage: Usage,
    /// US dollars for the answers of models whose prices are known.
    pub cost: f64,
    /// Answers of models whose prices are not known; `cost` leaves them out.
    pub unpriced_answers: u64,
}

impl Spent {
    /// All tokens, cached or not.
    pub fn tokens(&self) -> u64 {
        let Usage { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens } = self.usage;
        input_tokens + cache_read_tokens + cache_write_tokens + output_tokens
    }
}

/// What the events of a conversation add up to. Pure: the same events give the same transcript, live or after a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// What the model is given. A last assistant message may still wait for results.
    messages: Vec<Message>,
    /// Results of the last assistant message's calls, as they come.
    results: BTreeMap<String, ToolResult>,
    /// Calls that were started and have not come to an end, with who issued them.
    open_calls: BTreeMap<String, (String, Origin)>,
    open_cards: BTreeMap<u64, Card>,
    next_card: u64,
    mode: Mode,
    rules: Vec<Rule>,
    running: bool,
    spent: Spent,
    last_usage: Usage,
    workers: Workers,
    changed: Vec<FileRecord>,
    kept: Vec<KeptFile>,
}

impl Transcript {
    /// Takes in the next event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStarted { mode, .. } => {
                self.running = true;
                self.changed.clear();
                self.mode = *mode;
            }
            Event::RunFinished { .. } => self.running = false,
            Event::UserMessage { parts } => self.messages.push(Message::User { parts: parts.clone() }),
            Event::Reminder { text } => self.messages.push(Message::User {
                parts: vec![UserPart::Text {
                    text: format!("<reminder from=\"haft\">\n{text}\n</reminder>"),
                }],
            }),
            Event::AssistantMessage { parts, usage, cost, .. } => {
                // The answer of a compaction has no parts of its own: its summary is in the event that follows.
                if !parts.is_empty() {
                    self.messages.push(Message::Assistant { parts: parts.clone() });
                    self.results.clear();
                }
                self.last_usage = *usage;
                add(&mut self.spent.usage, usage);
                match cost {
                    Some(cost) => self.spent.cost += cost,
                    None => self.spent.unpriced_answers += 1,
                }
            }
            Event::CallStarted { call, .. } => {
                self.open_calls.insert(call.id.0.clone(), (call.tool.clone(), call.origin));
            }
            Event::CallFinished { id, outcome, kept, .. } => {
                self.kept.extend(kept.iter().cloned());
                if self.open_calls.get(&id.0).is_some_and(|(tool, _)| tool == VIBE_WAIT) {
                    self.workers.delivered_by(&outcome.structured);
                }
                self.finish(id, outcome);
            }
            Event::Worker { worker, event } => self.workers.apply(*worker, event),
            Event::CardOpened { card } => {
                self.next_card = self.next_card.max(card.number);
                self.open_cards.insert(card.number, card.clone());
            }
            Event::CardClosed { number, .. } => {
                self.open_cards.remove(number);
            }
            Event::ModeChanged { mode } => self.mode = *mode,
            Event::RuleAdded { rule } => self.rules.push(rule.clone()),
            Event::Compacted { messages } => {
                self.messages.clone_from(messages);
                self.results.clear();
                self.last_usage = Usage::default();
            }
            Event::FilesChanged { files } => self.changed.extend(files.iter().cloned()),
            Event::ChangesUndone { .. } => self.changed.clear(),
            Event::Notice { .. } => {}
        }
    }

    /// Files that the model was told to read the rest of long output in, the oldest first.
    pub fn kept(&self) -> &[KeptFile] {
        &self.kept
    }

    fn finish(&mut self, id: &CallId, outcome: &Outcome) {
        self.open_calls.remove(&id.0);
        let calls = self.unanswered();
        let Some((_, tool)) = calls.iter().find(|(call, _)| *call == id.0) else { return };
        self.results.insert(
            id.0.clone(),
            ToolResult {
                id: id.0.clone(),
                tool: tool.clone(),
                is_error: outcome.is_error,
                content: outcome.content.clone(),
                structured: outcome.structured.clone(),
            },
        );
        if calls.iter().all(|(call, _)| self.results.contains_key(call)) {
            let results = calls.iter().filter_map(|(call, _)| self.results.remove(call)).collect();
            self.messages.push(Message::Results { results });
        }
    }

    /// The calls of the last assistant message, id and tool, if the results are not complete.
    fn unanswered(&self) -> Vec<(String, String)> {
        let Some(Message::Assistant { parts }) = self.messages.last() else { return Vec::new() };
        parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Call(call) => Some((call.id.clone(), call.tool.clone())),
                _ => None,
            })
            .collect()
    }

    /// The events that close honestly what a dead process left open (SPEC H7): calls, cards, the run. Empty after a clean end.
    pub fn closing(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut close = |id: &str, text: String| {
            events.push(Event::CallFinished {
                id: CallId(id.to_owned()),
                outcome: Outcome::error(text),
                ms: 0.0,
                whole: None,
                kept: Vec::new(),
            });
        };
        for (id, (tool, _)) in &self.open_calls {
            close(
                id,
                format!(
                    "Interrupted: Haft ended while this call of `{tool}` ran. What it had done by then is not known; look before you repeat it."
                ),
            );
        }
        for (id, tool) in self.unanswered() {
            if !self.open_calls.contains_key(&id) && !self.results.contains_key(&id) {
                close(
                    &id,
                    format!(
                        "Interrupted: Haft ended before this call of `{tool}` was started. Nothing was done."
                    ),
                );
            }
        }
        events.extend(
            self.open_cards
                .keys()
                .map(|number| Event::CardClosed { number: *number, answer: Answer::Cancelled }),
        );
        for worker in self.workers.iter().filter(|worker| !worker.status.is_over()) {
            let ended = match worker.status {
                WorkerStatus::Queued => "Haft ended before it began",
                _ => "Haft ended while it worked",
            };
            events.push(Event::Worker {
                worker: worker.number,
                // How long the lost turn took is not known.
                event: WorkerEvent::Ended { end: WorkerEnd::Interrupted, report: ended.into(), ms: 0 },
            });
        }
        if self.running {
            events.push(Event::RunFinished { end: RunEnd::Lost });
        }
        events
    }

    /// What the model is given.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Rules that people added in this conversation.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Cards that wait for an answer.
    pub fn open_cards(&self) -> impl Iterator<Item = &Card> {
        self.open_cards.values()
    }

    /// The last card's number, 0 before the first.
    pub fn last_card(&self) -> u64 {
        self.next_card
    }

    /// Whether a run is going on, or was when the last process ended.
    pub fn running(&self) -> bool {
        self.running
    }

    /// The workers.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// What was done to files since the last run began, in order.
    pub fn changed(&self) -> &[FileRecord] {
        &self.changed
    }

    /// Whether the call was started and has not come to an end.
    pub(crate) fn call_is_open(&self, id: &CallId) -> bool {
        self.open_calls.contains_key(&id.0)
    }

    /// What was used.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// The provider's count for the last answer, zero after a compaction.
    pub fn last_usage(&self) -> Usage {
        self.last_usage
    }
}

/// The call whose outcome delivers results of workers.
const VIBE_WAIT: &str = "vibe_wait";

/// What the model said last, in words; empty when it said nothing.
pub fn last_words(transcript: &Transcript) -> String {
    let last = transcript.messages().iter().rev().find_map(|message| match message {
        Message::Assistant { parts } => Some(parts),
        _ => None,
    });
    last.into_iter()
        .flatten()
        .filter_map(|part| if let AssistantPart::Text { text } = part { Some(text.as_str()) } else { None })
        .collect()
}

fn add(sum: &mut Usage, usage: &Usage) {
    sum.input_tokens += usage.input_tokens;
    sum.cache_read_tokens += usage.cache_read_tokens;
    sum.cache_write_tokens += usage.cache_write_tokens;
    sum.output_tokens += usage.output_tokens;
}
