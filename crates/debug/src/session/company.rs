//! The processes of a session: the program, and those that it has started and for which the adapter asks for sessions of their own
//! (`startDebugging`; debugpy does for every Python process below the program).
//!
//! Each process is a [`Session`] with a connection of its own. What they have in common is here: the breakpoints, the numbers that are
//! handed out, and a bell that rings whatever happens in any of them. The adapter keeps a new process waiting until it is told what
//! becomes of it, so every request is answered: by a session, or by a refusal, at which the adapter lets the process run without.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicU64},
    time::Duration,
};

use haft_system::Supervisor;
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Begin, Owner, Session, Transport,
    attend::Role,
    breakpoints::Plan,
    shared::{Shared, Waited},
    state::{End, Phase},
};
use crate::{
    adapters::Adapter,
    limits::{ATTACH, FAREWELL, NOTICES, PROCESSES, RESULT_CHARACTERS, START},
    render::cut,
};

/// What the processes of a session share.
pub(crate) struct Company {
    pub(super) adapter: &'static Adapter,
    pub(super) supervisor: Supervisor,
    pub(super) directory: PathBuf,
    pub(super) launched: bool,
    pub(super) time_to_live: Duration,
    /// Belongs to the conversation.
    plan: Arc<Mutex<Plan>>,
    /// Rings when anything has happened in any process.
    pub(super) bell: watch::Sender<u64>,
    /// The highest number that was handed out for a frame or a variable, in any process.
    pub(super) given: Arc<AtomicU64>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    /// Weak, because it holds the company.
    leader: Weak<Shared>,
    children: Vec<Arc<Session>>,
    /// The process that was last reported on; none is the program itself.
    focus: Option<u32>,
    /// What has to be said about processes with the next answer.
    notices: Vec<String>,
    /// Whether there ever was more than one process.
    grew: bool,
    /// Why no process is taken in any more.
    closed: Option<String>,
}

/// A process of a session, for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessLine {
    pub(crate) pid: Option<u32>,
    pub(crate) title: String,
    /// `starting`, `running`, `stopped` or `exited`.
    pub(crate) state: &'static str,
    /// Why it is stopped.
    pub(crate) reason: Option<String>,
}

impl Company {
    pub(super) fn new(adapter: &'static Adapter, launched: bool, owner: &Owner<'_>) -> Arc<Self> {
        Arc::new(Company {
            adapter,
            supervisor: owner.supervisor.clone(),
            directory: owner.directory.to_owned(),
            launched,
            time_to_live: owner.time_to_live,
            plan: Arc::clone(owner.plan),
            bell: watch::Sender::new(0),
            given: Arc::default(),
            members: Mutex::default(),
        })
    }

    pub(super) fn led_by(&self, leader: &Arc<Shared>) {
        self.members().leader = Arc::downgrade(leader);
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leader(&self) -> Option<Arc<Shared>> {
        self.members().leader.upgrade()
    }

    /// The processes below the program that have not ended.
    pub(super) fn children(&self) -> Vec<Arc<Session>> {
        self.members().children.clone()
    }

    /// The breakpoints as they are asked for now.
    pub(super) fn plan(&self) -> Plan {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `agree` if the breakpoints are still these, before anybody can change them.
    pub(super) fn if_still(&self, plan: &Plan, agree: impl FnOnce()) -> bool {
        let now = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let same = *now == *plan;
        if same {
            agree();
        }
        same
    }

    /// What has happened in another process than `me` that a wait in `me` has to give way to: a stop that nobody has been told of, or
    /// the end of the program.
    pub(super) fn elsewhere(&self, me: &Shared) -> Option<Waited> {
        let (leader, children) = {
            let members = self.members();
            if !members.grew {
                return None;
            }
            (members.leader.upgrade(), members.children.clone())
        };
        let is_me = |other: &Shared| std::ptr::eq(other, me);
        if let Some(leader) = leader.filter(|leader| !is_me(leader)) {
            if let Phase::Ended(end) = leader.look(|state| state.phase.clone()) {
                return Some(Waited::Ended(end));
            }
            if leader.look(super::state::State::has_untold_stop) {
                return Some(Waited::Elsewhere);
            }
        }
        let untold = |child: &&Arc<Session>| {
            !is_me(&child.shared) && child.shared.look(super::state::State::has_untold_stop)
        };
        children.iter().find(untold).map(|_| Waited::Elsewhere)
    }

    /// Whether a process below the program is being debugged, or not dead yet.
    pub(super) fn goes_on(&self) -> bool {
        self.children().iter().any(|child| !child.is_over())
    }

    /// What a child's program writes comes to the program's output.
    pub(super) fn wrote(&self, from: &Shared, bytes: &[u8]) -> bool {
        match self.leader() {
            Some(leader) if !std::ptr::eq(Arc::as_ptr(&leader), from) => {
                leader.with(|state| state.output.push(bytes));
                true
            }
            _ => false,
        }
    }

    pub(super) fn set_focus(&self, process: Option<u32>) {
        self.members().focus = process;
    }

    fn notice(&self, text: String) {
        let mut members = self.members();
        // The first ones tell what is wrong; a program that starts thousands of processes says the same thousands of times.
        if members.notices.len() < NOTICES {
            members.notices.push(text);
        }
        members.grew = true;
    }

    /// Keeps what the adapter wants to be seen for the next answer; the same thing once.
    pub(super) fn warn(&self, text: &str) {
        let text = format!("The debug adapter says: {}", cut(text.trim(), RESULT_CHARACTERS));
        let mut members = self.members();
        if members.notices.len() < NOTICES && !members.notices.contains(&text) {
            members.notices.push(text);
        }
    }

    /// Takes in a process that the adapter has announced. An error lets it run without the debugger.
    pub(super) async fn take_in(self: Arc<Self>, arguments: Value) -> Result<Value, String> {
        let configuration = &arguments["configuration"];
        let pid = configuration["subProcessId"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        match self.try_take_in(&arguments, pid).await {
            Ok(()) => Ok(json!({})),
            Err(why) => {
                let name = pid.map_or_else(|| "A process".to_owned(), |pid| format!("Process {pid}"));
                self.notice(format!("{name} runs without the debugger: {why}."));
                self.bell.send_modify(|count| *count += 1);
                Err(why)
            }
        }
    }

    async fn try_take_in(self: &Arc<Self>, arguments: &Value, pid: Option<u32>) -> Result<(), String> {
        let configuration = &arguments["configuration"];
        let port = configuration["connect"]["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let Some(port) = port else {
            return Err("the debug adapter does not say on which port its session is to be had".into());
        };
        let host = configuration["connect"]["host"].as_str().unwrap_or("127.0.0.1");
        if !matches!(host, "127.0.0.1" | "localhost" | "::1") {
            return Err(format!("its debugger is on another machine ({host})"));
        }
        let command = match arguments["request"].as_str() {
            Some("launch") => "launch",
            Some("attach") | None => "attach",
            Some(other) => return Err(format!("`{other}` is not a way to start a session")),
        };
        self.has_room()?;
        let stream = match timeout(ATTACH, TcpStream::connect((host, port))).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(format!("its debugger cannot be reached on port {port} ({error})")),
            Err(_) => return Err(format!("its debugger does not answer on port {port}")),
        };
        let mut configuration = configuration.clone();
        if self.launched {
            // The program's own output is read where it was launched, that of the processes below it included.
            configuration["redirectOutput"] = false.into();
        }
        let title = configuration["name"].as_str().unwrap_or("a process").to_owned();
        let session =
            Session::in_company(Arc::clone(self), Role::Child, title, Transport::Connected(stream), pid);
        {
            let mut members = self.members();
            if let Some(why) = &members.closed {
                return Err(why.clone());
            }
            members.grew = true;
            members.children.push(Arc::clone(&session));
        }
        let begin = Begin { command, arguments: configuration, within: START, stop_at_panic: false };
        let company = Arc::clone(self);
        tokio::spawn(async move {
            let end = session.shared.end.clone();
            let begun = session.begin(&begin, &end).await;
            let Err(error) = begun else { return };
            // One that has ended meanwhile needs no word: short processes do.
            if !error.cancelled && !session.has_ended() {
                let name =
                    session.pid().map_or_else(|| session.title.clone(), |pid| format!("Process {pid}"));
                company.notice(format!(
                    "{name} is not being debugged: {error}\nIf it waits for a debugger, it ends with `terminate`."
                ));
            }
            session.terminate("its session did not start").await;
        });
        Ok(())
    }

    fn has_room(&self) -> Result<(), String> {
        let mut members = self.members();
        if let Some(why) = &members.closed {
            return Err(why.clone());
        }
        members.children.retain(|child| !child.is_over());
        if members.children.iter().filter(|child| !child.has_ended()).count() >= PROCESSES {
            return Err(format!("{PROCESSES} processes are being debugged already"));
        }
        Ok(())
    }

    /// The end of them all: nobody is taken in any more, and whoever is left ends, or is let go, with the program.
    pub(super) fn close(&self, why: &str) {
        let (children, first) = {
            let mut members = self.members();
            let first = members.closed.is_none();
            members.closed.get_or_insert_with(|| why.to_owned());
            (members.children.clone(), first)
        };
        let left: Vec<String> = children
            .iter()
            .filter(|child| !child.has_ended() && !child.shared.is_dead())
            .filter_map(|child| child.pid())
            .map(|pid| pid.to_string())
            .collect();
        if first && !left.is_empty() {
            let many = left.len() > 1;
            let became = match (self.launched, many) {
                (true, false) => "was still there and is ended with it",
                (true, true) => "were still there and are ended with it",
                (false, false) => "is not debugged any more",
                (false, true) => "are not debugged any more",
            };
            let processes = if many { "Processes" } else { "Process" };
            self.notice(format!("{processes} {}, started by the program, {became}.", left.join(", ")));
        }
        for child in &children {
            child.shared.with(|state| state.end(End::Terminated { why: why.to_owned() }));
            child.shared.end.cancel();
        }
    }

    /// Lets go of the processes, which hold on to this.
    pub(super) async fn dissolve(&self) {
        let children = std::mem::take(&mut self.members().children);
        for child in children {
            // Its adapter is gone by now; what is left to do takes no time.
            let _ = timeout(FAREWELL * 2, child.wait_until_over()).await;
        }
    }
}

impl Session {
    /// Operations that name no process act on this one from now on.
    pub(crate) fn take_focus(&self) {
        self.shared.company.set_focus(self.pid());
    }

    /// What a wait in `process` comes to for all of them: the end of one process below the program is nothing to answer with as long as
    /// others go on.
    pub(crate) async fn whole(
        self: &Arc<Self>,
        process: Arc<Session>,
        waited: Waited,
        until: Instant,
        cancel: &CancellationToken,
    ) -> (Arc<Session>, Waited) {
        let mut waited = (process, waited);
        loop {
            match waited {
                (_, Waited::Ended(end)) if self.has_ended() => return (Arc::clone(self), Waited::Ended(end)),
                (_, Waited::Elsewhere | Waited::Ended(_)) => {
                    if let Some(other) = self.standing_one()
                        && let Phase::Stopped(stop) = other.phase()
                    {
                        return (other, Waited::Stopped(stop));
                    }
                    waited = (Arc::clone(self), self.shared.stop_or_end(until, cancel).await);
                }
                other => return other,
            }
        }
    }

    /// Whether there is, or was, another process than the program itself.
    pub(crate) fn has_company(&self) -> bool {
        self.shared.company.members().grew
    }

    /// The process of that number; the program itself is one of them.
    pub(crate) fn process(self: &Arc<Self>, pid: u32) -> Option<Arc<Session>> {
        self.all().into_iter().find(|session| session.pid() == Some(pid))
    }

    /// The process on which an operation acts that names none: the one that was last reported on, unless it runs and another one stands.
    pub(crate) fn in_focus(self: &Arc<Self>) -> Arc<Session> {
        let focus = self.shared.company.members().focus;
        let all = self.all();
        let is_stopped = |session: &&Arc<Session>| matches!(session.phase(), Phase::Stopped(_));
        let last = match focus {
            Some(pid) => all.iter().find(|session| session.pid() == Some(pid)),
            None => None,
        };
        let there = |session: &&Arc<Session>| !session.has_left();
        let last = last.or(all.first()).filter(there).or_else(|| all.iter().find(there)).unwrap_or(self);
        let chosen = Some(last).filter(is_stopped).or_else(|| all.iter().find(is_stopped)).unwrap_or(last);
        Arc::clone(chosen)
    }

    /// The process in which such a number for a frame or a variable is valid.
    pub(crate) fn owner_of(self: &Arc<Self>, number: u64) -> Option<Arc<Session>> {
        self.all().into_iter().find(|session| session.references().is_valid(number))
    }

    /// A process with a stop that nobody has been told of, else one that stands.
    pub(crate) fn standing_one(self: &Arc<Self>) -> Option<Arc<Session>> {
        let all = self.all();
        let untold = all.iter().find(|session| session.shared.look(super::state::State::has_untold_stop));
        let stopped = || all.iter().find(|session| matches!(session.phase(), Phase::Stopped(_)));
        untold.or_else(stopped).cloned()
    }

    /// The program and the living processes below it.
    fn all(self: &Arc<Self>) -> Vec<Arc<Session>> {
        let mut all = self.shared.company.children();
        all.retain(|child| !child.has_ended());
        // A program that was replaced by another one (`exec`) keeps its number, and is debugged in the session of what replaced it.
        let replaced = all.iter().any(|child| child.pid().is_some() && child.pid() == self.pid());
        if !replaced {
            all.insert(0, Arc::clone(self));
        }
        all
    }

    /// All processes, where there is or was more than one.
    pub(crate) fn processes(self: &Arc<Self>) -> Vec<ProcessLine> {
        if !self.has_company() {
            return Vec::new();
        }
        let line = |session: Arc<Session>| {
            let (state, reason) = match session.phase() {
                _ if session.has_left() => ("exited", None),
                Phase::Starting => ("starting", None),
                Phase::Running => ("running", None),
                Phase::Stopped(stop) => ("stopped", Some(stop.reason)),
                Phase::Ended(_) => ("exited", None),
            };
            ProcessLine { pid: session.pid(), title: session.title.clone(), state, reason }
        };
        self.all().into_iter().map(line).collect()
    }

    /// Ends what is left of the processes below a program that has ended.
    pub(crate) fn close_company(&self) {
        self.shared.company.close("the program has ended");
    }

    /// What has to be said about processes and has not been said.
    pub(crate) fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.company.members().notices)
    }

    /// The processes that have been told their breakpoints already; others will be, from what is asked for then.
    pub(crate) fn configured(self: &Arc<Self>) -> Vec<Arc<Session>> {
        self.all().into_iter().filter(|session| session.is_configured()).collect()
    }

    /// Whether its process is dead and the adapter has not said so: it will when those that it has started have ended too.
    pub(crate) fn has_left(&self) -> bool {
        !self.has_ended() && self.shared.watch.get().is_some_and(haft_system::ProcessWatch::has_ended)
    }

    /// Whether nothing of it is left.
    fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase(), Phase::Ended(_))
    }
}
