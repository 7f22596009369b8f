//! Vibe mode: a conversation that directs workers (SPEC V1, V2).
//!
//! What is known of a worker is in its director's events ([`Workers`]); the [`Roster`] holds what is alive: the tasks that drive workers and
//! their open conversations. A worker's inbox is the list of messages that the events say it has not read, so nothing that was said to it
//! is lost with a process.

mod arrivals;
mod kill;
mod list;
mod record;
mod send;
mod spawn;
mod wait;
mod words;
mod worktree;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use haft_model::Model;
use haft_store::ConversationId;
use haft_tool::{CallId, Tier, ToolError};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::worktree::Worktrees;
use self::{
    arrivals::Inbox,
    record::{Claim, Claims, worker_id},
};
pub(crate) use self::{kill::VibeKill, list::VibeList, send::VibeSend, spawn::VibeSpawn, wait::VibeWait};
pub use self::{
    record::{Worker, WorkerEnd, WorkerEvent, WorkerResult, WorkerStatus, WorkerTier, Workers},
    words::WorkerLine,
    worktree::Worktree,
};
use crate::{
    Conversation, Event, Journal, JournalError, Mode, RunEnd, Transcript,
    conversation::Bounds,
    helper::Nursery,
    limits::{WORKER_REPORT, WORKERS, WORKERS_AT_ONCE},
    transcript::last_words,
};

/// The workers of a conversation, as far as they are alive.
pub(crate) struct Roster {
    nursery: Nursery,
    journal: Arc<Journal>,
    /// What workers may do at most.
    ceiling: Tier,
    worktrees: Worktrees,
    places: Arc<Semaphore>,
    live: Mutex<BTreeMap<u64, Live>>,
    /// Conversations of workers that have worked in this process; they keep their background jobs between turns.
    open: Mutex<BTreeMap<u64, Kept>>,
    claims: Mutex<Claims>,
    /// Counts what happened, for those who wait.
    news: watch::Sender<u64>,
}

/// A worker that is queued or running.
struct Live {
    cancel: CancellationToken,
    why: Option<Stop>,
    since: Option<Instant>,
}

/// Why a worker is stopped.
#[derive(Clone)]
enum Stop {
    Killed,
    Interrupted(&'static str),
}

#[derive(Clone)]
struct Kept {
    conversation: Arc<Conversation>,
    /// A script goes on where it was.
    model: Arc<dyn Model>,
}

impl Roster {
    pub(crate) fn new(nursery: Nursery, journal: Arc<Journal>, ceiling: Tier, worktrees: Worktrees) -> Self {
        Roster {
            nursery,
            journal,
            ceiling,
            worktrees,
            places: Arc::new(Semaphore::new(WORKERS_AT_ONCE)),
            live: Mutex::default(),
            open: Mutex::default(),
            claims: Mutex::default(),
            news: watch::Sender::new(0),
        }
    }

    /// Puts a worker to work; returns its number and whether it has to wait for a place.
    async fn spawn(
        self: &Arc<Self>,
        label: String,
        tier: WorkerTier,
        brief: String,
        worktree: bool,
    ) -> Result<(u64, bool), ToolError> {
        self.nursery
            .model(self.model_name(tier), tier_key(tier))
            .map_err(|why| ToolError::model(format!("No worker was spawned: {why}")))?;
        let roster = Arc::clone(self);
        // In a task of its own: a caller that gives up half-way must not leave a worker that nobody drives.
        finish(tokio::spawn(async move {
            let conversation = ConversationId::new();
            let number = {
                let mut live = roster.live();
                let (number, many) = roster.journal.with_transcript(|transcript| {
                    let workers = transcript.workers();
                    let alive = workers.iter().filter(|worker| worker.status != WorkerStatus::Killed).count();
                    (workers.next(), alive)
                });
                // Spawns that are being recorded have their numbers in `live` already.
                let recording = live.keys().filter(|live| **live >= number).count();
                let number = live.keys().next_back().map_or(number, |last| number.max(last + 1));
                if many + recording >= WORKERS {
                    return Err(ToolError::model(format!(
                        "No worker was spawned: there are {WORKERS}, which is the most there may be. Send one that has settled on with `vibe_send`, or \
                         end one with `vibe_kill`."
                    )));
                }
                live.insert(number, Live::new());
                number
            };
            let mut leaving = Leaving { roster: &roster, number: Some(number) };
            let worktree = if worktree {
                let made = roster.worktrees.make(&conversation.0).await;
                Some(made.map_err(|why| {
                    ToolError::model(format!(
                        "No worker was spawned: {why}. Without `worktree` it works in your directory."
                    ))
                })?)
            } else {
                None
            };
            let spawned = WorkerEvent::Spawned { label, tier, conversation, brief, worktree: worktree.clone() };
            if let Err(error) = roster.record(vec![(number, spawned)]).await {
                if let Some(worktree) = &worktree
                    && let Err(error) = roster.worktrees.remove(worktree).await
                {
                    tracing::warn!(%error, "a worktree was not removed");
                }
                return Err(ToolError::operator(error.to_string()));
            }
            leaving.number = None;
            Ok((number, roster.drive(number)))
        }))
        .await
    }

    /// Gives a worker more to do; returns its status before and whether it has to wait for a place.
    async fn send(
        self: &Arc<Self>,
        id: &str,
        message: String,
    ) -> Result<(Worker, WorkerStatus, bool), ToolError> {
        let worker = self.find(id)?;
        if worker.status == WorkerStatus::Killed {
            return Err(ToolError::model(format!(
                "{} was killed and takes no more messages. Spawn another worker.",
                words::name(&worker)
            )));
        }
        let roster = Arc::clone(self);
        finish(tokio::spawn(async move {
            let number = worker.number;
            roster
                .record(vec![(number, WorkerEvent::Sent { message })])
                .await
                .map_err(|error| ToolError::operator(error.to_string()))?;
            let idle = {
                let mut live = roster.live();
                match live.get(&number) {
                    // Whoever drives it looks for messages before it lets go.
                    Some(_) => false,
                    None => live.insert(number, Live::new()).is_none(),
                }
            };
            let queued = idle && roster.drive(number);
            let before = worker.status;
            Ok((worker, before, queued))
        }))
        .await
    }

    /// Ends a worker and everything that it started; returns what it was doing.
    async fn kill(self: &Arc<Self>, id: &str) -> Result<(Worker, WorkerStatus), ToolError> {
        let worker = self.find(id)?;
        let before = worker.status;
        if before == WorkerStatus::Killed {
            return Ok((worker, before));
        }
        let roster = Arc::clone(self);
        finish(tokio::spawn(async move {
            let number = worker.number;
            let idle = {
                let mut live = roster.live();
                let idle = !live.contains_key(&number);
                live.entry(number).or_insert_with(Live::new).stop(Stop::Killed);
                idle
            };
            if idle {
                roster.drive(number);
            }
            roster.gone(number).await;
            Ok((worker, before))
        }))
        .await
    }

    /// Stops all that are queued or running, and closes the conversations of all.
    pub(crate) async fn stop_all(self: &Arc<Self>, why: &'static str) -> Vec<String> {
        let stopped: Vec<u64> = {
            let mut live = self.live();
            live.values_mut().for_each(|live| live.stop(Stop::Interrupted(why)));
            live.keys().copied().collect()
        };
        for number in &stopped {
            self.gone(*number).await;
        }
        let open: Vec<u64> = self.open().keys().copied().collect();
        for number in open {
            self.close(number).await;
        }
        self.journal.with_transcript(|transcript| {
            let workers = transcript.workers();
            stopped.iter().filter_map(|number| workers.get(*number)).map(words::name).collect()
        })
    }

    /// Cancels everything without waiting, for when nobody is left to wait.
    fn abandon(&self) {
        self.live()
            .values_mut()
            .for_each(|live| live.stop(Stop::Interrupted("its conversation was dropped")));
    }

    /// Begins to drive a worker that is in `live`; says whether it has to wait for a place.
    fn drive(self: &Arc<Self>, number: u64) -> bool {
        let queued = self.places.available_permits() == 0
            || self.live().values().filter(|live| live.since.is_none()).count()
                > self.places.available_permits();
        tokio::spawn(Arc::clone(self).work(number));
        queued
    }

    /// Drives a worker until nothing is left for it to do.
    async fn work(self: Arc<Self>, number: u64) {
        let Some(cancel) = self.live().get(&number).map(|live| live.cancel.clone()) else { return };
        let mut leaving = Leaving { roster: &self, number: Some(number) };
        loop {
            let place = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                place = Arc::clone(&self.places).acquire_owned() => place.ok(),
            };
            let begin = Instant::now();
            let (mut end, mut report) = (WorkerEnd::Interrupted, String::new());
            if place.is_some() {
                // Leaving the mode and spawning meet here: what is not stopped is seen by this look.
                let mode = self.journal.with_transcript(Transcript::mode);
                if mode == Mode::Vibe {
                    if let Some(live) = self.live().get_mut(&number) {
                        live.since = Some(begin);
                    }
                    (end, report) = self.turn(number, &cancel).await;
                } else {
                    report = "vibe mode was left before it began".to_owned();
                }
            }
            let why = self.live().get(&number).and_then(|live| live.why.clone());
            match why {
                Some(Stop::Killed) => (end, report) = (WorkerEnd::Killed, String::new()),
                Some(Stop::Interrupted(why)) if end == WorkerEnd::Interrupted => report = why.to_owned(),
                Some(Stop::Interrupted(_)) | None => {}
            }
            if why.is_some() {
                // Dead before it is said to be.
                self.close(number).await;
            }
            if end == WorkerEnd::Killed {
                self.forget_worktree(number).await;
            }
            let ms = match place {
                Some(place) => {
                    drop(place);
                    u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX)
                }
                None => 0,
            };
            let recorded = self.record(vec![(number, WorkerEvent::Ended { end, report, ms })]).await;
            let mut live = self.live();
            let again = recorded.is_ok()
                && !cancel.is_cancelled()
                && self.status(number) == Some(WorkerStatus::Queued);
            if again {
                if let Some(live) = live.get_mut(&number) {
                    live.since = None;
                }
                continue;
            }
            // Under the same lock as the look above: whoever sends a message now finds nobody driving and does so.
            leaving.number = None;
            live.remove(&number);
            drop(live);
            self.tell();
            return;
        }
    }

    /// One turn of a worker.
    async fn turn(self: &Arc<Self>, number: u64, cancel: &CancellationToken) -> (WorkerEnd, String) {
        let failed = |error: String| (WorkerEnd::Failed, error);
        if let Err(error) = self.record(vec![(number, WorkerEvent::Started)]).await {
            return failed(error.to_string());
        }
        let Kept { conversation, model } = match self.conversation_of(number).await {
            Ok(kept) => kept,
            Err(why) => return failed(why),
        };
        let inbox = Inbox { roster: Arc::clone(self), conversation: Arc::clone(&conversation), number };
        let run = conversation.run_within(
            model.as_ref(),
            Vec::new(),
            cancel.clone(),
            Bounds::default(),
            Some(&inbox),
        );
        let end = match run.await {
            Ok(end) => end,
            Err(error) => return failed(error.to_string()),
        };
        let words = conversation.with_transcript(last_words);
        let (end, report) = match end {
            RunEnd::Completed => {
                (WorkerEnd::Settled, words::cut(words.trim(), WORKER_REPORT, conversation.id()))
            }
            RunEnd::Stopped { why } => {
                let words = words::cut(words.trim(), WORKER_REPORT, conversation.id());
                (WorkerEnd::Failed, format!("It was stopped: {why}. Its last words: {words}"))
            }
            RunEnd::Failed { error } => failed(error),
            RunEnd::Interrupted => (WorkerEnd::Interrupted, String::new()),
            RunEnd::Lost => failed("its run was lost".to_owned()),
        };
        let worker = self.journal.with_transcript(|transcript| transcript.workers().get(number).cloned());
        match worker.as_ref().and_then(|worker| Some((worker, worker.worktree.as_ref()?))) {
            // What it had done when it was stopped is brought back with its next turn.
            Some((worker, worktree)) if end != WorkerEnd::Interrupted => {
                let back = self.worktrees.bring_back(worktree, &words::name(worker)).await;
                (end, format!("{report}\n\n{back}"))
            }
            _ => (end, report),
        }
    }

    async fn conversation_of(&self, number: u64) -> Result<Kept, String> {
        if let Some(kept) = self.open().get(&number) {
            return Ok(kept.clone());
        }
        let worker = self
            .journal
            .with_transcript(|transcript| transcript.workers().get(number).cloned())
            .ok_or_else(|| format!("there is no worker {}", worker_id(number)))?;
        let model = self.nursery.model(self.model_name(worker.tier), tier_key(worker.tier))?;
        let conversation =
            self.nursery.worker(&worker, self.ceiling).await.map_err(|error| error.to_string())?;
        let kept = Kept { conversation: Arc::new(conversation), model };
        self.open().insert(number, kept.clone());
        Ok(kept)
    }

    fn model_name(&self, tier: WorkerTier) -> Option<&str> {
        match tier {
            WorkerTier::Fast => self.nursery.config.fast(),
            WorkerTier::Good => self.nursery.config.good(),
        }
    }

    /// Boxed because a conversation's close closes its workers'.
    fn close(&self, number: u64) -> BoxFuture<'_, ()> {
        async move {
            let Some(kept) = self.open().remove(&number) else { return };
            if let Err(error) = kept.conversation.close().await {
                tracing::warn!(%error, "a worker's conversation was not given back");
            }
        }
        .boxed()
    }

    async fn forget_worktree(&self, number: u64) {
        let worktree = self.journal.with_transcript(|transcript| {
            transcript.workers().get(number).and_then(|worker| worker.worktree.clone())
        });
        if let Some(worktree) = worktree
            && let Err(error) = self.worktrees.remove(&worktree).await
        {
            tracing::warn!(%error, "a worktree was not removed");
        }
    }

    /// Returns when nobody drives the worker any more.
    async fn gone(&self, number: u64) {
        let mut news = self.news.subscribe();
        while self.live().contains_key(&number) {
            // The sender lives as long as `self`.
            drop(news.changed().await);
        }
    }

    fn status(&self, number: u64) -> Option<WorkerStatus> {
        self.journal
            .with_transcript(|transcript| transcript.workers().get(number).map(|worker| worker.status))
    }

    /// The worker of that id. The error names those that there are.
    fn find(&self, id: &str) -> Result<Worker, ToolError> {
        let number = id.strip_prefix('w').and_then(|number| number.parse().ok());
        self.journal.with_transcript(|transcript| {
            let workers = transcript.workers();
            number.and_then(|number| workers.get(number)).cloned().ok_or_else(|| words::unknown(id, workers))
        })
    }

    /// All workers as they are shown.
    pub(crate) fn lines(&self) -> Vec<WorkerLine> {
        let working: BTreeMap<u64, Duration> =
            self.live().iter().filter_map(|(number, live)| Some((*number, live.since?.elapsed()))).collect();
        self.journal.with_transcript(|transcript| {
            transcript
                .workers()
                .iter()
                .map(|worker| WorkerLine::new(worker, working.get(&worker.number)))
                .collect()
        })
    }

    /// The results that nobody has been given, as far as no other call is about to.
    fn unclaimed(&self, claims: &Claims, number: Option<u64>) -> Vec<(Worker, WorkerResult)> {
        self.journal.with_transcript(|transcript| {
            let free = |number, turn| match claims.get(&(number, turn)) {
                None => true,
                Some(Claim::Call(call)) => !transcript.call_is_open(call),
                Some(Claim::Reminder) => false,
            };
            transcript
                .workers()
                .iter()
                .filter(|worker| number.is_none_or(|number| worker.number == number))
                .flat_map(|worker| {
                    worker.undelivered.iter().map(move |result| (worker.clone(), result.clone()))
                })
                .filter(|(worker, result)| free(worker.number, result.turn))
                .collect()
        })
    }

    /// Takes a worker's undelivered results for `call`, which will deliver them when its outcome is recorded.
    fn claim(&self, number: u64, call: &CallId) -> Vec<(Worker, WorkerResult)> {
        let mut claims = self.claims();
        let results = self.unclaimed(&claims, Some(number));
        for (worker, result) in &results {
            claims.insert((worker.number, result.turn), Claim::Call(call.clone()));
        }
        results
    }

    async fn record(&self, events: Vec<(u64, WorkerEvent)>) -> Result<(), JournalError> {
        let events = events.into_iter().map(|(worker, event)| Event::Worker { worker, event }).collect();
        let result = self.journal.append(events).await;
        self.tell();
        if let Err(error) = &result {
            tracing::error!(%error, "what happened to a worker could not be recorded");
        }
        result
    }

    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<u64, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Kept>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a worker whose driver panics off the list of those that are driven, so that nobody waits for it.
struct Leaving<'a> {
    roster: &'a Roster,
    number: Option<u64>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.roster.live().remove(&number);
            self.roster.tell();
        }
    }
}

impl Live {
    fn new() -> Self {
        Live { cancel: CancellationToken::new(), why: None, since: None }
    }

    /// A kill is a kill, whatever else is going on.
    fn stop(&mut self, why: Stop) {
        if self.why.is_none() || matches!(why, Stop::Killed) {
            self.why = Some(why);
        }
        self.cancel.cancel();
    }
}

/// Stops the workers of a conversation that is dropped without being closed.
pub(crate) struct StopOnDrop(pub(crate) Arc<Roster>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn tier_key(tier: WorkerTier) -> &'static str {
    match tier {
        WorkerTier::Fast => "fast",
        WorkerTier::Good => "good",
    }
}

async fn finish<T>(task: tokio::task::JoinHandle<Result<T, ToolError>>) -> Result<T, ToolError> {
    task.await.map_err(|error| ToolError::Bug(format!("work on the roster ended early: {error}")))?
}
