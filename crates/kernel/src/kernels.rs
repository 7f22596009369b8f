use std::{
    collections::HashMap,
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use haft_system::{Supervisor, Workdir};
use haft_tool::{Context, ToolError};
use tokio_util::sync::CancellationToken;

use crate::{
    bridge::Bridge,
    cell::{Cell, Language, Ran},
    interpreter::{self, Started},
    limits::{IDLE, INACTIVITY_MOST_SECONDS, INACTIVITY_SECONDS},
    output::Stored,
    worker::{Handle, Shared},
};

/// Where a conversation's programs run, when not on the host (SPEC E7). Haft starts a kernel through it and never boots it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosure {
    /// Goes before the interpreter's command: `bwrap …`, `nsenter …`. It has to pass its open descriptors on (`docker exec` does not) and end
    /// when the interpreter ends. The working directory must be visible in it under the same path.
    pub command_prefix: Vec<OsString>,
    /// Variables that the interpreter sees on top.
    pub environment: Vec<(OsString, OsString)>,
}

/// How a conversation's kernels are to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The conversation's enclosure.
    pub enclosure: Option<Enclosure>,
    /// A directory of the conversation that its file tools may read; the whole of long output goes there.
    pub outputs: Option<PathBuf>,
    /// How long a cell may go without a sign of life, unless its call says otherwise.
    pub inactivity: Duration,
    /// The most that a call may ask for; also bounds `inactivity`.
    pub inactivity_most: Duration,
    /// How long a kernel may be idle.
    pub idle: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            enclosure: None,
            outputs: None,
            inactivity: Duration::from_secs(INACTIVITY_SECONDS.into()),
            inactivity_most: Duration::from_secs(INACTIVITY_MOST_SECONDS.into()),
            idle: IDLE,
        }
    }
}

/// The kernels of one conversation: at most one per language.
pub struct Kernels {
    supervisor: Supervisor,
    workdir: Workdir,
    bridge: Arc<dyn Bridge>,
    pub(crate) settings: Settings,
    slots: Mutex<Slots>,
    /// A cell runs.
    busy: AtomicBool,
    cells: AtomicU32,
    closed: CancellationToken,
}

#[derive(Default)]
struct Slots {
    live: HashMap<Language, Live>,
}

struct Live {
    handle: Handle,
    /// Cells that it has run.
    cells: u32,
}

/// A cell's end, and what there is to say about its kernel.
pub(crate) struct Evaluated {
    pub(crate) cell: u32,
    pub(crate) ran: Option<Ran>,
    pub(crate) notices: Vec<String>,
    /// Cells whose state was in the kernel when it was lost, this one not counted.
    pub(crate) earlier_cells: u32,
    pub(crate) interpreter: Option<(String, String)>,
}

/// What the tool wants run.
pub(crate) struct Request {
    pub(crate) language: Language,
    pub(crate) source: String,
    /// Rewritten code, whether it is quiet; `None` where there is nothing to run.
    pub(crate) code: Option<(String, bool)>,
    pub(crate) reset: bool,
    pub(crate) budget: Duration,
}

impl Kernels {
    /// No process is started before the first cell.
    pub fn new(
        supervisor: Supervisor,
        workdir: Workdir,
        bridge: Arc<dyn Bridge>,
        settings: Settings,
    ) -> Self {
        Kernels {
            supervisor,
            workdir,
            bridge,
            settings,
            slots: Mutex::default(),
            busy: AtomicBool::new(false),
            cells: AtomicU32::new(0),
            closed: CancellationToken::new(),
        }
    }

    /// The kernels that run: language, process, interpreter and its version.
    pub fn running(&self) -> Vec<(&'static str, u32, String, String)> {
        let slots = self.slots();
        slots
            .live
            .iter()
            .filter(|(_, live)| live.handle.is_alive())
            .map(|(language, live)| {
                let shared = &live.handle.shared;
                (language.name(), shared.pid, shared.program.clone(), shared.version.clone())
            })
            .collect()
    }

    /// Ends all kernels and returns when they are gone. Later cells are refused.
    pub async fn shutdown(&self) {
        self.closed.cancel();
        let live: Vec<Arc<Shared>> =
            self.slots().live.drain().map(|(_, live)| live.handle.shared.clone()).collect();
        for shared in live {
            shared.end().await;
        }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn evaluate(&self, request: Request, context: &Context) -> Result<Evaluated, ToolError> {
        if self.closed.is_cancelled() {
            return Err(ToolError::model("The conversation is ending; no cell is run any more."));
        }
        let _turn = Turn::take(&self.busy).ok_or_else(|| {
            ToolError::model("A cell cannot run another cell: its kernel is busy with it. Call the code as a function instead.")
        })?;
        let Request { language, source, code, reset, budget } = request;
        let mut notices = Vec::new();
        if reset && let Some(text) = self.reset(language).await {
            notices.push(text);
        }
        let number = self.cells.fetch_add(1, Ordering::Relaxed) + 1;
        let Some((code, quiet)) = code else {
            return Ok(Evaluated { cell: number, ran: None, notices, earlier_cells: 0, interpreter: None });
        };
        let mut attempt = 0;
        let (handle, mut ran) = loop {
            let handle = self.kernel(language, context, &mut notices).await?;
            let files = self.settings.outputs.as_ref().map(|place| {
                ["stdout", "stderr"]
                    .map(|stream| place.join(format!("cell_{number}_{}_{stream}.txt", handle.shared.pid)))
            });
            let cell = Cell {
                number,
                source: source.clone(),
                code: code.clone(),
                quiet,
                budget,
                files,
                context: context.clone(),
                bridge: self.bridge.clone(),
            };
            let ran = tokio::select! {
                ran = handle.run(cell) => ran,
                () = self.closed.cancelled() => None,
            };
            notices.extend(handle.shared.take_notices());
            attempt += 1;
            // A kernel that died before it took the cell up has not run it; another one may.
            if ran.is_some() || attempt == 2 || self.closed.is_cancelled() {
                break (handle, ran);
            }
            self.slots().live.remove(&language);
        };
        let kept = ran.as_ref().is_some_and(|ran| ran.end.state_kept());
        let earlier_cells = self.account(language, kept);
        if ran.is_none() {
            // It died between being found alive and taking the cell, which has not been run.
            return Err(ToolError::model(format!(
                "The cell was not run: the {} kernel had just ended. {}",
                language.name(),
                notices.join(" ")
            )));
        }
        if let Some(ran) = &mut ran {
            let (before_out, before_err) = ran.background.as_mut().map(|(out, err)| (out, err)).unzip();
            let streams = [Some(&mut ran.out), Some(&mut ran.err), before_out, before_err];
            for stored in streams.into_iter().flatten() {
                self.keep(stored, context).await;
            }
        }
        let interpreter = Some((handle.shared.program.clone(), handle.shared.version.clone()));
        Ok(Evaluated { cell: number, ran, notices, earlier_cells, interpreter })
    }

    /// Counts a cell that has ended, or forgets a kernel that is gone; answers how many cells it had run before.
    fn account(&self, language: Language, state_kept: bool) -> u32 {
        let mut slots = self.slots();
        let earlier = slots.live.get(&language).map_or(0, |live| live.cells);
        if !state_kept {
            slots.live.remove(&language);
        } else if let Some(live) = slots.live.get_mut(&language) {
            live.cells += 1;
        }
        earlier
    }

    /// Puts the whole of a long stream into the transcript.
    async fn keep(&self, stored: &mut Stored, context: &Context) {
        let Some(file) = &stored.file else { return };
        match self.bridge.keep(file, context).await {
            Ok(artifact) => stored.artifact = artifact,
            Err(why) => stored.trouble = Some(why),
        }
    }

    /// Ends the kernel of a language; says so if there was one.
    async fn reset(&self, language: Language) -> Option<String> {
        let live = self.slots().live.remove(&language)?;
        live.handle.shared.end().await;
        Some(format!("The {} kernel was started anew; its variables are gone.", language.name()))
    }

    /// The kernel that runs, or a new one.
    async fn kernel(
        &self,
        language: Language,
        context: &Context,
        notices: &mut Vec<String>,
    ) -> Result<Handle, ToolError> {
        {
            let mut slots = self.slots();
            if let Some(live) = slots.live.get(&language) {
                if live.handle.is_alive() {
                    let handle = live.handle.clone();
                    notices.extend(handle.shared.take_notices());
                    return Ok(handle);
                }
                notices.extend(live.handle.shared.take_notices());
                slots.live.remove(&language);
            }
        }
        let start = interpreter::start(&self.supervisor, &self.workdir, language, &self.settings);
        let started = tokio::select! {
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            started = start => started,
        };
        let Started { handle, passed_over } = started.map_err(|error| ToolError::model(error.to_string()))?;
        if !passed_over.is_empty() {
            notices.push(format!("Uses {}; passed over: {}.", handle.shared.program, passed_over.join("; ")));
        }
        self.slots().live.insert(language, Live { handle: handle.clone(), cells: 0 });
        Ok(handle)
    }
}

/// Held while a cell runs.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    fn take(busy: &'a AtomicBool) -> Option<Self> {
        (!busy.swap(true, Ordering::AcqRel)).then_some(Turn(busy))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
