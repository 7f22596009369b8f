//! Settings: `haft.toml` of the person and of the project, environment variables and the command line, each value with its
//! origin. `docs/configuration.md` tells it to people.
//!
//! A project's file comes with the project, from whoever wrote that. Until a person has trusted it (its content, by hash), only what
//! restricts is taken from it; the rest is ignored and said in [`Config::warnings`].

mod error;
mod load;
mod models;
mod read;
mod secret;
mod source;
#[cfg(test)]
mod tests;
mod trust;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use haft_lsp::servers::ServerOverride;
use haft_tool::Access;
use serde::Serialize;

use crate::guard::{Policy, Preset, Rule};

pub use error::ConfigError;
pub use load::Trust;
pub use read::Prices;
pub use secret::Secret;
pub(crate) use source::{project_directories, shown};

/// The providers that settings are about (SPEC H2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProviderName {
    /// `anthropic/…`
    Anthropic,
    /// `openai/…`: the Responses API.
    Openai,
    /// `openai-chat/…`: any compatible server.
    OpenaiChat,
    /// `gemini/…`
    Gemini,
    /// `ollama/…`
    Ollama,
}

impl ProviderName {
    /// All of them.
    pub const ALL: [ProviderName; 5] = [
        ProviderName::Anthropic,
        ProviderName::Openai,
        ProviderName::OpenaiChat,
        ProviderName::Gemini,
        ProviderName::Ollama,
    ];

    /// What stands before the `/` in a model's name.
    pub fn as_str(self) -> &'static str {
        match self {
            ProviderName::Anthropic => "anthropic",
            ProviderName::Openai => "openai",
            ProviderName::OpenaiChat => "openai-chat",
            ProviderName::Gemini => "gemini",
            ProviderName::Ollama => "ollama",
        }
    }

    /// The environment variables for the key and the base address.
    fn variables(self) -> (Option<&'static str>, Option<&'static str>) {
        match self {
            ProviderName::Anthropic => (Some("ANTHROPIC_API_KEY"), Some("ANTHROPIC_BASE_URL")),
            ProviderName::Openai | ProviderName::OpenaiChat => {
                (Some("OPENAI_API_KEY"), Some("OPENAI_BASE_URL"))
            }
            ProviderName::Gemini => (Some("GEMINI_API_KEY"), Some("GEMINI_BASE_URL")),
            ProviderName::Ollama => (None, Some("OLLAMA_HOST")),
        }
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ProviderName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ProviderName::ALL.into_iter().find(|provider| provider.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not a provider"))
    }
}

/// A value, where it was set, and what it took the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value that counts.
    pub value: T,
    /// `haft.toml:3`, `environment variable OPENAI_API_KEY`, `--model`.
    pub origin: String,
    /// Origins of the values that this one overrides, the strongest first.
    pub over: Vec<String>,
}

/// What is set for a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The key, from a file, the variable that `api_key_env` names, or the provider's usual variable.
    pub api_key: Option<Sourced<Secret>>,
    /// Where the provider is.
    pub base_url: Option<Sourced<String>>,
}

/// What is set for one model, under `[models.profiles."provider/NAME"]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelProfile {
    /// Input and output together.
    pub context_tokens: Option<u32>,
    /// Whether it takes pictures.
    pub images: Option<bool>,
    /// What it costs.
    pub prices: Option<Prices>,
}

/// What the command line says; it wins over everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--model`.
    pub model: Option<String>,
    /// `--fast`.
    pub fast: Option<String>,
    /// `--good`.
    pub good: Option<String>,
    /// `--preset`.
    pub preset: Option<Preset>,
}

/// A line of `haft config`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// `models.default`.
    pub key: String,
    /// For people; secrets are masked.
    pub value: String,
    /// Where it was set.
    pub origin: String,
    /// What it overrides, or why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Settings with their origins.
#[derive(Clone, Debug, Default)]
pub struct Config {
    models: BTreeMap<read::Slot, Sourced<String>>,
    profiles: BTreeMap<String, ModelProfile>,
    providers: BTreeMap<ProviderName, ProviderConfig>,
    preset: Option<Sourced<Preset>>,
    rules: Vec<Rule>,
    paths: Vec<(PathBuf, Access)>,
    max_steps: Option<Sourced<u32>>,
    max_output_tokens: Option<Sourced<u32>>,
    shell_timeout_seconds: Option<Sourced<u32>>,
    question_timeout_seconds: Option<Sourced<u32>>,
    eval_timeout_seconds: Option<Sourced<u32>>,
    eval_timeout_most_seconds: Option<Sourced<u32>>,
    enclosure_prefix: Option<Sourced<Vec<String>>>,
    enclosure_environment: BTreeMap<String, String>,
    language_servers: BTreeMap<String, ServerOverride>,
    instruction_files: Vec<PathBuf>,
    secret_variables: Vec<String>,
    settings: Vec<Setting>,
    warnings: Vec<String>,
    project: Vec<load::ProjectFile>,
    directory: PathBuf,
    variables: Option<haft_system::Environment>,
}

impl Config {
    /// The model of a run, as `provider/NAME`.
    pub fn model(&self) -> Option<&str> {
        self.slot(read::Slot::Default)
    }

    /// The model for mechanical work; the default one where none is set.
    pub fn fast(&self) -> Option<&str> {
        self.slot(read::Slot::Fast).or_else(|| self.model())
    }

    /// The model for design and review; the default one where none is set.
    pub fn good(&self) -> Option<&str> {
        self.slot(read::Slot::Good).or_else(|| self.model())
    }

    fn slot(&self, slot: read::Slot) -> Option<&str> {
        self.models.get(&slot).map(|model| model.value.as_str())
    }

    /// What is set for a provider.
    pub fn provider(&self, name: ProviderName) -> ProviderConfig {
        self.providers.get(&name).cloned().unwrap_or_default()
    }

    /// What is set for the model `provider/NAME`.
    pub fn model_profile(&self, model: &str) -> Option<&ModelProfile> {
        self.profiles.get(model)
    }

    /// Preset and rules.
    pub fn policy(&self) -> Policy {
        Policy::new(self.preset.as_ref().map(|preset| preset.value).unwrap_or_default(), self.rules.clone())
    }

    /// Existing places outside the working directory that tools may use, canonical.
    pub fn extra_paths(&self) -> impl Iterator<Item = (&Path, Access)> {
        self.paths.iter().map(|(path, access)| (path.as_path(), *access))
    }

    /// Model answers in one run.
    pub fn max_steps(&self) -> Option<u32> {
        self.max_steps.as_ref().map(|steps| steps.value)
    }

    /// The longest answer that is asked of a model.
    pub fn max_output_tokens(&self) -> Option<u32> {
        self.max_output_tokens.as_ref().map(|tokens| tokens.value)
    }

    /// How long a shell command may run unless its call says otherwise.
    pub fn shell_timeout_seconds(&self) -> Option<u32> {
        self.shell_timeout_seconds.as_ref().map(|seconds| seconds.value)
    }

    /// How long a question waits for a person.
    pub fn question_timeout_seconds(&self) -> Option<u32> {
        self.question_timeout_seconds.as_ref().map(|seconds| seconds.value)
    }

    /// How long a cell may go without a sign of life unless its call says otherwise.
    pub fn eval_timeout_seconds(&self) -> Option<u32> {
        self.eval_timeout_seconds.as_ref().map(|seconds| seconds.value)
    }

    /// The most that a call of `eval` may ask for.
    pub fn eval_timeout_most_seconds(&self) -> Option<u32> {
        self.eval_timeout_most_seconds.as_ref().map(|seconds| seconds.value)
    }

    /// The conversation's enclosure, from `[enclosure]`: what goes before a kernel's command, and variables (SPEC E7). `{workdir}` in a word of
    /// the prefix stands for the working directory.
    pub fn enclosure(&self) -> Option<(&[String], &BTreeMap<String, String>)> {
        let prefix = self.enclosure_prefix.as_ref().filter(|prefix| !prefix.value.is_empty())?;
        Some((&prefix.value, &self.enclosure_environment))
    }

    /// Changes to the table of language servers, from `[lsp.servers.NAME]`.
    pub fn language_servers(&self) -> &BTreeMap<String, ServerOverride> {
        &self.language_servers
    }

    /// Files with instructions besides AGENTS.md, absolute, from `[instructions] files`.
    pub fn instruction_files(&self) -> &[PathBuf] {
        &self.instruction_files
    }

    /// Environment variables that `api_key_env` names: processes that Haft starts must not see them.
    pub fn secret_variables(&self) -> &[String] {
        &self.secret_variables
    }

    /// What the person should know: values that were ignored and why.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Every setting that was found, in the order of the files' keys, with its origin. Ignored ones are there too and say so.
    pub fn explain(&self) -> Vec<Setting> {
        self.settings.clone()
    }
}
