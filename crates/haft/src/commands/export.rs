//! `haft export`: a conversation to be read, or to be worked on by programs.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use haft_agent::{Event, Host, Journal, RunEnd, WorkerEvent, cards::Answer};
use haft_kernel::notebook::NotebookCell;
use haft_model::{AssistantPart, UserPart};
use haft_store::ConversationRecord;
use haft_system::Environment;
use haft_tool::{Content, Outcome};

use super::run::event_line;
use crate::{
    cli::{self, ExportFormat},
    output::{out, out_piece},
    session,
    terminal::table,
};

/// Events read at a time.
const BATCH: usize = 256;

/// Writes the conversation out.
pub(crate) async fn export(environment: Environment, arguments: cli::Export) -> anyhow::Result<ExitCode> {
    let host = Host::open(environment.clone()).await?;
    let record = match &arguments.id {
        Some(id) => session::named(&host, id).await?,
        None => match host
            .store()
            .conversations(None)
            .await?
            .into_iter()
            .find(|record| !session::is_helper(record))
        {
            Some(record) => record,
            None => bail!("there are no conversations yet"),
        },
    };
    let target = arguments.output.map(|path| environment.directory().join(path));
    if arguments.notebook {
        return notebook(&host, &record, target.as_deref()).await;
    }
    let mut writer = Markdown::new(&record, target.as_deref());
    let mut text = match arguments.format {
        ExportFormat::Markdown => head(&record),
        ExportFormat::Jsonl => String::new(),
    };
    let mut after = 0;
    loop {
        let events = host.store().read(&record.id, after, BATCH).await?;
        if events.is_empty() {
            break;
        }
        for mut stored in events {
            after = stored.sequence;
            let event = Journal::decode(host.store(), &record.id, &mut stored).await?;
            match arguments.format {
                ExportFormat::Markdown => text.push_str(&writer.event(&event)?),
                ExportFormat::Jsonl => {
                    let mut line = event_line(stored.sequence, &event)?;
                    line["at_ms"] = stored.event.at_ms.into();
                    writeln!(text, "{line}")?;
                }
            }
        }
        if target.is_none() {
            out_piece(&std::mem::take(&mut text))?;
        }
    }
    if let Some(target) = target {
        std::fs::write(&target, text).with_context(|| format!("{} cannot be written", target.display()))?;
        out(format_args!("{} written", target.display()))?;
    } else {
        out_piece(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the conversation's cells as a notebook (SPEC E8).
async fn notebook(
    host: &Host,
    record: &ConversationRecord,
    target: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let mut begun = HashMap::new();
    let mut cells = Vec::new();
    let mut after = 0;
    loop {
        let events = host.store().read(&record.id, after, BATCH).await?;
        if events.is_empty() {
            break;
        }
        for mut stored in events {
            after = stored.sequence;
            match Journal::decode(host.store(), &record.id, &mut stored).await? {
                Event::CallStarted { call, .. } if call.tool == "eval" => {
                    begun.insert(call.id, call.arguments);
                }
                Event::CallFinished { id, outcome, .. } => {
                    if let Some(arguments) = begun.remove(&id) {
                        cells.push(NotebookCell { arguments, outcome });
                    }
                }
                _ => {}
            }
        }
    }
    let title =
        if record.title.is_empty() { format!("Conversation {}", record.id) } else { record.title.clone() };
    let made = haft_kernel::notebook::notebook(&title, &cells);
    let mut text = serde_json::to_string_pretty(&made)?;
    text.push('\n');
    match target {
        Some(target) => {
            std::fs::write(target, text)
                .with_context(|| format!("{} cannot be written", target.display()))?;
            out(format_args!("{} written", target.display()))?;
        }
        None => out_piece(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Turns events into Markdown; pictures become files beside the target where there is one.
struct Markdown {
    pictures: Option<PathBuf>,
    count: usize,
}

impl Markdown {
    fn new(record: &ConversationRecord, target: Option<&Path>) -> Self {
        let pictures =
            target.and_then(Path::parent).map(|parent| parent.join(format!("{}-pictures", record.id)));
        Markdown { pictures, count: 0 }
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<String> {
        let mut text = String::new();
        match event {
            Event::UserMessage { parts } => {
                text.push_str("\n## Person\n\n");
                for part in parts {
                    match part {
                        UserPart::Text { text: words } => writeln!(text, "{words}")?,
                        UserPart::Image { mime, data } => {
                            use base64::{Engine, engine::general_purpose::STANDARD};
                            let bytes = STANDARD.decode(data).unwrap_or_default();
                            text.push_str(&self.picture(mime, &bytes)?);
                        }
                    }
                }
            }
            Event::AssistantMessage { parts, .. } => {
                for part in parts {
                    match part {
                        AssistantPart::Text { text: words } => writeln!(text, "\n## Agent\n\n{words}")?,
                        AssistantPart::Thinking { text: words, .. } if !words.is_empty() => {
                            writeln!(
                                text,
                                "\n<details><summary>Thinking</summary>\n\n{words}\n\n</details>"
                            )?;
                        }
                        // Calls are shown where they were made.
                        AssistantPart::Thinking { .. } | AssistantPart::Call(_) => {}
                    }
                }
            }
            Event::CallStarted { call, .. } => {
                writeln!(
                    text,
                    "\n### {}\n\n{}",
                    call.tool,
                    fence("json", &serde_json::to_string_pretty(&call.arguments)?)
                )?;
            }
            Event::CallFinished { outcome, ms, .. } => text.push_str(&self.outcome(outcome, *ms)?),
            Event::CardOpened { card } => {
                writeln!(text, "\n> **Card {}** from {}: {}", card.number, card.from, card.question)?
            }
            Event::CardClosed { number, answer } => {
                writeln!(text, "\n> **Card {number}**: {}", answered(answer))?
            }
            Event::ModeChanged { mode } => writeln!(text, "\n*Mode: {mode}*")?,
            Event::RuleAdded { rule } => writeln!(text, "\n*From now on: {rule}*")?,
            Event::Compacted { .. } => writeln!(text, "\n*Summarised for the model from here on.*")?,
            Event::Reminder { text: words } | Event::Notice { text: words } => writeln!(text, "\n*{words}*")?,
            Event::Worker { worker, event } => text.push_str(&worker_event(*worker, event)),
            Event::ChangesUndone { files } => writeln!(text, "\n*Undone: {}*", files.join(", "))?,
            // What was changed stands in the answer of the call that did it.
            Event::FilesChanged { .. }
            | Event::RunStarted { .. }
            | Event::RunFinished { end: RunEnd::Completed } => {}
            Event::RunFinished { end } => writeln!(text, "\n*The run ended: {}*", ended(end))?,
        }
        Ok(text)
    }

    fn outcome(&mut self, outcome: &Outcome, ms: f64) -> anyhow::Result<String> {
        let mut text =
            format!("\n{} after {ms:.0} ms:\n\n", if outcome.is_error { "Error" } else { "Answer" });
        for piece in &outcome.content {
            match piece {
                Content::Text { text: words } => writeln!(text, "{}", fence("", words))?,
                Content::Image { mime, data } => text.push_str(&self.picture(mime, data)?),
                Content::Table { columns, rows } => writeln!(text, "{}", table(columns, rows))?,
            }
        }
        Ok(text)
    }

    fn picture(&mut self, mime: &str, bytes: &[u8]) -> anyhow::Result<String> {
        let Some(directory) = &self.pictures else {
            return Ok(format!(
                "[a picture: {mime}, {} bytes; --output FILE keeps pictures beside the file]\n",
                bytes.len()
            ));
        };
        self.count += 1;
        let extension = mime.rsplit('/').next().unwrap_or("bin");
        let name = format!("{}.{extension}", self.count);
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
        let path = directory.join(&name);
        std::fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        let folder =
            directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(format!("![]({folder}/{name})\n"))
    }
}

fn head(record: &ConversationRecord) -> String {
    let title = if record.title.is_empty() { "Conversation" } else { &record.title };
    format!("# {title}\n\nConversation {} in `{}`\n", record.id, record.directory)
}

/// A code block whose fence is longer than any in the text.
fn fence(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn worker_event(worker: u64, event: &WorkerEvent) -> String {
    match event {
        WorkerEvent::Spawned { label, tier, conversation, .. } => {
            format!("\n*Worker w{worker} ({label}), {tier}: conversation {conversation}*\n")
        }
        WorkerEvent::Ended { end, .. } => {
            format!("\n*Worker w{worker}: {}*\n", haft_agent::WorkerStatus::from(*end))
        }
        // Messages stand in their calls, results where they are given.
        WorkerEvent::Sent { .. }
        | WorkerEvent::Started
        | WorkerEvent::Read { .. }
        | WorkerEvent::Delivered { .. } => String::new(),
    }
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Chosen { selected, text } => [selected.join(", "), text.clone()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": "),
        Answer::Skipped => "skipped".into(),
        Answer::Allowed { always: false } => "allowed once".into(),
        Answer::Allowed { always: true } => "allowed from now on".into(),
        Answer::Denied { reason } if reason.is_empty() => "refused".into(),
        Answer::Denied { reason } => format!("refused: {reason}"),
        Answer::TimedOut => "nobody answered in time".into(),
        Answer::Cancelled => "nobody answered".into(),
    }
}

fn ended(end: &RunEnd) -> String {
    match end {
        RunEnd::Completed => "done".into(),
        RunEnd::Interrupted => "interrupted".into(),
        RunEnd::Stopped { why } => why.clone(),
        RunEnd::Failed { error } => error.clone(),
        RunEnd::Lost => "Haft ended while it ran".into(),
    }
}
