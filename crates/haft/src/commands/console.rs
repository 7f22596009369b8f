//! `haft console`: one conversation whose calls come from standard input (SPEC, "The console").

use std::{
    io::{BufRead, Read},
    os::fd::AsFd,
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use haft_agent::{
    Conversation, Event, Frame, Transcript,
    cards::{Answer, Attachment, Card},
};
use haft_system::Environment;
use haft_tool::{Origin, Outcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        mpsc, oneshot,
    },
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{cli, output, session};

/// Bytes of one line of input; a file written through `write` has to fit.
const LINE: u64 = 64 << 20;
/// Lines read ahead, and answers waiting to be written.
const QUEUE: usize = 64;

/// Runs the console to the end of its input.
pub(crate) async fn console(environment: Environment, arguments: cli::Console) -> anyhow::Result<ExitCode> {
    let cancel = session::until_signal()?;
    let (host, conversation) = session::open(&environment, &arguments.place).await?;
    let conversation = Arc::new(conversation);
    let person = arguments.person.then(|| conversation.cards().attach());
    let served = serve(&conversation, person, &cancel).await;
    conversation.close().await?;
    host.shutdown().await;
    served?;
    Ok(if cancel.is_cancelled() { ExitCode::from(output::INTERRUPTED) } else { ExitCode::SUCCESS })
}

async fn serve(
    conversation: &Arc<Conversation>,
    person: Option<Attachment>,
    cancel: &CancellationToken,
) -> anyhow::Result<()> {
    let (answers, writer) = write_lines(cancel.clone());
    let cards = person.is_some().then(|| {
        let frames = conversation.watch();
        tokio::spawn(show_cards(conversation.clone(), frames, answers.clone()))
    });
    let mut lines = read_lines();
    let mut calls = JoinSet::new();
    // Calls of tools that are not parallel-safe are made in the order of their lines, which tasks by themselves would not keep: done when
    // the last one of them is.
    let mut last_in_turn: Option<oneshot::Receiver<()>> = None;
    loop {
        let line = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        match parse(line) {
            Input::Call { id, tool, arguments } => {
                let in_turn = conversation.tools().iter().any(|spec| spec.name == tool && !spec.parallel);
                let (done, earlier) = if in_turn {
                    let (done, next) = oneshot::channel::<()>();
                    (Some(done), last_in_turn.replace(next))
                } else {
                    (None, None)
                };
                let (conversation, answers, cancel) = (conversation.clone(), answers.clone(), cancel.clone());
                calls.spawn(async move {
                    let _done = done;
                    if let Some(earlier) = earlier {
                        // Nothing is ever sent: the other end is dropped with its task, however that ends.
                        let _ = earlier.await;
                    }
                    let begin = Instant::now();
                    let outcome = conversation.call(&tool, arguments, Origin::Console, cancel).await;
                    send(&answers, answer(&id, Some(&tool), outcome, begin)).await;
                });
            }
            Input::List { id } => send(&answers, json!({"id": id, "tools": conversation.tools()})).await,
            Input::Card { number, answer } => {
                if let Err(error) = conversation.cards().answer(number, answer) {
                    send(&answers, json!({"card": number, "is_error": true, "error": error.to_string()}))
                        .await;
                }
            }
            Input::Wrong { id, why } => {
                send(&answers, answer(&id, None, Outcome::error(why), Instant::now())).await;
            }
        }
        while calls.try_join_next().is_some() {}
    }
    // Nobody can answer a card any more. Calls under way are let finish, so that a pipe of lines gets all its answers; whatever they started in the
    // background ends with the conversation. A reader that has gone away, too, ends them.
    drop(person);
    let gone = output_gone(cancel.clone());
    conversation.cards().leave();
    while calls.join_next().await.is_some() {}
    gone.abort();
    if let Some(cards) = cards {
        cards.abort();
    }
    drop(answers);
    writer.await??;
    Ok(())
}

enum Input {
    Call { id: Value, tool: String, arguments: Value },
    List { id: Value },
    Card { number: u64, answer: Answer },
    Wrong { id: Value, why: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    #[serde(default)]
    id: Value,
    tool: String,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListLine {
    #[serde(default)]
    id: Value,
    list: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardLine {
    card: u64,
    #[serde(default)]
    selected: Option<Vec<String>>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    skip: bool,
    #[serde(default)]
    allow: Option<Allow>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Allow {
    Once,
    Always,
    No,
}

fn parse(line: Result<Vec<u8>, String>) -> Input {
    let value: Value = match line
        .and_then(|line| serde_json::from_slice(&line).map_err(|error| error.to_string()))
    {
        Ok(value) => value,
        Err(error) => {
            return Input::Wrong { id: Value::Null, why: format!("not a line of JSON: {error}. {FORMS}") };
        }
    };
    // serde would read a list as the fields of a line in their order.
    if !value.is_object() {
        return Input::Wrong { id: Value::Null, why: format!("not a JSON object. {FORMS}") };
    }
    let id = value.get("id").cloned().unwrap_or(Value::Null);
    let wrong = |error: serde_json::Error| Input::Wrong {
        id: id.clone(),
        why: format!("not a call: {error}. {FORMS}"),
    };
    if value.get("card").is_some() {
        serde_json::from_value::<CardLine>(value).map_or_else(wrong, |line| card_answer(line, &id))
    } else if value.get("list").is_some() {
        match serde_json::from_value::<ListLine>(value) {
            Ok(line) if line.list => Input::List { id: line.id },
            Ok(_) => Input::Wrong { id, why: format!("`list` is true or absent. {FORMS}") },
            Err(error) => wrong(error),
        }
    } else {
        serde_json::from_value::<CallLine>(value).map_or_else(wrong, |line| Input::Call {
            id: line.id,
            tool: line.tool,
            arguments: line.arguments.unwrap_or_else(|| json!({})),
        })
    }
}

const FORMS: &str = r#"Lines are {"id": 1, "tool": "NAME", "arguments": {…}}, {"id": 2, "list": true} or, with --person, {"card": 1, "selected": ["…"], "text": "…"}, {"card": 1, "skip": true}, {"card": 1, "allow": "once"|"always"|"no", "reason": "…"}"#;

fn card_answer(line: CardLine, id: &Value) -> Input {
    let CardLine { card, selected, text, skip, allow, reason } = line;
    let answer = match (selected.is_some() || text.is_some(), skip, allow) {
        (true, false, None) => {
            Answer::Chosen { selected: selected.unwrap_or_default(), text: text.unwrap_or_default() }
        }
        (false, true, None) => Answer::Skipped,
        (false, false, Some(Allow::Once)) => Answer::Allowed { always: false },
        (false, false, Some(Allow::Always)) => Answer::Allowed { always: true },
        (false, false, Some(Allow::No)) => Answer::Denied { reason: reason.unwrap_or_default() },
        _ => {
            let why =
                format!("the answer to card {card} is one of selected and text, skip, or allow. {FORMS}");
            return Input::Wrong { id: id.clone(), why };
        }
    };
    Input::Card { number: card, answer }
}

/// The console's line for an outcome; `haft tool --json` prints it too.
pub(crate) fn answer(id: &Value, tool: Option<&str>, outcome: Outcome, begin: Instant) -> Value {
    let ms = (begin.elapsed().as_secs_f64() * 1e4).round() / 10.0;
    json!({
        "id": id,
        "tool": tool,
        "is_error": outcome.is_error,
        "content": outcome.content,
        "structured": outcome.structured,
        "ms": ms,
    })
}

async fn show_cards(
    conversation: Arc<Conversation>,
    mut frames: broadcast::Receiver<Frame>,
    answers: mpsc::Sender<String>,
) {
    let mut shown = 0;
    loop {
        let cards: Vec<Card> = match frames.recv().await {
            Ok(Frame::Event(event)) => match &event.1 {
                Event::CardOpened { card } => vec![card.clone()],
                _ => continue,
            },
            Ok(_) => continue,
            Err(RecvError::Lagged(_)) => conversation
                .with_transcript(|transcript: &Transcript| transcript.open_cards().cloned().collect()),
            Err(RecvError::Closed) => return,
        };
        for card in cards {
            if card.number > shown {
                shown = card.number;
                send(&answers, json!({"card": card})).await;
            }
        }
    }
}

async fn send(answers: &mpsc::Sender<String>, line: Value) {
    // The writer ends only when nobody reads; then the console is being cancelled.
    drop(answers.send(line.to_string()).await);
}

/// Standard input, line by line, from a thread of its own: tokio's own standard input cannot be given up while a read blocks.
fn read_lines() -> mpsc::Receiver<Result<Vec<u8>, String>> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match stdin.by_ref().take(LINE).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    drop(sender.blocking_send(Err(format!("standard input cannot be read: {error}"))));
                    return;
                }
            }
            if line.last() != Some(&b'\n') && line.len() as u64 == LINE {
                // What belongs to the same line must not be taken for the next.
                if skip_line(&mut stdin).is_err()
                    || sender.blocking_send(Err(format!("the line is longer than {LINE} bytes"))).is_err()
                {
                    return;
                }
                continue;
            }
            if sender.blocking_send(Ok(line)).is_err() {
                return;
            }
        }
    });
    receiver
}

fn skip_line(stdin: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = stdin.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        stdin.consume(used);
        if end.is_some() {
            return Ok(());
        }
    }
}

type Writer = tokio::task::JoinHandle<std::io::Result<()>>;

/// Writes lines to standard output; when nobody reads any more, everything is cancelled.
fn write_lines(cancel: CancellationToken) -> (mpsc::Sender<String>, Writer) {
    let (sender, mut receiver) = mpsc::channel::<String>(QUEUE);
    let writer = tokio::task::spawn_blocking(move || {
        while let Some(line) = receiver.blocking_recv() {
            if let Err(error) = output::out(line) {
                cancel.cancel();
                // A reader that had enough is no failure of ours.
                return if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    });
    (sender, writer)
}

/// Cancels when the reader of standard output goes away.
fn output_gone(cancel: CancellationToken) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let stdout = std::io::stdout();
            let mut polled = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
            let asked = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            if asked.is_ok()
                && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
            {
                cancel.cancel();
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
}
