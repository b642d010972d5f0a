//! `[agent]` in `config.toml`: the settings of the bundled agent.
//!
//! The agent itself knows which models, modes and thought levels are valid and can be combined. The position of each
//! value in the file is stored for the agent's error messages.

use std::num::{NonZeroU64, NonZeroUsize};

use serde::Deserialize;
use toml::Spanned;

/// The settings of the bundled agent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BundledSettings {
    /// The model that sessions start with.
    pub model: Option<Spanned<String>>,
    /// The base URL of the model's server, if it differs from the provider's.
    pub base_url: Option<String>,
    /// The size of the model's context window, in tokens.
    pub context_window: Option<NonZeroU64>,
    /// The thought level that sessions start with.
    pub thought_level: Option<Spanned<String>>,
    /// The mode in which sessions start.
    pub mode: Option<Spanned<String>>,
    /// The maximum number of model requests per turn.
    pub max_requests: Option<NonZeroUsize>,
    /// The models in `[[agent.models]]`, which are available in addition to the providers' own.
    #[serde(default)]
    pub models: Vec<Spanned<ModelSettings>>,
}

/// A model added by the user, which can be selected in a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelSettings {
    /// The provider that serves the model, or whose wire format the model's server uses.
    pub provider: String,
    /// The provider's name for the model.
    pub name: String,
    /// The base URL of the server, if it differs from the provider's.
    pub base_url: Option<String>,
    /// The environment variable that contains the API key.
    pub key_env: Option<String>,
    /// The thought level to use with the model.
    pub thought_level: Option<Spanned<String>>,
    /// The size of the model's context window, in tokens.
    pub context_window: Option<NonZeroU64>,
    /// Whether the model accepts images.
    pub images: Option<bool>,
}
