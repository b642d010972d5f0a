//! The bundled agent's language models and defaults, from `[agent]` in the configuration and from the command line.

use std::fmt::Display;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use acp_agent::{
    KeyFile, KeySources, Mode, ModelChoices, ModelConfig, ModelError, Provider, ProviderModel,
    Secret, ThoughtLevel,
};
use acp_config::{ConfigError, ModelSettings, Spanned, UserConfig, paths};
use acp_host::process_secrets;

use crate::args::agent::ModelArgs;
use crate::exit::CommandExit;

/// The model name that means "no model".
const OFFLINE_MODEL: &str = "offline";

/// The configuration of the bundled agent. The command line takes precedence.
#[derive(Debug, Default)]
pub(crate) struct BundledAgentConfig {
    model: Option<ModelArgument>,
    thought_level: Option<ThoughtLevel>,
    pub(crate) mode: Option<Mode>,
    pub(crate) max_requests: Option<NonZeroUsize>,
    /// The configured models, any of which can be selected in a session.
    named_models: Vec<ProviderModel>,
}

/// A model name, or `offline`.
#[expect(clippy::large_enum_variant, reason = "only one value exists at a time")]
#[derive(Debug, Clone)]
enum ModelArgument {
    Offline,
    Model(ProviderModel),
}

impl FromStr for ModelArgument {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            OFFLINE_MODEL => Ok(Self::Offline),
            name => name.parse().map(Self::Model),
        }
    }
}

/// Parses a setting. An error gives the setting's line in the configuration.
fn parse_setting<T: FromStr<Err: Display>>(
    config: &UserConfig,
    text: Option<&Spanned<String>>,
) -> Result<Option<T>, ConfigError> {
    let parse = |text: &Spanned<String>| {
        let parsed = text.get_ref().parse();
        parsed.map_err(|e: T::Err| config.value_error(text, e))
    };
    text.map(parse).transpose()
}

/// Parses a model in the configuration.
fn parse_model(
    config: &UserConfig,
    written: &Spanned<ModelSettings>,
) -> Result<ProviderModel, ConfigError> {
    let settings = written.get_ref();
    let mut model = ProviderModel::from_name(&settings.provider, settings.name.clone())
        .map_err(|e| config.value_error(written, e))?;
    model.base_url.clone_from(&settings.base_url);
    model.thought = parse_setting(config, settings.thought_level.as_ref())?;
    model.context_window = settings.context_window.map(NonZeroU64::get);
    model.images = settings.images;
    model.key = settings.key_env.as_deref().and_then(key_from_variable);
    model.key_variable.clone_from(&settings.key_env);
    model.check().map_err(|e| config.value_error(written, e))?;
    Ok(model)
}

/// Returns the key in an environment variable of this process. An empty variable counts as unset.
fn key_from_variable(name: &str) -> Option<Secret> {
    let key = process_secrets::variable(name).and_then(|value| value.into_string().ok())?;
    (!key.trim().is_empty()).then(|| Secret::new(key))
}

impl BundledAgentConfig {
    /// Reads the settings of the bundled agent from the configuration.
    ///
    /// # Errors
    /// A model, mode or thought level is invalid, or the settings contradict each other.
    pub(crate) fn from_config(config: &UserConfig) -> Result<Self, ConfigError> {
        let Some(written) = &config.agent else {
            return Ok(Self::default());
        };
        let settings = written.get_ref();
        let thought_level = parse_setting(config, settings.thought_level.as_ref())?;
        let mut model = parse_setting(config, settings.model.as_ref())?;
        match &mut model {
            Some(ModelArgument::Model(model)) => {
                model.base_url.clone_from(&settings.base_url);
                model.context_window = settings.context_window.map(NonZeroU64::get);
                // A user who sets both knows that the model at this URL supports thought levels.
                model.thought = thought_level.filter(|_| model.base_url.is_some());
                model.check().map_err(|e| config.value_error(written, e))?;
            }
            _ if settings.base_url.is_some() => {
                let what = "`base_url` requires `model`";
                return Err(config.value_error(written, what));
            }
            _ if settings.context_window.is_some() => {
                let what = "`context_window` requires `model`";
                return Err(config.value_error(written, what));
            }
            _ => {}
        }
        let models = settings
            .models
            .iter()
            .map(|model| parse_model(config, model));
        Ok(Self {
            model,
            thought_level,
            mode: parse_setting(config, settings.mode.as_ref())?,
            max_requests: settings.max_requests,
            named_models: models.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the available models, with API keys from the environment and the user's key file.
    ///
    /// # Errors
    /// The given model is invalid.
    pub(crate) fn model_config(&self, typed: ModelArgs) -> Result<ModelConfig, CommandExit> {
        let mut named = self.named_models.clone();
        let first = match self.first_model(typed)? {
            Some(ModelArgument::Offline) => return Ok(ModelConfig::Offline),
            Some(ModelArgument::Model(model)) => Some(model),
            None => None,
        };
        // A configured model can still be selected when another one was given.
        if let Some(ModelArgument::Model(model)) = &self.model {
            named.insert(0, with_key(model.clone()));
        }
        let mut keys = KeySources::new();
        for provider in Provider::ALL {
            if let Some(key) = key_from_variable(provider.key_variable()) {
                keys = keys.with_key(provider, key);
            }
        }
        if let Some(file) = key_file() {
            keys = keys.with_file(file);
        }
        let mut choices = ModelChoices::new(keys)
            .with_model(named)
            .thought_level(self.thought_level);
        choices.default = first;
        Ok(ModelConfig::Choices(Box::new(choices)))
    }

    /// Returns the initial model for sessions: the one on the command line if given, or else the configured one.
    pub(crate) fn initial_model(
        &self,
        typed: ModelArgs,
    ) -> Result<Option<ProviderModel>, CommandExit> {
        Ok(match self.first_model(typed)? {
            Some(ModelArgument::Model(model)) => Some(model),
            _ => None,
        })
    }

    fn first_model(&self, typed: ModelArgs) -> Result<Option<ModelArgument>, CommandExit> {
        let wanted = match typed.name.as_deref() {
            None => self.model.clone(),
            Some(name) => {
                let usage = |e: ModelError| CommandExit::usage(format!("--model: {e}"));
                let mut wanted: ModelArgument = name.parse().map_err(usage)?;
                if let ModelArgument::Model(model) = &mut wanted {
                    model.base_url = typed.base_url;
                    model.context_window = typed.context_window;
                    model.check().map_err(usage)?;
                }
                Some(wanted)
            }
        };
        Ok(wanted.map(|wanted| match wanted {
            ModelArgument::Offline => ModelArgument::Offline,
            ModelArgument::Model(model) => ModelArgument::Model(self.resolve_model_name(model)),
        }))
    }

    /// Returns the configured model with the same name. If there is none, or if `model` has its own base URL, returns
    /// `model` itself.
    fn resolve_model_name(&self, model: ProviderModel) -> ProviderModel {
        let same = |named: &&ProviderModel| named.to_string() == model.to_string();
        match self.named_models.iter().find(same) {
            Some(named) if model.base_url.is_none() => {
                let mut known = named.clone();
                known.context_window = model.context_window.or(known.context_window);
                known
            }
            _ => with_key(model),
        }
    }
}

/// Adds the API key from the environment to a model that has its own base URL.
fn with_key(mut model: ProviderModel) -> ProviderModel {
    if model.base_url.is_some() {
        model.key = key_from_variable(model.provider.key_variable());
    }
    model
}

/// Returns the file that API keys are stored in.
pub(crate) fn key_file() -> Option<KeyFile> {
    Some(KeyFile::new(paths::state_dir()?.join("keys.json")))
}
