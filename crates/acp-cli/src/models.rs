//! `[agent]` in `config.toml`: which language models the bundled agent has, and how it begins.

use std::fmt::Display;
use std::num::{NonZeroU64, NonZeroUsize};
use std::str::FromStr;

use acp_agent::{
    KeyFile, Keys, Mode, ModelChoices, ModelConfig, ModelError, Provider, ProviderModel, Secret,
    ThoughtLevel,
};
use acp_host::own_process;
use serde::{Deserialize, Deserializer};

use crate::args::ModelArgs;
use crate::exit::Exit;
use crate::places;

/// The name of the model that is none.
const OFFLINE: &str = "offline";

/// What the user has configured of the bundled agent. What is typed at its command line goes before it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Written")]
pub(crate) struct Agent {
    model: Option<Wanted>,
    thought_level: Option<ThoughtLevel>,
    pub(crate) mode: Option<Mode>,
    pub(crate) max_requests: Option<NonZeroUsize>,
    models: Vec<Named>,
}

/// The same as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, deserialize_with = "parsed")]
    model: Option<Wanted>,
    base_url: Option<String>,
    context_window: Option<NonZeroU64>,
    #[serde(default, deserialize_with = "parsed")]
    thought_level: Option<ThoughtLevel>,
    #[serde(default, deserialize_with = "parsed")]
    mode: Option<Mode>,
    max_requests: Option<NonZeroUsize>,
    #[serde(default)]
    models: Vec<Named>,
}

impl TryFrom<Written> for Agent {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let mut model = written.model;
        match &mut model {
            Some(Wanted::Model(model)) => {
                model.base_url = written.base_url;
                model.context_window = written.context_window.map(NonZeroU64::get);
                // Whoever says both knows that it can be told.
                model.thought = written.thought_level.filter(|_| model.base_url.is_some());
                model.check().map_err(|e| e.to_string())?;
            }
            _ if written.base_url.is_some() => {
                return Err("`base_url` needs a `model` that is there".to_owned());
            }
            _ if written.context_window.is_some() => {
                return Err("`context_window` needs the `model` that has it".to_owned());
            }
            _ => {}
        }
        Ok(Self {
            model,
            thought_level: written.thought_level,
            mode: written.mode,
            max_requests: written.max_requests,
            models: written.models,
        })
    }
}

/// A model that the user names, to be chosen in a session.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "WrittenModel")]
struct Named(ProviderModel);

/// The same as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    provider: String,
    name: String,
    base_url: Option<String>,
    /// The variable that has its key.
    key_env: Option<String>,
    #[serde(default, deserialize_with = "parsed")]
    thought_level: Option<ThoughtLevel>,
    context_window: Option<NonZeroU64>,
    images: Option<bool>,
}

impl TryFrom<WrittenModel> for Named {
    type Error = String;

    fn try_from(written: WrittenModel) -> Result<Self, String> {
        let model = ProviderModel::named(&written.provider, written.name);
        let mut model = model.map_err(|e| e.to_string())?;
        model.base_url = written.base_url;
        model.thought = written.thought_level;
        model.context_window = written.context_window.map(NonZeroU64::get);
        model.images = written.images;
        model.key = written.key_env.as_deref().and_then(variable);
        model.key_variable = written.key_env;
        model.check().map_err(|e| e.to_string())?;
        Ok(Self(model))
    }
}

/// What can stand where a model is named.
#[expect(clippy::large_enum_variant, reason = "there is one of it at a time")]
#[derive(Debug, Clone)]
enum Wanted {
    Offline,
    Model(ProviderModel),
}

impl FromStr for Wanted {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            OFFLINE => Ok(Self::Offline),
            name => name.parse().map(Self::Model),
        }
    }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| e.to_string())
}

/// A text that is read further, so that what is wrong with it has its line.
fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).map(Some).map_err(serde::de::Error::custom)
}

/// A key in a variable of this process. An empty one is how some take a variable back.
fn variable(name: &str) -> Option<Secret> {
    let key = own_process::variable(name).and_then(|value| value.into_string().ok())?;
    (!key.trim().is_empty()).then(|| Secret::new(key))
}

impl Agent {
    /// The models there are, with the keys that the environment and the user's key file have.
    ///
    /// # Errors
    /// What was typed is no model.
    pub(crate) fn choice(&self, typed: ModelArgs) -> Result<ModelConfig, Exit> {
        let mut named: Vec<ProviderModel> = self.models.iter().map(|m| m.0.clone()).collect();
        let first = match self.first(typed)? {
            Some(Wanted::Offline) => return Ok(ModelConfig::Offline),
            Some(Wanted::Model(model)) => Some(model),
            None => None,
        };
        // What is configured can still be chosen where another was typed.
        if let Some(Wanted::Model(model)) = &self.model {
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
            Some(Wanted::Model(model)) => Some(model),
            _ => None,
        })
    }

    fn first(&self, typed: ModelArgs) -> Result<Option<Wanted>, Exit> {
        let wanted = match typed.name.as_deref() {
            None => self.model.clone(),
            Some(name) => {
                let usage = |e: ModelError| Exit::usage(format!("--model: {e}"));
                let mut wanted: Wanted = name.parse().map_err(usage)?;
                if let Wanted::Model(model) = &mut wanted {
                    model.base_url = typed.base_url;
                    model.context_window = typed.context_window;
                    model.check().map_err(usage)?;
                }
                Some(wanted)
            }
        };
        Ok(wanted.map(|wanted| match wanted {
            Wanted::Offline => Wanted::Offline,
            Wanted::Model(model) => Wanted::Model(self.known(model)),
        }))
    }

    /// One of the models that the user has named, if it is that.
    fn known(&self, model: ProviderModel) -> ProviderModel {
        let same = |named: &&Named| named.0.to_string() == model.to_string();
        match self.models.iter().find(same) {
            Some(named) if model.base_url.is_none() => {
                let mut known = named.0.clone();
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
