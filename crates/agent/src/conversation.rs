use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::{Arc, RwLock},
    time::Duration,
};

use haft_debug::Debugger;
use haft_files::{Jobs, Reads};
use haft_kernel::{Enclosure, Kernels, Settings};
use haft_lsp::{Checkout, Servers, WriteDiagnostics, servers::Table};
use haft_model::{Model, Prices, UserPart};
use haft_store::{ConversationId, StoreError};
use haft_structure::{Engine, Staging};
use haft_system::{Changes, Environment, Supervisor, Workdir};
use haft_tool::{Call, Context, Explained, Origin, Outcome, Progress, Registry, Spec, Surface, SurfaceKind};
use serde_json::Value;
use tokio::sync::{Mutex, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    Host, Mode, Setup, Spent, Transcript,
    cards::Cards,
    cells::Cells,
    config::Config,
    guard::Policy,
    helper::{Gate, Nursery, Role},
    instructions,
    layers::{Bound, Permission, Record, Wholes},
    limits::{MAX_STEPS, PROGRESS, QUESTION_TIMEOUT_SECONDS},
    prompt::system_prompt,
    run::{Arrivals, Run},
    transcript::{Event, Frame, Journal, JournalError, RunEnd},
    undo::{self, Keeper, UndoError},
    vibe::{Roster, StopOnDrop, WorkerLine, Worktrees},
    wiring::{self, Questions, Resources},
};

/// One thread of work in one working directory: its transcript, its mode, its cards and its tools.
pub struct Conversation {
    journal: Arc<Journal>,
    registry: Arc<Registry>,
    cards: Arc<Cards>,
    jobs: Arc<Jobs>,
    debugger: Arc<Debugger>,
    kernels: Arc<Kernels>,
    workdir: Workdir,
    environment: Environment,
    config: Config,
    /// The surface, where it does not follow the mode.
    surface: Option<Surface>,
    /// The workers, where this conversation may have any.
    roster: Option<StopOnDrop>,
    /// The change set without this conversation's own observer, for undoing.
    changes: Changes,
    /// Held by the run that is going on.
    running: Mutex<()>,
}

/// How a conversation's kernels are to be.
fn kernel_settings(config: &Config, workdir: &Workdir, outputs: PathBuf) -> Settings {
    let root = workdir.root().as_os_str();
    let enclosure = config.enclosure().map(|(prefix, environment)| Enclosure {
        command_prefix: prefix.iter().map(|word| placed(word, root)).collect(),
        environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
    });
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let standard = Settings::default();
    Settings {
        enclosure,
        outputs: Some(outputs),
        inactivity: config.eval_timeout_seconds().map_or(standard.inactivity, seconds),
        inactivity_most: config.eval_timeout_most_seconds().map_or(standard.inactivity_most, seconds),
        ..standard
    }
}

/// A word of an enclosure's prefix with `{workdir}` replaced.
fn placed(word: &str, root: &OsStr) -> OsString {
    let mut made = OsString::new();
    for (at, piece) in word.split("{workdir}").enumerate() {
        if at > 0 {
            made.push(root);
        }
        made.push(piece);
    }
    made
}

/// Bounds of a run besides those of the settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Model answers.
    pub(crate) steps: Option<u32>,
    /// Tokens of all answers, requests included.
    pub(crate) tokens: Option<u64>,
}

pub(crate) struct Parts {
    pub(crate) journal: Arc<Journal>,
    pub(crate) environment: Environment,
    pub(crate) supervisor: Supervisor,
    pub(crate) parser: Arc<Engine>,
    pub(crate) servers: Servers,
    pub(crate) workdir: Workdir,
    pub(crate) changes: Changes,
    pub(crate) outputs: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) role: Role,
    pub(crate) host: Host,
}

/// Why a run did not begin or could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// One at a time.
    #[error("a run is already going on in this conversation: wait for it or stop it")]
    Busy,
    /// The transcript could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Conversation {
    pub(crate) fn assemble(parts: Parts) -> Self {
        let Parts {
            journal,
            environment,
            supervisor,
            parser,
            servers,
            workdir,
            changes,
            outputs,
            setup,
            role,
            host,
        } = parts;
        let cards = Arc::new(Cards::new(journal.clone()));
        let jobs = Arc::new(Jobs::new(supervisor.clone()));
        let debugger = Arc::new(Debugger::new(supervisor.clone(), workdir.clone()));
        let surface = role.surface();
        let wholes = Wholes::default();
        let cells = Arc::new(Cells::new(journal.clone(), surface, wholes.clone(), outputs.clone()));
        let kernels = Arc::new(Kernels::new(
            supervisor.clone(),
            workdir.clone(),
            cells.clone(),
            kernel_settings(&setup.config, &workdir, outputs.clone()),
        ));
        let (gate, roster, reads_only) = match role {
            Role::Agent => {
                let mut policy: Policy = setup.config.policy();
                for rule in journal.with_transcript(|transcript| transcript.rules().to_vec()) {
                    policy.add(rule);
                }
                let gate = Gate {
                    policy: Arc::new(RwLock::new(policy)),
                    cards: cards.clone(),
                    journal: journal.clone(),
                    approve: setup.approve,
                    from: "agent".into(),
                };
                (gate, true, false)
            }
            Role::Explorer(gate) => (gate, false, true),
            Role::Worker(gate, _) => (gate, false, false),
        };
        let staging = Arc::new(Staging::new());
        let worktrees = Worktrees {
            supervisor: supervisor.clone(),
            place: host.worktrees(),
            changes: changes.clone(),
            staging: staging.clone(),
        };
        let nursery = Nursery {
            host,
            parent: journal.record().clone(),
            config: setup.config.clone(),
            gate: gate.clone(),
        };
        let roster = roster.then(|| {
            Arc::new(Roster::new(nursery.clone(), journal.clone(), Mode::Vibe.surface().ceiling(), worktrees))
        });
        let question_time = setup.config.question_timeout_seconds().unwrap_or(QUESTION_TIMEOUT_SECONDS);
        let checkout = Table::shipped()
            .map(|table| table.with_what_fits(setup.config.language_servers()))
            .map(|table| Checkout::new(servers, workdir.clone(), table))
            .map_err(|error| error.to_string());
        let diagnostics = checkout.as_ref().ok().map(|checkout| WriteDiagnostics::new(checkout.clone()));
        let mut watched = changes.observed_by(Arc::new(Keeper { journal: journal.clone() }));
        if let Some(diagnostics) = &diagnostics {
            watched = watched.observed_by(Arc::new(diagnostics.clone()));
        }
        let resources = Resources {
            workdir: Some(workdir.clone()),
            changes: Some(watched),
            reads: Reads::default(),
            supervisor: Some(supervisor),
            jobs: Some(jobs.clone()),
            shell_time: setup
                .config
                .shell_timeout_seconds()
                .map(|seconds| Duration::from_secs(seconds.into())),
            parser: Some(parser),
            staging: Some(staging),
            questions: Some(Questions {
                cards: gate.cards.clone(),
                from: gate.from.clone(),
                time: Duration::from_secs(question_time.into()),
            }),
            space: Some(journal.record().space.clone()).filter(|space| !space.is_empty()),
            helpers: Some(nursery),
            roster: roster.clone(),
            debugger: Some(debugger.clone()),
            kernels: Some(kernels.clone()),
            checkout,
        };
        let resources = if reads_only { resources.reads_only() } else { resources };
        let registry = wiring::tools(resources)
            .layer(Record { journal: journal.clone(), wholes: wholes.clone() })
            .layer(Permission { gate, workdir: workdir.clone() })
            .layer(Bound { journal: journal.clone(), wholes, outputs, diagnostics })
            .build();
        let registry = Arc::new(registry);
        cells.lead_to(&registry);
        Conversation {
            journal,
            registry,
            cards,
            jobs,
            debugger,
            kernels,
            workdir,
            environment,
            config: setup.config,
            surface,
            roster: roster.map(StopOnDrop),
            changes,
            running: Mutex::new(()),
        }
    }

    /// Its name.
    pub fn id(&self) -> &ConversationId {
        &self.journal.record().id
    }

    /// Where it works.
    pub fn workdir(&self) -> &Workdir {
        &self.workdir
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tools as the current mode sees them.
    pub fn tools(&self) -> Vec<Spec> {
        self.registry.list(&self.surface()).into_iter().cloned().collect()
    }

    /// Every known tool: registered or why not, and which surfaces see it.
    pub fn explain(&self) -> Vec<Explained> {
        self.registry.explain()
    }

    /// The cards that people answer.
    pub fn cards(&self) -> &Arc<Cards> {
        &self.cards
    }

    /// Events as they are recorded, and live pieces.
    pub fn watch(&self) -> broadcast::Receiver<Frame> {
        self.journal.watch()
    }

    /// Looks at what the conversation adds up to.
    pub fn with_transcript<T>(&self, look: impl FnOnce(&Transcript) -> T) -> T {
        self.journal.with_transcript(look)
    }

    /// Its mode.
    pub fn mode(&self) -> Mode {
        self.with_transcript(Transcript::mode)
    }

    fn surface(&self) -> Surface {
        self.surface.unwrap_or_else(|| self.mode().surface())
    }

    /// Changes the mode. For people only: no tool and no model reaches this (SPEC G2). Leaving vibe mode stops the workers; a notice says which.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), JournalError> {
        let before = self.mode();
        self.journal.append(vec![Event::ModeChanged { mode }]).await?;
        if before != Mode::Vibe || mode == Mode::Vibe {
            return Ok(());
        }
        let Some(StopOnDrop(roster)) = &self.roster else { return Ok(()) };
        let stopped = roster.stop_all("vibe mode was left").await;
        if stopped.is_empty() {
            return Ok(());
        }
        let text = format!(
            "Vibe mode was left, so {} stopped: {}.",
            if stopped.len() == 1 {
                "1 worker was".to_owned()
            } else {
                format!("{} workers were", stopped.len())
            },
            stopped.join(", ")
        );
        self.journal.append(vec![Event::Notice { text }]).await
    }

    /// The workers, the oldest first.
    pub fn workers(&self) -> Vec<WorkerLine> {
        self.roster.as_ref().map(|StopOnDrop(roster)| roster.lines()).unwrap_or_default()
    }

    /// What it has used.
    pub fn spent(&self) -> Spent {
        self.with_transcript(Transcript::spent)
    }

    /// Makes one call on behalf of `origin`, through the surface of the current mode.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Value,
        origin: Origin,
        cancel: CancellationToken,
    ) -> Outcome {
        let surface = self.surface();
        let (sender, mut receiver) = mpsc::channel(PROGRESS);
        let mut call = Call::new(tool, arguments, origin);
        // Ids are unique in the conversation, which may be older than this process.
        call.id.0 = format!("{}_{}", call.id.0, self.journal.end().await);
        let work = self.registry.call(&surface, call, Context::new(cancel, Progress::to(sender)));
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                Some((id, text)) = receiver.recv() => self.journal.show(Frame::Progress { id, text }),
                outcome = &mut work => return outcome,
            }
        }
    }

    /// One run: takes in what the person said and goes on until the model's turn ends. A second run beside it is refused.
    pub async fn run(
        &self,
        model: &dyn Model,
        input: Vec<UserPart>,
        cancel: CancellationToken,
    ) -> Result<RunEnd, RunError> {
        let arrivals = self.roster.as_ref().map(|StopOnDrop(roster)| roster.as_ref() as &dyn Arrivals);
        self.run_within(model, input, cancel, Bounds::default(), arrivals).await
    }

    pub(crate) async fn run_within(
        &self,
        model: &dyn Model,
        input: Vec<UserPart>,
        cancel: CancellationToken,
        bounds: Bounds,
        arrivals: Option<&dyn Arrivals>,
    ) -> Result<RunEnd, RunError> {
        let Ok(_running) = self.running.try_lock() else { return Err(RunError::Busy) };
        let configured = self.config.max_steps().unwrap_or(MAX_STEPS);
        let instructions = instructions::collect(&self.environment, &self.workdir, &self.config);
        let notices = instructions.notes.into_iter().map(|text| Event::Notice { text });
        self.journal.append(notices.collect()).await?;
        let prices = self.config.model_profile(model.name()).and_then(|profile| profile.prices);
        let run = Run {
            journal: &self.journal,
            registry: &self.registry,
            model,
            prices: prices.map(|prices| Prices {
                input: prices.input,
                output: prices.output,
                cache_read: prices.cache_read.unwrap_or(prices.input),
                cache_write: prices.cache_write.unwrap_or(prices.input),
            }),
            system: system_prompt(&self.workdir, self.surface().kind(), &instructions.text),
            surface: self.surface,
            origin: match self.surface.map(|surface| surface.kind()) {
                Some(SurfaceKind::Worker) => Origin::Worker,
                _ => Origin::Model,
            },
            arrivals,
            max_steps: bounds.steps.map_or(configured, |steps| steps.min(configured)),
            max_tokens: bounds.tokens,
            max_output_tokens: self.config.max_output_tokens(),
            cancel,
        };
        Ok(run.go(input).await?)
    }

    /// Takes in what was said to it, while a run goes on or before the next.
    pub(crate) async fn say(&self, parts: Vec<UserPart>) -> Result<(), JournalError> {
        self.journal.append(vec![Event::UserMessage { parts }]).await
    }

    /// Puts the files that the last run changed through the change set back as they were before it: all of them, or none where one of them has
    /// been changed since. What a shell command or a worker did is not covered. Returns the files, as shown.
    pub async fn undo(&self) -> Result<Vec<String>, UndoError> {
        let Ok(_running) = self.running.try_lock() else { return Err(UndoError::Busy) };
        let changed = self.with_transcript(|transcript| transcript.changed().to_vec());
        let files = undo::undo(&changed, &self.changes, self.journal.store().as_ref()).await?;
        let text = format!(
            "The person has undone the file changes of the last run. As before it are again: {}.",
            files.join(", ")
        );
        self.journal
            .append(vec![Event::ChangesUndone { files: files.clone() }, Event::Reminder { text }])
            .await?;
        Ok(files)
    }

    /// Gives the conversation a title for lists.
    pub async fn set_title(&self, title: &str) -> Result<(), StoreError> {
        self.journal.store().set_title(self.id(), title).await
    }

    /// Ends what the conversation started and gives it back.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(StopOnDrop(roster)) = &self.roster {
            roster.stop_all("its director's conversation was closed").await;
        }
        self.debugger.shutdown().await;
        self.kernels.shutdown().await;
        self.jobs.shutdown().await;
        // Its own cards, that is; those of a worker are its director's.
        self.cards.leave();
        self.cards.settled().await;
        self.journal.close().await
    }
}
