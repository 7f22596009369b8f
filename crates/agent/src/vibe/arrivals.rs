//! What reaches a conversation between its steps: results for the director, messages for a worker.

use std::sync::Arc;

use async_trait::async_trait;
use haft_model::UserPart;

use super::{Roster, WorkerEvent, record::Claim, words};
use crate::{Conversation, Event, JournalError, run::Arrivals};

/// The director gets results between its steps, in the same append that marks them as delivered.
#[async_trait]
impl Arrivals for Roster {
    async fn take(&self) -> Result<(), JournalError> {
        let (results, _reminding) = {
            let mut claims = self.claims();
            let results = self.unclaimed(&claims, None);
            let keys: Vec<(u64, u64)> =
                results.iter().map(|(worker, result)| (worker.number, result.turn)).collect();
            claims.extend(keys.iter().map(|key| (*key, Claim::Reminder)));
            (results, Reminding { roster: self, keys })
        };
        if results.is_empty() {
            return Ok(());
        }
        let mut events: Vec<Event> = results
            .iter()
            .map(|(worker, result)| Event::Worker {
                worker: worker.number,
                event: WorkerEvent::Delivered { turn: result.turn },
            })
            .collect();
        events.push(Event::Reminder { text: words::results(&results) });
        self.journal.append(events).await
    }
}

/// Claims of a reminder that is being recorded. Once it is, the events say that the results were delivered.
struct Reminding<'a> {
    roster: &'a Roster,
    keys: Vec<(u64, u64)>,
}

impl Drop for Reminding<'_> {
    fn drop(&mut self) {
        let mut claims = self.roster.claims();
        for key in &self.keys {
            claims.remove(key);
        }
    }
}

/// A worker gets its messages between its steps.
pub(super) struct Inbox {
    pub(super) roster: Arc<Roster>,
    pub(super) conversation: Arc<Conversation>,
    pub(super) number: u64,
}

#[async_trait]
impl Arrivals for Inbox {
    async fn take(&self) -> Result<(), JournalError> {
        let pending = self.roster.journal.with_transcript(|transcript| {
            transcript.workers().get(self.number).map(|worker| worker.pending.clone()).unwrap_or_default()
        });
        if pending.is_empty() {
            return Ok(());
        }
        let count = pending.len();
        let parts = pending.into_iter().map(|text| UserPart::Text { text }).collect();
        // First said, then marked: a process that dies in between says it twice rather than never.
        self.conversation.say(parts).await?;
        self.roster.record(vec![(self.number, WorkerEvent::Read { count })]).await
    }
}
