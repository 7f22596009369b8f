//! The debugger of a conversation: at most one session (SPEC D1), and the breakpoints, which outlive sessions.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_system::{Supervisor, Workdir};
use haft_tool::{Context, ToolError};
use tempfile::TempDir;

use crate::{
    adapters::{self, AdapterReport},
    limits::{LAUNCH, TIME_TO_LIVE},
    session::{
        Owner, Session,
        breakpoints::{LineBreak, Placed, Plan},
        state::{End, Phase},
    },
    target::{self, Launch, Prepared},
};

/// The debug session of one conversation and what belongs to it. Nothing that it starts outlives it: [`Debugger::shutdown`], or at
/// the latest the drop, ends the adapter and the program.
pub struct Debugger {
    pub(crate) supervisor: Supervisor,
    pub(crate) workdir: Workdir,
    slot: Mutex<Slot>,
    /// Shared with the session, whose processes come and go.
    plan: Arc<Mutex<Plan>>,
    /// For `restart`.
    last: Mutex<Option<Launch>>,
    /// Of a session.
    time_to_live: Duration,
    /// Until an adapter has a program started.
    start_limit: Duration,
}

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    /// Somebody is starting this.
    Starting(String),
    Live(Arc<Session>, Option<TempDir>),
    /// The conversation is over.
    Closed,
}

/// Gives the place back when a start does not come to anything.
struct Place<'a> {
    debugger: &'a Debugger,
    kept: bool,
}

impl Debugger {
    /// No session yet. Starts nothing.
    pub fn new(supervisor: Supervisor, workdir: Workdir) -> Self {
        Debugger {
            supervisor,
            workdir,
            slot: Mutex::default(),
            plan: Arc::default(),
            last: Mutex::default(),
            time_to_live: TIME_TO_LIVE,
            start_limit: LAUNCH,
        }
    }

    /// The same with another time limit for sessions than 30 minutes.
    pub fn with_time_to_live(self, time_to_live: Duration) -> Self {
        Debugger { time_to_live, ..self }
    }

    /// The same with another time limit for an adapter to start a program than five minutes. What Haft builds itself does not count.
    pub fn with_start_limit(self, start_limit: Duration) -> Self {
        Debugger { start_limit, ..self }
    }

    /// Which debug adapters can be used in this working directory, and what the others lack. Looks at the disk, and asks Python
    /// interpreters whether they have debugpy.
    pub async fn adapters(&self) -> Vec<AdapterReport> {
        adapters::report(&self.supervisor, &self.workdir).await
    }

    /// Ends the session, and returns when the adapter and its program are dead. No session can be started any more.
    pub async fn shutdown(&self) {
        let live = std::mem::replace(&mut *self.slot(), Slot::Closed);
        if let Slot::Live(session, scratch) = live {
            session.terminate("the conversation has ended").await;
            drop(scratch);
        }
    }

    /// The session, if there is one; it may have ended.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        match &*self.slot() {
            Slot::Live(session, _) => Some(Arc::clone(session)),
            Slot::Empty | Slot::Starting(_) | Slot::Closed => None,
        }
    }

    /// Starts a program, or the last one again.
    pub(crate) async fn launch(&self, wish: Launch, context: &Context) -> Result<Arc<Session>, ToolError> {
        let place = self.take_place(wish.program.as_deref().unwrap_or("a program")).await?;
        let prepared = target::launch(&self.supervisor, &self.workdir, &wish, context).await?;
        let session = self.begin(place, prepared, context).await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(wish);
        Ok(session)
    }

    /// Attaches to what listens on a port.
    pub(crate) async fn attach(
        &self,
        adapter: Option<&str>,
        port: u16,
        program: Option<&str>,
        context: &Context,
    ) -> Result<Arc<Session>, ToolError> {
        let place = self.take_place(&format!("port {port}")).await?;
        let prepared = target::attach(&self.supervisor, &self.workdir, adapter, port, program).await?;
        self.begin(place, prepared, context).await
    }

    /// Ends the session if there is one, and starts its program again.
    pub(crate) async fn restart(&self, context: &Context) -> Result<Arc<Session>, ToolError> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(last) = last else {
            return Err(ToolError::model(
                "Nothing was launched in this conversation, so there is nothing to restart.",
            ));
        };
        if let Some(session) = self.session() {
            if !session.launched {
                return Err(ToolError::model(
                    "The session is attached to a program that Haft did not start, and so cannot restart. `terminate` detaches.",
                ));
            }
            session.terminate("it was restarted").await;
        }
        self.launch(last, context).await
    }

    async fn begin(
        &self,
        mut place: Place<'_>,
        prepared: Prepared,
        context: &Context,
    ) -> Result<Arc<Session>, ToolError> {
        let Prepared { adapter, title, launched, transport, mut begin, scratch } = prepared;
        begin.within = begin.within.min(self.start_limit);
        let owner = Owner {
            supervisor: &self.supervisor,
            directory: self.workdir.root(),
            time_to_live: self.time_to_live,
            plan: &self.plan,
        };
        let session = Session::open(adapter, title, launched, transport, &owner);
        // In its place before it is begun, so that an end of the conversation in between ends it.
        let closed = {
            let mut slot = self.slot();
            if matches!(*slot, Slot::Closed) {
                true
            } else {
                *slot = Slot::Live(Arc::clone(&session), scratch);
                false
            }
        };
        place.kept = true;
        if closed {
            session.terminate("the conversation has ended").await;
            return Err(ToolError::Cancelled);
        }
        if let Err(error) = session.begin(&begin, &context.cancel).await {
            session.terminate("it did not start").await;
            let mut slot = self.slot();
            if !matches!(*slot, Slot::Closed) {
                *slot = Slot::Empty;
            }
            return Err(if error.cancelled {
                ToolError::Cancelled
            } else {
                ToolError::model(error.to_string())
            });
        }
        Ok(session)
    }

    /// Keeps everybody else from starting a session.
    async fn take_place(&self, what: &str) -> Result<Place<'_>, ToolError> {
        let ended = {
            let mut slot = self.slot();
            match &*slot {
                Slot::Empty => None,
                Slot::Closed => {
                    return Err(ToolError::model("The conversation is ending: no session was started."));
                }
                Slot::Starting(other) => {
                    return Err(ToolError::model(format!("A session is being started already ({other}).")));
                }
                Slot::Live(session, _) => match session.phase() {
                    Phase::Ended(_) => {
                        let Slot::Live(session, scratch) =
                            std::mem::replace(&mut *slot, Slot::Starting(what.to_owned()))
                        else {
                            return Err(ToolError::Bug("the session went away under its lock".into()));
                        };
                        Some((session, scratch))
                    }
                    phase => return Err(taken(session, &phase)),
                },
            }
        };
        let place = Place { debugger: self, kept: false };
        if let Some((session, scratch)) = ended {
            session.wait_until_over().await;
            drop(scratch);
        }
        let mut slot = self.slot();
        if !matches!(*slot, Slot::Closed) {
            *slot = Slot::Starting(what.to_owned());
        }
        drop(slot);
        Ok(place)
    }

    /// Changes the breakpoints; answers the processes that have been told the former ones.
    fn change_plan(&self, change: impl FnOnce(&mut Plan)) -> Vec<Arc<Session>> {
        let session = self.live();
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut plan);
        // Under the lock: a process that is being started either sees the change or is in this list.
        session.map(|session| session.configured()).unwrap_or_default()
    }

    /// Replaces the breakpoints of a file.
    pub(crate) async fn break_at(&self, file: &Path, lines: Vec<LineBreak>) {
        let told = self.change_plan(|plan| {
            if lines.is_empty() {
                plan.files.remove(file);
            } else {
                plan.files.insert(file.to_owned(), lines.clone());
            }
        });
        for session in told {
            session.place_file(file, &lines).await;
        }
    }

    /// Replaces the function breakpoints.
    pub(crate) async fn break_in(&self, functions: Vec<String>) {
        let told = self.change_plan(|plan| plan.functions.clone_from(&functions));
        for session in told {
            session.place_functions(&functions, false).await;
        }
    }

    /// Chooses the exceptions that stop the program; answers the names that a running adapter does not know.
    pub(crate) async fn break_on(&self, exceptions: Vec<String>) -> Vec<String> {
        let told = self.change_plan(|plan| plan.exceptions = Some(exceptions.clone()));
        let mut unknown = Vec::new();
        for session in told {
            unknown = session.place_exceptions(Some(&exceptions)).await;
        }
        unknown
    }

    /// What became of every breakpoint: in the program, or in a process below it where only that has the code.
    pub(crate) fn placed(&self) -> Vec<Placed> {
        let Some(session) = self.live() else {
            return self.plan.lock().unwrap_or_else(PoisonError::into_inner).unplaced();
        };
        let mut placed = session.placed();
        for process in session.configured() {
            let theirs = process.placed();
            for known in placed.iter_mut().filter(|known| known.verified != Some(true)) {
                let verified = |other: &&Placed| other.asked == known.asked && other.verified == Some(true);
                if let Some(better) = theirs.iter().find(verified) {
                    *known = better.clone();
                }
            }
        }
        placed
    }

    fn live(&self) -> Option<Arc<Session>> {
        self.session().filter(|session| !matches!(session.phase(), Phase::Ended(_)))
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut slot = self.debugger.slot();
        if !self.kept && matches!(*slot, Slot::Starting(_)) {
            *slot = Slot::Empty;
        }
    }
}

fn taken(session: &Session, phase: &Phase) -> ToolError {
    let what = match phase {
        Phase::Starting => "is starting",
        Phase::Running => "is running",
        Phase::Stopped(_) => "stands at a stop",
        Phase::Ended(_) => "has ended",
    };
    ToolError::model(format!(
        "A session exists already: `{}` ({}) {what}, since {} s. A conversation has one at a time: `terminate` it first, or `restart` it.",
        session.title,
        session.adapter.id,
        session.begun.elapsed().as_secs()
    ))
}

/// Whether a session's end is one that its program came to by itself.
pub(crate) fn by_itself(end: &End) -> bool {
    matches!(end, End::Exited { .. } | End::Vanished)
}
