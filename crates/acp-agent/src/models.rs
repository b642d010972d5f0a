//! Manages the available models and each session's choice among them.
//!
//! Models are offered in this order: the configured one, those that the user added, those that the servers at the
//! user's URLs list, and the well-known ones of each provider that has a key. If there are none, the offline model is
//! used.

pub(crate) mod config;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use acp::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOption,
};

use crate::keys::{Account, KeyFileError, KeySources};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::interface::Model;
use crate::model::offline::OfflineModel;
use crate::model::provider::catalogue::offered_models;
use crate::model::provider::config::ProviderModel;
use crate::model::provider::models::ModelFactory;
use crate::model::provider::name::Provider;
use crate::model::scripted::ScriptedModel;
use crate::model::thought::ThoughtLevel;
use crate::store::stored_session::SessionProperties;
use config::{ModelChoices, ModelConfig};

/// The id of the config option that selects the model.
pub(crate) const MODEL_OPTION: &str = "model";

/// The id of the config option that selects the thought level.
pub(crate) const THOUGHT_LEVEL_OPTION: &str = "thought_level";

/// The value of the thought level option that selects the configured level or, if none is configured, the provider's
/// default.
const DEFAULT_THOUGHT_LEVEL: &str = "default";

/// How long a list of models from a server remains valid.
const LIST_LIFETIME: Duration = Duration::from_secs(30);

/// The models that an agent can use.
pub(crate) struct ModelRegistry {
    /// The only model, if sessions cannot choose a model.
    fixed_model: Option<Arc<dyn Model>>,
    choices: ModelChoices,
    models: ModelFactory,
    offline: Arc<dyn Model>,
    available_models: RwLock<Arc<AvailableModels>>,
    /// The models most recently listed by the servers at the user's URLs.
    listed_models: RwLock<HashMap<Account, Vec<ProviderModel>>>,
    /// When the servers last listed their models. Locked during a refresh.
    last_refresh: tokio::sync::Mutex<Option<Instant>>,
}

/// The available models, with the keys that were found most recently.
#[derive(Default)]
struct AvailableModels {
    models: Vec<AvailableModel>,
    /// The error from reading the key file, if any.
    key_file_error: Option<KeyFileError>,
}

struct AvailableModel {
    id: String,
    /// The model, including its key if it has one.
    model: ProviderModel,
    /// Whether the model's key has been removed. Sessions that have chosen the model keep it until they choose another.
    has_lost_key: bool,
}

/// The model and thought level that a session has chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelSelection {
    pub(crate) model: Option<String>,
    pub(crate) thought: Option<String>,
}

impl ModelSelection {
    pub(crate) fn from_properties(properties: &SessionProperties) -> Self {
        Self {
            model: properties.model.clone(),
            thought: properties.thought_level.clone(),
        }
    }
}

/// The model and the thought level that a round uses.
pub(crate) struct RoundModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) thought: Option<ThoughtLevel>,
}

impl ModelRegistry {
    /// Creates a registry with only this model.
    pub(crate) fn with_single_model(model: Arc<dyn Model>) -> Self {
        Self {
            fixed_model: Some(model),
            ..Self::from_choices(ModelChoices::default())
        }
    }

    /// Creates a registry from the configuration.
    pub(crate) fn from_config(config: &ModelConfig) -> Result<Self, ModelError> {
        let choices = match config {
            ModelConfig::Offline => {
                return Ok(Self::with_single_model(Arc::new(OfflineModel::new())));
            }
            ModelConfig::Scripted(path) => {
                let script = ScriptedModel::read(path);
                let script = script.map_err(|e| ModelError::new(e.to_string()))?;
                return Ok(Self::with_single_model(Arc::new(script)));
            }
            ModelConfig::Provider(model) => {
                ModelChoices::default().default_model((**model).clone())
            }
            ModelConfig::Choices(choices) => (**choices).clone(),
        };
        let choice = Self::from_choices(choices);
        // Report an invalid model now rather than when it is chosen.
        for model in choice.configured_models() {
            choice.models.build_model(model.clone())?;
        }
        choice.refresh();
        Ok(choice)
    }

    fn from_choices(choices: ModelChoices) -> Self {
        Self {
            fixed_model: None,
            choices,
            models: ModelFactory::new(),
            offline: Arc::new(OfflineModel::new()),
            available_models: RwLock::default(),
            listed_models: RwLock::default(),
            last_refresh: tokio::sync::Mutex::default(),
        }
    }

    fn configured_models(&self) -> impl Iterator<Item = &ProviderModel> {
        self.choices
            .default
            .iter()
            .chain(&self.choices.named_models)
    }

    pub(crate) fn keys(&self) -> &KeySources {
        &self.choices.keys
    }

    /// Returns the configured models that have their own URL but no key yet.
    pub(crate) fn keyless_endpoints(&self) -> impl Iterator<Item = &ProviderModel> {
        self.configured_models()
            .filter(|model| model.base_url.is_some() && model.key.is_none())
    }

    /// Looks for keys again, because another process may have added or removed some.
    pub(crate) fn refresh(&self) {
        if self.fixed_model.is_some() {
            return;
        }
        let (keys, wrong) = match self.choices.keys.read_keys() {
            Ok(keys) => (keys, None),
            Err(error) => {
                tracing::warn!(%error, "cannot read the stored API keys");
                (self.choices.keys.explicit_keys(), Some(error))
            }
        };
        let mut offer = AvailableModels {
            models: Vec::new(),
            key_file_error: wrong,
        };
        let asked_for = self.choices.default.is_some();
        for (n, model) in self.configured_models().enumerate() {
            let mut model = model.clone();
            model.key = model.key.take().or_else(|| keys.get(&model.account()));
            model.key_file_error = offer.key_file_error.as_ref().map(ToString::to_string);
            // The default model stays without a key. The missing key is reported when the model is used.
            if (n == 0 && asked_for) || !model.lacks_key() {
                offer.add(model);
            }
        }
        let servers = offer.servers();
        let listed = self
            .listed_models
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for server in servers {
            let key = &server.key;
            for model in listed.get(&server.account()).into_iter().flatten() {
                let mut model = model.clone();
                model.key.clone_from(key);
                offer.add(model);
            }
        }
        drop(listed);
        let default = self.choices.default.as_ref();
        let elsewhere = default.filter(|model| model.base_url.is_some());
        let replaced = elsewhere.map(|model| model.provider);
        // The user replaced this provider with another server, and its key may be for that server.
        let providers = Provider::ALL.into_iter();
        for provider in providers.filter(|provider| Some(*provider) != replaced) {
            let Some(key) = keys.get(&provider.into()) else {
                continue;
            };
            for name in offered_models(provider) {
                offer.add(ProviderModel::new(provider, *name).key(key.clone()));
            }
        }
        for before in &self.available_models().models {
            offer.keep_model(before);
        }
        *self
            .available_models
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(offer);
    }

    /// Like [`refresh`](Self::refresh), but does not block the caller. Does nothing if there is no key file.
    pub(crate) async fn refresh_in_background(self: &Arc<Self>) {
        if self.choices.keys.has_file() {
            self.refresh_blocking().await;
        }
    }

    /// Runs [`refresh`](Self::refresh) on a thread that is allowed to block.
    pub(crate) async fn refresh_blocking(self: &Arc<Self>) {
        let choice = Arc::clone(self);
        if let Err(error) = tokio::task::spawn_blocking(move || choice.refresh()).await {
            tracing::warn!(%error, "cannot refresh the available models");
        }
    }

    /// Fetches the model lists of all servers at the user's URLs in parallel, unless that was done recently. If a
    /// server fails, keeps its previous list.
    pub(crate) async fn refresh_lists(self: &Arc<Self>) {
        if self.fixed_model.is_some() {
            return;
        }
        let mut asked = self.last_refresh.lock().await;
        if asked.is_some_and(|when| when.elapsed() < LIST_LIFETIME) {
            return;
        }
        let servers = self.available_models().servers();
        if servers.is_empty() {
            return;
        }
        let each = servers.into_iter().map(|server| async move {
            let account = server.account();
            match self.models.list_models(&server).await {
                Ok(models) => Some((account, models)),
                Err(why) => {
                    tracing::info!(server = account.host_or_provider(), %why, "cannot list the server's models");
                    None
                }
            }
        });
        let said = futures_util::future::join_all(each).await;
        self.listed_models
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(said.into_iter().flatten());
        *asked = Some(Instant::now());
        self.refresh_blocking().await;
    }

    /// Fetches the model lists if the chosen model is unknown, because a server may have added it since.
    pub(crate) async fn refresh_lists_for(self: &Arc<Self>, chosen: &ModelSelection) {
        if let Some(model) = &chosen.model
            && !self
                .available_models()
                .models
                .iter()
                .any(|known| known.id == *model)
        {
            self.refresh_lists().await;
        }
    }

    fn available_models(&self) -> Arc<AvailableModels> {
        Arc::clone(
            &self
                .available_models
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Returns `true` if any available model accepts images.
    pub(crate) fn accepts_images(&self) -> bool {
        if let Some(only) = &self.fixed_model {
            return only.accepts_images();
        }
        let offer = self.available_models();
        offer.available().any(|offered| {
            let model = self.models.build_model(offered.model.clone());
            model.is_ok_and(|model| model.accepts_images())
        })
    }

    /// Returns the model and thought level for a session with this selection.
    ///
    /// # Errors
    /// The key that was found is not valid.
    pub(crate) fn round_model(&self, chosen: &ModelSelection) -> Result<RoundModel, ModelError> {
        let offer = self.available_models();
        let model = match (&self.fixed_model, offer.find_selected(chosen)) {
            (Some(only), _) => Arc::clone(only),
            (None, Some(offered)) => self.models.build_model(offered.model.clone())?,
            (None, None) => Arc::clone(&self.offline),
        };
        let chosen = chosen.thought.as_ref().and_then(|level| level.parse().ok());
        let has = |level: &ThoughtLevel| model.thought_levels().contains(level);
        let thought = chosen.filter(has).or(self.choices.thought.filter(has));
        Ok(RoundModel { model, thought })
    }

    /// Returns `true` if the selected model follows instructions in natural language.
    pub(crate) fn follows_instructions(&self, chosen: &ModelSelection) -> bool {
        match &self.fixed_model {
            Some(only) => only.understands_language(),
            None => self.available_models().find_selected(chosen).is_some(),
        }
    }

    /// Checks that the selected model has the key it requires. Also accepts a model whose key was removed after the
    /// model was offered, so that the session can be opened and the user can choose another model.
    ///
    /// # Errors
    /// [`ModelErrorKind::Unauthorized`], with a message that says what to do about it.
    pub(crate) fn check_key(&self, chosen: &ModelSelection) -> Result<(), ModelError> {
        let offer = self.available_models();
        // If the keys had been read, there would be models.
        if let (None, true, Some(wrong)) = (
            &self.fixed_model,
            offer.models.is_empty(),
            &offer.key_file_error,
        ) {
            let why = format!("no model available: {wrong}");
            return Err(ModelError::with_kind(ModelErrorKind::Unauthorized, why));
        }
        let lacks_key =
            |offered: &&AvailableModel| offered.model.lacks_key() && !offered.has_lost_key;
        let Some(offered) = offer.find_selected(chosen).filter(lacks_key) else {
            return Ok(());
        };
        let (model, variable) = (&offered.model, offered.model.key_variable());
        let why = match &offer.key_file_error {
            Some(wrong) => format!("{model}: cannot read the API key: {wrong}"),
            None if self.choices.keys.has_file() => {
                format!("{model}: API key not found; log in, or set {variable}")
            }
            None => format!("{model}: API key not found; set {variable}"),
        };
        Err(ModelError::with_kind(ModelErrorKind::Unauthorized, why))
    }

    /// Returns the config options of a session that has made this selection.
    pub(crate) fn config_options(&self, chosen: &ModelSelection) -> Vec<SessionConfigOption> {
        let offer = self.available_models();
        let Some(current) = offer
            .find_selected(chosen)
            .filter(|_| self.fixed_model.is_none())
        else {
            return Vec::new();
        };
        let all = offer.models.iter();
        let values = all.filter(|offered| !offered.has_lost_key || offered.id == current.id);
        let values = values.map(AvailableModel::to_config_value).collect();
        let select = SessionConfigSelect::new(current.id.as_str(), values);
        let mut options = vec![
            SessionConfigOption::new(MODEL_OPTION, "Model", select)
                .description("The language model to use")
                .category(SessionConfigOptionCategory::Model),
        ];
        let asked = self.round_model(chosen);
        let model = asked.as_ref().map(|asked| &asked.model);
        let levels = model.map_or(&[][..], |model| model.thought_levels());
        if !levels.is_empty() {
            let usual = SessionConfigSelectOption::new(DEFAULT_THOUGHT_LEVEL, "Default");
            let values = levels
                .iter()
                .map(|level| SessionConfigSelectOption::new(level.as_str(), level.title()));
            let values: Vec<_> = std::iter::once(
                usual.description("The configured level, or the provider's default"),
            )
            .chain(values)
            .collect();
            let level = chosen.thought.as_deref();
            let level = level.filter(|level| levels.iter().any(|known| known.as_str() == *level));
            let select = SessionConfigSelect::new(level.unwrap_or(DEFAULT_THOUGHT_LEVEL), values);
            options.push(
                SessionConfigOption::new(THOUGHT_LEVEL_OPTION, "Thinking", select)
                    .description("How much the model thinks before it answers")
                    .category(SessionConfigOptionCategory::ThoughtLevel),
            );
        }
        options
    }
}

impl AvailableModels {
    /// Adds a model unless it already exists. If a model on a different server has the same name, adds the host to the
    /// id.
    fn add(&mut self, model: ProviderModel) {
        let account = model.account();
        let same = |other: &AvailableModel| {
            other.model.to_string() == model.to_string() && other.model.account() == account
        };
        if self.models.iter().any(same) {
            return;
        }
        let mut id = model.to_string();
        if self.models.iter().any(|other| other.id == id) {
            id = format!("{id}@{}", account.host_or_provider());
        }
        self.models.push(AvailableModel {
            id,
            model,
            has_lost_key: false,
        });
    }

    /// Keeps a model that was offered earlier but has lost its key.
    fn keep_model(&mut self, before: &AvailableModel) {
        if self.models.iter().any(|offered| offered.id == before.id) {
            return;
        }
        let mut model = before.model.clone();
        model.key = None;
        model.key_file_error = self.key_file_error.as_ref().map(ToString::to_string);
        self.models.push(AvailableModel {
            id: before.id.clone(),
            model,
            has_lost_key: true,
        });
    }

    /// Returns the models that can be chosen.
    fn available(&self) -> impl Iterator<Item = &AvailableModel> {
        self.models.iter().filter(|offered| !offered.has_lost_key)
    }

    /// Returns one model for each server at the user's URLs, except for servers that require a key and have none.
    fn servers(&self) -> Vec<ProviderModel> {
        let mut servers: Vec<ProviderModel> = Vec::new();
        let models = self.models.iter().map(|offered| &offered.model);
        for model in models.filter(|model| model.base_url.is_some() && !model.lacks_key()) {
            let account = model.account();
            if !servers.iter().any(|server| server.account() == account) {
                servers.push(model.clone());
            }
        }
        servers
    }

    /// Returns the selected model. If none was selected or it does not exist, returns the first available one.
    fn find_selected(&self, chosen: &ModelSelection) -> Option<&AvailableModel> {
        let wanted = chosen.model.as_deref();
        let mut models = self.models.iter();
        let found = models.find(|offered| wanted == Some(offered.id.as_str()));
        found.or(self.available().next())
    }
}

impl AvailableModel {
    fn to_config_value(&self) -> SessionConfigSelectOption {
        let account = self.model.account();
        SessionConfigSelectOption::new(self.id.as_str(), self.model.name.as_str())
            .description(account.host_or_provider().to_owned())
    }
}
