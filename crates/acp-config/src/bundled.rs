//! `[agent]` in `config.toml`: the bundled agent, as it is written. What a model, a mode or a thought level is called, and
//! what goes together, the agent knows; where it is said is kept, for what is wrong with it.

use std::num::{NonZeroU64, NonZeroUsize};

use serde::Deserialize;
use toml::Spanned;

/// What is configured of the bundled agent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BundledSettings {
    /// The model that sessions begin with.
    pub model: Option<Spanned<String>>,
    /// Where it is, if not at its provider's.
    pub base_url: Option<String>,
    /// How many tokens fit into its window.
    pub context_window: Option<NonZeroU64>,
    /// How much it thinks.
    pub thought_level: Option<Spanned<String>>,
    /// The mode in which sessions begin.
    pub mode: Option<Spanned<String>>,
    /// How often a model is asked in a turn at most.
    pub max_requests: Option<NonZeroUsize>,
    /// `[[agent.models]]`: models that can be chosen beside those of providers.
    #[serde(default)]
    pub models: Vec<Spanned<ModelSettings>>,
}

/// A model that the user names, to be chosen in a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelSettings {
    /// Whose it is, or whom its server speaks like.
    pub provider: String,
    /// What it is called there.
    pub name: String,
    /// Where it is, if not at its provider's.
    pub base_url: Option<String>,
    /// The variable that has its key.
    pub key_env: Option<String>,
    /// How much it thinks.
    pub thought_level: Option<Spanned<String>>,
    /// How many tokens fit into its window.
    pub context_window: Option<NonZeroU64>,
    /// Whether it takes images.
    pub images: Option<bool>,
}
