//! A model behind a wire format: sends, decodes, tries again.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use crate::{
    Event, EventStream, Model, ModelError, Profile, Request,
    check::check_request,
    fault::Fault,
    frames::Frame,
    limits::DRAIN_TIMEOUT,
    retry::{give_up, wait},
    settings::RetryPolicy,
    transport::{HttpCall, ReplyBody, Transport},
    wire::{Decoder, Ids, Step, Wire},
};

/// Everything that stays the same from one request to the next.
pub(crate) struct Remote {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) policy: RetryPolicy,
    /// "the key from …", for the message when it is refused.
    pub(crate) key: String,
}

/// [`Remote`] as the run sees it.
pub(crate) struct RemoteModel(pub(crate) Arc<Remote>);

#[async_trait]
impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn profile(&self) -> Profile {
        self.0.profile
    }

    async fn ask(&self, request: &Request, cancel: CancellationToken) -> Result<EventStream, ModelError> {
        if let Err(problem) = check_request(request) {
            debug_assert!(false, "a request breaks an invariant: {problem}");
            return Err(ModelError::Refused {
                model: self.0.name.clone(),
                message: format!("not sent: {problem}"),
            });
        }
        let wire = &self.0.wire;
        let body = serde_json::to_vec(&wire.body(request)).map_err(|error| ModelError::Refused {
            model: self.0.name.clone(),
            message: format!("the request cannot be written as JSON: {error}"),
        })?;
        let asking = Asking {
            ids: Ids::new(request, &body),
            call: HttpCall {
                path: wire.path(),
                version: wire.version(),
                headers: wire.headers(request),
                body: Bytes::from(body),
                framing: wire.framing(),
            },
            remote: Arc::clone(&self.0),
            cancel,
            attempt: 1,
            phase: Phase::Send,
            ready: VecDeque::new(),
        };
        Ok(futures::stream::unfold(asking, |mut asking| async move {
            let item = asking.next().await?;
            Some((item, asking))
        })
        .fuse()
        .boxed())
    }
}

enum Phase {
    Wait(Duration),
    Send,
    Read { frames: BoxStream<'static, Result<Frame, Fault>>, decoder: Box<dyn Decoder> },
    Over,
}

/// Reads a body to its end beside everything else: only a connection that was read to its end is used again, and the next turn should not
/// pay for a new one.
fn drain(mut frames: BoxStream<'static, Result<Frame, Fault>>) {
    tokio::spawn(async move {
        let rest = async { while frames.next().await.is_some() {} };
        // A server that does not end its body costs a new connection, nothing else.
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
    });
}

/// One question and the attempts at it. Dropping it drops the connection.
struct Asking {
    remote: Arc<Remote>,
    call: HttpCall,
    ids: Ids,
    cancel: CancellationToken,
    /// The current one, from 1.
    attempt: u32,
    phase: Phase,
    ready: VecDeque<Event>,
}

impl Asking {
    async fn next(&mut self) -> Option<Result<Event, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if matches!(self.phase, Phase::Over) {
                return None;
            }
            let cancel = self.cancel.clone();
            let stepped = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    self.phase = Phase::Over;
                    return Some(Err(ModelError::Cancelled));
                }
                stepped = self.step() => stepped,
            };
            if let Err(fault) = stepped
                && let Err(error) = self.failed(fault)
            {
                self.phase = Phase::Over;
                return Some(Err(error));
            }
        }
    }

    /// Goes on until there is something to say. Cancel safe: `phase` changes only after the await.
    async fn step(&mut self) -> Result<(), Fault> {
        match &mut self.phase {
            Phase::Wait(time) => {
                let time = *time;
                tokio::time::sleep(time).await;
                self.phase = Phase::Send;
            }
            Phase::Send => {
                let reply = self.remote.transport.send(&self.call).await?;
                match reply.body {
                    ReplyBody::Frames(frames) => {
                        let decoder = self.remote.wire.decoder(self.ids.clone());
                        self.phase = Phase::Read { frames, decoder };
                    }
                    ReplyBody::Text(text) => {
                        return Err(Fault::from_response(reply.status, reply.retry_after, &text));
                    }
                }
            }
            Phase::Read { frames, decoder } => {
                let frame = frames.next().await;
                let mut events = Vec::new();
                let step = match frame {
                    Some(frame) => decoder.frame(&frame?, &mut events)?,
                    None => Step::Finished,
                };
                self.ready.extend(events);
                if step == Step::Finished {
                    let answer = decoder.finish()?;
                    self.ready.push_back(Event::Done(answer));
                    if let Phase::Read { frames, .. } = std::mem::replace(&mut self.phase, Phase::Over) {
                        drain(frames);
                    }
                }
            }
            Phase::Over => {}
        }
        Ok(())
    }

    fn failed(&mut self, fault: Fault) -> Result<(), ModelError> {
        let Some(after) = wait(&self.remote.policy, self.attempt, &fault) else {
            return Err(give_up(fault, &self.remote.name, self.attempt, &self.remote.key));
        };
        self.attempt += 1;
        tracing::warn!(model = %self.remote.name, attempt = self.attempt, ?after, why = %fault.message, "trying again");
        self.ready.push_back(Event::Retry { why: fault.message, attempt: self.attempt, after });
        self.phase = Phase::Wait(after);
        Ok(())
    }
}
