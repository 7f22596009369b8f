//! Conversations that work for another one: explorers and workers (SPEC G3, V1).

use std::sync::{Arc, RwLock};

use haft_model::{Model, ModelError};
use haft_store::{ConversationId, ConversationRecord};
use haft_tool::{Surface, SurfaceKind, Tier};

use crate::{
    Approve, Conversation, Host, HostError, Journal, Mode, Setup, Worker, cards::Cards, config::Config,
    guard::Policy,
};

/// Opens models by name.
pub trait OpenModel: Send + Sync {
    /// The model `provider/NAME` with what `config` says about it.
    fn open(&self, name: &str, config: &Config) -> Result<Arc<dyn Model>, ModelError>;
}

/// Opens what the settings name.
#[derive(Default)]
pub(crate) struct Configured {
    shared: haft_model::Shared,
}

impl OpenModel for Configured {
    fn open(&self, name: &str, config: &Config) -> Result<Arc<dyn Model>, ModelError> {
        haft_model::open(name, &config.model_settings_for(name), &self.shared)
    }
}

/// What the calls of a conversation are held against, and whom they can be put before. Helpers share it with the conversation that they work for:
/// their cards appear there, and an "always" that is given there holds for all of them.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) policy: Arc<RwLock<Policy>>,
    pub(crate) cards: Arc<Cards>,
    /// Where rules that people add are recorded.
    pub(crate) journal: Arc<Journal>,
    pub(crate) approve: Approve,
    /// Who asks: `agent`, `explorer`, or a worker's label.
    pub(crate) from: String,
}

/// For whom a conversation works.
pub(crate) enum Role {
    /// For people.
    Agent,
    /// Answers one question for another conversation, looking only.
    Explorer(Gate),
    /// Works for another conversation, under its ceiling.
    Worker(Gate, Tier),
}

impl Role {
    /// The surface, where it does not follow the mode.
    pub(crate) fn surface(&self) -> Option<Surface> {
        match self {
            Role::Agent => None,
            Role::Explorer(_) => Some(Surface::of(SurfaceKind::Explorer)),
            Role::Worker(_, ceiling) => Some(Surface::of(SurfaceKind::Worker).capped(*ceiling)),
        }
    }

    /// As it is kept with the conversation, for lists.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Explorer(_) => "explorer",
            Role::Worker(..) => "worker",
        }
    }
}

/// Makes helpers for one conversation.
#[derive(Clone)]
pub(crate) struct Nursery {
    pub(crate) host: Host,
    pub(crate) parent: ConversationRecord,
    pub(crate) config: Config,
    pub(crate) gate: Gate,
}

impl Nursery {
    /// A new conversation of the explorer kind.
    pub(crate) async fn explorer(&self, title: &str) -> Result<Conversation, HostError> {
        let role = Role::Explorer(Gate { from: "explorer".into(), ..self.gate.clone() });
        self.host.helper(ConversationId::new(), &self.parent, title, self.setup(), role).await
    }

    /// The conversation of a worker: taken up where it was, or begun.
    pub(crate) async fn worker(&self, worker: &Worker, ceiling: Tier) -> Result<Conversation, HostError> {
        let role = Role::Worker(Gate { from: worker.label.clone(), ..self.gate.clone() }, ceiling);
        let directory = match &worker.worktree {
            Some(worktree) => worktree.path.join(&worktree.inside).display().to_string(),
            None => self.parent.directory.clone(),
        };
        let parent = ConversationRecord { directory, ..self.parent.clone() };
        self.host.helper(worker.conversation.clone(), &parent, &worker.label, self.setup(), role).await
    }

    fn setup(&self) -> Setup {
        Setup {
            space: self.parent.space.clone(),
            mode: Mode::Agent,
            approve: self.gate.approve,
            config: self.config.clone(),
        }
    }

    /// A model for a helper; the error is for the model that wants it.
    pub(crate) fn model(&self, name: Option<&str>, key: &str) -> Result<Arc<dyn Model>, String> {
        let Some(name) = name else {
            return Err(format!(
                "no model is configured for it: `models.{key}` and `models.default` are both unset. A person has to set one."
            ));
        };
        self.host.models().open(name, &self.config).map_err(|error| error.to_string())
    }
}
