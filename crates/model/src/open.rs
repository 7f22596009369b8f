//! From a name to a model.

use std::{path::Path, sync::Arc};

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::{
    Model, ModelError, Profile,
    address::Base,
    profiles::profile,
    record::{Recorder, Recording},
    remote::{Remote, RemoteModel},
    replay::Recorded,
    script::ScriptModel,
    settings::{ProviderSettings, RetryPolicy, Setting, Settings},
    transport::{Http, HttpTransport, Transport},
    wire::{Anthropic, Chat, Gemini, Ollama, Responses, Wire},
};

/// What the models of a process share.
#[derive(Clone, Default)]
pub struct Shared {
    /// The connections.
    pub http: Http,
    /// Where to write what goes over the wire, if anywhere.
    pub recorder: Option<Recorder>,
}

/// A provider, by the word before the slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    Anthropic,
    OpenAi,
    OpenAiChat,
    Gemini,
    Ollama,
}

impl Provider {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "anthropic" => Provider::Anthropic,
            "openai" => Provider::OpenAi,
            "openai-chat" => Provider::OpenAiChat,
            "gemini" => Provider::Gemini,
            "ollama" => Provider::Ollama,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::OpenAiChat => "openai-chat",
            Provider::Gemini => "gemini",
            Provider::Ollama => "ollama",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Provider::Anthropic => "https://api.anthropic.com",
            Provider::OpenAi | Provider::OpenAiChat => "https://api.openai.com",
            Provider::Gemini => "https://generativelanguage.googleapis.com",
            Provider::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// The variables for the key and the address.
    fn variables(self) -> (&'static str, &'static str) {
        match self {
            Provider::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            Provider::OpenAi | Provider::OpenAiChat => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
            Provider::Gemini => ("GEMINI_API_KEY", "GEMINI_BASE_URL"),
            Provider::Ollama => ("", "OLLAMA_HOST"),
        }
    }

    fn settings(self, settings: &Settings) -> ProviderSettings {
        match self {
            Provider::Anthropic => settings.anthropic.clone(),
            Provider::OpenAi => settings.openai.clone(),
            Provider::OpenAiChat => {
                let own = settings.openai_chat.clone();
                ProviderSettings {
                    // A key belongs to an address: with an address of its own, this provider does not send the other's key there.
                    api_key: own
                        .api_key
                        .or_else(|| settings.openai.api_key.clone().filter(|_| own.base_url.is_none())),
                    base_url: own.base_url.or_else(|| settings.openai.base_url.clone()),
                    ..own
                }
            }
            Provider::Gemini => settings.gemini.clone(),
            Provider::Ollama => settings.ollama.clone(),
        }
    }

    fn base(self, url: Option<&Setting>) -> Result<Base, ModelError> {
        let text = url.map_or(self.address(), |setting| setting.value.as_str());
        let parsed = if self == Provider::Ollama { Base::parse_ollama(text) } else { Base::parse(text) };
        parsed.map_err(|problem| {
            let origin = url.map_or("the built-in address", |setting| setting.origin.as_str());
            ModelError::Settings(format!("The base address of {} ({origin}): {problem}.", self.word()))
        })
    }

    fn wire(self, model: &str, profile: Profile, official: bool) -> Box<dyn Wire> {
        match self {
            Provider::Anthropic => Box::new(Anthropic::new(model, profile.images)),
            Provider::OpenAi => Box::new(Responses::new(model, profile.images)),
            Provider::OpenAiChat => Box::new(Chat::new(model, profile.images, official)),
            Provider::Gemini => Box::new(Gemini::new(model, profile.images)),
            Provider::Ollama => Box::new(Ollama::new(model, profile.images, profile.context_tokens)),
        }
    }

    fn key_header(self, key: &Setting) -> Result<(HeaderName, HeaderValue), ModelError> {
        let (name, value) = match self {
            Provider::Anthropic => (HeaderName::from_static("x-api-key"), key.value.clone()),
            Provider::Gemini => (HeaderName::from_static("x-goog-api-key"), key.value.clone()),
            Provider::OpenAi | Provider::OpenAiChat | Provider::Ollama => {
                (AUTHORIZATION, format!("Bearer {}", key.value))
            }
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            ModelError::Auth(format!(
                "The key for {} from {} holds characters that no key has (a line break?).",
                self.word(),
                key.origin
            ))
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    /// Said when nobody answers.
    fn hint(self) -> &'static str {
        match self {
            Provider::Ollama => " (is `ollama serve` running? OLLAMA_HOST names another address)",
            _ => "",
        }
    }
}

/// Opens the model of this name: `anthropic/NAME`, `openai/NAME`, `openai-chat/NAME`, `gemini/NAME`, `ollama/NAME`, `script:FILE` or
/// `replay:FILE` (SPEC H2). A file's path is taken as it is given; a relative one is relative to the process's directory. A script's
/// position belongs to the model that is returned: open one for each conversation. Nothing is sent and no connection is made.
///
/// # Errors
/// [`ModelError::Settings`] for a name that is none (it lists the ways), [`ModelError::Auth`] for a missing key (it names the variable and
/// the configuration key), [`ModelError::Script`] for a file that cannot be read.
pub fn open(name: &str, settings: &Settings, shared: &Shared) -> Result<Arc<dyn Model>, ModelError> {
    if let Some(file) = name.strip_prefix("script:") {
        return Ok(Arc::new(ScriptModel::read(name, Path::new(file), settings.retry)?));
    }
    if let Some(file) = name.strip_prefix("replay:") {
        return open_replay(name, Path::new(file));
    }
    let (provider, model) = split(name)?;
    let own = provider.settings(settings);
    let base = provider.base(own.base_url.as_ref())?;
    let official = is_official(provider, &base);
    let profile = profile(provider.word(), model, official, &own);
    let key = own.api_key.as_ref();
    if key.is_none() && official && provider != Provider::Ollama {
        return Err(missing_key(provider));
    }
    let header = key.map(|key| provider.key_header(key)).transpose()?;
    let http = HttpTransport::new(shared.http.clone(), base.clone(), header, settings, provider.hint());
    let mut transport: Arc<dyn Transport> = Arc::new(http);
    if let Some(recorder) = &shared.recorder {
        transport = Arc::new(Recording {
            inner: transport,
            recorder: recorder.clone(),
            model: name.to_owned(),
            base: base.shown(),
            profile,
            secret: key.map(|key| key.value.clone()),
        });
    }
    Ok(Arc::new(RemoteModel(Arc::new(Remote {
        name: name.to_owned(),
        profile,
        wire: provider.wire(model, profile, official),
        transport,
        policy: settings.retry,
        key: key.map_or_else(
            || {
                format!(
                    "a request without a key (set {} or {})",
                    provider.variables().0,
                    config_key(provider)
                )
            },
            |key| format!("the key from {}", key.origin),
        ),
    }))))
}

/// What a person can do who has not chosen a model yet.
pub fn ways() -> String {
    "\
- anthropic/NAME, for example anthropic/claude-sonnet-5-5 (key: ANTHROPIC_API_KEY)
- openai/NAME, OpenAI's Responses API (key: OPENAI_API_KEY)
- openai-chat/NAME, any server that speaks Chat Completions: vLLM, llama.cpp, LM Studio, OpenRouter … (address: OPENAI_BASE_URL)
- gemini/NAME (key: GEMINI_API_KEY)
- ollama/NAME, models on this machine, no key needed (address: OLLAMA_HOST)
- script:FILE, a written model for demos and tests, no key needed
- replay:FILE, a recording made with --record"
        .to_owned()
}

fn split(name: &str) -> Result<(Provider, &str), ModelError> {
    let known = name.split_once('/').and_then(|(word, model)| Some((Provider::parse(word)?, model)));
    match known {
        Some((_, "")) => Err(ModelError::Settings(format!(
            "`{name}` names a provider and no model. Write one of:\n{}",
            ways()
        ))),
        Some(found) => Ok(found),
        None => Err(ModelError::Settings(format!(
            "`{name}` is not the name of a model. Write one of:\n{}",
            ways()
        ))),
    }
}

fn is_official(provider: Provider, base: &Base) -> bool {
    Base::parse(provider.address()).is_ok_and(|own| own.host() == base.host())
}

fn config_key(provider: Provider) -> String {
    format!("`api_key` under `[providers.{}]` in haft.toml", provider.word())
}

fn missing_key(provider: Provider) -> ModelError {
    let (key, address) = provider.variables();
    let word = provider.word();
    ModelError::Auth(format!(
        "There is no key for {word}. Ways to go on:\n\
         - set the environment variable {key}\n\
         - set {}\n\
         - if another server speaks for {word}, set {address} to its address\n\
         - or take a model that needs no key: ollama/NAME, script:FILE",
        config_key(provider)
    ))
}

fn open_replay(name: &str, file: &Path) -> Result<Arc<dyn Model>, ModelError> {
    let recorded = Recorded::read(file)?;
    let (provider, model) = split(&recorded.model)?;
    let base = provider.base(Some(&Setting::new(recorded.base.clone(), "the recording")))?;
    let profile = recorded.profile;
    let model = model.to_owned();
    Ok(Arc::new(RemoteModel(Arc::new(Remote {
        name: name.to_owned(),
        profile,
        wire: provider.wire(&model, profile, is_official(provider, &base)),
        transport: Arc::new(recorded),
        // The recorded attempts say how often it was tried; nobody has to be waited for.
        policy: RetryPolicy {
            attempts: u32::MAX,
            first: std::time::Duration::ZERO,
            longest: std::time::Duration::ZERO,
        },
        key: "the key (in the recording)".to_owned(),
    }))))
}
