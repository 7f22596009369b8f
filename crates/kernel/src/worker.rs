//! One kernel: its process, its streams and the cell that it runs. A task of its own owns all of it, so that output flows and an interrupt
//! is carried through whether or not somebody still waits for the cell.

use std::{
    collections::HashMap,
    future::pending,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_system::{Exit, Process, ProcessStdout};
use haft_tool::{Context, Outcome};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cell::{Cell, End, Language, Ran, Why},
    display::Display,
    frames::{self, Frame, Reader, Status},
    interpreter,
    limits::{CALL_GRACE, CALLS, KILL_AFTER, LIVE_BYTES, LIVE_EVERY, SECOND_INTERRUPT, SHOWN_ERR, SHOWN_OUT},
    output::{Kept, Piece},
    running::{Interrupt, Running, Stream},
};

/// What Haft knows of a kernel.
#[derive(Clone)]
pub(crate) struct Handle {
    commands: mpsc::Sender<(Cell, oneshot::Sender<Ran>)>,
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) program: String,
    /// What the next result has to say: why the kernel is gone, what became of a cell that nobody waited for.
    notices: Mutex<Vec<String>>,
    stop: CancellationToken,
    ended: CancellationToken,
}

impl Shared {
    fn note(&self, text: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Ends the kernel, whatever it does, and returns when it is gone.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Handle {
    /// Runs a cell; `None` where the kernel is gone (its notices say why) and the cell has not been run.
    pub(crate) async fn run(&self, cell: Cell) -> Option<Ran> {
        let (sender, receiver) = oneshot::channel();
        self.commands.send((cell, sender)).await.ok()?;
        receiver.await.ok()
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.commands.is_closed()
    }
}

/// What a started worker consists of.
pub(crate) struct Parts {
    pub(crate) language: Language,
    pub(crate) process: Process,
    pub(crate) reader: Reader,
    pub(crate) writer: mpsc::Sender<Vec<u8>>,
    pub(crate) out: ProcessStdout,
    pub(crate) err: ProcessStdout,
    pub(crate) nonce: String,
    pub(crate) version: String,
    pub(crate) program: String,
    pub(crate) idle: Duration,
    pub(crate) outputs: Option<PathBuf>,
}

/// Lets a kernel go its way.
pub(crate) fn attend(parts: Parts) -> Handle {
    let (commands, receiver) = mpsc::channel(1);
    let shared = Arc::new(Shared {
        pid: parts.process.pid(),
        version: parts.version,
        program: parts.program,
        notices: Mutex::default(),
        stop: CancellationToken::new(),
        ended: CancellationToken::new(),
    });
    let actor = Actor {
        language: parts.language,
        process: parts.process,
        reader: parts.reader,
        writer: parts.writer,
        streams: [Stream::new(parts.out, &parts.nonce), Stream::new(parts.err, &parts.nonce)],
        commands: receiver,
        shared: shared.clone(),
        idle: parts.idle,
        since: Instant::now(),
        cell: None,
        background: Actor::background(shared.pid, parts.outputs.as_deref(), 0),
        outputs: parts.outputs,
        calls: JoinSet::new(),
    };
    tokio::spawn(actor.run());
    Handle { commands, shared }
}

struct Actor {
    language: Language,
    process: Process,
    reader: Reader,
    writer: mpsc::Sender<Vec<u8>>,
    streams: [Stream; 2],
    commands: mpsc::Receiver<(Cell, oneshot::Sender<Ran>)>,
    shared: Arc<Shared>,
    idle: Duration,
    /// Since when it has been idle.
    since: Instant,
    cell: Option<Running>,
    /// What came while no cell ran.
    background: [Kept; 2],
    /// Where files with long output go.
    outputs: Option<PathBuf>,
    calls: JoinSet<(u32, u64, Outcome)>,
}

enum Event {
    Command(Option<(Cell, oneshot::Sender<Ran>)>),
    Output(usize, usize),
    Frame(std::io::Result<Option<Frame>>),
    Exit(Exit),
    Called(u32, u64, Outcome),
    Cancelled,
    Stop,
    Time,
}

impl Actor {
    /// For what comes behind a cell.
    fn background(pid: u32, outputs: Option<&Path>, cell: u32) -> [Kept; 2] {
        ["stdout", "stderr"].map(|stream| {
            let name = format!("after_cell_{cell}_{pid}_{stream}.txt");
            Kept::new(outputs.map(|place| place.join(name)), SHOWN_ERR)
        })
    }

    async fn run(mut self) {
        let end = loop {
            match self.next().await {
                Event::Command(None) | Event::Stop => break None,
                Event::Command(Some((cell, answer))) => self.start(cell, answer),
                Event::Output(stream, count) => self.output(stream, count).await,
                Event::Frame(Ok(Some(frame))) => self.frame(frame),
                // The channel closes when the process ends, which is told otherwise, or when the cell has closed it.
                Event::Frame(Ok(None)) => {
                    if timeout(Duration::from_secs(1), self.process.wait()).await.is_err() {
                        break Some(End::Broken("the worker closed its channel".into()));
                    }
                    let exit = self.process.wait().await;
                    break Some(End::Died(exit));
                }
                Event::Frame(Err(error)) => break Some(End::Broken(error.to_string())),
                Event::Exit(exit) => break Some(End::Died(exit)),
                Event::Called(cell, id, outcome) => self.called(cell, id, &outcome),
                Event::Cancelled => self.interrupt(Why::Cancelled),
                Event::Time => {
                    if self.time() {
                        break None;
                    }
                }
            }
            self.settle().await;
        };
        self.finish(end).await;
    }

    /// When something has to happen by itself.
    fn deadline(&self) -> Instant {
        let Some(running) = &self.cell else { return self.since + self.idle };
        let next = match &running.interrupt {
            None if running.open_calls > 0 => None,
            None => Some(running.alive + running.cell.budget),
            Some(Interrupt { at, step: 0, .. }) => Some(*at + SECOND_INTERRUPT),
            Some(Interrupt { at, step: 1, .. }) => Some(*at + KILL_AFTER),
            Some(_) => None,
        };
        // An hour from now stands for never.
        let never = Instant::now() + Duration::from_hours(1);
        next.into_iter().chain(running.live_at).min().unwrap_or(never)
    }

    async fn next(&mut self) -> Event {
        let deadline = self.deadline();
        let [out, err] = &mut self.streams;
        let idle = self.cell.is_none();
        let waiting = self.cell.as_mut().filter(|running| running.interrupt.is_none());
        let given_up = async {
            match waiting {
                Some(running) => {
                    let cancel = running.cell.context.cancel.clone();
                    tokio::select! {
                        () = cancel.cancelled() => {}
                        () = running.answer.closed() => {}
                    }
                }
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.shared.stop.cancelled() => Event::Stop,
            () = given_up => Event::Cancelled,
            // Output before frames and the end: a dead kernel's last words count. In random order among themselves: a flood on one of them
            // must not keep the others from being read.
            count = out.read() => Event::Output(0, count),
            count = err.read() => Event::Output(1, count),
            frame = self.reader.next() => Event::Frame(frame),
            Some(done) = self.calls.join_next(), if !self.calls.is_empty() => match done {
                Ok((cell, id, outcome)) => Event::Called(cell, id, outcome),
                // A panic of the bridge itself; the registry catches those of tools. The call is then never answered, and the budget ends the cell.
                Err(_) => Event::Time,
            },
            command = self.commands.recv(), if idle => Event::Command(command),
            exit = self.process.wait() => Event::Exit(exit),
            () = sleep_until(deadline) => Event::Time,
        }
    }

    fn start(&mut self, cell: Cell, answer: oneshot::Sender<Ran>) {
        let frame = json!({
            "op": "run", "cell": cell.number, "code": cell.code, "source": cell.source, "quiet": cell.quiet,
        });
        let [out, err] = match &cell.files {
            Some([out, err]) => [Some(out.clone()), Some(err.clone())],
            None => [None, None],
        };
        let now = Instant::now();
        let after = Actor::background(self.shared.pid, self.outputs.as_deref(), cell.number);
        let before = std::mem::replace(&mut self.background, after);
        self.cell = Some(Running {
            before,
            cancel: cell.context.cancel.child_token(),
            cell,
            answer,
            started: false,
            begin: now,
            alive: now,
            kept: [Kept::new(out, SHOWN_OUT), Kept::new(err, SHOWN_ERR)],
            ended: [false; 2],
            done: None,
            displays: Vec::new(),
            displays_dropped: 0,
            places: HashMap::new(),
            open_calls: 0,
            calls: 0,
            interrupt: None,
            live: Vec::new(),
            live_at: None,
            live_left_out: 0,
        });
        self.send(&frame);
    }

    /// The queue has room for an answer to every open call, so that a refusal means that the worker is gone.
    fn send(&self, frame: &serde_json::Value) {
        let _ = self.writer.try_send(frames::encode(frame.to_string().as_bytes()));
    }

    async fn output(&mut self, stream: usize, count: usize) {
        let Stream { pipe, splitter, buffer } = &mut self.streams[stream];
        let pieces = if count == 0 {
            *pipe = None;
            let rest = splitter.finish();
            if rest.is_empty() { Vec::new() } else { vec![Piece::Text(rest)] }
        } else {
            splitter.feed(&buffer[..count])
        };
        for piece in pieces {
            match piece {
                Piece::Text(bytes) => self.text(stream, &bytes).await,
                Piece::Mark(mark) => self.mark(stream, &mark),
            }
        }
    }

    async fn text(&mut self, stream: usize, bytes: &[u8]) {
        match &mut self.cell {
            // What comes behind the end's mark belongs to nobody's cell.
            Some(running) if !running.ended[stream] => {
                if running.kept[stream].counts() {
                    running.alive = Instant::now();
                }
                running.kept[stream].push(bytes).await;
                let room = LIVE_BYTES.saturating_sub(running.live.len());
                running.live.extend_from_slice(&bytes[..room.min(bytes.len())]);
                running.live_left_out += bytes.len().saturating_sub(room) as u64;
                running.live_at.get_or_insert_with(|| Instant::now() + LIVE_EVERY);
            }
            _ => self.background[stream].push(bytes).await,
        }
    }

    fn mark(&mut self, stream: usize, mark: &str) {
        let Some(running) = &mut self.cell else { return };
        let (kind, number) = mark.split_at_checked(1).unwrap_or(("", ""));
        match (kind, number.parse::<u64>()) {
            ("d", Ok(number)) => {
                running.places.insert(number, running.kept[stream].total);
            }
            ("e", Ok(number)) if number == u64::from(running.cell.number) => running.ended[stream] = true,
            _ => {}
        }
    }

    fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Ready { .. } => {}
            Frame::Started { cell } => {
                if let Some(running) = self.cell.as_mut().filter(|running| running.cell.number == cell) {
                    running.started = true;
                }
            }
            Frame::Display { n, result, update, id, data, table, original } => {
                let Some(running) = &mut self.cell else { return };
                running.alive = Instant::now();
                let display = Display { n, result, id, at: 0, data, table, original };
                display.keep(update, &mut running.displays, &mut running.displays_dropped);
            }
            Frame::Call { id, tool, arguments } => self.call(id, tool, arguments),
            Frame::Unread { id, why } => self
                .reply(id, &Outcome::error(format!("Not called: the arguments could not be read ({why})."))),
            Frame::Done { cell, status, error, cwd } => {
                if let Some(running) = &mut self.cell
                    && running.cell.number == cell
                {
                    running.done = Some((status, error, cwd));
                }
            }
        }
    }

    fn call(&mut self, id: u64, tool: String, arguments: serde_json::Value) {
        let refused = match &self.cell {
            Some(running) if running.done.is_none() && running.open_calls < CALLS => None,
            Some(running) if running.done.is_none() => Some(format!(
                "{CALLS} calls of tools are open at once, which is the most; wait for some of them first."
            )),
            _ => Some(
                "tool() works while a cell runs. This call came from a thread or task that a cell has left running.".into(),
            ),
        };
        if let Some(text) = refused {
            return self.reply(id, &Outcome::error(text));
        }
        if let Some(running) = &mut self.cell {
            running.open_calls += 1;
            running.calls += 1;
            running.alive = Instant::now();
            let bridge = running.cell.bridge.clone();
            let context = Context { cancel: running.cancel.child_token(), ..running.cell.context.clone() };
            let cell = running.cell.number;
            self.calls.spawn(async move { (cell, id, bridge.call(tool, arguments, context).await) });
        }
    }

    fn called(&mut self, cell: u32, id: u64, outcome: &Outcome) {
        if let Some(running) = &mut self.cell
            && running.cell.number == cell
        {
            running.open_calls = running.open_calls.saturating_sub(1);
            running.alive = Instant::now();
        }
        self.reply(id, outcome);
    }

    fn reply(&self, id: u64, outcome: &Outcome) {
        let outcome = json!({
            "is_error": outcome.is_error, "content": outcome.content, "structured": outcome.structured,
        });
        self.send(&json!({"op": "reply", "id": id, "outcome": outcome}));
    }

    fn interrupt(&mut self, why: Why) {
        let Some(running) = &mut self.cell else { return };
        if running.interrupt.is_some() {
            return;
        }
        running.interrupt = Some(Interrupt { why, at: Instant::now(), step: 0 });
        running.cancel.cancel();
        self.signal();
    }

    /// To the whole group, so that children hear it too. A JavaScript engine that is busy hears only its own channel.
    fn signal(&self) {
        if self.language == Language::JavaScript {
            self.send(&json!({"op": "interrupt"}));
        }
        let _ = self.process.signal(libc::SIGINT);
    }

    /// Something was due. True when the kernel has been idle for too long.
    fn time(&mut self) -> bool {
        let now = Instant::now();
        let Some(running) = &mut self.cell else {
            if now < self.since + self.idle {
                return false;
            }
            self.shared.note(format!(
                "The {} kernel was stopped after {} minutes without a cell; its variables are gone.",
                self.language.name(),
                self.idle.as_secs() / 60
            ));
            return true;
        };
        if running.live_at.is_some_and(|at| now >= at) {
            running.show_live(false);
        }
        match &mut running.interrupt {
            None if running.open_calls == 0 && now >= running.alive + running.cell.budget => {
                let budget = running.cell.budget;
                self.interrupt(Why::Inactive(budget));
            }
            Some(interrupt) if interrupt.step == 0 && now >= interrupt.at + SECOND_INTERRUPT => {
                interrupt.step = 1;
                self.signal();
            }
            Some(interrupt) if interrupt.step == 1 && now >= interrupt.at + KILL_AFTER => {
                interrupt.step = 2;
                self.process.start_termination();
            }
            _ => {}
        }
        false
    }

    /// Answers the cell once its end has been told and its output is complete.
    async fn settle(&mut self) {
        let complete = self.cell.as_ref().is_some_and(|running| {
            running.done.is_some() && (0..2).all(|n| running.ended[n] || self.streams[n].pipe.is_none())
        });
        if !complete {
            return;
        }
        if let Some(running) = self.cell.take() {
            let why = running.interrupt.as_ref().map(|interrupt| interrupt.why);
            let interrupted = matches!(running.done, Some((Status::Interrupted, ..)));
            let end = match (why, interrupted) {
                (None, _) => End::Finished,
                (Some(why), true) => End::Interrupted(why),
                (Some(why), false) => End::FinishedLate(why),
            };
            self.answer(running, end, Vec::new()).await;
            self.since = Instant::now();
        }
    }

    async fn answer(&mut self, mut running: Running, end: End, leftovers: Vec<String>) {
        running.show_live(true);
        running.cancel.cancel();
        let mut displays = running.displays;
        for display in &mut displays {
            display.at = running.places.get(&display.n).copied().unwrap_or(running.kept[0].total);
        }
        let (error, cwd) = running.done.map(|(_, error, cwd)| (error, cwd)).unwrap_or_default();
        let [out, err] = running.kept;
        let [before_out, before_err] = running.before;
        let background = (before_out.total + before_err.total > 0)
            .then_some((before_out.finish().await, before_err.finish().await));
        let words = format!("The cell before this one ({})", running.cell.number);
        let ran = Ran {
            end,
            error,
            out: out.finish().await,
            err: err.finish().await,
            displays,
            displays_dropped: running.displays_dropped,
            background,
            leftovers,
            cwd,
            calls: running.calls,
            elapsed: running.begin.elapsed(),
        };
        if let Err(unheard) = running.answer.send(ran) {
            self.shared.note(match &unheard.end {
                End::Interrupted(_) => {
                    format!("{words} was interrupted when its call was given up; variables are kept.")
                }
                end if end.state_kept() => {
                    format!("{words} ended after its call was given up; variables are kept.")
                }
                _ => format!("{words} was killed when its call was given up; all variables are lost."),
            });
        }
    }

    async fn finish(mut self, end: Option<End>) {
        // Nobody can send a cell from here on that would not be answered.
        self.commands.close();
        let exit = self.process.terminate().await;
        // A fork of the kernel has its command line, which is a program.
        let leftovers = self
            .process
            .leftovers()
            .into_iter()
            .map(|line| match line.split_once(' ') {
                Some((pid, command)) if interpreter::is_boot(command) => {
                    format!("{pid} a fork of the kernel")
                }
                _ => line,
            })
            .collect();
        for stream in 0..2 {
            // The writers are dead; one that could not be killed must not keep us here.
            while self.streams[stream].pipe.is_some() {
                match timeout(Duration::from_millis(50), self.streams[stream].read()).await {
                    Ok(count) => self.output(stream, count).await,
                    Err(_) => break,
                }
            }
        }
        while let Ok(Ok(Some(frame))) = timeout(Duration::from_millis(1), self.reader.next()).await {
            if !matches!(frame, Frame::Call { .. } | Frame::Unread { .. }) {
                self.frame(frame);
            }
        }
        // A kernel that was dead before it took the cell up has not run it: its caller hears nothing and takes another kernel.
        let cell = self.cell.take().filter(|running| running.started || running.interrupt.is_some());
        if let Some(running) = cell {
            let end = match (&running.interrupt, end) {
                (Some(Interrupt { why, step: 2.., .. }), _) => End::Killed(*why),
                (_, Some(end)) => end,
                (Some(Interrupt { why, .. }), None) => End::Killed(*why),
                (None, None) => End::Died(exit),
            };
            self.answer(running, end, leftovers).await;
        } else if let Some(End::Died(exit)) = end {
            self.shared.note(format!(
                "The {} kernel ended while no cell ran ({exit}); all variables are lost.",
                self.language.name()
            ));
        } else if let Some(End::Broken(why)) = end {
            self.shared.note(format!(
                "The {} kernel had to be ended ({why}); all variables are lost.",
                self.language.name()
            ));
        }
        drop(self.commands);
        self.shared.ended.cancel();
        // Calls that the last cell had open were cancelled; they get a moment to be recorded.
        let _ = timeout(CALL_GRACE, async { while self.calls.join_next().await.is_some() {} }).await;
    }
}
