use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use haft_system::Environment;
use haft_tool::Access;

use super::{
    Config, ConfigError, Overrides, ProviderName, Secret, Setting, Sourced,
    read::{self, Item, ItemValue, Slot},
    source::{self, Source},
    trust::Trusted,
};
use crate::guard::{Action, Preset};

/// A project's file and whether it is trusted as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    source: Source,
    trusted: bool,
}

/// What [`Config::trust`] and [`Config::distrust`] did, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The files that it is about.
    pub files: Vec<PathBuf>,
    /// Whether they are trusted now.
    pub trusted: bool,
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        let files = files.join(", ");
        if self.trusted {
            write!(f, "Trusted as it is now: {files}. A change to it has to be trusted again.")
        } else {
            write!(f, "No longer trusted: {files}. Only what restricts is taken from it.")
        }
    }
}

impl Config {
    /// Reads everything that counts in `directory`. Defaults give way to the person's `haft.toml`, this to the project's (from the
    /// repository's root to `directory`), these to environment variables, and those to the command line.
    pub fn load(
        environment: &Environment,
        directory: &Path,
        flags: Overrides,
    ) -> Result<Config, ConfigError> {
        let mut config = Config {
            directory: directory.to_owned(),
            variables: Some(environment.clone()),
            ..Config::default()
        };
        let trusted = Trusted::load(environment).unwrap_or_else(|error| {
            config.warnings.push(format!("No project's settings are trusted, because {error}."));
            Trusted::default()
        });
        for source in source::find(environment, directory)? {
            let trusted = !source.of_project || trusted.holds(&source);
            let mut ignored = Vec::new();
            for item in read::read(&source)? {
                config.take(environment, &source, trusted, item, &mut ignored);
            }
            if !ignored.is_empty() {
                config.warnings.push(format!(
                    "{} is not trusted, so only what restricts is taken from it. Ignored: {}. Read it, and if you trust it as it is \
                     now, run `haft config trust`.",
                    source.shown,
                    ignored.join(", ")
                ));
            }
            if source.of_project {
                config.project.push(ProjectFile { source, trusted });
            }
        }
        if config.enclosure().is_none() && !config.enclosure_environment.is_empty() {
            config.warnings.push(
                "`enclosure.environment` has no effect: there is no `enclosure.command_prefix`, so kernels run on the host.".into(),
            );
        }
        config.variables(environment);
        config.flags(flags);
        config.defaults();
        Ok(config)
    }

    /// Trusts the project's files as they were when this was loaded.
    pub fn trust(&self, environment: &Environment) -> Result<Trust, ConfigError> {
        let mut trusted = Trusted::load(environment)?;
        for file in &self.project {
            trusted.add(&file.source);
        }
        self.remember(environment, &trusted, /*now*/ true)
    }

    /// Takes the trust back, whatever the files' content was.
    pub fn distrust(&self, environment: &Environment) -> Result<Trust, ConfigError> {
        let mut trusted = Trusted::load(environment)?;
        for file in &self.project {
            trusted.remove(&file.source);
        }
        self.remember(environment, &trusted, /*now*/ false)
    }

    fn remember(&self, environment: &Environment, list: &Trusted, now: bool) -> Result<Trust, ConfigError> {
        if self.project.is_empty() {
            return Err(ConfigError::NoProject { directory: self.directory.clone() });
        }
        list.save(environment)?;
        Ok(Trust { files: self.project.iter().map(|file| file.source.path.clone()).collect(), trusted: now })
    }

    fn take(
        &mut self,
        environment: &Environment,
        source: &Source,
        trusted: bool,
        item: Item,
        ignored: &mut Vec<String>,
    ) {
        let origin = format!("{}:{}", source.shown, item.line);
        let value = describe(&item.value);
        if !trusted && !self.restricts(source, &item.value) {
            let said = format!("`{}` (line {})", item.key, item.line);
            if !ignored.contains(&said) {
                ignored.push(said);
            }
            let note = Some("ignored: the file is not trusted".to_owned());
            self.settings.push(Setting { key: item.key, value, origin, note });
            return;
        }
        let mut note = None;
        match item.value {
            ItemValue::Model(slot, model) => {
                let old = self.models.remove(&slot);
                self.models.insert(slot, over(model, &origin, old));
            }
            ItemValue::ApiKey(provider, key) => {
                let provider = self.providers.entry(provider).or_default();
                provider.api_key = Some(over(key, &origin, provider.api_key.take()));
            }
            ItemValue::ApiKeyVariable(provider, variable) => {
                if !self.secret_variables.contains(&variable) {
                    self.secret_variables.push(variable.clone());
                }
                match environment.get(&variable) {
                    Some(key) => {
                        let origin = format!("environment variable {variable}, named in {origin}");
                        let provider = self.providers.entry(provider).or_default();
                        provider.api_key = Some(over(Secret::new(key), &origin, provider.api_key.take()));
                    }
                    None => note = Some("this environment variable is not set".to_owned()),
                }
            }
            ItemValue::BaseUrl(provider, url) => {
                let provider = self.providers.entry(provider).or_default();
                provider.base_url = Some(over(url, &origin, provider.base_url.take()));
            }
            ItemValue::Context { model, tokens } => {
                self.profiles.entry(model).or_default().context_tokens = Some(tokens);
            }
            ItemValue::Images { model, images } => {
                self.profiles.entry(model).or_default().images = Some(images);
            }
            ItemValue::Prices { model, prices } => {
                self.profiles.entry(model).or_default().prices = Some(prices);
            }
            ItemValue::Preset(preset) => self.preset = Some(over(preset, &origin, self.preset.take())),
            ItemValue::Rule(rule) => self.rules.push(*rule),
            ItemValue::ReadPath(path) => note = self.extra(environment, source, &path, Access::Read, &origin),
            ItemValue::WritePath(path) => {
                note = self.extra(environment, source, &path, Access::Write, &origin);
            }
            ItemValue::MaxSteps(steps) => self.max_steps = Some(over(steps, &origin, self.max_steps.take())),
            ItemValue::MaxOutputTokens(tokens) => {
                self.max_output_tokens = Some(over(tokens, &origin, self.max_output_tokens.take()));
            }
            ItemValue::ShellTimeout(seconds) => {
                self.shell_timeout_seconds = Some(over(seconds, &origin, self.shell_timeout_seconds.take()));
            }
            ItemValue::QuestionTimeout(seconds) => {
                self.question_timeout_seconds =
                    Some(over(seconds, &origin, self.question_timeout_seconds.take()));
            }
            ItemValue::EvalTimeout(seconds) => {
                self.eval_timeout_seconds = Some(over(seconds, &origin, self.eval_timeout_seconds.take()));
            }
            ItemValue::EvalTimeoutMost(seconds) => {
                self.eval_timeout_most_seconds =
                    Some(over(seconds, &origin, self.eval_timeout_most_seconds.take()));
            }
            ItemValue::EnclosurePrefix(words) => {
                note = Some(ENCLOSED.to_owned());
                self.enclosure_prefix = Some(over(words, &origin, self.enclosure_prefix.take()));
            }
            ItemValue::EnclosureVariable(name, text) => {
                self.enclosure_environment.insert(name, text);
            }
            ItemValue::InstructionFile(file) => {
                let path = located(environment, source, &file);
                if !self.instruction_files.contains(&path) {
                    self.instruction_files.push(path);
                }
            }
            ItemValue::LanguageServer { id, change } => {
                // A file closer to the project changes what a file further away has said, field by field.
                let merged = match self.language_servers.remove(&id) {
                    Some(before) => before.overlaid(&change),
                    None => *change,
                };
                self.language_servers.insert(id, merged);
            }
        }
        // The earlier value of the same key is shown as what the new one stands instead of.
        let single = !matches!(item.key.as_str(), "paths.read" | "paths.write" | "instructions.files")
            && !item.key.starts_with("guardrails.rules");
        let mut setting = Setting { key: item.key, value, origin, note };
        if single {
            self.replace(&mut setting);
        }
        self.settings.push(setting);
    }

    /// Takes the settings that `setting` overrides out of the list and says so in its note.
    fn replace(&mut self, setting: &mut Setting) {
        let ignored = |old: &Setting| old.note.as_deref().is_some_and(|note| note.starts_with("ignored"));
        let instead: Vec<String> = self
            .settings
            .iter()
            .filter(|old| old.key == setting.key && !ignored(old))
            .map(|old| format!("instead of {} from {}", old.value, old.origin))
            .collect();
        self.settings.retain(|old| old.key != setting.key || ignored(old));
        if !instead.is_empty() {
            let note = setting.note.take().map(|note| format!("{note}; ")).unwrap_or_default();
            setting.note = Some(format!("{note}{}", instead.join(", ")));
        }
    }

    /// Whether a value can only make a run do less than it would do without it.
    fn restricts(&self, source: &Source, value: &ItemValue) -> bool {
        let lower =
            |old: Option<u32>, default: Option<u32>, new: u32| old.or(default).is_some_and(|old| new <= old);
        match value {
            ItemValue::Rule(rule) => rule.action != Action::Allow,
            ItemValue::Preset(preset) => *preset == Preset::Ask,
            ItemValue::MaxSteps(steps) => lower(self.max_steps(), Some(crate::limits::MAX_STEPS), *steps),
            ItemValue::MaxOutputTokens(tokens) => lower(self.max_output_tokens(), None, *tokens),
            ItemValue::ShellTimeout(seconds) => lower(self.shell_timeout_seconds(), None, *seconds),
            // A shorter wait is an earlier "nobody answered", never an answer.
            ItemValue::QuestionTimeout(seconds) => lower(
                self.question_timeout_seconds(),
                Some(crate::limits::QUESTION_TIMEOUT_SECONDS),
                *seconds,
            ),
            ItemValue::EvalTimeout(seconds) => {
                lower(self.eval_timeout_seconds(), Some(haft_kernel::INACTIVITY_SECONDS), *seconds)
            }
            ItemValue::EvalTimeoutMost(seconds) => {
                lower(self.eval_timeout_most_seconds(), Some(haft_kernel::INACTIVITY_MOST_SECONDS), *seconds)
            }
            // Inside the project it is no more than an AGENTS.md there.
            ItemValue::InstructionFile(file) => {
                let path = source.directory().join(file);
                fs::canonicalize(path).is_ok_and(|path| path.starts_with(source.directory()))
            }
            // Not to run a server is less than to run it; every other setting can name a program or steer one.
            ItemValue::LanguageServer { change, .. } => change.only_disables(),
            ItemValue::Model(..)
            | ItemValue::ApiKey(..)
            | ItemValue::ApiKeyVariable(..)
            | ItemValue::BaseUrl(..)
            | ItemValue::Context { .. }
            | ItemValue::Images { .. }
            | ItemValue::Prices { .. }
            | ItemValue::ReadPath(_)
            | ItemValue::WritePath(_)
            // A prefix names a program, and another one can lead out of the enclosure that the person has chosen.
            | ItemValue::EnclosurePrefix(_)
            | ItemValue::EnclosureVariable(..) => false,
        }
    }

    fn extra(
        &mut self,
        environment: &Environment,
        source: &Source,
        path: &str,
        access: Access,
        origin: &str,
    ) -> Option<String> {
        match fs::canonicalize(located(environment, source, path)) {
            Ok(path) => {
                self.paths.push((path, access));
                None
            }
            Err(error) => {
                self.warnings.push(format!("`{path}` ({origin}) is left out: {error}."));
                Some(format!("left out: {error}"))
            }
        }
    }

    fn variables(&mut self, environment: &Environment) {
        for name in ProviderName::ALL {
            let (key, base) = name.variables();
            let shared = name == ProviderName::OpenaiChat;
            if let Some((variable, value)) =
                key.and_then(|variable| Some((variable, environment.get(variable)?)))
            {
                let origin = format!("environment variable {variable}");
                let secret = Secret::new(value);
                let shown = secret.masked();
                let provider = self.providers.entry(name).or_default();
                // A key that a person wrote for a compatible server is not the one for OpenAI that happens to be in the environment.
                if !(shared && provider.api_key.is_some()) {
                    provider.api_key = Some(over(secret, &origin, provider.api_key.take()));
                    self.setting(&format!("providers.{name}.api_key"), shown, origin);
                }
            }
            if let Some((variable, value)) =
                base.and_then(|variable| Some((variable, environment.get(variable)?)))
            {
                let origin = format!("environment variable {variable}");
                let provider = self.providers.entry(name).or_default();
                if !(shared && provider.base_url.is_some()) {
                    provider.base_url = Some(over(value.to_owned(), &origin, provider.base_url.take()));
                    self.setting(&format!("providers.{name}.base_url"), value.to_owned(), origin);
                }
            }
        }
    }

    fn flags(&mut self, flags: Overrides) {
        let models = [
            (Slot::Default, "default", "--model", flags.model),
            (Slot::Fast, "fast", "--fast", flags.fast),
            (Slot::Good, "good", "--good", flags.good),
        ];
        for (slot, key, flag, model) in models {
            if let Some(model) = model {
                self.setting(&format!("models.{key}"), model.clone(), flag.to_owned());
                let old = self.models.remove(&slot);
                self.models.insert(slot, over(model, flag, old));
            }
        }
        if let Some(preset) = flags.preset {
            self.setting("guardrails.preset", preset.to_string(), "--preset".to_owned());
            self.preset = Some(over(preset, "--preset", self.preset.take()));
        }
    }

    /// Shows the defaults of what is not set, where a person would look for them.
    fn defaults(&mut self) {
        let defaults = [
            ("guardrails.preset", Preset::default().to_string()),
            ("run.max_steps", crate::limits::MAX_STEPS.to_string()),
        ];
        for (key, value) in defaults {
            let set = self.settings.iter().any(|setting| {
                setting.key == key && setting.note.as_deref().is_none_or(|note| !note.starts_with("ignored"))
            });
            if !set {
                self.settings.push(Setting { key: key.into(), value, origin: "default".into(), note: None });
            }
        }
        // Rules stay in the order in which they were read.
        let key = |setting: &Setting| setting.key.split('[').next().unwrap_or_default().to_owned();
        self.settings.sort_by_key(key);
    }

    fn setting(&mut self, key: &str, value: String, origin: String) {
        let mut setting = Setting { key: key.to_owned(), value, origin, note: None };
        self.replace(&mut setting);
        self.settings.push(setting);
    }
}

/// What a person who reads the settings must not take the enclosure for.
const ENCLOSED: &str = "kernels of eval run in it; shell, debug and language servers do not";

fn over<T>(value: T, origin: &str, old: Option<Sourced<T>>) -> Sourced<T> {
    let mut origins = Vec::new();
    if let Some(old) = old {
        origins.push(old.origin);
        origins.extend(old.over);
    }
    Sourced { value, origin: origin.to_owned(), over: origins }
}

/// A path in a file is relative to that file; `~/` is the person's home.
fn located(environment: &Environment, source: &Source, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), environment.home()) {
        (Some(below), Some(home)) => home.join(below),
        _ => source.directory().join(path),
    }
}

/// The value for people.
fn describe(value: &ItemValue) -> String {
    match value {
        ItemValue::Model(_, text)
        | ItemValue::ApiKeyVariable(_, text)
        | ItemValue::BaseUrl(_, text)
        | ItemValue::ReadPath(text)
        | ItemValue::WritePath(text)
        | ItemValue::InstructionFile(text) => text.clone(),
        ItemValue::ApiKey(_, secret) => secret.masked(),
        ItemValue::Context { tokens, .. } => tokens.to_string(),
        ItemValue::Images { images, .. } => images.to_string(),
        ItemValue::Prices { prices, .. } => {
            let mut text = format!("input {}, output {}", prices.input, prices.output);
            for (name, price) in [("cache_read", prices.cache_read), ("cache_write", prices.cache_write)] {
                if let Some(price) = price {
                    text.extend([", ", name, " ", &price.to_string()]);
                }
            }
            text
        }
        ItemValue::Preset(preset) => preset.to_string(),
        ItemValue::Rule(rule) => rule.in_words(),
        ItemValue::MaxSteps(number)
        | ItemValue::MaxOutputTokens(number)
        | ItemValue::ShellTimeout(number)
        | ItemValue::QuestionTimeout(number)
        | ItemValue::EvalTimeout(number)
        | ItemValue::EvalTimeoutMost(number) => number.to_string(),
        ItemValue::EnclosurePrefix(words) if words.is_empty() => "none".to_owned(),
        ItemValue::EnclosurePrefix(words) => words.join(" "),
        ItemValue::EnclosureVariable(_, text) => text.clone(),
        ItemValue::LanguageServer { change, .. } => change.in_words(),
    }
}
