//! A run: from a message to the end of the agent's turn.

mod compaction;
mod repetition;

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use futures::{StreamExt, future::join_all};
use haft_model::{
    Answer, AssistantPart, Event as ModelEvent, Model, ModelError, Prices, Request, StopReason, ToolCall,
    ToolDefinition, UserPart,
};
use haft_tool::{Call, CallId, Context, Origin, Outcome, Progress, Registry, Surface, ToolError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::repetition::{Repetition, Seen};
use crate::{
    limits::{COMPACTIONS, PROGRESS, STOP_GRACE},
    transcript::{Event, Frame, Journal, JournalError, RunEnd},
};

/// What a run stands on.
pub(crate) struct Run<'a> {
    pub(crate) journal: &'a Arc<Journal>,
    pub(crate) registry: &'a Arc<Registry>,
    pub(crate) model: &'a dyn Model,
    pub(crate) system: String,
    /// The surface, where it does not follow the mode.
    pub(crate) surface: Option<Surface>,
    /// Who makes the calls.
    pub(crate) origin: Origin,
    /// What may come in between two steps.
    pub(crate) arrivals: Option<&'a dyn Arrivals>,
    pub(crate) max_steps: u32,
    /// Of all answers together, requests included.
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_output_tokens: Option<u32>,
    /// What the settings say of the model's prices; they win over what is known of it.
    pub(crate) prices: Option<Prices>,
    pub(crate) cancel: CancellationToken,
}

/// What comes into a conversation between two steps of its run: results of workers, messages to a worker.
#[async_trait]
pub(crate) trait Arrivals: Send + Sync {
    /// Records what has come.
    async fn take(&self) -> Result<(), JournalError>;
}

impl Run<'_> {
    /// Takes in what the person said and goes on until the model has said what it wants, a bound is met or the run is stopped. The end is
    /// recorded, whatever it is.
    pub(crate) async fn go(&self, input: Vec<UserPart>) -> Result<RunEnd, JournalError> {
        let mode = self.journal.with_transcript(crate::Transcript::mode);
        let mut begin = vec![Event::RunStarted { mode, model: Some(self.model.name().to_owned()) }];
        if !input.is_empty() {
            begin.push(Event::UserMessage { parts: input });
        }
        self.journal.append(begin).await?;
        let end = self.steps().await?;
        self.journal.append(vec![Event::RunFinished { end: end.clone() }]).await?;
        Ok(end)
    }

    async fn steps(&self) -> Result<RunEnd, JournalError> {
        let mut repetition = Repetition::default();
        let before = self.used();
        for _ in 0..self.max_steps {
            if let Some(arrivals) = self.arrivals {
                arrivals.take().await?;
            }
            // The mode can be changed by a person while the run goes on; the next question then has the other schema.
            let surface = self
                .surface
                .unwrap_or_else(|| self.journal.with_transcript(crate::Transcript::mode).surface());
            let answer = match self.ask(&surface).await? {
                Ok(answer) => answer,
                Err(ModelError::Cancelled) => return Ok(RunEnd::Interrupted),
                Err(error) => return Ok(RunEnd::Failed { error: error.to_string() }),
            };
            let calls: Vec<ToolCall> = answer
                .parts
                .iter()
                .filter_map(
                    |part| if let AssistantPart::Call(call) = part { Some(call.clone()) } else { None },
                )
                .collect();
            self.record(&answer).await?;
            if calls.is_empty() {
                return Ok(match answer.stop {
                    StopReason::EndTurn | StopReason::ToolCalls => RunEnd::Completed,
                    StopReason::MaxTokens => RunEnd::Stopped {
                        why: "the answer ran into the bound on output tokens and was cut".into(),
                    },
                    StopReason::Refusal => RunEnd::Failed { error: "the model refused to go on".into() },
                });
            }
            let outcomes = self.call_all(&surface, &calls).await?;
            if self.cancel.is_cancelled() {
                return Ok(RunEnd::Interrupted);
            }
            let tokens = self.used().saturating_sub(before);
            if let Some(most) = self.max_tokens
                && tokens >= most
            {
                let why = format!("the run used {tokens} tokens, and its bound is {most}");
                return Ok(RunEnd::Stopped { why });
            }
            match repetition.look(&calls, &outcomes) {
                Seen::New => {}
                Seen::Again(times) => {
                    let text = format!(
                        "The last {times} steps made the same calls with the same outcome. Making them again will not change it: \
                         do something else, or say what stands in the way."
                    );
                    self.journal.append(vec![Event::Reminder { text }]).await?;
                }
                Seen::TooOften(times) => {
                    let why =
                        format!("the model made the same calls with the same outcome {times} times in a row");
                    return Ok(RunEnd::Stopped { why });
                }
            }
        }
        Ok(RunEnd::Stopped { why: format!("the run reached its bound of {} steps", self.max_steps) })
    }

    /// Tokens of the conversation so far, those of its summaries too.
    fn used(&self) -> u64 {
        self.journal.with_transcript(crate::Transcript::spent).tokens()
    }

    /// Asks the model with the conversation as it is, compacted first where it has become too long.
    async fn ask(&self, surface: &Surface) -> Result<Result<Answer, ModelError>, JournalError> {
        for compactions in 0.. {
            let request = self.request(surface);
            let too_long = if compactions < COMPACTIONS && compaction::due(&request, self.journal, self.model)
            {
                None
            } else {
                match self.stream(&request).await {
                    Err(ModelError::ContextTooLong { message, .. }) if compactions < COMPACTIONS => {
                        Some(message)
                    }
                    other => return Ok(other),
                }
            };
            tracing::info!(?too_long, "compacting the conversation");
            match compaction::compact(&request, self.model, self.cancel.clone()).await {
                Ok((messages, answer)) => {
                    let mut events = Vec::new();
                    if let Some(answer) = answer {
                        // The summary's cost counts; its text is in the compaction.
                        events.push(self.assistant(&Answer { parts: Vec::new(), ..answer }));
                    }
                    events.push(Event::Compacted { messages });
                    self.journal.append(events).await?;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        // The loop above returns at the latest when its compactions are used up.
        Ok(Err(ModelError::Cancelled))
    }

    fn request(&self, surface: &Surface) -> Request {
        let tools = self
            .registry
            .list(surface)
            .into_iter()
            .map(|spec| ToolDefinition {
                name: spec.name.clone(),
                description: spec.description.clone(),
                schema: spec.schema.clone(),
            })
            .collect();
        Request {
            system: self.system.clone(),
            tools,
            messages: self.journal.with_transcript(|transcript| transcript.messages().to_vec()),
            max_output_tokens: self.max_output_tokens,
            effort: None,
        }
    }

    async fn stream(&self, request: &Request) -> Result<Answer, ModelError> {
        let mut events = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(ModelError::Cancelled),
            events = self.model.ask(request, self.cancel.clone()) => events?,
        };
        loop {
            let event = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(ModelError::Cancelled),
                event = events.next() => event,
            };
            let frame = match event {
                Some(Ok(ModelEvent::Done(answer))) => return Ok(answer),
                Some(Ok(ModelEvent::Text(text))) => Frame::Text(text),
                Some(Ok(ModelEvent::Thinking(text))) => Frame::Thinking(text),
                Some(Ok(ModelEvent::CallBegun { id, tool })) => Frame::CallBegun { id, tool },
                Some(Ok(ModelEvent::Retry { why, attempt, after })) => Frame::Retry { why, attempt, after },
                Some(Err(error)) => return Err(error),
                None => {
                    return Err(ModelError::Unavailable {
                        model: self.model.name().to_owned(),
                        attempts: 1,
                        message: "the answer broke off".into(),
                    });
                }
            };
            self.journal.show(frame);
        }
    }

    fn assistant(&self, answer: &Answer) -> Event {
        Event::AssistantMessage {
            parts: answer.parts.clone(),
            stop: answer.stop,
            usage: answer.usage,
            cost: self.prices.or(self.model.profile().prices).map(|prices| prices.cost(&answer.usage)),
            model: self.model.name().to_owned(),
        }
    }

    async fn record(&self, answer: &Answer) -> Result<(), JournalError> {
        self.journal.append(vec![self.assistant(answer)]).await
    }

    /// Makes all calls of an answer side by side; the registry lets those that are not parallel-safe wait for each other (SPEC R6). When the
    /// run is stopped, calls get a moment to clean up and are then dropped, which kills what they started.
    async fn call_all(&self, surface: &Surface, calls: &[ToolCall]) -> Result<Vec<Outcome>, JournalError> {
        let own: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        let (sender, mut receiver) = mpsc::channel(PROGRESS);
        let context = Context::new(self.cancel.child_token(), Progress::to(sender));
        let work = join_all(calls.iter().map(|call| {
            let call = Call {
                id: CallId(call.id.clone()),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                origin: self.origin,
            };
            self.registry.call(surface, call, context.clone())
        }));
        let give_up = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        let mut work = Box::pin(work);
        tokio::pin!(give_up);
        loop {
            tokio::select! {
                biased;
                Some((id, text)) = receiver.recv() => self.journal.show(Frame::Progress { id, text }),
                outcomes = &mut work => return Ok(outcomes),
                () = &mut give_up => break,
            }
        }
        // Ends what is left of the calls before they are said to have ended. Their cards close by themselves.
        drop(work);
        let cancelled =
            self.journal.with_transcript(crate::Transcript::closing).into_iter().filter_map(|event| {
                match event {
                    // Others may be making calls beside the run.
                    Event::CallFinished { id, ms, .. } if own.contains(id.0.as_str()) => {
                        Some(Event::CallFinished {
                            id,
                            outcome: ToolError::Cancelled.into(),
                            ms,
                            whole: None,
                            kept: Vec::new(),
                        })
                    }
                    _ => None,
                }
            });
        self.journal.append(cancelled.collect()).await?;
        Ok(Vec::new())
    }
}
