//! What a person configures about providers.

use std::{fmt, time::Duration};

use crate::limits::{ATTEMPTS, FIRST_DELAY, LONGEST_DELAY};

/// A value and the place where a person set it, for messages such as "refused the key from the environment variable X".
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value.
    pub value: String,
    /// Where it was set, in words: `the environment variable ANTHROPIC_API_KEY`, `/home/me/.config/haft/haft.toml`.
    pub origin: String,
}

impl Setting {
    /// A value with its origin.
    pub fn new(value: impl Into<String>, origin: impl Into<String>) -> Self {
        Setting { value: value.into(), origin: origin.into() }
    }
}

/// Most settings here are keys: a debug print must not show them.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("value", &"(hidden)").field("origin", &self.origin).finish()
    }
}

/// What is known about one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The key.
    pub api_key: Option<Setting>,
    /// The base address, with or without `/v1` at its end.
    pub base_url: Option<Setting>,
    /// The size of the context in tokens, where the table of known models does not know better. Ollama is asked for a context of this
    /// size.
    pub context_tokens: Option<u32>,
    /// Whether the models of this provider take pictures; the table of known models decides when absent.
    pub images: Option<bool>,
}

/// What is known about all providers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `anthropic/…`
    pub anthropic: ProviderSettings,
    /// `openai/…`
    pub openai: ProviderSettings,
    /// `openai-chat/…`; what is absent here is taken from `openai`.
    pub openai_chat: ProviderSettings,
    /// `gemini/…`
    pub gemini: ProviderSettings,
    /// `ollama/…`
    pub ollama: ProviderSettings,
    /// A proxy for `https` addresses that are not on this machine. Plain `http` addresses are servers nearby and are reached directly.
    pub proxy: Option<Setting>,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// When to try again.
    pub retry: RetryPolicy,
}

impl Settings {
    /// What environment variables say (SPEC H2): `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
    /// `GEMINI_API_KEY`, `GEMINI_BASE_URL`, `OLLAMA_HOST`, and the usual `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` in either case.
    /// Empty variables count as absent.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let setting = |name: &str| {
            get(name).map(|value| Setting::new(value.trim(), format!("the environment variable {name}")))
        };
        let provider = |key: &str, base: &str| ProviderSettings {
            api_key: setting(key),
            base_url: setting(base),
            ..ProviderSettings::default()
        };
        Settings {
            anthropic: provider("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            openai: provider("OPENAI_API_KEY", "OPENAI_BASE_URL"),
            openai_chat: ProviderSettings::default(),
            gemini: provider("GEMINI_API_KEY", "GEMINI_BASE_URL"),
            ollama: ProviderSettings { base_url: setting("OLLAMA_HOST"), ..ProviderSettings::default() },
            proxy: ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].into_iter().find_map(setting),
            no_proxy: ["NO_PROXY", "no_proxy"].into_iter().find_map(get),
            retry: RetryPolicy::default(),
        }
    }
}

/// When a failed attempt is repeated: after `first`, then twice as long each time up to `longest`. A provider's `retry-after` goes
/// before that. There is no jitter: one person's requests do not come in herds, and a schedule that can be foretold can be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// The first wait.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy { attempts: ATTEMPTS, first: FIRST_DELAY, longest: LONGEST_DELAY }
    }
}

impl RetryPolicy {
    /// The wait after the attempt of this number (1 for the first).
    pub(crate) fn delay(&self, attempt: u32) -> Duration {
        let doubled = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let policy = RetryPolicy::default();
        let waits: Vec<u64> = (1..=8).map(|attempt| policy.delay(attempt).as_millis() as u64).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(policy.delay(u32::MAX), policy.longest);
    }

    #[test]
    fn a_key_is_not_in_a_debug_print() {
        let settings = Settings::from_variables(|name| match name {
            "OPENAI_API_KEY" => Some(" sk-very-secret \n".to_owned()),
            "OPENAI_BASE_URL" => Some("  ".to_owned()),
            _ => None,
        });
        assert_eq!(
            settings.openai,
            ProviderSettings {
                api_key: Some(Setting::new("sk-very-secret", "the environment variable OPENAI_API_KEY")),
                ..ProviderSettings::default()
            }
        );
        assert!(!format!("{settings:?}").contains("sk-very-secret"));
    }
}
