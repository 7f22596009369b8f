//! `haft export`: a conversation to be read, or to be worked on by programs.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use haft_agent::{Event, Host, Journal, KeptFile, RunEnd, WorkerEvent, cards::Answer};
use haft_kernel::notebook::NotebookCell;
use haft_model::{AssistantPart, UserPart};
use haft_store::{ArtifactId, ConversationRecord};
use haft_system::Environment;
use haft_tool::{Content, Outcome};

use super::run::event_line;
use crate::{
    cli::{self, ExportFormat},
    output::{out, out_piece},
    session,
    terminal::table,
};

/// Bytes of one stream of one cell that go into a notebook whole; of a longer one its ends do. Jupyter keeps all of it in a page.
const NOTEBOOK_STREAM: u64 = 4 * 1024 * 1024;
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
            if let (Event::CallFinished { kept, .. }, Some(directory)) = (&event, &writer.outputs) {
                for kept in kept {
                    write_out(&host, kept, directory).await?;
                }
            }
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
                        let stdout = whole_stream(host, &outcome, "stdout").await?;
                        let stderr = whole_stream(host, &outcome, "stderr").await?;
                        cells.push(NotebookCell { arguments, outcome, stdout, stderr });
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

/// The whole of a stream of which the outcome has the ends only, unless it is too much for a notebook.
async fn whole_stream(host: &Host, outcome: &Outcome, stream: &str) -> anyhow::Result<Option<Vec<u8>>> {
    let fields = &outcome.structured;
    let bytes = fields.get(&format!("{stream}_bytes")).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let Some(name) = fields.get(&format!("{stream}_artifact")).and_then(serde_json::Value::as_str) else {
        return Ok(None);
    };
    if bytes > NOTEBOOK_STREAM {
        return Ok(None);
    }
    Ok(Some(host.store().artifact(&ArtifactId(name.to_owned())).await?.data))
}

/// Turns events into Markdown; pictures become files beside the target where there is one.
struct Markdown {
    pictures: Option<PathBuf>,
    /// Where files with the whole of long output go.
    outputs: Option<PathBuf>,
    count: usize,
}

impl Markdown {
    fn new(record: &ConversationRecord, target: Option<&Path>) -> Self {
        let beside = |what: &str| Some(target?.parent()?.join(format!("{}-{what}", record.id)));
        Markdown { pictures: beside("pictures"), outputs: beside("outputs"), count: 0 }
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
            Event::CallFinished { outcome, ms, kept, .. } => {
                text.push_str(&self.outcome(outcome, *ms)?);
                for kept in kept {
                    text.push_str(&self.kept(kept));
                }
            }
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

    /// Where the whole of long output is.
    fn kept(&self, kept: &KeptFile) -> String {
        let Some(directory) = &self.outputs else {
            let bytes = kept.bytes;
            return format!("[the whole output: {bytes} bytes; --output FILE keeps it beside the file]\n");
        };
        let folder =
            directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = exported_name(kept);
        format!("[the whole output, {} bytes]({folder}/{name})\n", kept.bytes)
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

/// A file's name beside the export; files of a fork's origin may be named like the fork's own.
fn exported_name(kept: &KeptFile) -> String {
    let short: String = kept.artifact.0.chars().take(8).collect();
    let name = kept.place().map_or("output.txt", |(_, name)| name);
    format!("{short}_{name}")
}

async fn write_out(host: &Host, kept: &KeptFile, directory: &Path) -> anyhow::Result<()> {
    let artifact = host.store().artifact(&kept.artifact).await?;
    std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    let path = directory.join(exported_name(kept));
    std::fs::write(&path, artifact.data).with_context(|| format!("{} cannot be written", path.display()))
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
