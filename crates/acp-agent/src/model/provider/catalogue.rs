//! A catalogue of well-known models. Other models can be used too, but less is known about them.
//!
//! The prices and context windows are those of 2026, for requests at the usual speed. They come from the provider's own
//! price list for Anthropic's newest models, and from other sources that quote the price lists for the rest. They give
//! users an estimate of what a session costs, not a bill.

use super::name::Provider;
use crate::model::step::TokenUsage;
use crate::model::thought::ThoughtLevel;

/// An entry of the catalogue: a well-known model with its context window and price.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogueEntry {
    /// The provider's name for the model, without a date.
    name: &'static str,
    /// The maximum combined number of tokens in a conversation and its response.
    pub(super) window: u64,
    pub(super) takes_images: bool,
    pub(super) price: Option<Price>,
}

/// The price of a model's tokens, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// US dollars per million input tokens.
    pub input: f64,
    /// US dollars per million tokens read from the provider's cache.
    pub cache_read: f64,
    /// US dollars per million tokens written to the provider's cache.
    pub cache_write: f64,
    /// US dollars per million output tokens.
    pub output: f64,
    /// The surcharge for long conversations: the number of input tokens above which it applies, and the factors by
    /// which it multiplies the input and output prices.
    pub long: Option<(u64, f64, f64)>,
}

impl Price {
    const fn new(input: f64, cache_read: f64, output: f64) -> Self {
        Self {
            input,
            cache_read,
            cache_write: input,
            output,
            long: None,
        }
    }

    /// Creates a price with Anthropic's cache rates: writing to the cache (for five minutes) costs a quarter more than
    /// other input, and reading from it costs a tenth.
    const fn anthropic(input: f64, output: f64) -> Self {
        let mut price = Self::new(input, input / 10.0, output);
        price.cache_write = input * 1.25;
        price
    }

    const fn with_long_context(mut self, from: u64, input: f64, output: f64) -> Self {
        self.long = Some((from, input, output));
        self
    }

    /// Returns the cost of `usage` in billionths of a US dollar. The cost is an integer so that large sums are exact.
    #[must_use]
    pub fn cost(&self, usage: &TokenUsage) -> u64 {
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let fresh = usage.input.saturating_sub(cached);
        let (input, output) = match self.long {
            Some((from, input, output)) if usage.input > from => (input, output),
            _ => (1.0, 1.0),
        };
        // One dollar per million tokens is a thousand billionths per token.
        let part = |tokens: u64, price: f64| tokens as f64 * price * 1000.0;
        let input = input
            * (part(fresh, self.input)
                + part(usage.cache_read, self.cache_read)
                + part(usage.cache_write, self.cache_write));
        (input + output * part(usage.output, self.output)).round() as u64
    }
}

/// The number of tokens that Google and OpenAI call a million: 2^20.
const MEBI_TOKENS: u64 = 1_048_576;

const fn entry(name: &'static str, window: u64, price: Option<Price>) -> CatalogueEntry {
    CatalogueEntry {
        name,
        window,
        takes_images: true,
        price,
    }
}

const ANTHROPIC_MODELS: &[CatalogueEntry] = &[
    entry(
        "claude-opus-5",
        1_000_000,
        Some(Price::anthropic(5.0, 25.0)),
    ),
    entry(
        "claude-opus-4-8",
        1_000_000,
        Some(Price::anthropic(5.0, 25.0)),
    ),
    entry(
        "claude-opus-4-7",
        1_000_000,
        Some(Price::anthropic(5.0, 25.0)),
    ),
    entry(
        "claude-opus-4-6",
        1_000_000,
        Some(Price::anthropic(5.0, 25.0)),
    ),
    entry(
        "claude-opus-4-5",
        200_000,
        Some(Price::anthropic(5.0, 25.0)),
    ),
    entry(
        "claude-opus-4-1",
        200_000,
        Some(Price::anthropic(15.0, 75.0)),
    ),
    entry("claude-opus-4", 200_000, Some(Price::anthropic(15.0, 75.0))),
    entry(
        "claude-sonnet-4-6",
        1_000_000,
        Some(Price::anthropic(3.0, 15.0)),
    ),
    entry(
        "claude-sonnet-4-5",
        200_000,
        Some(Price::anthropic(3.0, 15.0)),
    ),
    entry(
        "claude-sonnet-4",
        200_000,
        Some(Price::anthropic(3.0, 15.0)),
    ),
    entry(
        "claude-haiku-4-5",
        200_000,
        Some(Price::anthropic(1.0, 5.0)),
    ),
];

const OPENAI_MODELS: &[CatalogueEntry] = &[
    entry(
        "gpt-5.5",
        1_050_000,
        Some(Price::new(5.0, 0.5, 30.0).with_long_context(272_000, 2.0, 1.5)),
    ),
    entry(
        "gpt-5.4",
        1_050_000,
        Some(Price::new(2.5, 0.25, 15.0).with_long_context(272_000, 2.0, 1.5)),
    ),
    entry("gpt-5.4-mini", 400_000, Some(Price::new(0.75, 0.075, 4.5))),
    entry("gpt-5.4-nano", 400_000, Some(Price::new(0.2, 0.02, 1.25))),
    entry("gpt-5.2", 400_000, Some(Price::new(1.75, 0.175, 14.0))),
    entry("gpt-5.1", 400_000, Some(Price::new(1.25, 0.125, 10.0))),
    entry("gpt-5", 400_000, Some(Price::new(1.25, 0.125, 10.0))),
    entry("gpt-5-mini", 400_000, Some(Price::new(0.25, 0.025, 2.0))),
    entry("gpt-5-nano", 400_000, Some(Price::new(0.05, 0.005, 0.4))),
    entry("gpt-4.1", 1_047_576, Some(Price::new(2.0, 0.5, 8.0))),
    entry("gpt-4.1-mini", 1_047_576, Some(Price::new(0.4, 0.1, 1.6))),
    entry("gpt-4.1-nano", 1_047_576, Some(Price::new(0.1, 0.025, 0.4))),
    entry("gpt-4o", 128_000, Some(Price::new(2.5, 1.25, 10.0))),
    entry("gpt-4o-mini", 128_000, Some(Price::new(0.15, 0.075, 0.6))),
    entry("o3", 200_000, Some(Price::new(2.0, 0.5, 8.0))),
    entry("o4-mini", 200_000, Some(Price::new(1.1, 0.275, 4.4))),
];

const GEMINI_MODELS: &[CatalogueEntry] = &[
    entry(
        "gemini-3.1-pro",
        MEBI_TOKENS,
        Some(Price::new(2.0, 0.2, 12.0).with_long_context(200_000, 2.0, 1.5)),
    ),
    entry(
        "gemini-3-flash",
        MEBI_TOKENS,
        Some(Price::new(0.5, 0.05, 3.0)),
    ),
    entry(
        "gemini-2.5-pro",
        MEBI_TOKENS,
        Some(Price::new(1.25, 0.125, 10.0).with_long_context(200_000, 2.0, 1.5)),
    ),
    entry(
        "gemini-2.5-flash",
        MEBI_TOKENS,
        Some(Price::new(0.3, 0.03, 2.5)),
    ),
    entry(
        "gemini-2.5-flash-lite",
        MEBI_TOKENS,
        Some(Price::new(0.1, 0.01, 0.4)),
    ),
];

/// Returns the names of the models that are offered to every user with a key for the provider. The first one is the
/// default: a good model that is not the most expensive.
pub(crate) fn offered_models(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Anthropic => &[
            "claude-sonnet-4-6",
            "claude-opus-5",
            "claude-opus-4-8",
            "claude-haiku-4-5",
        ],
        Provider::OpenAi => &[
            "gpt-5.4",
            "gpt-5.5",
            "gpt-5.4-mini",
            "gpt-5.4-nano",
            "gpt-5.2",
            "gpt-4.1",
        ],
        Provider::Gemini => &[
            "gemini-2.5-pro",
            "gemini-3.1-pro-preview",
            "gemini-3-flash-preview",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
        ],
    }
}

/// The thought levels that most thinking models support.
pub(super) const COMMON_THOUGHT_LEVELS: [ThoughtLevel; 4] = [
    ThoughtLevel::Off,
    ThoughtLevel::Low,
    ThoughtLevel::Medium,
    ThoughtLevel::High,
];

/// Returns the thought levels of the model with this name. An unknown model gets none, because many servers reject
/// requests that set a level.
pub(super) fn thought_levels(provider: Provider, name: &str) -> &'static [ThoughtLevel] {
    let Some(known) = find_entry(provider, name) else {
        return &[];
    };
    let never_off = COMMON_THOUGHT_LEVELS
        .split_first()
        .map_or(&[][..], |(_, rest)| rest);
    match (provider, known.name) {
        (
            Provider::Anthropic,
            "claude-opus-5" | "claude-opus-4-8" | "claude-opus-4-7" | "claude-opus-4-6"
            | "claude-sonnet-4-6",
        )
        | (Provider::OpenAi, "gpt-5.5" | "gpt-5.4" | "gpt-5.4-mini" | "gpt-5.4-nano" | "gpt-5.2") => {
            &ThoughtLevel::ALL
        }
        (Provider::OpenAi, name) if name.starts_with("gpt-4") => &[],
        (Provider::Anthropic, _)
        | (Provider::OpenAi, "gpt-5.1")
        | (Provider::Gemini, "gemini-2.5-flash" | "gemini-2.5-flash-lite") => {
            &COMMON_THOUGHT_LEVELS
        }
        (Provider::OpenAi | Provider::Gemini, _) => never_off,
    }
}

/// Returns the catalogue entry of the model with this name.
pub(super) fn find_entry(provider: Provider, name: &str) -> Option<CatalogueEntry> {
    let models = match provider {
        Provider::Anthropic => ANTHROPIC_MODELS,
        Provider::OpenAi => OPENAI_MODELS,
        Provider::Gemini => GEMINI_MODELS,
    };
    let same =
        |known: &&CatalogueEntry| name.strip_prefix(known.name).is_some_and(is_release_suffix);
    models.iter().find(same).copied()
}

/// Returns `true` if `rest`, the part after a known model's name, marks a release of that model: nothing, a date,
/// `-latest` or `-preview`. Any other number or word means that it is a different model.
fn is_release_suffix(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix('-') else {
        return rest.is_empty();
    };
    let date = rest.bytes().take_while(u8::is_ascii_digit).count() >= 4;
    date || rest == "latest" || rest == "preview" || rest.starts_with("preview-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_found_with_and_without_a_date_suffix() {
        let name = |provider, name| find_entry(provider, name).map(|known| known.name);
        for (asked, found) in [
            ("claude-sonnet-4-20250514", Some("claude-sonnet-4")),
            ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("claude-sonnet-4-9", None),
            ("claude-opus-4-5", Some("claude-opus-4-5")),
        ] {
            assert_eq!(name(Provider::Anthropic, asked), found, "{asked}");
        }
        assert_eq!(name(Provider::OpenAi, "gpt-5-2025-08-07"), Some("gpt-5"));
        assert_eq!(name(Provider::OpenAi, "gpt-5-mini"), Some("gpt-5-mini"));
        assert_eq!(name(Provider::OpenAi, "gpt-5-codex"), None);
        assert_eq!(
            name(Provider::Gemini, "gemini-3.1-pro-preview"),
            Some("gemini-3.1-pro")
        );
    }

    #[test]
    fn offered_models_are_in_the_catalogue() {
        for provider in Provider::ALL {
            for name in offered_models(provider) {
                assert!(find_entry(provider, name).is_some(), "{name}");
            }
        }
        let levels = |provider, name| thought_levels(provider, name).len();
        assert_eq!(levels(Provider::OpenAi, "gpt-4.1"), 0);
        assert_eq!(levels(Provider::OpenAi, "qwen3:8b"), 0);
        assert_eq!(levels(Provider::OpenAi, "o3"), 3);
        assert_eq!(levels(Provider::Anthropic, "claude-haiku-4-5"), 4);
        assert_eq!(levels(Provider::Anthropic, "claude-opus-5"), 5);
    }

    #[test]
    fn cost_adds_up_each_token_kind() {
        let price = Price::anthropic(3.0, 15.0);
        let usage = TokenUsage {
            input: 1_000_000,
            output: 100_000,
            cache_read: 500_000,
            cache_write: 100_000,
            ..TokenUsage::default()
        };
        // Uncached input 1.2, cache read 0.15, cache write 0.375, output 1.5.
        assert_eq!(price.cost(&usage), 3_225_000_000);
        let long = Price::new(2.0, 0.2, 12.0).with_long_context(200_000, 2.0, 1.5);
        let usage = TokenUsage {
            input: 300_000,
            output: 1000,
            ..TokenUsage::default()
        };
        assert_eq!(long.cost(&usage), 1_218_000_000);
    }
}
