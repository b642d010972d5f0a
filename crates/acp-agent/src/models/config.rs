//! Configures the models of an agent.

use std::path::PathBuf;

use crate::keys::KeySources;
use crate::model::provider::config::ProviderModel;
use crate::model::thought::ThoughtLevel;

/// The configuration of an agent's model or models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelConfig {
    /// No language model. The agent only runs commands that the user types. See [`OfflineModel`](crate::OfflineModel).
    #[default]
    Offline,
    /// Responses read from a file, for tests. See [`ScriptedModel`](crate::ScriptedModel).
    Scripted(PathBuf),
    /// A provider's language model, or a model on any server that uses the same wire format.
    Provider(Box<ProviderModel>),
    /// A choice of models for each session: the configured ones, and those of providers that have a key.
    Choices(Box<ModelChoices>),
}

/// The models that sessions can choose from, in addition to the well-known models of each provider that has a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelChoices {
    /// The model of sessions that have not chosen one. `None` means the first available model.
    pub default: Option<ProviderModel>,
    /// Additional models. Models that require a key but have none are not offered.
    pub named_models: Vec<ProviderModel>,
    /// The sources from which keys are read.
    pub keys: KeySources,
    /// The thought level of sessions that have not chosen one. It applies to models that support thought levels.
    pub thought: Option<ThoughtLevel>,
}

impl ModelChoices {
    /// Creates a choice that contains only the models of providers that have a key.
    #[must_use]
    pub fn new(keys: KeySources) -> Self {
        Self {
            keys,
            ..Self::default()
        }
    }

    /// Sets the model of sessions that have not chosen one.
    #[must_use]
    pub fn default_model(mut self, model: ProviderModel) -> Self {
        self.default = Some(model);
        self
    }

    /// Adds models to choose from.
    #[must_use]
    pub fn with_model(mut self, models: impl IntoIterator<Item = ProviderModel>) -> Self {
        self.named_models.extend(models);
        self
    }

    /// Sets the thought level of sessions that have not chosen one. It applies to models that support thought levels.
    #[must_use]
    pub fn thought_level(mut self, level: Option<ThoughtLevel>) -> Self {
        self.thought = level;
        self
    }
}
