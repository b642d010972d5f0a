//! Which language models the bundled agent has, and how it begins: what `[agent]` of the configuration means to it, and
//! what is typed.

use std::fmt::Display;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use acp_agent::{
    KeyFile, Keys, Mode, ModelChoices, ModelConfig, ModelError, Provider, ProviderModel, Secret,
    ThoughtLevel,
};
use acp_config::{Config, ConfigError, ModelSettings, Spanned, places};
use acp_host::own_process;

use crate::args::agent::ModelArgs;
use crate::exit::Exit;

/// The name of the model that is none.
const OFFLINE: &str = "offline";

/// What the user has configured of the bundled agent, understood. What is typed at its command line goes before it.
#[derive(Debug, Default)]
pub(crate) struct Models {
    model: Option<FirstModel>,
    thought_level: Option<ThoughtLevel>,
    pub(crate) mode: Option<Mode>,
    pub(crate) max_requests: Option<NonZeroUsize>,
    /// Those that the user names, to be chosen in a session.
    named: Vec<ProviderModel>,
}

/// What can stand where a model is named.
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
#[derive(Debug, Clone)]
enum FirstModel {
    Offline,
    Model(ProviderModel),
}

impl FromStr for FirstModel {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            OFFLINE => Ok(Self::Offline),
            name => name.parse().map(Self::Model),
        }
    }
}

/// What a text of the configuration means. What is wrong with it is said with its line.
fn parsed<T: FromStr<Err: Display>>(
    config: &Config,
    text: Option<&Spanned<String>>,
) -> Result<Option<T>, ConfigError> {
    let parse = |text: &Spanned<String>| {
        let parsed = text.get_ref().parse();
        parsed.map_err(|e: T::Err| config.wrong(text, e))
    };
    text.map(parse).transpose()
}

/// A model that the user names.
fn named(config: &Config, written: &Spanned<ModelSettings>) -> Result<ProviderModel, ConfigError> {
    let settings = written.get_ref();
    let mut model = ProviderModel::named(&settings.provider, settings.name.clone())
        .map_err(|e| config.wrong(written, e))?;
    model.base_url.clone_from(&settings.base_url);
    model.thought = parsed(config, settings.thought_level.as_ref())?;
    model.context_window = settings.context_window.map(NonZeroU64::get);
    model.images = settings.images;
    model.key = settings.key_env.as_deref().and_then(variable);
    model.key_variable.clone_from(&settings.key_env);
    model.check().map_err(|e| config.wrong(written, e))?;
    Ok(model)
}

/// A key in a variable of this process. An empty one is how some take a variable back.
fn variable(name: &str) -> Option<Secret> {
    let key = own_process::variable(name).and_then(|value| value.into_string().ok())?;
    (!key.trim().is_empty()).then(|| Secret::new(key))
}

impl Models {
    /// What the configuration says of them.
    ///
    /// # Errors
    /// What is said is no model, mode or thought level, or does not go together.
    pub(crate) fn of(config: &Config) -> Result<Self, ConfigError> {
        let Some(written) = &config.agent else {
            return Ok(Self::default());
        };
        let settings = written.get_ref();
        let thought_level = parsed(config, settings.thought_level.as_ref())?;
        let mut model = parsed(config, settings.model.as_ref())?;
        match &mut model {
            Some(FirstModel::Model(model)) => {
                model.base_url.clone_from(&settings.base_url);
                model.context_window = settings.context_window.map(NonZeroU64::get);
                // Whoever says both knows that it can be told.
                model.thought = thought_level.filter(|_| model.base_url.is_some());
                model.check().map_err(|e| config.wrong(written, e))?;
            }
            _ if settings.base_url.is_some() => {
                let what = "`base_url` needs a `model` that is there";
                return Err(config.wrong(written, what));
            }
            _ if settings.context_window.is_some() => {
                let what = "`context_window` needs the `model` that has it";
                return Err(config.wrong(written, what));
            }
            _ => {}
        }
        let models = settings.models.iter().map(|model| named(config, model));
        Ok(Self {
            model,
            thought_level,
            mode: parsed(config, settings.mode.as_ref())?,
            max_requests: settings.max_requests,
            named: models.collect::<Result<_, _>>()?,
        })
    }

    /// The models there are, with the keys that the environment and the user's key file have.
    ///
    /// # Errors
    /// What was typed is no model.
    pub(crate) fn choice(&self, typed: ModelArgs) -> Result<ModelConfig, Exit> {
        let mut named = self.named.clone();
        let first = match self.first(typed)? {
            Some(FirstModel::Offline) => return Ok(ModelConfig::Offline),
            Some(FirstModel::Model(model)) => Some(model),
            None => None,
        };
        // What is configured can still be chosen where another was typed.
        if let Some(FirstModel::Model(model)) = &self.model {
            named.insert(0, with_key(model.clone()));
        }
        let mut keys = Keys::new();
        for provider in Provider::ALL {
            if let Some(key) = variable(provider.key_variable()) {
                keys = keys.and(provider, key);
            }
        }
        if let Some(file) = key_file() {
            keys = keys.file(file);
        }
        let mut choices = ModelChoices::new(keys)
            .and(named)
            .thought(self.thought_level);
        choices.default = first;
        Ok(ModelConfig::Choice(Box::new(choices)))
    }

    /// The model that sessions begin with, if any is named: the one that was typed, or else the one that is
    /// configured.
    pub(crate) fn model(&self, typed: ModelArgs) -> Result<Option<ProviderModel>, Exit> {
        Ok(match self.first(typed)? {
            Some(FirstModel::Model(model)) => Some(model),
            _ => None,
        })
    }

    fn first(&self, typed: ModelArgs) -> Result<Option<FirstModel>, Exit> {
        let wanted = match typed.name.as_deref() {
            None => self.model.clone(),
            Some(name) => {
                let usage = |e: ModelError| Exit::usage(format!("--model: {e}"));
                let mut wanted: FirstModel = name.parse().map_err(usage)?;
                if let FirstModel::Model(model) = &mut wanted {
                    model.base_url = typed.base_url;
                    model.context_window = typed.context_window;
                    model.check().map_err(usage)?;
                }
                Some(wanted)
            }
        };
        Ok(wanted.map(|wanted| match wanted {
            FirstModel::Offline => FirstModel::Offline,
            FirstModel::Model(model) => FirstModel::Model(self.known(model)),
        }))
    }

    /// One of the models that the user has named, if it is that.
    fn known(&self, model: ProviderModel) -> ProviderModel {
        let same = |named: &&ProviderModel| named.to_string() == model.to_string();
        match self.named.iter().find(same) {
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
        model.key = variable(model.provider.key_variable());
    }
    model
}

/// Where keys are that were typed.
pub(crate) fn key_file() -> Option<KeyFile> {
    Some(KeyFile::new(places::state()?.join("keys.json")))
}
