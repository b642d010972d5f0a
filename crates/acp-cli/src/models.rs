//! Which language models the bundled agent has, and how it begins: what `[agent]` of the configuration means to it, and
//! what is typed.

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

/// The name of the model that is none.
const OFFLINE: &str = "offline";

/// What the user has configured of the bundled agent, understood. What is typed at its command line goes before it.
#[derive(Debug, Default)]
pub(crate) struct BundledAgentConfig {
    model: Option<ModelArgument>,
    thought_level: Option<ThoughtLevel>,
    pub(crate) mode: Option<Mode>,
    pub(crate) max_requests: Option<NonZeroUsize>,
    /// Those that the user names, to be chosen in a session.
    named_models: Vec<ProviderModel>,
}

/// What can stand where a model is named.
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
#[derive(Debug, Clone)]
enum ModelArgument {
    Offline,
    Model(ProviderModel),
}

impl FromStr for ModelArgument {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            OFFLINE => Ok(Self::Offline),
            name => name.parse().map(Self::Model),
        }
    }
}

/// What a text of the configuration means. What is wrong with it is said with its line.
fn parse_setting<T: FromStr<Err: Display>>(
    config: &UserConfig,
    text: Option<&Spanned<String>>,
) -> Result<Option<T>, ConfigError> {
    let parse = |text: &Spanned<String>| {
        let parsed = text.get_ref().parse();
        parsed.map_err(|e: T::Err| config.error_in(text, e))
    };
    text.map(parse).transpose()
}

/// A model that the user names.
fn parse_model(
    config: &UserConfig,
    written: &Spanned<ModelSettings>,
) -> Result<ProviderModel, ConfigError> {
    let settings = written.get_ref();
    let mut model = ProviderModel::from_name(&settings.provider, settings.name.clone())
        .map_err(|e| config.error_in(written, e))?;
    model.base_url.clone_from(&settings.base_url);
    model.thought = parse_setting(config, settings.thought_level.as_ref())?;
    model.context_window = settings.context_window.map(NonZeroU64::get);
    model.images = settings.images;
    model.key = settings.key_env.as_deref().and_then(key_from_variable);
    model.key_variable.clone_from(&settings.key_env);
    model.check().map_err(|e| config.error_in(written, e))?;
    Ok(model)
}

/// A key in a variable of this process. An empty one is how some take a variable back.
fn key_from_variable(name: &str) -> Option<Secret> {
    let key = process_secrets::variable(name).and_then(|value| value.into_string().ok())?;
    (!key.trim().is_empty()).then(|| Secret::new(key))
}

impl BundledAgentConfig {
    /// What the configuration says of them.
    ///
    /// # Errors
    /// What is said is no model, mode or thought level, or does not go together.
    pub(crate) fn of(config: &UserConfig) -> Result<Self, ConfigError> {
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
                // Whoever says both knows that it can be told.
                model.thought = thought_level.filter(|_| model.base_url.is_some());
                model.check().map_err(|e| config.error_in(written, e))?;
            }
            _ if settings.base_url.is_some() => {
                let what = "`base_url` requires `model`";
                return Err(config.error_in(written, what));
            }
            _ if settings.context_window.is_some() => {
                let what = "`context_window` requires `model`";
                return Err(config.error_in(written, what));
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

    /// The models there are, with the keys that the environment and the user's key file have.
    ///
    /// # Errors
    /// What was typed is no model.
    pub(crate) fn choice(&self, typed: ModelArgs) -> Result<ModelConfig, CommandExit> {
        let mut named = self.named_models.clone();
        let first = match self.first_model(typed)? {
            Some(ModelArgument::Offline) => return Ok(ModelConfig::Offline),
            Some(ModelArgument::Model(model)) => Some(model),
            None => None,
        };
        // What is configured can still be chosen where another was typed.
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
            keys = keys.file(file);
        }
        let mut choices = ModelChoices::new(keys)
            .with_model(named)
            .thought_level(self.thought_level);
        choices.default = first;
        Ok(ModelConfig::Choices(Box::new(choices)))
    }

    /// The model that sessions begin with, if any is named: the one that was typed, or else the one that is
    /// configured.
    pub(crate) fn model(&self, typed: ModelArgs) -> Result<Option<ProviderModel>, CommandExit> {
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
            ModelArgument::Model(model) => ModelArgument::Model(self.resolve_named(model)),
        }))
    }

    /// One of the models that the user has named, if it is that.
    fn resolve_named(&self, model: ProviderModel) -> ProviderModel {
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

/// A model at an address that is typed or configured gets its provider's key of the environment.
fn with_key(mut model: ProviderModel) -> ProviderModel {
    if model.base_url.is_some() {
        model.key = key_from_variable(model.provider.key_variable());
    }
    model
}

/// Where keys are that were typed.
pub(crate) fn key_file() -> Option<KeyFile> {
    Some(KeyFile::new(paths::state_dir()?.join("keys.json")))
}
