use std::{
    path::PathBuf,
    sync::{Arc, RwLock},
};

use haft_files::{Jobs, Reads};
use haft_model::{Model, UserPart};
use haft_store::{ConversationId, StoreError};
use haft_structure::{Engine, Staging};
use haft_system::{Changes, Environment, Supervisor, Workdir};
use haft_tool::{Call, Context, Explained, Origin, Outcome, Progress, Registry, Spec};
use serde_json::Value;
use tokio::sync::{Mutex, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    Mode, Setup, Spent, Transcript,
    cards::Cards,
    config::Config,
    guard::Policy,
    instructions,
    layers::{Bound, Permission, Record, Wholes},
    limits::{MAX_STEPS, PROGRESS},
    prompt::system_prompt,
    run::Run,
    transcript::{Event, Frame, Journal, JournalError, RunEnd},
    wiring::{self, Resources},
};

/// One thread of work in one working directory: its transcript, its mode, its cards and its tools.
pub struct Conversation {
    journal: Arc<Journal>,
    registry: Arc<Registry>,
    cards: Arc<Cards>,
    jobs: Arc<Jobs>,
    workdir: Workdir,
    environment: Environment,
    config: Config,
    /// Held by the run that is going on.
    running: Mutex<()>,
}

pub(crate) struct Parts {
    pub(crate) journal: Arc<Journal>,
    pub(crate) environment: Environment,
    pub(crate) supervisor: Supervisor,
    pub(crate) parser: Arc<Engine>,
    pub(crate) workdir: Workdir,
    pub(crate) changes: Changes,
    pub(crate) outputs: PathBuf,
    pub(crate) setup: Setup,
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
        let Parts { journal, environment, supervisor, parser, workdir, changes, outputs, setup } = parts;
        let cards = Arc::new(Cards::new(journal.clone()));
        let jobs = Arc::new(Jobs::new(supervisor.clone()));
        let mut policy: Policy = setup.config.policy();
        for rule in journal.with_transcript(|transcript| transcript.rules().to_vec()) {
            policy.add(rule);
        }
        let wholes = Wholes::default();
        let resources = Resources {
            workdir: Some(workdir.clone()),
            changes: Some(changes),
            reads: Reads::default(),
            supervisor: Some(supervisor),
            jobs: Some(jobs.clone()),
            parser: Some(parser),
            staging: Some(Arc::new(Staging::new())),
        };
        let registry = wiring::tools(resources)
            .layer(Record { journal: journal.clone(), wholes: wholes.clone() })
            .layer(Permission {
                policy: Arc::new(RwLock::new(policy)),
                workdir: workdir.clone(),
                cards: cards.clone(),
                journal: journal.clone(),
                approve: setup.approve,
                from: "agent".into(),
            })
            .layer(Bound { journal: journal.clone(), wholes, outputs })
            .build();
        Conversation {
            journal,
            registry: Arc::new(registry),
            cards,
            jobs,
            workdir,
            environment,
            config: setup.config,
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
        self.registry.list(&self.mode().surface()).into_iter().cloned().collect()
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

    /// Changes the mode. For people only: no tool and no model reaches this (SPEC G2).
    pub async fn set_mode(&self, mode: Mode) -> Result<(), JournalError> {
        self.journal.append(vec![Event::ModeChanged { mode }]).await
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
        let surface = self.mode().surface();
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
        let Ok(_running) = self.running.try_lock() else { return Err(RunError::Busy) };
        let instructions = instructions::collect(&self.environment, &self.workdir, &self.config);
        let run = Run {
            journal: &self.journal,
            registry: &self.registry,
            model,
            system: system_prompt(&self.workdir, self.mode(), &instructions.text),
            max_steps: self.config.max_steps().unwrap_or(MAX_STEPS),
            max_output_tokens: self.config.max_output_tokens(),
            cancel,
        };
        Ok(run.go(input).await?)
    }

    /// Gives the conversation a title for lists.
    pub async fn set_title(&self, title: &str) -> Result<(), StoreError> {
        self.journal.store().set_title(self.id(), title).await
    }

    /// Ends what the conversation started and gives it back.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.jobs.shutdown().await;
        self.journal.close().await
    }
}
