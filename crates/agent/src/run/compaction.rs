//! Long conversations are compacted: the model writes down what it needs to go on, and goes on from that (SPEC H7).

use std::sync::Arc;

use futures::StreamExt;
use haft_model::{Answer, AssistantPart, Event, Message, Model, ModelError, Request, UserPart};
use haft_tool::Content;
use tokio_util::sync::CancellationToken;

use crate::{
    limits::{BYTES_PER_TOKEN, COMPACT_AT, SUMMARY_RESULT},
    transcript::Journal,
};

const INSTRUCTIONS: &str = "You are summarising a conversation between a person and a coding agent, so that the agent can go on \
with nothing but your summary. Write down, in this order: what the person wants, in their own words where they matter; what has been \
done and found out, with exact paths, names, commands and error messages; what is decided and why; what is left to do and the very next step. \
Leave out what no longer matters. Do not call tools and do not add advice.";

/// Whether the next question would come too close to the model's limit.
pub(super) fn due(request: &Request, journal: &Arc<Journal>, model: &dyn Model) -> bool {
    let last = journal.with_transcript(crate::Transcript::last_usage);
    let counted = last.input_tokens + last.cache_read_tokens + last.cache_write_tokens + last.output_tokens;
    // What came after the last answer has not been counted by anybody yet. Without a last answer everything is estimated.
    let uncounted = if counted == 0 {
        request.messages.iter().map(size).sum::<usize>() + request.system.len()
    } else {
        request
            .messages
            .iter()
            .rev()
            .take_while(|message| !matches!(message, Message::Assistant { .. }))
            .map(size)
            .sum()
    };
    let tokens = counted as f64 + uncounted as f64 / BYTES_PER_TOKEN;
    // A single message cannot be made shorter by summarising it.
    request.messages.len() > 1 && tokens > f64::from(model.profile().context_tokens) * COMPACT_AT
}

/// The messages to go on from, and the answer that the summary came from (for its cost).
pub(super) async fn compact(
    request: &Request,
    model: &dyn Model,
    cancel: CancellationToken,
) -> Result<(Vec<Message>, Option<Answer>), ModelError> {
    let room = (f64::from(model.profile().context_tokens) * COMPACT_AT * 0.75 * BYTES_PER_TOKEN) as usize;
    let question = Request {
        system: INSTRUCTIONS.to_owned(),
        tools: Vec::new(),
        messages: vec![Message::User {
            parts: vec![UserPart::Text {
                text: format!("{}\n\nSummarise the conversation above.", script(&request.messages, room)),
            }],
        }],
        max_output_tokens: request.max_output_tokens,
        effort: None,
    };
    let mut events = model.ask(&question, cancel).await?;
    let mut done = None;
    while let Some(event) = events.next().await {
        if let Event::Done(answer) = event? {
            done = Some(answer);
        }
    }
    let summary = done.as_ref().map(text_of).unwrap_or_default();
    if summary.trim().is_empty() {
        return Err(ModelError::ContextTooLong {
            model: model.name().to_owned(),
            message: "and its attempt to summarise the conversation came back empty".into(),
        });
    }
    let mut text = format!("The conversation so far was too long and was summarised:\n\n{summary}\n");
    if let Some(last) = last_words(&request.messages) {
        text.push_str(&format!("\nThe person's last message, word for word:\n\n{last}\n"));
    }
    text.push_str(
        "\nGo on from here. Files may have changed since they were last read: read again what you rely on.",
    );
    Ok((vec![Message::User { parts: vec![UserPart::Text { text }] }], done))
}

fn text_of(answer: &Answer) -> String {
    answer
        .parts
        .iter()
        .filter_map(|part| if let AssistantPart::Text { text } = part { Some(text.as_str()) } else { None })
        .collect()
}

/// What the person said last; reminders and earlier summaries are not theirs but do no harm, being short.
fn last_words(messages: &[Message]) -> Option<String> {
    messages.iter().rev().find_map(|message| {
        let Message::User { parts } = message else { return None };
        let text: Vec<&str> = parts
            .iter()
            .filter_map(|part| if let UserPart::Text { text } = part { Some(text.as_str()) } else { None })
            .filter(|text| !text.starts_with("<reminder from=\"haft\">"))
            .collect();
        if text.is_empty() { None } else { Some(cut(&text.join("\n"), 8 * SUMMARY_RESULT)) }
    })
}

/// The conversation as text of at most about `room` bytes: long results are cut, and where that is not enough, the middle is left out.
fn script(messages: &[Message], room: usize) -> String {
    let lines: Vec<String> = messages.iter().map(line).collect();
    let total: usize = lines.iter().map(String::len).sum();
    if total <= room {
        return lines.concat();
    }
    let (mut head, mut tail, mut used) = (Vec::new(), Vec::new(), 0);
    let mut rest = lines.as_slice();
    // The beginning says what is wanted, the end says where things stand: a fifth for the one, the rest for the other.
    while let Some((first, others)) = rest.split_first()
        && used + first.len() <= room / 5
    {
        used += first.len();
        head.push(first.as_str());
        rest = others;
    }
    while let Some((last, others)) = rest.split_last()
        && used + last.len() <= room
    {
        used += last.len();
        tail.push(last.as_str());
        rest = others;
    }
    tail.reverse();
    format!("{}\n[… {} messages left out …]\n\n{}", head.concat(), rest.len(), tail.concat())
}

fn line(message: &Message) -> String {
    let mut text = String::new();
    match message {
        Message::User { parts } => {
            text.push_str("## Person\n");
            for part in parts {
                match part {
                    UserPart::Text { text: words } => text.push_str(&cut(words, 4 * SUMMARY_RESULT)),
                    UserPart::Image { mime, .. } => text.push_str(&format!("[a picture, {mime}]")),
                }
                text.push('\n');
            }
        }
        Message::Assistant { parts } => {
            text.push_str("## Agent\n");
            for part in parts {
                match part {
                    AssistantPart::Thinking { .. } => continue,
                    AssistantPart::Text { text: words } => text.push_str(&cut(words, 2 * SUMMARY_RESULT)),
                    AssistantPart::Call(call) => {
                        text.push_str(&format!(
                            "calls {} {}",
                            call.tool,
                            cut(&call.arguments.to_string(), SUMMARY_RESULT)
                        ));
                    }
                }
                text.push('\n');
            }
        }
        Message::Results { results } => {
            for result in results {
                text.push_str(&format!(
                    "## {} of {}\n",
                    if result.is_error { "Error" } else { "Result" },
                    result.tool
                ));
                for piece in &result.content {
                    match piece {
                        Content::Text { text: words } => text.push_str(&cut(words, SUMMARY_RESULT)),
                        Content::Image { mime, .. } => text.push_str(&format!("[a picture, {mime}]")),
                        Content::Table { columns, rows } => {
                            text.push_str(&format!(
                                "[a table of {} rows: {}]",
                                rows.len(),
                                columns.join(", ")
                            ));
                        }
                    }
                    text.push('\n');
                }
            }
        }
    }
    text.push('\n');
    text
}

fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(bytes * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - bytes / 3);
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

fn size(message: &Message) -> usize {
    match message {
        Message::User { parts } => parts
            .iter()
            .map(|part| match part {
                UserPart::Text { text } => text.len(),
                UserPart::Image { .. } => IMAGE_BYTES,
            })
            .sum(),
        Message::Assistant { parts } => parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text { text } | AssistantPart::Thinking { text, .. } => text.len(),
                AssistantPart::Call(call) => call.arguments.to_string().len(),
            })
            .sum(),
        Message::Results { results } => results
            .iter()
            .flat_map(|result| &result.content)
            .map(|piece| match piece {
                Content::Text { text } => text.len(),
                Content::Image { .. } => IMAGE_BYTES,
                Content::Table { rows, columns } => {
                    rows.iter().flatten().map(|cell| cell.to_string().len() + 3).sum::<usize>()
                        + columns.join("").len()
                }
            })
            .sum(),
    }
}

/// What a picture counts for: providers take about 1,600 tokens for the largest they accept.
const IMAGE_BYTES: usize = 1_600 * 4;

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn said(text: &str) -> Message {
        Message::User { parts: vec![UserPart::Text { text: text.into() }] }
    }

    #[test]
    fn the_middle_goes_and_is_counted() {
        let messages: Vec<Message> = (0..100).map(|number| said(&format!("message {number}"))).collect();
        let one = line(&messages[10]).len();
        let text = script(&messages, one * 20);
        assert!(text.starts_with("## Person\nmessage 0\n"), "{text}");
        assert!(text.ends_with("message 99\n\n"), "{text}");
        let kept = text.matches("## Person").count();
        assert!(text.contains(&format!("[… {} messages left out …]", 100 - kept)), "{text}");
        assert!(text.len() <= one * 22, "{text}");
    }

    #[test]
    fn the_last_words_are_the_persons_own() {
        let messages =
            [said("Mend the build."), said("<reminder from=\"haft\">\nYou repeat yourself.\n</reminder>")];
        assert_eq!(last_words(&messages).as_deref(), Some("Mend the build."));
    }
}
