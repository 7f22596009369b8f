//! `haft demo workers`: a director with three workers, a question, a permission and a kill, played from scripts.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use haft_agent::{
    Conversation, Event, Frame, Mode, RunEnd,
    cards::{Answer, Card, CardKind},
};
use haft_model::UserPart;
use haft_system::Environment;

use super::run::watch;
use crate::{
    cli::{self, ApproveFlag},
    output::err,
    session::{self, Opening},
    terminal::plain,
};

/// The scripts, `examples/workers` in the source tree.
const SCRIPTS: [(&str, &str); 3] = [
    ("director", include_str!("../../../../examples/workers/director.jsonl")),
    ("fast", include_str!("../../../../examples/workers/fast.jsonl")),
    ("good", include_str!("../../../../examples/workers/good.jsonl")),
];

const TASK: &str = "A test of this project fails. Find out why and mend it; ask me what you cannot know.";

/// Plays it on `project`, with the scripts in `place`.
pub(super) async fn play(environment: Environment, place: &Path, project: &Path) -> anyhow::Result<RunEnd> {
    let mut names = Vec::new();
    for (name, text) in SCRIPTS {
        let path = place.join(format!("{name}.jsonl"));
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        names.push(format!("script:{}", path.display()));
    }
    let [director, fast, good] = names.try_into().unwrap_or_default();
    let place = cli::Place {
        dir: project.to_owned(),
        mode: Some(Mode::Vibe),
        approve: ApproveFlag::None,
        space: "demo".into(),
        models: cli::Models { model: Some(director), fast: Some(fast), good: Some(good) },
    };
    let opening = Opening::prepare(&environment, &place, None).await?;
    let model = session::open_model(opening.config(), None)?;
    let (host, conversation) = opening.conversation().await?;
    let conversation = Arc::new(conversation);
    let person = conversation.cards().attach();
    let answering = tokio::spawn(answer(conversation.clone()));
    let watcher = tokio::spawn(watch(conversation.watch(), false));
    err(format_args!("› {TASK}\n"));
    let input = vec![UserPart::Text { text: TASK.into() }];
    let end = conversation.run(model.as_ref(), input, session::until_signal()?).await;
    if end.is_err() {
        watcher.abort();
    }
    let shown = watcher.await;
    answering.abort();
    drop(person);
    conversation.close().await?;
    host.shutdown().await;
    let end = end?;
    shown??;
    Ok(end)
}

/// Plays the person: the first option of a question, once for a permission.
async fn answer(conversation: Arc<Conversation>) {
    let mut frames = conversation.watch();
    while let Ok(frame) = frames.recv().await {
        let Frame::Event(event) = frame else { continue };
        let Event::CardOpened { card } = &event.1 else { continue };
        let (words, answer) = match card.kind {
            CardKind::Permission => ("once".to_owned(), Answer::Allowed { always: false }),
            CardKind::Question => {
                let first: Vec<String> =
                    card.options.iter().take(1).map(|option| option.label.clone()).collect();
                (first.join(""), Answer::Chosen { selected: first, text: String::new() })
            }
        };
        show(card, &words);
        if let Err(error) = conversation.cards().answer(card.number, answer) {
            err(format_args!("· {error}"));
        }
    }
}

fn show(card: &Card, answer: &str) {
    err(format_args!("\n┌ Card {} from {}: {}", card.number, plain(&card.from), plain(&card.question)));
    for line in card.context.lines() {
        err(format_args!("│ {}", plain(line)));
    }
    for (at, option) in card.options.iter().enumerate() {
        err(format_args!("│ {}. {}: {}", at + 1, plain(&option.label), plain(&option.description)));
    }
    err(format_args!("└ the demo answers in your place: {answer}\n"));
}
