//! `explore`: a read-only helper answers one question (SPEC G3).

use haft_model::UserPart;
use haft_tool::{Context, Output, Tier, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Semaphore, broadcast::error::RecvError};

use crate::{
    Conversation, Event, Frame, RunEnd,
    conversation::{Bounds, RunError},
    helper::Nursery,
    limits::{EXPLORER_STEPS, EXPLORER_TOKENS, EXPLORERS},
    transcript::last_words,
};

/// Sends explorers out.
pub(crate) struct Explore {
    nursery: Nursery,
    places: Semaphore,
}

impl Explore {
    /// Explorers for the conversation that `nursery` belongs to.
    pub(crate) fn new(nursery: Nursery) -> Self {
        Explore { nursery, places: Semaphore::new(EXPLORERS) }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// What is to be found out, complete in itself: the explorer knows nothing of this conversation. Say what the answer should contain.
    question: String,
}

impl Tool for Explore {
    type Arguments = Arguments;
    const NAME: &'static str = "explore";
    const TIER: Tier = Tier::Read;

    fn description(&self) -> String {
        "Lets a helper find something out and returns its report. The helper has its own conversation and can look at everything and change \
         nothing. Use it for questions that take many files to answer and whose answer is short: where something is done, what depends on it, how \
         two parts fit together. Several can be sent out in one step. For a thing that one or two calls of your own would show, make those."
            .into()
    }

    async fn call(&self, arguments: Arguments, context: &Context) -> Result<Output, ToolError> {
        let question = arguments.question.trim();
        if question.is_empty() {
            return Err(ToolError::model("`question` is empty. Write what is to be found out."));
        }
        let model = self
            .nursery
            .model(self.nursery.config.fast(), "fast")
            .map_err(|why| ToolError::model(format!("There is no explorer: {why}")))?;
        let _place = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            place = self.places.acquire() => place.map_err(|error| ToolError::Bug(error.to_string()))?,
        };
        let title: String = question.chars().take(80).collect();
        let child =
            self.nursery.explorer(&title).await.map_err(|error| ToolError::operator(error.to_string()))?;
        let bounds = Bounds { steps: Some(EXPLORER_STEPS), tokens: Some(EXPLORER_TOKENS) };
        let input = vec![UserPart::Text { text: question.to_owned() }];
        let mut frames = child.watch();
        let run = child.run_within(model.as_ref(), input, context.cancel.child_token(), bounds, None);
        tokio::pin!(run);
        let end = loop {
            tokio::select! {
                biased;
                end = &mut run => break end,
                frame = frames.recv() => match frame {
                    Ok(frame) => show(&frame, context),
                    // The calls that were missed are in the explorer's own transcript.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break run.await,
                }
            }
        };
        let report = report(&child, end);
        child.close().await.map_err(|error| ToolError::operator(error.to_string()))?;
        report
    }
}

fn show(frame: &Frame, context: &Context) {
    let Frame::Event(event) = frame else { return };
    if let Event::CallStarted { call, .. } = &event.1 {
        let arguments: String = call.arguments.to_string().chars().take(120).collect();
        context.progress.emit(format!("{} {arguments}\n", call.tool));
    }
}

fn report(child: &Conversation, end: Result<RunEnd, RunError>) -> Result<Output, ToolError> {
    let end = end.map_err(|error| ToolError::operator(error.to_string()))?;
    let (words, spent) = child.with_transcript(|transcript| (last_words(transcript), transcript.spent()));
    let id = child.id();
    let stopped = match end {
        RunEnd::Completed => None,
        RunEnd::Interrupted => return Err(ToolError::Cancelled),
        RunEnd::Stopped { why } => Some(why),
        RunEnd::Failed { error } => {
            return Err(ToolError::model(format!("The explorer could not go on: {error}"))
                .with_structured(json!({"conversation": id})));
        }
        RunEnd::Lost => return Err(ToolError::Bug("an explorer's run was lost while it ran".into())),
    };
    let text = match (&stopped, words.trim()) {
        (None, "") => return Err(ToolError::model("The explorer ended without a report.")),
        (None, words) => words.to_owned(),
        (Some(why), "") => {
            return Err(ToolError::model(format!(
                "The explorer was stopped before it had a report: {why}. Ask something narrower, or look yourself."
            ))
            .with_structured(json!({"conversation": id})));
        }
        (Some(why), words) => {
            format!(
                "The explorer was stopped before it was done: {why}. What it had said by then:\n\n{words}"
            )
        }
    };
    Ok(Output::text(text).structured(
        json!({"conversation": id, "complete": stopped.is_none(), "stopped_because": stopped, "tokens": spent.tokens()}),
    ))
}
