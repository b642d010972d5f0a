//! Which model an agent has, or which ones there are to choose from, as its user has it.

use std::path::PathBuf;

use crate::keys::KeySources;
use crate::model::provider::config::ProviderModel;
use crate::model::thought::ThoughtLevel;

/// Which model an agent has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelConfig {
    /// No AI: typed commands only. See [`OfflineModel`](crate::OfflineModel).
    #[default]
    Offline,
    /// Turns from a file, for tests. See [`ScriptedModel`](crate::ScriptedModel).
    Scripted(PathBuf),
    /// A language model of a provider, or at any address that speaks as one of them.
    Provider(Box<ProviderModel>),
    /// Whatever language models there are keys for, and those that are named; each session chooses.
    Choices(Box<ModelChoices>),
}

/// Which language models there are to choose from, beside the well-known ones of each provider for which there is a
/// key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelChoices {
    /// The one that a session has if it has chosen none. Without it that is the first of all there are.
    pub default: Option<ProviderModel>,
    /// Further ones. Those that need a key and have none are not offered.
    pub named_models: Vec<ProviderModel>,
    /// Where keys are.
    pub keys: KeySources,
    /// How much a model is to think, where it can be told and a session does not say it.
    pub thought: Option<ThoughtLevel>,
}

impl ModelChoices {
    /// No models but those of providers for which there is a key.
    #[must_use]
    pub fn new(keys: KeySources) -> Self {
        Self {
            keys,
            ..Self::default()
        }
    }

    /// Sets the model of sessions that have chosen none.
    #[must_use]
    pub fn default_model(mut self, model: ProviderModel) -> Self {
        self.default = Some(model);
        self
    }

    /// Adds further models.
    #[must_use]
    pub fn with_model(mut self, models: impl IntoIterator<Item = ProviderModel>) -> Self {
        self.named_models.extend(models);
        self
    }

    /// Sets how much a model is to think, where it can be told and a session does not say it.
    #[must_use]
    pub fn thought_level(mut self, level: Option<ThoughtLevel>) -> Self {
        self.thought = level;
        self
    }
}
