//! Cards: what a person is asked, numbered in the conversation, answered once (SPEC Q3, Q4).

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::transcript::{Event, Journal, JournalError};

/// What kind of answer a card wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CardKind {
    /// One or more of the options, or words.
    Question,
    /// Whether a call may be made.
    Permission,
}

/// One of the answers on offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardOption {
    /// What is chosen.
    pub label: String,
    /// What it means.
    pub description: String,
}

/// What a person is asked (the fields are the console's contract).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Counted in the conversation from 1.
    pub number: u64,
    /// Question or permission.
    pub kind: CardKind,
    /// Who asks: the agent, or a worker's label.
    pub from: String,
    /// One sentence.
    pub question: String,
    /// What one has to know to answer; may be empty.
    pub context: String,
    /// Answers on offer.
    pub options: Vec<CardOption>,
    /// Whether words are an answer.
    pub allow_free_text: bool,
    /// Whether several options may be chosen.
    pub multi_select: bool,
}

/// What became of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// The answer to a question.
    Chosen {
        /// Labels.
        selected: Vec<String>,
        /// Words.
        text: String,
    },
    /// The person does not want to answer.
    Skipped,
    /// The call may be made.
    Allowed {
        /// And calls like it, from now on in this conversation.
        always: bool,
    },
    /// The call may not be made.
    Denied {
        /// The person's words; may be empty.
        reason: String,
    },
    /// Nobody answered in the time that the question had. Given by Haft alone; nothing was chosen.
    TimedOut,
    /// Nobody will answer any more: the call was cancelled or the process ended.
    Cancelled,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CardError {
    /// It was answered before, or there never was one.
    #[error("card {0} is not waiting for an answer: it was answered before, or there is no such card")]
    NotOpen(u64),
    /// A question cannot be allowed, a permission cannot be chosen.
    #[error("card {number} is a {kind} card: {expected}")]
    WrongKind {
        /// The card.
        number: u64,
        /// Its kind in words.
        kind: &'static str,
        /// What would be an answer.
        expected: &'static str,
    },
    /// Not one of the options.
    #[error("card {number} has no option `{label}`")]
    NoSuchOption {
        /// The card.
        number: u64,
        /// What was chosen.
        label: String,
    },
    /// More than the card takes, or nothing at all.
    #[error("card {number} {expected}")]
    Shape {
        /// The card.
        number: u64,
        /// What it takes.
        expected: &'static str,
    },
}

/// Why a card could not be put to anybody.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No person is attached (SPEC Q2, Q3): nobody waits.
    #[error("nobody is attached who could answer")]
    Nobody,
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// The card could not be recorded.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A card's number and what was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The card.
    pub number: u64,
    /// Never [`Answer::Cancelled`].
    pub answer: Answer,
}

/// The cards of a conversation and the people who can answer them.
pub struct Cards {
    journal: Arc<Journal>,
    people: Arc<AtomicUsize>,
    last: AtomicU64,
    open: Mutex<BTreeMap<u64, Waiting>>,
    /// Cards that are asked or being recorded as closed.
    busy: watch::Sender<usize>,
}

struct Waiting {
    card: Card,
    sender: oneshot::Sender<Answer>,
}

/// A person is there as long as this lives.
pub struct Attachment {
    people: Arc<AtomicUsize>,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.people.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Cards {
    /// The cards of the journal's conversation; numbers go on where they were.
    pub fn new(journal: Arc<Journal>) -> Self {
        let last = journal.with_transcript(crate::Transcript::last_card);
        Cards {
            journal,
            people: Arc::default(),
            last: AtomicU64::new(last),
            open: Mutex::default(),
            busy: watch::Sender::new(0),
        }
    }

    /// Somebody is there who can answer.
    pub fn attach(&self) -> Attachment {
        self.people.fetch_add(1, Ordering::SeqCst);
        Attachment { people: self.people.clone() }
    }

    /// Whether anybody is.
    pub fn attended(&self) -> bool {
        self.people.load(Ordering::SeqCst) > 0
    }

    /// Puts a card (its number is given here) before the people and waits for the answer, with no `time` for as long as it takes. Fails at
    /// once when nobody is there. When the returned future is dropped, the card is closed as cancelled.
    pub async fn ask(
        self: &Arc<Self>,
        card: Card,
        time: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Answered, AskError> {
        if !self.attended() {
            return Err(AskError::Nobody);
        }
        let cancel = cancel.child_token();
        let _drop_cancels = cancel.clone().drop_guard();
        let (cards, busy) = (Arc::clone(self), Busy::new(&self.busy));
        // In a task of its own, so that a card is closed in the transcript whatever becomes of its caller.
        let asking = tokio::spawn(async move {
            let answered = cards.put(card, time, &cancel).await;
            drop(busy);
            answered
        });
        // The task ends early only together with the runtime.
        asking.await.unwrap_or(Err(AskError::Cancelled))
    }

    async fn put(
        &self,
        mut card: Card,
        time: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Answered, AskError> {
        let number = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        card.number = number;
        let (sender, mut receiver) = oneshot::channel();
        self.open().insert(number, Waiting { card: card.clone(), sender });
        // Dropped with this future: a card never outlives the call that waits for it.
        let forget = Forget { cards: self, number };
        if !self.attended() {
            // The last person left between the two looks.
            return Err(AskError::Nobody);
        }
        self.journal.append(vec![Event::CardOpened { card }]).await?;
        let too_late = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        let given_up = tokio::select! {
            biased;
            answer = &mut receiver => Err(answer.unwrap_or(Answer::Cancelled)),
            () = cancel.cancelled() => Ok(Answer::Cancelled),
            () = too_late => Ok(Answer::TimedOut),
        };
        // From here on no answer is taken; one that was taken in this very moment counts, for its person was told so.
        drop(forget);
        let answer = given_up.map_or_else(|answer| answer, |end| receiver.try_recv().unwrap_or(end));
        self.journal.append(vec![Event::CardClosed { number, answer: answer.clone() }]).await?;
        match answer {
            Answer::Cancelled if cancel.is_cancelled() => Err(AskError::Cancelled),
            Answer::Cancelled => Err(AskError::Nobody),
            answer => Ok(Answered { number, answer }),
        }
    }

    /// Answers a card, once.
    pub fn answer(&self, number: u64, answer: Answer) -> Result<(), CardError> {
        let mut open = self.open();
        let Some(waiting) = open.get(&number) else { return Err(CardError::NotOpen(number)) };
        check(&waiting.card, &answer)?;
        let Some(waiting) = open.remove(&number) else { return Err(CardError::NotOpen(number)) };
        // The asker may have given up in this very moment; then nobody hears it.
        waiting.sender.send(answer).map_err(|_| CardError::NotOpen(number))
    }

    /// Nobody will answer any more: the cards that are open are as good as cancelled.
    pub fn leave(&self) {
        for (_, waiting) in std::mem::take(&mut *self.open()) {
            // The asker may have given up in this very moment.
            drop(waiting.sender.send(Answer::Cancelled));
        }
    }

    /// Returns when no card is asked any more and all are recorded as closed.
    pub async fn settled(&self) {
        // The sender lives as long as `self`.
        drop(self.busy.subscribe().wait_for(|busy| *busy == 0).await);
    }

    fn open(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Waiting>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Busy(watch::Sender<usize>);

impl Busy {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Busy(count.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

struct Forget<'a> {
    cards: &'a Cards,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.cards.open().remove(&self.number);
    }
}

fn check(card: &Card, answer: &Answer) -> Result<(), CardError> {
    let number = card.number;
    match (card.kind, answer) {
        (_, Answer::TimedOut) => {
            Err(CardError::Shape { number, expected: "times out by itself; nobody can answer that" })
        }
        (CardKind::Permission, Answer::Allowed { .. } | Answer::Denied { .. } | Answer::Cancelled) => Ok(()),
        // Not answering a permission is not a yes.
        (CardKind::Permission, Answer::Skipped) => Ok(()),
        (CardKind::Permission, Answer::Chosen { .. }) => Err(CardError::WrongKind {
            number,
            kind: "permission",
            expected: "answer it with allow: once, always or no",
        }),
        (CardKind::Question, Answer::Allowed { .. } | Answer::Denied { .. }) => Err(CardError::WrongKind {
            number,
            kind: "question",
            expected: "answer it with selected, text or skip",
        }),
        (CardKind::Question, Answer::Skipped | Answer::Cancelled) => Ok(()),
        (CardKind::Question, Answer::Chosen { selected, text }) => {
            if let Some(label) =
                selected.iter().find(|label| card.options.iter().all(|option| option.label != **label))
            {
                return Err(CardError::NoSuchOption { number, label: label.clone() });
            }
            let shape = |expected| Err(CardError::Shape { number, expected });
            if selected.len() > 1 && !card.multi_select {
                return shape("takes one option");
            }
            if !text.is_empty() && !card.allow_free_text {
                return shape("takes no free text, only options");
            }
            if selected.is_empty() && text.is_empty() {
                return shape("needs an option or a text, or skip");
            }
            Ok(())
        }
    }
}
