//! What is known about models: limits and prices. A table that was checked against the providers' pages in November 2026; what is
//! not in it is unknown, and said to be.

use crate::{Prices, Profile, Usage, settings::ProviderSettings};

impl Prices {
    /// US dollars for one answer.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let per_million = usage.input_tokens as f64 * self.input
            + usage.cache_read_tokens as f64 * self.cache_read
            + usage.cache_write_tokens as f64 * self.cache_write
            + usage.output_tokens as f64 * self.output;
        per_million / 1_000_000.0
    }
}

/// Name without a date, then input, cache read, cache write (5 minutes), output. Models whose price depends on the length of the
/// prompt (`claude-haiku-5-5`, `gemini-2.5-pro`, `gpt-5.4` …) are left out: a sum would look right and be wrong.
const PRICES: &[(&str, [f64; 4])] = &[
    ("claude-fable-5-1", [10.0, 0.25, 12.5, 50.0]),
    ("claude-fable-5", [10.0, 1.0, 12.5, 50.0]),
    ("claude-opus-5-5", [4.0, 0.2, 5.0, 20.0]),
    ("claude-opus-5", [5.0, 0.5, 6.25, 25.0]),
    ("claude-opus-4-8", [5.0, 0.5, 6.25, 25.0]),
    ("claude-opus-4-7", [5.0, 0.5, 6.25, 25.0]),
    ("claude-opus-4-6", [5.0, 0.5, 6.25, 25.0]),
    ("claude-opus-4-5", [5.0, 0.5, 6.25, 25.0]),
    ("claude-opus-4-1", [15.0, 1.5, 18.75, 75.0]),
    ("claude-opus-4", [15.0, 1.5, 18.75, 75.0]),
    ("claude-sonnet-5-5", [2.0, 0.1, 2.5, 10.0]),
    ("claude-sonnet-5", [2.0, 0.2, 2.5, 10.0]),
    ("claude-sonnet-4-6", [3.0, 0.3, 3.75, 15.0]),
    ("claude-sonnet-4-5", [3.0, 0.3, 3.75, 15.0]),
    ("claude-sonnet-4", [3.0, 0.3, 3.75, 15.0]),
    ("claude-3-7-sonnet", [3.0, 0.3, 3.75, 15.0]),
    ("claude-haiku-4-5", [1.0, 0.1, 1.25, 5.0]),
    ("claude-3-5-haiku", [0.8, 0.08, 1.0, 4.0]),
    ("gpt-5", [1.25, 0.125, 1.25, 10.0]),
    ("gpt-5.1", [1.25, 0.125, 1.25, 10.0]),
    ("gpt-5-mini", [0.25, 0.025, 0.25, 2.0]),
    ("gpt-5-nano", [0.05, 0.005, 0.05, 0.4]),
    ("gpt-4.1", [2.0, 0.5, 2.0, 8.0]),
    ("gpt-4.1-mini", [0.4, 0.1, 0.4, 1.6]),
    ("gpt-4.1-nano", [0.1, 0.025, 0.1, 0.4]),
    ("gpt-4o", [2.5, 1.25, 2.5, 10.0]),
    ("gpt-4o-mini", [0.15, 0.075, 0.15, 0.6]),
    ("o3", [2.0, 0.5, 2.0, 8.0]),
    ("o4-mini", [1.1, 0.275, 1.1, 4.4]),
];

/// Beginning of the name and the size of the context; the first that fits counts.
const CONTEXTS: &[(&str, u32)] = &[
    ("claude-fable", 1_000_000),
    ("claude-opus-5", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("claude-haiku-5", 1_000_000),
    ("claude-", 200_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("gemini-", 1_048_576),
];

/// Where nothing is known: a size that hosted models reach. A smaller one shows itself by an error, which leads to compaction.
const UNKNOWN_CONTEXT: u32 = 128_000;

/// What Ollama is asked for. Its own default of a few thousand tokens does not hold an agent's instructions and one file.
const OLLAMA_CONTEXT: u32 = 32_768;

/// Names of models that take no pictures although their provider's others do.
const BLIND: &[&str] = &["gpt-3.5", "o1-mini", "o3-mini", "claude-2"];

/// Parts of names by which models on other servers are known to take pictures.
const SEEING: &[&str] = &[
    "claude",
    "gpt-4o",
    "gpt-4.1",
    "gpt-5",
    "gemini",
    "vision",
    "-vl",
    "2.5vl",
    "3-vl",
    "llava",
    "pixtral",
    "gemma3",
    "gemma-3",
    "gemma-4",
    "llama4",
    "llama-4",
    "minicpm-v",
    "moondream",
    "mistral-small3",
    "mistral-small-3",
];

/// `official` says that the address is the provider's own: elsewhere other prices hold.
pub(crate) fn profile(provider: &str, name: &str, official: bool, settings: &ProviderSettings) -> Profile {
    let known = CONTEXTS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, size)| *size);
    let context_tokens = settings.context_tokens.unwrap_or_else(|| match provider {
        "ollama" => OLLAMA_CONTEXT,
        _ => known.unwrap_or(UNKNOWN_CONTEXT),
    });
    let images = settings.images.unwrap_or_else(|| {
        let lower = name.to_ascii_lowercase();
        let provider_sees = official && matches!(provider, "anthropic" | "openai" | "openai-chat" | "gemini");
        if provider_sees || matches!(provider, "anthropic" | "openai" | "gemini") {
            !BLIND.iter().any(|prefix| lower.starts_with(prefix))
        } else {
            SEEING.iter().any(|part| lower.contains(part))
        }
    });
    let bare = without_date(name);
    let prices = PRICES.iter().find(|(key, _)| official && *key == bare).map(|(_, price)| Prices {
        input: price[0],
        cache_read: price[1],
        cache_write: price[2],
        output: price[3],
    });
    Profile { context_tokens, prices, images }
}

/// `claude-sonnet-4-5-20250929`, `gpt-5-2025-08-07` and `claude-3-7-sonnet-latest` without their ends.
fn without_date(name: &str) -> &str {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((bare, end)) = name.rsplit_once('-') {
        if digits(end, 8) || end == "latest" {
            return bare;
        }
        if digits(end, 2)
            && let Some((shorter, month)) = bare.rsplit_once('-')
            && digits(month, 2)
            && let Some((shortest, year)) = shorter.rsplit_once('-')
            && digits(year, 4)
        {
            return shortest;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn what_is_not_known_is_unknown() {
        let none = ProviderSettings::default();
        let prices = |name: &str| profile("openai", name, true, &none).prices.map(|prices| prices.output);
        assert_eq!(prices("gpt-5"), Some(10.0));
        assert_eq!(prices("gpt-5-2025-08-07"), Some(10.0));
        assert_eq!(prices("gpt-5-mini"), Some(2.0));
        assert_eq!(prices("gpt-5-mystery"), None);
        let dated = profile("anthropic", "claude-sonnet-4-5-20250929", true, &none);
        assert_eq!((dated.context_tokens, dated.images), (200_000, true));
        assert_eq!(dated.prices.map(|prices| prices.output), Some(15.0));
        assert_eq!(profile("anthropic", "claude-sonnet-4-5", false, &none).prices, None);
        assert_eq!(
            profile("openai-chat", "qwen3-coder", false, &none),
            Profile { context_tokens: UNKNOWN_CONTEXT, prices: None, images: false }
        );
        let told = ProviderSettings { context_tokens: Some(9_000), images: Some(true), ..none };
        assert_eq!(
            profile("ollama", "qwen3", false, &told),
            Profile { context_tokens: 9_000, prices: None, images: true }
        );
    }

    #[test]
    fn cost_counts_every_kind_of_token() {
        let prices = Prices { input: 3.0, cache_read: 0.3, cache_write: 3.75, output: 15.0 };
        let usage = Usage {
            input_tokens: 1_000_000,
            cache_read_tokens: 1_000_000,
            cache_write_tokens: 1_000_000,
            output_tokens: 100_000,
        };
        assert!((prices.cost(&usage) - 8.55).abs() < 1e-9);
    }
}
