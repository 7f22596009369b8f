//! `haft run TASK`: one task to its end, without waiting for anybody.

use std::{collections::HashMap, io::Read, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use haft_agent::{Conversation, Event, Frame, RunEnd, Transcript, WorkerEvent, WorkerStatus};
use haft_model::{AssistantPart, Message, Usage, UserPart};
use haft_system::Environment;
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::{
    cli,
    output::{code_of, err, out, out_piece},
    session::{self, Opening},
    terminal::{call_line, outcome_line, spent_line},
};

/// Runs the task. The exit code says how the run ended.
pub(crate) async fn run(environment: Environment, arguments: cli::Run) -> anyhow::Result<ExitCode> {
    let cancel = session::until_signal()?;
    let mut input = vec![UserPart::Text { text: task(&arguments.task)? }];
    for path in &arguments.image {
        input.push(picture(&environment.directory().join(path))?);
    }
    let opening = Opening::prepare(&environment, &arguments.place, Some(&arguments.which)).await?;
    // Before anything is written: a run without a model is a mistake of the command line, not a conversation.
    let model = session::open_model(opening.config(), arguments.record.as_deref())?;
    let (host, conversation) = opening.conversation().await?;
    let conversation = Arc::new(conversation);
    if let Some(UserPart::Text { text }) = input.first() {
        ensure_title(&conversation, text).await?;
    }
    let frames = conversation.watch();
    if arguments.json {
        out(
            json!({"type": "conversation", "id": conversation.id(), "directory": conversation.workdir().root()}),
        )?;
    }
    let watcher = tokio::spawn(watch(frames, arguments.json));
    let end = conversation.run(model.as_ref(), input, cancel).await;
    // The watcher ends with the event that says that the run is over.
    if end.is_ok() {
        watcher.await??;
    } else {
        watcher.abort();
    }
    let spent = conversation.spent();
    let workers: Vec<String> = conversation
        .workers()
        .iter()
        .filter(|worker| !worker.status.is_over())
        .map(|worker| format!("{} ({})", worker.worker_id, worker.label))
        .collect();
    if !workers.is_empty() {
        err(format_args!("haft: the run is over; workers that were not are stopped: {}", workers.join(", ")));
    }
    conversation.close().await?;
    host.shutdown().await;
    let end = end?;
    if arguments.json {
        let text = conversation.with_transcript(last_text);
        out(
            json!({"type": "result", "conversation": conversation.id(), "end": end, "text": text, "spent": spent}),
        )?;
    } else {
        match &end {
            RunEnd::Completed => {}
            RunEnd::Interrupted => err("haft: interrupted"),
            RunEnd::Stopped { why } => err(format_args!("haft: stopped: {why}")),
            RunEnd::Failed { error } => err(format_args!("haft: {error}")),
            RunEnd::Lost => err("haft: the run was lost"),
        }
        if spent.usage != Usage::default() {
            err(spent_line(&spent));
        }
        if end != RunEnd::Completed {
            err(format_args!("Go on with: haft run --resume {} TASK", conversation.id()));
        }
    }
    Ok(ExitCode::from(code_of(&end)))
}

fn task(words: &[String]) -> anyhow::Result<String> {
    let mut text = words.join(" ");
    if text == "-" {
        text.clear();
        std::io::stdin().lock().read_to_string(&mut text).context("standard input cannot be read")?;
    }
    if text.trim().is_empty() {
        bail!("the task is empty");
    }
    Ok(text)
}

/// The first line of a task, for lists.
fn title(task: &str) -> String {
    let line = task.trim().lines().next().unwrap_or_default();
    let mut title: String = line.chars().take(80).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

/// A picture file as a piece of a message.
pub(crate) fn picture(path: &Path) -> anyhow::Result<UserPart> {
    let bytes = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mime = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => bail!("{} is not a PNG, JPEG, GIF or WebP picture", path.display()),
    };
    Ok(UserPart::Image { mime: mime.into(), data: STANDARD.encode(bytes) })
}

/// Shows what happens until the run is over. Words of the model go to standard output, everything else to standard error.
pub(crate) async fn watch(mut frames: broadcast::Receiver<Frame>, json: bool) -> anyhow::Result<()> {
    let mut calls: HashMap<String, String> = HashMap::new();
    let mut streamed = String::new();
    loop {
        let frame = match frames.recv().await {
            Ok(frame) => frame,
            Err(RecvError::Lagged(lost)) => {
                err(format_args!("haft: {lost} live pieces were not shown; the transcript has everything"));
                continue;
            }
            Err(RecvError::Closed) => return Ok(()),
        };
        match frame {
            Frame::Event(event) => {
                let (sequence, event) = event.as_ref();
                if json {
                    out(event_line(*sequence, event)?)?;
                } else {
                    show(event, &mut calls, &mut streamed)?;
                }
                if matches!(event, Event::RunFinished { .. }) {
                    return Ok(());
                }
            }
            Frame::Text(text) if !json => {
                out_piece(&text)?;
                streamed.push_str(&text);
            }
            Frame::Retry { why, attempt, after } if !json => {
                if !streamed.is_empty() {
                    out_piece("\n")?;
                    streamed.clear();
                }
                err(format_args!(
                    "· {why}; attempt {attempt} in {:.1} s, what was written so far is void",
                    after.as_secs_f64()
                ));
            }
            _ => {}
        }
    }
}

/// An event as `--json` and `haft export --format jsonl` print it, pictures in base64.
pub(crate) fn event_line(sequence: u64, event: &Event) -> anyhow::Result<Value> {
    let mut line = json!({"type": "event", "sequence": sequence});
    if let (Value::Object(line), Value::Object(event)) = (&mut line, serde_json::to_value(event)?) {
        line.extend(event);
    }
    Ok(line)
}

fn show(event: &Event, calls: &mut HashMap<String, String>, streamed: &mut String) -> anyhow::Result<()> {
    match event {
        Event::AssistantMessage { parts, .. } => {
            let text: String = parts
                .iter()
                .filter_map(
                    |part| if let AssistantPart::Text { text } = part { Some(text.as_str()) } else { None },
                )
                .collect();
            // A watcher that lost live pieces still prints the whole text.
            if *streamed != text {
                out_piece(text.strip_prefix(streamed.as_str()).unwrap_or(&text))?;
            }
            if !text.is_empty() && !text.ends_with('\n') {
                out_piece("\n")?;
            }
            streamed.clear();
        }
        Event::CallStarted { call, .. } => {
            calls.insert(call.id.0.clone(), call.tool.clone());
            err(call_line(&call.tool, &call.arguments));
        }
        Event::CallFinished { id, outcome, ms, .. } => {
            let tool = calls.remove(&id.0).unwrap_or_default();
            err(outcome_line(&tool, outcome, *ms));
        }
        Event::Worker { worker, event: WorkerEvent::Ended { end, .. } } => {
            err(format_args!("· worker w{worker}: {}", WorkerStatus::from(*end)));
        }
        Event::Notice { text } => err(format_args!("· {text}")),
        Event::Compacted { .. } => err("· the conversation was long and has been summarised for the model"),
        _ => {}
    }
    Ok(())
}

/// What the model said last.
fn last_text(transcript: &Transcript) -> String {
    let last = transcript.messages().iter().rev().find_map(|message| match message {
        Message::Assistant { parts } => Some(parts),
        _ => None,
    });
    last.into_iter()
        .flatten()
        .filter_map(|part| if let AssistantPart::Text { text } = part { Some(text.as_str()) } else { None })
        .collect()
}

/// Titles a new conversation with the first thing that was said in it.
pub(crate) async fn ensure_title(conversation: &Conversation, text: &str) -> anyhow::Result<()> {
    if conversation.with_transcript(|transcript| transcript.messages().is_empty()) {
        conversation.set_title(&title(text)).await?;
    }
    Ok(())
}
