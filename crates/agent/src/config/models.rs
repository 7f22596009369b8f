use haft_model::{ProviderSettings, Settings};

use super::{Config, ProviderName};

impl Config {
    /// What the model crate needs to open the run's model.
    pub fn model_settings(&self) -> Settings {
        self.model_settings_for(self.model().unwrap_or_default())
    }

    /// What the model crate needs to open `model`: keys, addresses, proxies, and what its profile says about its size and pictures.
    pub fn model_settings_for(&self, model: &str) -> Settings {
        let variables = self.variables.as_ref();
        let mut settings = Settings::from_variables(|name| variables?.get(name).map(str::to_owned));
        for name in ProviderName::ALL {
            let config = self.provider(name);
            let provider = provider(&mut settings, name);
            if let Some(key) = config.api_key {
                provider.api_key = Some(haft_model::Setting::new(key.value.expose(), in_words(&key.origin)));
            }
            if let Some(url) = config.base_url {
                provider.base_url = Some(haft_model::Setting::new(url.value, in_words(&url.origin)));
            }
        }
        if let Some((name, _)) = model.split_once('/')
            && let Ok(name) = name.parse()
            && let Some(profile) = self.model_profile(model)
        {
            let provider = provider(&mut settings, name);
            provider.context_tokens = profile.context_tokens.or(provider.context_tokens);
            provider.images = profile.images.or(provider.images);
        }
        settings
    }
}

fn provider(settings: &mut Settings, name: ProviderName) -> &mut ProviderSettings {
    match name {
        ProviderName::Anthropic => &mut settings.anthropic,
        ProviderName::Openai => &mut settings.openai,
        ProviderName::OpenaiChat => &mut settings.openai_chat,
        ProviderName::Gemini => &mut settings.gemini,
        ProviderName::Ollama => &mut settings.ollama,
    }
}

/// The model crate's messages go on after "from".
fn in_words(origin: &str) -> String {
    if origin.starts_with("environment variable") { format!("the {origin}") } else { origin.to_owned() }
}
