//! `script:FILE`: a written model (SPEC, "The script model").

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{
    Answer, AssistantPart, Event, EventStream, Message, Model, ModelError, Profile, Request, StopReason,
    ToolCall, ToolResult, Usage, UserPart,
    check::check_request,
    content::{ImageRule, result_pieces, split},
    fault::Fault,
    retry::{give_up, wait},
    settings::RetryPolicy,
    template,
};

/// A line of a script.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    thinking: Option<String>,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<Wish>,
    #[serde(default)]
    delay_ms: u64,
    error: Option<Failure>,
    when: Option<String>,
    #[serde(default)]
    usage: Usage,
    stop: Option<StopReason>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    tool: String,
    #[serde(default = "no_arguments")]
    arguments: Value,
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    /// Of the response; a stream that breaks off when absent.
    status: Option<u16>,
    message: Option<String>,
}

impl Failure {
    fn fault(&self) -> Fault {
        match (self.status, &self.message) {
            (Some(status), message) => {
                Fault::from_response(status, None, message.as_deref().unwrap_or_default())
            }
            (None, Some(message)) => Fault::transient(message.clone()),
            (None, None) => Fault::cut(),
        }
    }
}

struct Script {
    name: String,
    /// With the number of the line, from 1.
    turns: Vec<(usize, Turn)>,
    position: AtomicUsize,
    ids: AtomicU64,
    policy: RetryPolicy,
}

/// Begins every call id of a script.
const PREFIX: &str = "script_";

/// A model that plays a script, from its first line. Each conversation has its own.
pub(crate) struct ScriptModel(Arc<Script>);

impl ScriptModel {
    pub(crate) fn read(name: &str, path: &Path, policy: RetryPolicy) -> Result<Self, ModelError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            ModelError::Script(format!("the script {} cannot be read: {error}", path.display()))
        })?;
        Self::parse(name, &text, policy)
    }

    fn parse(name: &str, text: &str, policy: RetryPolicy) -> Result<Self, ModelError> {
        let mut turns = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() {
                continue;
            }
            let turn = serde_json::from_str(line).map_err(|error| {
                // Each line is a text of its own for the parser: its "line 1" would mislead.
                let problem = error.to_string().replace(" at line 1 column", ", column");
                ModelError::Script(format!("{name}, line {}: {problem}", index + 1))
            })?;
            turns.push((index + 1, turn));
        }
        if turns.is_empty() {
            return Err(ModelError::Script(format!("{name} has no lines")));
        }
        Ok(ScriptModel(Arc::new(Script {
            name: name.to_owned(),
            turns,
            position: AtomicUsize::new(0),
            ids: AtomicU64::new(0),
            policy,
        })))
    }
}

#[async_trait]
impl Model for ScriptModel {
    fn name(&self) -> &str {
        &self.0.name
    }

    /// A size that demos do not reach, no prices, pictures welcome.
    fn profile(&self) -> Profile {
        Profile { context_tokens: 200_000, prices: None, images: true }
    }

    async fn ask(&self, request: &Request, cancel: CancellationToken) -> Result<EventStream, ModelError> {
        if let Err(problem) = check_request(request) {
            debug_assert!(false, "a request breaks an invariant: {problem}");
            return Err(ModelError::Script(format!("{}: the request is not right: {problem}", self.0.name)));
        }
        let playing = Playing {
            script: Arc::clone(&self.0),
            last: last_result(request).cloned(),
            last_words: last_words(request),
            used_ids: request.messages.iter().map(highest_id).max().unwrap_or(0),
            cancel,
            attempt: 1,
            steps: VecDeque::from([Step::Line]),
        };
        Ok(futures::stream::unfold(playing, |mut playing| async move {
            let item = playing.next().await?;
            Some((item, playing))
        })
        .fuse()
        .boxed())
    }
}

enum Step {
    /// Play the next line that fits.
    Line,
    Sleep(Duration),
    Say(Event),
    Fail(Fault),
}

struct Playing {
    script: Arc<Script>,
    last: Option<ToolResult>,
    last_words: String,
    used_ids: u64,
    cancel: CancellationToken,
    attempt: u32,
    steps: VecDeque<Step>,
}

impl Playing {
    async fn next(&mut self) -> Option<Result<Event, ModelError>> {
        loop {
            if !self.steps.is_empty() && self.cancel.is_cancelled() {
                self.steps.clear();
                return Some(Err(ModelError::Cancelled));
            }
            match self.steps.pop_front()? {
                Step::Line => {
                    if let Err(error) = self.line() {
                        self.steps.clear();
                        return Some(Err(error));
                    }
                }
                Step::Sleep(time) => {
                    tokio::select! {
                        biased;
                        () = self.cancel.cancelled() => {
                            self.steps.clear();
                            return Some(Err(ModelError::Cancelled));
                        }
                        () = tokio::time::sleep(time) => {}
                    }
                }
                Step::Say(event) => return Some(Ok(event)),
                Step::Fail(fault) => {
                    let Some(after) = wait(&self.script.policy, self.attempt, &fault) else {
                        let error =
                            give_up(fault, &self.script.name, self.attempt, "its key (so the script says)");
                        return Some(Err(error));
                    };
                    self.attempt += 1;
                    self.steps.extend([Step::Sleep(after), Step::Line]);
                    return Some(Ok(Event::Retry { why: fault.message, attempt: self.attempt, after }));
                }
            }
        }
    }

    fn line(&mut self) -> Result<(), ModelError> {
        let script = Arc::clone(&self.script);
        let (number, turn) = loop {
            let position = script.position.fetch_add(1, Ordering::SeqCst);
            let Some((number, turn)) = script.turns.get(position) else {
                return Err(ModelError::Script(format!(
                    "{} is used up: all its {} turns were played or skipped, and the run asks for another. A script ends a run with a \
                     turn that has no calls.",
                    script.name,
                    script.turns.len()
                )));
            };
            if turn.when.as_ref().is_none_or(|when| self.last_words.contains(when.as_str())) {
                break (*number, turn);
            }
        };
        let wrong =
            |problem: String| ModelError::Script(format!("{}, line {number}: {problem}", script.name));
        let fill = |text: &str| template::text(text, self.last.as_ref()).map_err(wrong);
        if turn.delay_ms > 0 {
            self.steps.push_back(Step::Sleep(Duration::from_millis(turn.delay_ms)));
        }
        let mut parts = Vec::new();
        if let Some(thinking) = &turn.thinking {
            let text = fill(thinking)?;
            self.steps.push_back(Step::Say(Event::Thinking(text.clone())));
            parts.push(AssistantPart::Thinking { text, proof: None });
        }
        if let Some(said) = &turn.text {
            let text = fill(said)?;
            self.steps.push_back(Step::Say(Event::Text(text.clone())));
            parts.push(AssistantPart::Text { text });
        }
        for wish in &turn.calls {
            let arguments = template::value(&wish.arguments, self.last.as_ref()).map_err(wrong)?;
            // Above everything this script or the conversation has used: a resumed conversation holds ids of an earlier play.
            script.ids.fetch_max(self.used_ids, Ordering::SeqCst);
            let id = format!("{PREFIX}{}", script.ids.fetch_add(1, Ordering::SeqCst) + 1);
            self.steps.push_back(Step::Say(Event::CallBegun { id: id.clone(), tool: wish.tool.clone() }));
            parts.push(AssistantPart::Call(ToolCall { id, tool: wish.tool.clone(), arguments, proof: None }));
        }
        if let Some(failure) = &turn.error {
            self.steps.push_back(Step::Fail(failure.fault()));
            return Ok(());
        }
        let stop = turn.stop.unwrap_or(if turn.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolCalls
        });
        self.steps.push_back(Step::Say(Event::Done(Answer { parts, stop, usage: turn.usage })));
        Ok(())
    }
}

fn last_result(request: &Request) -> Option<&ToolResult> {
    request.messages.iter().rev().find_map(|message| match message {
        Message::Results { results } => results.last(),
        _ => None,
    })
}

/// The words of the last message: what a person said, or all results of the last calls.
fn last_words(request: &Request) -> String {
    match request.messages.last() {
        Some(Message::User { parts }) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    UserPart::Text { text } => Some(text.as_str()),
                    UserPart::Image { .. } => None,
                })
                .collect();
            texts.join("\n")
        }
        Some(Message::Results { results }) => {
            let texts: Vec<String> =
                results.iter().map(|result| split(result_pieces(result, ImageRule::NONE, false)).0).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn highest_id(message: &Message) -> u64 {
    let Message::Assistant { parts } = message else { return 0 };
    let numbers = parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => call.id.strip_prefix(PREFIX)?.parse().ok(),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
