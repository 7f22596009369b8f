//! From the command line to a conversation.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use haft_agent::{
    Conversation, Host, Mode, Setup,
    config::{Config, Overrides},
};
use haft_model::{Model, Recorder, Shared};
use haft_store::{ConversationId, ConversationRecord};
use haft_system::Environment;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::{Models, Place, Which};

/// The settings for `directory`, with what the command line says on top.
pub(crate) fn load_config(
    environment: &Environment,
    directory: &Path,
    models: &Models,
) -> anyhow::Result<Config> {
    let overrides = Overrides {
        model: models.model.clone(),
        fast: models.fast.clone(),
        good: models.good.clone(),
        ..Overrides::default()
    };
    Ok(Config::load(environment, &environment.directory().join(directory), overrides)?)
}

/// Everything that a conversation needs, before there is one.
pub(crate) struct Opening {
    host: Host,
    earlier: Option<ConversationRecord>,
    directory: PathBuf,
    setup: Setup,
    /// The mode that the command line asked for.
    mode: Option<Mode>,
}

impl Opening {
    /// Finds the conversation that `which` names and reads the settings that count where it works.
    pub(crate) async fn prepare(
        environment: &Environment,
        place: &Place,
        which: Option<&Which>,
    ) -> anyhow::Result<Self> {
        let earlier = match which {
            Some(which) => find(&Host::open(environment.clone()).await?, place, which).await?,
            None => None,
        };
        let directory =
            earlier.as_ref().map_or_else(|| place.dir.clone(), |record| record.directory.clone().into());
        let config = load_config(environment, &directory, &place.models)?;
        let host = Host::open(environment.with_secrets(config.secret_variables())).await?;
        let setup = Setup {
            space: place.space.clone(),
            mode: place.mode.unwrap_or_default(),
            approve: place.approve.into(),
            config,
        };
        Ok(Opening { host, earlier, directory, setup, mode: place.mode })
    }

    /// The settings.
    pub(crate) fn config(&self) -> &Config {
        &self.setup.config
    }

    /// Starts the conversation, or goes on with the earlier one; then its mode stays as it was unless the command line says otherwise.
    pub(crate) async fn conversation(self) -> anyhow::Result<(Host, Conversation)> {
        let Opening { host, earlier, directory, setup, mode } = self;
        let conversation = match earlier {
            Some(record) => {
                let conversation = host.resume(&record.id, setup).await?;
                if let Some(mode) = mode
                    && mode != conversation.mode()
                {
                    conversation.set_mode(mode).await?;
                }
                conversation
            }
            None => host.start(&directory, setup).await?,
        };
        Ok((host, conversation))
    }
}

/// Starts a conversation as `place` says.
pub(crate) async fn open(environment: &Environment, place: &Place) -> anyhow::Result<(Host, Conversation)> {
    Opening::prepare(environment, place, None).await?.conversation().await
}

async fn find(host: &Host, place: &Place, which: &Which) -> anyhow::Result<Option<ConversationRecord>> {
    if let Some(id) = &which.resume {
        return Ok(Some(named(host, id).await?));
    }
    if !which.go_on {
        return Ok(None);
    }
    let directory = host.environment().directory().join(&place.dir);
    let directory =
        directory.canonicalize().with_context(|| format!("{} cannot be used", directory.display()))?;
    let directory = directory.display().to_string();
    let all = host.store().conversations(Some(&place.space)).await?;
    match all.into_iter().find(|record| record.directory == directory && !is_helper(record)) {
        Some(record) => Ok(Some(record)),
        None => bail!("there is no conversation of {directory} to go on with; start one without --continue"),
    }
}

/// Whether a conversation is a worker's or an explorer's; people go on with others.
pub(crate) fn is_helper(record: &ConversationRecord) -> bool {
    record.extra.contains_key(haft_agent::ROLE)
}

/// The conversation of that name; a beginning of the name will do where only one has it.
pub(crate) async fn named(host: &Host, id: &str) -> anyhow::Result<ConversationRecord> {
    if let Ok(record) = host.store().conversation(&ConversationId(id.to_owned())).await {
        return Ok(record);
    }
    let all = host.store().conversations(None).await?;
    let mut fitting = all.into_iter().filter(|record| !id.is_empty() && record.id.0.starts_with(id));
    match (fitting.next(), fitting.next()) {
        (Some(record), None) => Ok(record),
        (Some(_), Some(_)) => bail!("several conversations begin with `{id}`: give more of the name"),
        _ => bail!("there is no conversation `{id}`; `haft conversations` lists them"),
    }
}

/// The model of a conversation.
pub(crate) fn open_model(config: &Config, record: Option<&Path>) -> anyhow::Result<Arc<dyn Model>> {
    let Some(name) = config.model() else { bail!("{NO_MODEL}") };
    let recorder = match record {
        Some(path) => {
            Some(Recorder::create(path).with_context(|| format!("{} cannot be written", path.display()))?)
        }
        None => None,
    };
    let shared = Shared { recorder, ..Shared::default() };
    Ok(haft_model::open(name, &config.model_settings_for(name), &shared)?)
}

const NO_MODEL: &str = "no model is configured. Ways to go on:
  - a hosted model: export ANTHROPIC_API_KEY=… and use --model anthropic/NAME (likewise OPENAI_API_KEY and openai/NAME, GEMINI_API_KEY and gemini/NAME)
  - a server of your own: --model openai-chat/NAME with OPENAI_BASE_URL=http://localhost:8000/v1, or --model ollama/NAME
  - for good: `[models] default = \"provider/NAME\"` in haft.toml, in the project or in ~/.config/haft
  - no key at hand: `haft demo` plays a whole run from a script, `haft tool NAME '{…}'` makes single calls by hand";

/// Cancelled by the first SIGINT, SIGTERM or SIGHUP. A second one ends the process at once; what it started dies with it.
pub(crate) fn until_signal() -> anyhow::Result<CancellationToken> {
    let cancel = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let token = cancel.clone();
    tokio::spawn(async move {
        for round in 0.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if round > 0 {
                haft_system::end_now(crate::output::INTERRUPTED);
            }
            token.cancel();
        }
    });
    Ok(cancel)
}
