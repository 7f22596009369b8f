//! One debug session: an adapter, what is known about the program below it, and the end of both.

mod attend;
pub(crate) mod breakpoints;
mod company;
mod handshake;
mod inspect;
pub(crate) mod output;
mod references;
mod shared;
pub(crate) mod state;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_system::{Process, ProcessStderr, Supervisor};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

pub(crate) use company::ProcessLine;
pub(crate) use handshake::Begin;
pub(crate) use inspect::{Frame, Listed, Standing, Variable};
pub(crate) use references::ReferenceError;
pub(crate) use shared::Waited;

use self::{
    attend::Role,
    breakpoints::{Placed, Plan},
    company::Company,
    references::References,
    shared::Shared,
    state::{End, Phase, Stop},
};
use crate::{
    adapters::Adapter,
    limits::{ANSWER, FAREWELL, LLDB_CALL, PAUSE_AGAIN, SETTLE, STEP_ALONE, WATCHDOG},
    protocol::{Client, RequestError, Sent, message::Capabilities},
};

/// How to reach an adapter.
pub(crate) enum Transport {
    /// It talks on its stdin and stdout.
    Stdio(Process),
    /// The same, of one whose stderr has been read up to where it said that it is there.
    Announced { process: Process, stderr: ProcessStderr, before: Vec<u8> },
    /// It was started by us and has dialled in; its stdout and stderr are the program's.
    DialledIn(Process, TcpStream),
    /// It belongs to somebody else and stays.
    Connected(TcpStream),
}

/// A session. It ends when [`Session::terminate`] is called, when its program or its adapter ends, after its time to live, and at
/// the latest when it is dropped.
pub(crate) struct Session {
    pub(crate) adapter: &'static Adapter,
    /// What is debugged, for people.
    pub(crate) title: String,
    pub(crate) begun: Instant,
    /// Whether the program is ours to kill.
    pub(crate) launched: bool,
    client: Client,
    shared: Arc<Shared>,
    /// The adapter's process.
    pub(crate) adapter_pid: Option<u32>,
    capabilities: OnceLock<Capabilities>,
    references: Mutex<References>,
    /// The top frame of the thread that stopped.
    top: Mutex<Option<Top>>,
    placed: Mutex<Vec<Placed>>,
    /// The thread of a step that did not come to its end.
    stepping: Mutex<Option<i64>>,
    /// The adapter has been told all breakpoints as they are asked for.
    configured: AtomicBool,
    /// An evaluation that its call has stopped waiting for.
    evaluating: tokio::sync::Mutex<Option<Sent>>,
    /// The breakpoint that stops a Rust program when it panics.
    panic_breakpoint: OnceLock<i64>,
    /// True once nothing of the session is left.
    over: watch::Receiver<bool>,
}

/// What a session needs of whoever has it.
pub(crate) struct Owner<'a> {
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) directory: &'a Path,
    pub(crate) time_to_live: Duration,
    /// The breakpoints of the conversation.
    pub(crate) plan: &'a Arc<Mutex<Plan>>,
}

/// The frame that the program stands in.
#[derive(Clone, Debug)]
struct Top {
    /// In which it is that.
    epoch: u64,
    /// The adapter's.
    id: i64,
    /// As the adapter gives it, with what tells instances of a generic function apart.
    name: String,
    line: i64,
}

impl Top {
    fn is_at(&self, other: &Top) -> bool {
        self.name == other.name && self.line == other.line
    }
}

/// Whether a stop is at a later piece of the line on which the program stood at a breakpoint: lldb calls the pieces of breakpoint 2
/// `breakpoint 2.1`, `breakpoint 2.2` and so on. A call of the same function hits the first piece first and is no later part.
fn later_part(before: &Stop, now: &Stop) -> bool {
    let piece = |stop: &Stop| -> Option<(u32, u32)> {
        let (number, piece) = stop.detail.as_deref()?.strip_prefix("breakpoint ")?.split_once('.')?;
        Some((number.parse().ok()?, piece.parse().ok()?))
    };
    match (piece(before), piece(now)) {
        (Some((old, from)), Some((new, to))) => {
            before.reason == "breakpoint" && now.reason == "breakpoint" && old == new && to > from
        }
        _ => false,
    }
}

/// Why an operation has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error(
        "The program is running, so it cannot be looked into. Use `pause`, or set breakpoints and wait with `continue`."
    )]
    Running,
    #[error("The program is already running.")]
    AlreadyRunning,
    #[error("The program has ended.")]
    Ended(End),
    #[error(
        "An evaluation that was begun {0} seconds ago is still going on in the program. Ask for `status` later, or `terminate`."
    )]
    Busy(u64),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error("Cancelled")]
    Cancelled,
}

/// What an evaluation came to.
#[derive(Debug)]
pub(crate) enum Evaluation {
    Value(Variable),
    /// It goes on in the program.
    GoesOn,
}

impl Session {
    /// Starts to talk to an adapter.
    pub(crate) fn open(
        adapter: &'static Adapter,
        title: String,
        launched: bool,
        transport: Transport,
        owner: &Owner<'_>,
    ) -> Arc<Session> {
        let company = Company::new(adapter, launched, owner);
        let session = Session::in_company(Arc::clone(&company), Role::Leader, title, transport, None);
        company.led_by(&session.shared);
        session
    }

    /// The same for any process of a company.
    fn in_company(
        company: Arc<Company>,
        role: Role,
        title: String,
        transport: Transport,
        pid: Option<u32>,
    ) -> Arc<Session> {
        let (adapter, launched) = (company.adapter, company.launched);
        let references = Mutex::new(References::counted_by(Arc::clone(&company.given)));
        let has_process = !matches!(transport, Transport::Connected(_));
        let live = company.time_to_live;
        let shared = Shared::new(company, has_process);
        if pid.is_some() {
            shared.with(|state| state.pid = pid);
        }
        let (client, process) = attend::connect(transport, &shared);
        let adapter_pid = process.as_ref().map(Process::pid);
        let (done, over) = watch::channel(false);
        let settle = if adapter.code_with_farewell { Duration::ZERO } else { SETTLE };
        let times = attend::Times { live, settle };
        tokio::spawn(attend::attend(Arc::clone(&shared), client.clone(), process, role, times, done));
        Arc::new(Session {
            adapter,
            title,
            begun: Instant::now(),
            launched,
            client,
            shared,
            adapter_pid,
            capabilities: OnceLock::new(),
            references,
            top: Mutex::default(),
            placed: Mutex::default(),
            stepping: Mutex::default(),
            configured: AtomicBool::new(false),
            evaluating: tokio::sync::Mutex::default(),
            panic_breakpoint: OnceLock::new(),
            over,
        })
    }

    fn set_configured(&self) {
        self.configured.store(true, Ordering::Relaxed);
    }

    fn is_configured(&self) -> bool {
        self.configured.load(Ordering::Relaxed)
    }

    /// Where the program is. A program that is gone without the adapter's knowledge is noticed here.
    pub(crate) fn phase(&self) -> Phase {
        self.shared.look(|state| state.phase.clone())
    }

    /// The program's number, once it is known.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.shared.look(|state| state.pid)
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.capabilities.get().cloned().unwrap_or_default()
    }

    /// The signal of the last stop, by its name.
    pub(crate) fn signal(&self) -> Option<String> {
        self.shared.look(|state| state.signal.clone())
    }

    /// Looks at the output.
    pub(crate) fn output<T>(&self, look: impl FnOnce(&mut output::Output) -> T) -> T {
        self.shared.with(|state| look(&mut state.output))
    }

    /// The adapter's own words and its stderr.
    pub(crate) fn words(&self) -> (String, String) {
        self.shared.look(|state| (state.words.text(), state.stderr.text()))
    }

    /// What became of the breakpoints, with what the adapter has told since.
    pub(crate) fn placed(&self) -> Vec<Placed> {
        let news = self.shared.with(|state| std::mem::take(&mut state.breakpoint_news));
        let mut placed = self.lock_placed();
        for answer in news {
            let known = placed.iter_mut().find(|placed| placed.id.is_some() && placed.id == answer.id);
            if let Some(known) = known {
                known.update(&answer);
            }
        }
        placed.clone()
    }

    /// Ends the adapter and, where it is ours, the program; answers when both are dead.
    pub(crate) async fn terminate(&self, why: &str) {
        self.shared.with(|state| state.end(End::Terminated { why: why.to_owned() }));
        self.shared.end.cancel();
        self.wait_until_over().await;
    }

    pub(crate) async fn wait_until_over(&self) {
        // An error means that the runtime is shutting down.
        let _ = self.over.clone().wait_for(|over| *over).await;
    }

    /// Waits for the last words about a program that has ended: its code, the rest of its output.
    pub(crate) async fn settle(&self) -> End {
        self.shared.when_within(SETTLE, |state| state.settled.is_final().then_some(())).await;
        if matches!(self.phase(), Phase::Ended(End::Exited { code: None })) {
            // The code may come with the farewell (delve).
            let _ = timeout(FAREWELL * 2, self.wait_until_over()).await;
        }
        match self.phase() {
            Phase::Ended(end) => end,
            // Not reached: nobody settles what has not ended.
            _ => End::Exited { code: None },
        }
    }

    /// Waits for the program to stop or end.
    pub(crate) async fn wait(&self, until: Instant, cancel: &CancellationToken) -> Waited {
        self.shared.stop_or_end(until, cancel).await
    }

    /// Lets the program go and waits for its next stop. `command` is `continue`, `next`, `stepIn` or `stepOut`.
    pub(crate) async fn resume(
        &self,
        command: &'static str,
        thread: Option<i64>,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Result<Waited, SessionError> {
        loop {
            let before = self.standing().await?;
            let place = self.lock_top().clone();
            let waited = self.resume_once(command, thread, &before, until, cancel).await?;
            let Waited::Stopped(stop) = &waited else { return Ok(waited) };
            if command != "next" || !later_part(&before, stop) {
                return Ok(waited);
            }
            // A line of Rust or C++ is often several pieces of code, each with the line's breakpoint; a step over the line is not done
            // at the next piece. The same function, name and all: another instance of a generic one is a stop of its own.
            let same = match (place, self.top_frame(stop).await) {
                (Some(place), Ok(Some(_))) => self.lock_top().as_ref().is_some_and(|now| now.is_at(&place)),
                _ => false,
            };
            if !same {
                return Ok(waited);
            }
        }
    }

    async fn resume_once(
        &self,
        command: &'static str,
        thread: Option<i64>,
        stop: &Stop,
        until: Instant,
        cancel: &CancellationToken,
    ) -> Result<Waited, SessionError> {
        let thread = match thread.or(stop.thread) {
            Some(thread) => thread,
            None => self.some_thread().await?,
        };
        self.forget_step(stop).await;
        if command != "continue" {
            *self.lock_stepping() = Some(thread);
        }
        self.shared.with(state::State::resume);
        let arguments = json!({"threadId": thread});
        let mut sent = match self.client.send(command, arguments).await {
            Ok(sent) => sent,
            Err(error) => return self.lost(error).await,
        };
        // The stop may come before the response, and the response never (lldb-dap, when the program was killed). That the program is
        // running is only said once the adapter has taken the request in.
        let taken_in = until.max(Instant::now() + ANSWER);
        let alone = Instant::now() + if command == "continue" { Duration::ZERO } else { STEP_ALONE };
        tokio::select! {
            biased;
            waited = self.shared.stop_or_end_alone(alone, taken_in, cancel) => Ok(waited),
            answer = sent.wait() => match answer {
                Ok(_) => Ok(self.shared.stop_or_end_alone(alone, until, cancel).await),
                Err(error @ RequestError::Failed { .. }) => {
                    // A program that has gone makes every request fail.
                    if let Some(end) = self.end_within(WATCHDOG).await {
                        return Ok(Waited::Ended(end));
                    }
                    self.shared.with(|state| state.resume_failed(stop.clone()));
                    Err(error.into())
                }
                Err(error) => self.lost(error).await,
            },
        }
    }

    /// Makes an adapter forget a step that a breakpoint or a pause has cut short. lldb goes on with it at whatever resume comes next: other
    /// threads stand still for it, and a step out of what it had called does not stop.
    async fn forget_step(&self, stop: &Stop) {
        let Some(command) = self.adapter.forget_step else { return };
        let Some(thread) = self.lock_stepping().take() else { return };
        if stop.reason == "step" && stop.thread == Some(thread) {
            return;
        }
        let frame = if stop.thread == Some(thread) {
            self.top_frame(stop).await
        } else {
            self.first_frame(thread).await.map(|frame| frame.map(|frame| frame.id))
        };
        // A thread that has ended has no step any more, and there may be none for another reason: an error says no more than that.
        if let Ok(Some(frame)) = frame {
            let arguments = json!({"expression": command, "context": "repl", "frameId": frame});
            let _ = self.ask("evaluate", arguments).await;
        }
    }

    /// Brings the program to a stop.
    pub(crate) async fn pause(
        &self,
        thread: Option<i64>,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<Waited, SessionError> {
        match self.phase() {
            Phase::Stopped(stop) => {
                return match self.busy().await {
                    Some(since) => Err(SessionError::Busy(since.as_secs())),
                    None => Ok(Waited::Stopped(stop)),
                };
            }
            Phase::Ended(end) => return Err(SessionError::Ended(end)),
            Phase::Starting | Phase::Running => {}
        }
        let thread = match thread {
            Some(thread) => thread,
            None => self.some_thread().await?,
        };
        let until = Instant::now() + time;
        loop {
            self.shared.with(state::State::pause);
            let turn = until.min(Instant::now() + PAUSE_AGAIN);
            let mut sent = match self.client.send("pause", json!({"threadId": thread})).await {
                Ok(sent) => sent,
                Err(error) => return self.lost(error).await,
            };
            let waited = tokio::select! {
                biased;
                waited = self.shared.stop_or_end(turn, cancel) => waited,
                answer = sent.wait() => match answer {
                    Ok(_) => self.shared.stop_or_end(turn, cancel).await,
                    // It may have stopped or ended by itself in between.
                    Err(error @ RequestError::Failed { .. }) => match self.phase() {
                        Phase::Running => return Err(error.into()),
                        _ => self.shared.stop_or_end(turn, cancel).await,
                    },
                    Err(error) => return self.lost(error).await,
                },
            };
            // One that comes while the program is just being let go can be lost (debugpy).
            if waited != Waited::Running || Instant::now() >= until {
                return Ok(waited);
            }
        }
    }

    /// Computes an expression in a frame; the top frame if none is named.
    pub(crate) async fn evaluate(
        &self,
        expression: &str,
        frame: Option<u64>,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<Evaluation, SessionError> {
        let stop = self.standing().await?;
        let frame = match frame {
            Some(frame) => Some(self.references().frame(frame)?),
            None => self.top_frame(&stop).await?,
        };
        let mut arguments = json!({"expression": expression, "context": self.adapter.evaluate_context});
        if let Some(frame) = frame {
            arguments["frameId"] = frame.into();
        }
        let begun = Instant::now();
        let mut sent = match self.client.send("evaluate", arguments).await {
            Ok(sent) => sent,
            Err(error) => return self.lost(error).await,
        };
        let answer = tokio::select! {
            biased;
            answer = timeout(time, sent.wait()) => answer,
            () = cancel.cancelled() => {
                self.goes_on(sent, begun).await;
                return Err(SessionError::Cancelled);
            }
        };
        match answer {
            Ok(Ok(body)) => Ok(Evaluation::Value(self.evaluated(expression, &body))),
            Ok(Err(RequestError::Failed { mut message })) => match self.end_within(Duration::ZERO).await {
                Some(end) => Err(SessionError::Ended(end)),
                None => {
                    if message.contains("Execution was interrupted") && begun.elapsed() >= LLDB_CALL {
                        // It names the stop at which the program stands as the reason.
                        message.push_str("\nlldb gives a call half a second, and ended this one at that.");
                    }
                    Err(RequestError::Failed { message }.into())
                }
            },
            Ok(Err(error)) => self.lost(error).await,
            Err(_) => {
                self.goes_on(sent, begun).await;
                Ok(Evaluation::GoesOn)
            }
        }
    }

    async fn goes_on(&self, sent: Sent, begun: Instant) {
        *self.evaluating.lock().await = Some(sent);
        self.shared.with(|state| state.busy = Some(begun));
    }

    /// Since when an evaluation is going on in the program, if one is.
    pub(crate) async fn busy(&self) -> Option<Duration> {
        let mut evaluating = self.evaluating.lock().await;
        let sent = evaluating.as_mut()?;
        if timeout(Duration::ZERO, sent.wait()).await.is_ok() {
            *evaluating = None;
            self.shared.with(|state| state.busy = None);
            return None;
        }
        self.shared.look(|state| state.busy.map(|since| since.elapsed()))
    }

    /// The stop at which the program stands, or why it does not.
    async fn standing(&self) -> Result<Stop, SessionError> {
        if let Some(since) = self.busy().await {
            return Err(SessionError::Busy(since.as_secs()));
        }
        if self.shared.watch.get().is_some_and(haft_system::ProcessWatch::has_ended)
            && let Some(end) = self.end_within(WATCHDOG * 2).await
        {
            return Err(SessionError::Ended(end));
        }
        match self.phase() {
            Phase::Stopped(stop) => Ok(stop),
            Phase::Starting | Phase::Running => Err(SessionError::Running),
            Phase::Ended(end) => Err(SessionError::Ended(end)),
        }
    }

    /// Whether a program about which the adapter cannot tell anything is gone. A killed process takes a moment to end, and the
    /// watchdog a moment more to say so.
    pub(crate) async fn is_gone(&self) -> bool {
        let Some(watch) = self.shared.watch.get() else { return false };
        let gone = timeout(WATCHDOG, watch.ended()).await.is_ok();
        gone && self.end_within(WATCHDOG * 2).await.is_some()
    }

    /// What a broken connection means is known a moment later.
    async fn lost<T>(&self, error: RequestError) -> Result<T, SessionError> {
        match self.end_within(SETTLE * 4).await {
            Some(end) => Err(SessionError::Ended(end)),
            None => Err(error.into()),
        }
    }

    /// Gives the end of the program the time in which it becomes known.
    pub(crate) async fn may_have_ended(&self) {
        let _ = self.end_within(SETTLE * 4).await;
    }

    async fn end_within(&self, time: Duration) -> Option<End> {
        self.shared
            .when_within(time, |state| match &state.phase {
                Phase::Ended(end) => Some(end.clone()),
                _ => None,
            })
            .await
    }

    async fn ask(&self, command: &'static str, arguments: Value) -> Result<Value, SessionError> {
        match self.client.request(command, arguments, ANSWER).await {
            Ok(body) => Ok(body),
            Err(error @ RequestError::Failed { .. }) => match self.end_within(Duration::ZERO).await {
                Some(end) => Err(SessionError::Ended(end)),
                None => Err(error.into()),
            },
            Err(error) => self.lost(error).await,
        }
    }

    fn references(&self) -> MutexGuard<'_, References> {
        let mut references = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        references.enter(self.shared.look(|state| state.epoch));
        references
    }

    fn lock_top(&self) -> MutexGuard<'_, Option<Top>> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_stepping(&self) -> MutexGuard<'_, Option<i64>> {
        self.stepping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_placed(&self) -> MutexGuard<'_, Vec<Placed>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.end.cancel();
    }
}
