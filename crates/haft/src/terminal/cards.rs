use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_agent::{
    Conversation, Event, Frame, WorkerEvent, WorkerStatus,
    cards::{Answer, Attachment, Card, CardKind},
};
use tokio::{sync::broadcast::error::RecvError, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{Input, Line, plain};
use crate::output::err;

/// A person at the terminal answers cards as long as this lives.
pub(crate) struct Answering {
    _person: Attachment,
    task: JoinHandle<()>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The run that Ctrl-C at a card stops, while there is one.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Option<CancellationToken>>>);

impl Running {
    /// The run that `cancel` stops, or none.
    pub(crate) fn set(&self, cancel: Option<CancellationToken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cancel;
    }

    fn stop(&self) {
        if let Some(cancel) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            cancel.cancel();
        }
    }
}

/// Attaches the person at the terminal to the conversation's cards, and tells them when a worker's turn ends. Ctrl-C at a card skips it and stops
/// the run.
pub(crate) fn answer_cards(conversation: Arc<Conversation>, input: Input, running: Running) -> Answering {
    let person = conversation.cards().attach();
    let mut frames = conversation.watch();
    let task = tokio::spawn(async move {
        let mut shown = 0;
        loop {
            let cards: Vec<Card> = match frames.recv().await {
                Ok(Frame::Event(event)) => match &event.1 {
                    Event::CardOpened { card } => vec![card.clone()],
                    Event::Worker { worker, event: WorkerEvent::Ended { end, .. } } => {
                        let label = conversation.with_transcript(|transcript| {
                            transcript.workers().get(*worker).map(|worker| worker.label.clone())
                        });
                        let status = WorkerStatus::from(*end);
                        err(format_args!("· w{worker} ({}): {status}", plain(&label.unwrap_or_default())));
                        continue;
                    }
                    _ => continue,
                },
                Ok(_) => continue,
                Err(RecvError::Lagged(_)) => {
                    conversation.with_transcript(|transcript| transcript.open_cards().cloned().collect())
                }
                Err(RecvError::Closed) => return,
            };
            for card in cards {
                if card.number <= shown {
                    continue;
                }
                shown = card.number;
                let answer = ask(&input, &card).await;
                if answer.is_none() {
                    running.stop();
                }
                // A card of a worker outlives the run; it must not wait for somebody who has turned away.
                let skipped = answer.is_none();
                let answer = answer.unwrap_or(Answer::Skipped);
                if let Err(error) = conversation.cards().answer(card.number, answer)
                    && !skipped
                {
                    err(format_args!("· {error}"));
                }
            }
        }
    });
    Answering { _person: person, task }
}

/// A screen that is not free after this is being typed on.
const BUSY: Duration = Duration::from_millis(400);

/// Asks until the answer fits the card; nothing when the person stops the run instead.
async fn ask(input: &Input, card: &Card) -> Option<Answer> {
    let screen = match tokio::time::timeout(BUSY, input.screen()).await {
        Ok(screen) => screen,
        Err(_) => {
            // The chat's own prompt is waiting for a line.
            err(format_args!(
                "\n· card {} from {} waits: press Enter to see it",
                card.number,
                plain(&card.from)
            ));
            input.screen().await
        }
    };
    err(format_args!("\n┌ Card {} from {}: {}", card.number, plain(&card.from), plain(&card.question)));
    for line in card.context.lines() {
        err(format_args!("│ {}", plain(line)));
    }
    for (at, option) in card.options.iter().enumerate() {
        err(format_args!("│ {}. {}: {}", at + 1, plain(&option.label), plain(&option.description)));
    }
    let prompt = match card.kind {
        CardKind::Permission if card.options.iter().any(|option| option.label == "always") => {
            "└ y (once), a (always), n [reason] › "
        }
        CardKind::Permission => "└ y (once), n [reason] › ",
        CardKind::Question => "└ numbers or words, empty to skip › ",
    };
    loop {
        let text = match screen.ask(prompt).await {
            Line::Text(text) => text,
            Line::Interrupt | Line::End => return None,
        };
        match read(card, text.trim()) {
            Ok(answer) => return Some(answer),
            Err(what) => err(format_args!("  {what}")),
        }
    }
}

fn read(card: &Card, text: &str) -> Result<Answer, &'static str> {
    if card.kind == CardKind::Permission {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let always = card.options.iter().any(|option| option.label == "always");
        return match word {
            "y" | "yes" | "once" | "1" => Ok(Answer::Allowed { always: false }),
            "a" | "always" if always => Ok(Answer::Allowed { always: true }),
            "2" if always => Ok(Answer::Allowed { always: true }),
            "n" | "no" => Ok(Answer::Denied { reason: rest.trim().to_owned() }),
            // A bare Enter is not a yes, and not a no either.
            _ => Err("y, a or n; after n a reason that the model is told"),
        };
    }
    if text.is_empty() {
        return Ok(Answer::Skipped);
    }
    let numbers: Option<Vec<usize>> =
        text.split([',', ' ']).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect();
    match numbers {
        Some(numbers) if !card.options.is_empty() => {
            let selected: Option<Vec<String>> = numbers
                .iter()
                .map(|number| card.options.get(number.wrapping_sub(1)).map(|option| option.label.clone()))
                .collect();
            let selected = selected.ok_or("there is no option of that number")?;
            if selected.len() > 1 && !card.multi_select {
                return Err("one option only");
            }
            Ok(Answer::Chosen { selected, text: String::new() })
        }
        _ if card.allow_free_text => Ok(Answer::Chosen { selected: Vec::new(), text: text.to_owned() }),
        _ => Err("the number of an option, or an empty line to skip"),
    }
}

#[cfg(test)]
mod tests {
    use haft_agent::cards::CardOption;
    use pretty_assertions::assert_eq;

    use super::*;

    fn card(kind: CardKind, labels: &[&str]) -> Card {
        Card {
            number: 1,
            kind,
            from: "agent".into(),
            question: "?".into(),
            context: String::new(),
            options: labels
                .iter()
                .map(|label| CardOption { label: (*label).into(), description: String::new() })
                .collect(),
            allow_free_text: true,
            multi_select: false,
        }
    }

    #[test]
    fn nothing_is_ever_chosen_for_the_person() {
        let permission = card(CardKind::Permission, &["once", "no"]);
        assert_eq!(read(&permission, "").ok(), None);
        assert_eq!(read(&permission, "a").ok(), None, "no rule to write, so no `always`");
        assert_eq!(read(&permission, "y"), Ok(Answer::Allowed { always: false }));
        assert_eq!(read(&permission, "n not today"), Ok(Answer::Denied { reason: "not today".into() }));
        let question = card(CardKind::Question, &["red", "blue"]);
        assert_eq!(read(&question, ""), Ok(Answer::Skipped));
        assert_eq!(
            read(&question, "2"),
            Ok(Answer::Chosen { selected: vec!["blue".into()], text: String::new() })
        );
        assert_eq!(read(&question, "0").ok(), None);
        assert_eq!(read(&question, "1 2").ok(), None);
        assert_eq!(read(&question, "green"), Ok(Answer::Chosen { selected: vec![], text: "green".into() }));
    }
}
