use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use haft_lsp::Servers;
use haft_store::{ConversationId, ConversationRecord, Sequence, SharedStore, SqliteStore, StoreError};
use haft_structure::Engine;
use haft_system::{
    ChangeError, Changes, Environment, PathError, ProcessInfo, Supervisor, Workdir, clock, identity_is_alive,
    own_identity,
};

use crate::{
    Approve, Conversation, Journal, JournalError, Mode,
    config::Config,
    conversation::Parts,
    helper::{Configured, OpenModel, Role},
    outputs as kept_outputs,
    transcript::Event,
};

/// The server object: what all conversations of a process share. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    environment: Environment,
    supervisor: Supervisor,
    /// The trees of earlier searches serve all conversations.
    parser: Arc<Engine>,
    /// Language servers, one per server and root.
    servers: Servers,
    store: SharedStore,
    state: PathBuf,
    /// One change set door per working directory, so that its write lock and observers are shared.
    changes: Arc<Mutex<HashMap<PathBuf, Changes>>>,
    models: Arc<dyn OpenModel>,
}

/// How a conversation is to be.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where people see it.
    pub space: String,
    /// The mode it begins in.
    pub mode: Mode,
    /// What happens to prompts.
    pub approve: Approve,
    /// Settings for its directory.
    pub config: Config,
}

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Haft has no place for its state.
    #[error("no place to keep transcripts: set HAFT_STATE_DIR, or HOME")]
    NoState,
    /// The place for its state cannot be used.
    #[error("the state directory {} cannot be used: {message}. Set HAFT_STATE_DIR to a directory that can be written", path.display())]
    State {
        /// Where.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// The working directory cannot be used.
    #[error(transparent)]
    Directory(#[from] PathError),
    /// A worker of the conversation that this one was forked from.
    #[error(
        "conversation {0} belongs to another conversation, the one that this was forked from: spawn a worker of your own"
    )]
    OfAnother(ConversationId),
    /// The journal of file changes cannot be used.
    #[error(transparent)]
    Changes(#[from] ChangeError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The transcript cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Host {
    /// Opens the state of the person that `environment` belongs to.
    pub async fn open(environment: Environment) -> Result<Self, HostError> {
        let state = environment.state_dir().ok_or(HostError::NoState)?;
        create_private(&state)
            .map_err(|error| HostError::State { path: state.clone(), message: error.to_string() })?;
        let database = state.join("haft.db");
        let store = tokio::task::spawn_blocking(move || {
            SqliteStore::open(&database, clock::now_ms).map(|store| store.with_liveness(identity_is_alive))
        })
        .await
        .map_err(|error| HostError::State { path: state.clone(), message: error.to_string() })??;
        Ok(Self::with_store(environment, Arc::new(store), state))
    }

    /// A host over a store of the caller's.
    pub fn with_store(environment: Environment, store: SharedStore, state: PathBuf) -> Self {
        let supervisor = Supervisor::new(environment.clone());
        Host {
            servers: Servers::new(environment.clone(), supervisor.clone()),
            environment,
            supervisor,
            parser: Arc::default(),
            store,
            state,
            changes: Arc::default(),
            models: Arc::new(Configured::default()),
        }
    }

    /// Starts a conversation in `directory`.
    pub async fn start(&self, directory: &Path, setup: Setup) -> Result<Conversation, HostError> {
        let workdir = self.workdir(directory, &setup.config)?;
        let now = clock::now_ms();
        let record = ConversationRecord {
            id: ConversationId::new(),
            space: setup.space.clone(),
            directory: workdir.root().display().to_string(),
            parent: None,
            title: String::new(),
            created_at_ms: now,
            updated_at_ms: now,
            last_sequence: 0,
            extra: serde_json::Map::new(),
        };
        let journal = Journal::create(self.store.clone(), record, &own_identity()).await?;
        journal.append(vec![Event::ModeChanged { mode: setup.mode }]).await?;
        self.assemble(journal, workdir, setup, Role::Agent).await
    }

    /// The conversation `id` of a helper of `parent`: taken up if there is one, else begun in the directory of `parent`.
    pub(crate) async fn helper(
        &self,
        id: ConversationId,
        parent: &ConversationRecord,
        title: &str,
        setup: Setup,
        role: Role,
    ) -> Result<Conversation, HostError> {
        let workdir = self.workdir(Path::new(&parent.directory), &setup.config)?;
        let journal = match self.store.conversation(&id).await {
            Ok(record) if record.parent.as_ref() == Some(&parent.id) => {
                Journal::resume(self.store.clone(), &id, &own_identity()).await?
            }
            // The roster of a fork is a copy; the workers in it are not.
            Ok(_) => return Err(HostError::OfAnother(id)),
            Err(StoreError::NotFound { .. }) => {
                let now = clock::now_ms();
                let mut extra = serde_json::Map::new();
                extra.insert(ROLE.into(), role.word().into());
                let record = ConversationRecord {
                    id,
                    parent: Some(parent.id.clone()),
                    title: title.to_owned(),
                    created_at_ms: now,
                    updated_at_ms: now,
                    last_sequence: 0,
                    extra,
                    ..parent.clone()
                };
                Journal::create(self.store.clone(), record, &own_identity()).await?
            }
            Err(error) => return Err(error.into()),
        };
        self.assemble(journal, workdir, setup, role).await
    }

    /// Takes up a conversation; its mode and rules are as they were, what a dead process left open is closed.
    pub async fn resume(&self, id: &ConversationId, setup: Setup) -> Result<Conversation, HostError> {
        let record = self.store.conversation(id).await?;
        let workdir = self.workdir(Path::new(&record.directory), &setup.config)?;
        let journal = Journal::resume(self.store.clone(), id, &own_identity()).await?;
        self.assemble(journal, workdir, setup, Role::Agent).await
    }

    /// A new conversation that begins as a copy of another one's events up to `upto` (all of them if none).
    pub async fn fork(
        &self,
        from: &ConversationId,
        upto: Option<Sequence>,
    ) -> Result<ConversationId, HostError> {
        let origin = self.store.conversation(from).await?;
        let now = clock::now_ms();
        let upto = upto.unwrap_or(origin.last_sequence);
        let record = ConversationRecord {
            id: ConversationId::new(),
            parent: Some(from.clone()),
            created_at_ms: now,
            updated_at_ms: now,
            last_sequence: 0,
            extra: origin.extra.into_iter().filter(|(key, _)| key != ROLE).collect(),
            ..origin
        };
        let id = record.id.clone();
        self.store.fork(from, upto, record).await?;
        Ok(id)
    }

    async fn assemble(
        &self,
        journal: Journal,
        workdir: Workdir,
        setup: Setup,
        role: Role,
    ) -> Result<Conversation, HostError> {
        let outputs = self.state.join("outputs").join(&journal.record().id.0);
        create_private(&outputs)
            .map_err(|error| HostError::State { path: outputs.clone(), message: error.to_string() })?;
        let mut workdir = workdir.with_extra(&outputs, haft_tool::Access::Read)?;
        let kept = journal.with_transcript(|transcript| transcript.kept().to_vec());
        let (places, lost) = kept_outputs::restore(self.store.as_ref(), &self.state, &kept).await;
        for place in places.iter().filter(|place| **place != outputs) {
            workdir = workdir.with_extra(place, haft_tool::Access::Read)?;
        }
        let root = workdir.root().to_owned();
        if root.starts_with(self.worktrees()) {
            // A worker's own; the rest of Haft's state stays out of its reach.
            workdir = workdir.with_extra(root, haft_tool::Access::Write)?;
        }
        let workdir = workdir.without(&self.state)?;
        let (changes, recovered) = self.changes(&workdir)?;
        let notices = recovered
            .into_iter()
            .chain(setup.config.warnings().iter().cloned())
            .chain(lost)
            .map(|text| Event::Notice { text });
        journal.append(notices.collect()).await?;
        Ok(Conversation::assemble(Parts {
            journal: Arc::new(journal),
            environment: self.environment.clone(),
            supervisor: self.supervisor.clone(),
            parser: self.parser.clone(),
            servers: self.servers.clone(),
            workdir,
            changes,
            outputs,
            setup,
            role,
            host: self.clone(),
        }))
    }

    fn workdir(&self, directory: &Path, config: &Config) -> Result<Workdir, HostError> {
        let mut workdir = Workdir::new(self.environment.directory().join(directory))?;
        for (path, access) in config.extra_paths() {
            workdir = workdir.with_extra(path, access)?;
        }
        Ok(workdir)
    }

    fn changes(&self, workdir: &Workdir) -> Result<(Changes, Vec<String>), HostError> {
        let mut open = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changes) = open.get(workdir.root()) {
            return Ok((changes.clone(), Vec::new()));
        }
        let (changes, recovered) = Changes::open(workdir.clone(), self.state.join("changes"))?;
        open.insert(workdir.root().to_owned(), changes.clone());
        Ok((changes, recovered.iter().map(ToString::to_string).collect()))
    }

    /// Lets `models` open what explorers and workers use.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn OpenModel>) -> Self {
        Host { models, ..self }
    }

    pub(crate) fn models(&self) -> &dyn OpenModel {
        self.models.as_ref()
    }

    /// The store.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// What Haft was started with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Where worktrees of workers are made.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.state.canonicalize().unwrap_or_else(|_| self.state.clone()).join("worktrees")
    }

    /// The processes that run, of all conversations: jobs, servers, adapters, kernels.
    pub fn running(&self) -> Vec<ProcessInfo> {
        self.supervisor.running()
    }

    /// Ends every process that is still there.
    pub async fn shutdown(&self) {
        self.supervisor.shutdown().await;
    }
}

/// Where a helper's record says what it is: `explorer` or `worker`.
pub const ROLE: &str = "role";

/// A directory that only its owner can look into: transcripts hold what files and commands showed.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
