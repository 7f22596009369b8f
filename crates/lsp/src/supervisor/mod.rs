//! The servers of this process: one per server and root, started when first asked for, shared by all runs, stopped when idle, started
//! again with growing pauses when they die (SPEC L2, L7).

mod capabilities;
mod checkout;
mod disk;
mod documents;
mod given;
mod heard;
mod interest;
mod news;
mod preamble;
mod server;
mod silence;
mod start;
mod status;
#[cfg(test)]
pub(crate) mod testing;
mod told;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use haft_system::{Environment, Supervisor};
use tokio::sync::watch;

pub use checkout::{Checkout, Place, WhyNot};
pub use documents::{Document, DocumentError};
pub use heard::{Published, Work};
pub(crate) use news::TSSERVER;
pub use server::{Server, ServerState, SyncError};
pub(crate) use silence::Asked;
pub use status::ServerStatus;

use crate::{
    limits::{BACK_OFF_MOST, BACK_OFF_WAITED, CRASH_WINDOW, CRASHES, IDLE, IDLE_CHECK},
    servers::{Found, Resolver, ServerSpec},
};

/// The servers of this process. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Servers {
    hub: Arc<Hub>,
}

struct Hub {
    processes: Supervisor,
    resolver: Resolver,
    idle: Duration,
    table: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    slots: HashMap<Key, Arc<Slot>>,
    sweeping: bool,
}

/// What makes two servers one: the same program with the same settings for the same root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    id: String,
    root: PathBuf,
    program: PathBuf,
    settings: [u8; 32],
}

struct Slot {
    state: watch::Sender<SlotState>,
    /// When it died by itself, the recent times.
    deaths: Mutex<VecDeque<(Instant, String)>>,
    unanswered: silence::Unanswered,
}

#[derive(Clone)]
enum SlotState {
    Down,
    Starting,
    Up(Arc<Server>),
}

/// Why a server that should run does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The server.
    pub id: String,
    /// Its root.
    pub root: PathBuf,
    /// What happened, in words.
    pub why: String,
    /// When it will be tried again by itself: after this time, at the next call. `None` when it has died too often.
    pub again_in: Option<Duration>,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not run: {}.", self.id, self.why.trim_end_matches('.'))?;
        match self.again_in {
            Some(time) if time.is_zero() => f.write_str(" The next call starts it again."),
            Some(time) => write!(
                f,
                " A call in {} s or later starts it again; `reload` does so at once.",
                time.as_secs_f32().ceil()
            ),
            None => write!(
                f,
                " It has died {CRASHES} times within {} minutes and is left alone until `reload` or until some time has passed.",
                CRASH_WINDOW.as_secs() / 60
            ),
        }
    }
}

impl Servers {
    /// No server yet. `environment` says where programs are looked for, `processes` starts them.
    pub fn new(environment: Environment, processes: Supervisor) -> Self {
        Self::with_idle(environment, processes, IDLE)
    }

    /// The same with another time after which an idle server is stopped.
    pub fn with_idle(environment: Environment, processes: Supervisor, idle: Duration) -> Self {
        let resolver = Resolver::new(environment, processes.clone());
        Servers { hub: Arc::new(Hub { processes, resolver, idle, table: Mutex::default() }) }
    }

    /// Finds programs.
    pub fn resolver(&self) -> &Resolver {
        &self.hub.resolver
    }

    /// Starts processes.
    pub fn processes(&self) -> &Supervisor {
        &self.hub.processes
    }

    /// What runs, by name and root.
    pub fn running(&self) -> Vec<Arc<Server>> {
        let slots: Vec<Arc<Slot>> = self.hub.slots().slots.values().cloned().collect();
        let mut running: Vec<Arc<Server>> = slots.iter().filter_map(|slot| slot.up()).collect();
        running.sort_by(|one, other| (&one.root, one.id()).cmp(&(&other.root, other.id())));
        running
    }

    /// Stops all servers and waits until they are dead.
    pub async fn shut_down(&self) {
        futures::future::join_all(self.running().iter().map(|server| server.shut_down())).await;
    }

    /// The server for a key if it runs; starts nothing.
    fn peek(&self, key: &Key) -> Option<Arc<Server>> {
        self.hub.slots().slots.get(key).and_then(|slot| slot.up())
    }

    /// The server for a key, started if it does not run. Bounded by the limits of a start.
    async fn get(
        &self,
        key: Key,
        spec: &Arc<ServerSpec>,
        found: &Found,
        workdir: PathBuf,
    ) -> Result<Arc<Server>, StartError> {
        let slot = self.hub.slot(&key);
        let mut state = slot.state.subscribe();
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                SlotState::Up(server) => match server.gone() {
                    None => return Ok(server),
                    Some(why) => {
                        if slot.step(
                            |now| matches!(now, SlotState::Up(up) if Arc::ptr_eq(up, &server)),
                            SlotState::Down,
                        ) && !server.stop.is_cancelled()
                        {
                            slot.died(why);
                        }
                    }
                },
                // An error would mean that the slot is gone, and `slot` holds it.
                SlotState::Starting => drop(state.changed().await),
                SlotState::Down => {
                    let pause = slot.pause();
                    match pause {
                        Pause::None => {}
                        Pause::For(time, _) if time <= BACK_OFF_WAITED => tokio::time::sleep(time).await,
                        Pause::For(time, why) => {
                            return Err(StartError { id: key.id, root: key.root, why, again_in: Some(time) });
                        }
                        Pause::GivenUp(why) => {
                            return Err(StartError { id: key.id, root: key.root, why, again_in: None });
                        }
                    }
                    if !slot.step(|now| matches!(now, SlotState::Down), SlotState::Starting) {
                        continue;
                    }
                    // In a task of its own: a caller that gives up waiting must not take the start with it.
                    let starting = tokio::spawn(start_into(
                        Starting { slot: slot.clone(), settled: false },
                        self.hub.processes.clone(),
                        spec.clone(),
                        found.clone(),
                        key.root.clone(),
                        workdir.clone(),
                    ));
                    self.sweep();
                    let started = starting
                        .await
                        .unwrap_or_else(|_| Err("its start broke off with an internal error".into()));
                    if let Err(why) = started {
                        let again_in = match slot.pause() {
                            Pause::None => Some(Duration::ZERO),
                            Pause::For(time, _) => Some(time),
                            Pause::GivenUp(_) => None,
                        };
                        return Err(StartError { id: key.id, root: key.root, why, again_in });
                    }
                }
            }
        }
    }

    /// Stops the servers that `which` picks, forgets that they have died and that programs do not run. Answers how many ran.
    async fn reset(&self, which: impl Fn(&Key) -> bool) -> usize {
        self.hub.resolver.forget();
        let slots: Vec<Arc<Slot>> = {
            let table = self.hub.slots();
            table.slots.iter().filter(|(key, _)| which(key)).map(|(_, slot)| slot.clone()).collect()
        };
        let mut count = 0;
        for slot in slots {
            slot.deaths().clear();
            slot.unanswered.lock().unwrap_or_else(PoisonError::into_inner).clear();
            if let Some(server) = slot.up() {
                count += 1;
                server.shut_down().await;
                slot.step(
                    |now| matches!(now, SlotState::Up(up) if Arc::ptr_eq(up, &server)),
                    SlotState::Down,
                );
            }
        }
        count
    }

    /// The recent deaths of a server.
    fn deaths(&self, key: &Key) -> Vec<String> {
        let slot = self.hub.slots().slots.get(key).cloned();
        slot.map(|slot| slot.deaths().iter().map(|(_, why)| why.clone()).collect()).unwrap_or_default()
    }

    /// Starts the task that stops idle servers, once. It ends when nobody holds the servers any more.
    fn sweep(&self) {
        let mut table = self.hub.slots();
        if std::mem::replace(&mut table.sweeping, true) {
            return;
        }
        let hub = Arc::downgrade(&self.hub);
        let pause = IDLE_CHECK.min(self.hub.idle);
        tokio::spawn(stop_idle(hub, pause));
    }
}

async fn stop_idle(hub: Weak<Hub>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(hub) = hub.upgrade() else { return };
        let slots: Vec<Arc<Slot>> = hub.slots().slots.values().cloned().collect();
        for slot in slots {
            let Some(server) = slot.up() else { continue };
            if server.idle() < hub.idle {
                continue;
            }
            // First out of the slot, so that nobody gets it any more, then stopped.
            if slot.step(|now| matches!(now, SlotState::Up(up) if Arc::ptr_eq(up, &server)), SlotState::Down)
            {
                server.shut_down().await;
            }
        }
    }
}

/// The right to settle a slot that is starting; dropped unsettled, the slot is down again.
struct Starting {
    slot: Arc<Slot>,
    settled: bool,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if !self.settled {
            self.slot.state.send_replace(SlotState::Down);
        }
    }
}

async fn start_into(
    mut starting: Starting,
    processes: Supervisor,
    spec: Arc<ServerSpec>,
    found: Found,
    root: PathBuf,
    workdir: PathBuf,
) -> Result<(), String> {
    let started = start::start(&processes, spec, found, root, &workdir).await;
    let result = match started {
        Ok(mut server) => {
            server.unanswered = starting.slot.unanswered.clone();
            starting.slot.state.send_replace(SlotState::Up(Arc::new(server)));
            Ok(())
        }
        Err(why) => {
            starting.slot.died(why.clone());
            starting.slot.state.send_replace(SlotState::Down);
            Err(why)
        }
    };
    starting.settled = true;
    result
}

enum Pause {
    None,
    For(Duration, String),
    GivenUp(String),
}

impl Slot {
    fn up(&self) -> Option<Arc<Server>> {
        match &*self.state.borrow() {
            SlotState::Up(server) if server.gone().is_none() => Some(server.clone()),
            _ => None,
        }
    }

    /// Goes to another state if the present one is as expected; of several callers one wins.
    fn step(&self, expected: impl Fn(&SlotState) -> bool, next: SlotState) -> bool {
        self.state.send_if_modified(|now| {
            let fits = expected(now);
            if fits {
                *now = next;
            }
            fits
        })
    }

    fn deaths(&self) -> MutexGuard<'_, VecDeque<(Instant, String)>> {
        self.deaths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn died(&self, why: String) {
        let mut deaths = self.deaths();
        deaths.push_back((Instant::now(), why));
        while deaths.len() > CRASHES {
            deaths.pop_front();
        }
    }

    /// How long to wait before the next start: not at all after a first death, then 1, 2, 4 … seconds, counted from the last one.
    fn pause(&self) -> Pause {
        let mut deaths = self.deaths();
        while deaths.front().is_some_and(|(at, _)| at.elapsed() > CRASH_WINDOW) {
            deaths.pop_front();
        }
        let Some((last, why)) = deaths.back().cloned() else { return Pause::None };
        if deaths.len() >= CRASHES {
            return Pause::GivenUp(why);
        }
        let wanted = match deaths.len() {
            1 => Duration::ZERO,
            count => BACK_OFF_MOST.min(Duration::from_secs(1 << (count - 2))),
        };
        match wanted.checked_sub(last.elapsed()) {
            Some(rest) if !rest.is_zero() => Pause::For(rest, why),
            _ => Pause::None,
        }
    }
}

impl Hub {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, key: &Key) -> Arc<Slot> {
        let mut table = self.slots();
        let slot = table.slots.entry(key.clone()).or_insert_with(|| {
            Arc::new(Slot {
                state: watch::Sender::new(SlotState::Down),
                deaths: Mutex::default(),
                unanswered: silence::Unanswered::default(),
            })
        });
        slot.clone()
    }
}

impl Key {
    fn of(spec: &ServerSpec, root: PathBuf, found: &Found) -> Self {
        // Settings are small; that two texts of them are equal is what makes two servers one.
        let text = format!(
            "{:?}{:?}{:?}{:?}",
            found.arguments, spec.env, spec.settings, spec.initialization_options
        );
        Key {
            id: spec.id.clone(),
            root,
            program: found.program.clone(),
            settings: *blake3::hash(text.as_bytes()).as_bytes(),
        }
    }
}
