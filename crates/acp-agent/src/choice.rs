//! Which models there are to choose from, and which of them a session has.
//!
//! In the order in which they are offered, which is that of preference: the one that was configured, those that the
//! user names, those that the servers at their addresses say they have, and the well-known ones of each provider for
//! which there is a key. Where there is none at all it is the offline model.

pub(crate) mod config;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use acp::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOption,
};

use crate::keys::{Account, KeyFileError, Keys};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::interface::Model;
use crate::model::offline::OfflineModel;
use crate::model::provider::catalogue::offered;
use crate::model::provider::config::ProviderModel;
use crate::model::provider::models::Models;
use crate::model::provider::name::Provider;
use crate::model::scripted::ScriptedModel;
use crate::model::thought::ThoughtLevel;
use crate::store::kept::Properties;
use config::{ModelChoices, ModelConfig};

/// The id of the config option that is the model.
pub(crate) const MODEL: &str = "model";

/// The id of the config option that is how much it thinks.
pub(crate) const THOUGHT: &str = "thought_level";

/// The thought level that leaves it to the configuration, or else to the model's provider.
const USUAL: &str = "default";

/// How long what a server said it has is taken for what it has.
const FRESH: Duration = Duration::from_secs(30);

/// The models of an agent.
pub(crate) struct Choice {
    /// The only one, where there is nothing to choose.
    only: Option<Arc<dyn Model>>,
    choices: ModelChoices,
    models: Models,
    offline: Arc<dyn Model>,
    offer: RwLock<Arc<Offer>>,
    /// What the servers at addresses of their own said last that they have.
    listed: RwLock<HashMap<Account, Vec<ProviderModel>>>,
    /// When they were asked. Held while they are.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

/// What there is to choose from, with the keys as they were found last.
#[derive(Default)]
struct Offer {
    models: Vec<Offered>,
    /// Why the file with the keys was not read.
    wrong: Option<KeyFileError>,
}

struct Offered {
    id: String,
    /// With its key, if it has one.
    model: ProviderModel,
    /// There is no key for it any more. Sessions that have chosen it keep it, until they choose another.
    lost: bool,
}

/// What a session has chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    pub(crate) model: Option<String>,
    pub(crate) thought: Option<String>,
}

impl Chosen {
    pub(crate) fn of(properties: &Properties) -> Self {
        Self {
            model: properties.model.clone(),
            thought: properties.thought_level.clone(),
        }
    }
}

/// What a round is asked of.
pub(crate) struct Asked {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) thought: Option<ThoughtLevel>,
}

impl Choice {
    /// Nothing to choose.
    pub(crate) fn only(model: Arc<dyn Model>) -> Self {
        Self {
            only: Some(model),
            ..Self::among(ModelChoices::default())
        }
    }

    /// What is configured.
    pub(crate) fn of(config: &ModelConfig) -> Result<Self, ModelError> {
        let choices = match config {
            ModelConfig::Offline => return Ok(Self::only(Arc::new(OfflineModel::new()))),
            ModelConfig::Scripted(path) => {
                let script = ScriptedModel::read(path);
                let script = script.map_err(|e| ModelError::new(e.to_string()))?;
                return Ok(Self::only(Arc::new(script)));
            }
            ModelConfig::Provider(model) => ModelChoices::default().first((**model).clone()),
            ModelConfig::Choice(choices) => (**choices).clone(),
        };
        let choice = Self::among(choices);
        // What is wrong with one of them is better known now than when it is chosen.
        for model in choice.configured() {
            choice.models.model(model.clone())?;
        }
        choice.refresh();
        Ok(choice)
    }

    fn among(choices: ModelChoices) -> Self {
        Self {
            only: None,
            choices,
            models: Models::new(),
            offline: Arc::new(OfflineModel::new()),
            offer: RwLock::default(),
            listed: RwLock::default(),
            asked: tokio::sync::Mutex::default(),
        }
    }

    fn configured(&self) -> impl Iterator<Item = &ProviderModel> {
        self.choices.default.iter().chain(&self.choices.named)
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.choices.keys
    }

    /// Those that are at an address of their own and have no key yet.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = &ProviderModel> {
        self.configured()
            .filter(|model| model.base_url.is_some() && model.key.is_none())
    }

    /// Looks for keys once more: they may have been typed, or taken back, in another process.
    pub(crate) fn refresh(&self) {
        if self.only.is_some() {
            return;
        }
        let (keys, wrong) = match self.choices.keys.found() {
            Ok(keys) => (keys, None),
            Err(error) => {
                tracing::warn!(%error, "no keys are read");
                (self.choices.keys.given(), Some(error))
            }
        };
        let mut offer = Offer {
            models: Vec::new(),
            wrong,
        };
        let asked_for = self.choices.default.is_some();
        for (n, model) in self.configured().enumerate() {
            let mut model = model.clone();
            model.key = model.key.take().or_else(|| keys.of(&model.account()));
            model.keys_unread = offer.wrong.as_ref().map(ToString::to_string);
            // The one that was asked for stays: that there is no key for it is said when it is asked.
            if (n == 0 && asked_for) || !model.lacks_key() {
                offer.add(model);
            }
        }
        let servers = offer.servers();
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
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
        // The person has put a server in the place of that provider, and its key may be that server's.
        let providers = Provider::ALL.into_iter();
        for provider in providers.filter(|provider| Some(*provider) != replaced) {
            let Some(key) = keys.of(&provider.into()) else {
                continue;
            };
            for name in offered(provider) {
                offer.add(ProviderModel::new(provider, *name).key(key.clone()));
            }
        }
        for before in &self.offer().models {
            offer.keep(before);
        }
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(offer);
    }

    /// The same, for whoever may not wait for a disk.
    pub(crate) async fn look(self: &Arc<Self>) {
        if self.choices.keys.has_file() {
            self.refreshed().await;
        }
    }

    /// What [`refresh`](Self::refresh) does, in a thread that may wait.
    pub(crate) async fn refreshed(self: &Arc<Self>) {
        let choice = Arc::clone(self);
        if let Err(error) = tokio::task::spawn_blocking(move || choice.refresh()).await {
            tracing::warn!(%error, "keys were not looked for");
        }
    }

    /// Asks the servers at addresses of their own which models they have, all at once, unless they were asked just
    /// now. Those of one that does not say it stay as they were.
    pub(crate) async fn list(self: &Arc<Self>) {
        if self.only.is_some() {
            return;
        }
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|when| when.elapsed() < FRESH) {
            return;
        }
        let servers = self.offer().servers();
        if servers.is_empty() {
            return;
        }
        let each = servers.into_iter().map(|server| async move {
            let account = server.account();
            match self.models.listed(&server).await {
                Ok(models) => Some((account, models)),
                Err(why) => {
                    tracing::info!(server = account.place(), %why, "it does not say which models it has");
                    None
                }
            }
        });
        let said = futures_util::future::join_all(each).await;
        self.listed
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(said.into_iter().flatten());
        *asked = Some(Instant::now());
        self.refreshed().await;
    }

    /// Asks them, if what was chosen is not there: it may be one of theirs that nobody has heard of yet.
    pub(crate) async fn list_for(self: &Arc<Self>, chosen: &Chosen) {
        if let Some(model) = &chosen.model
            && !self.offer().models.iter().any(|known| known.id == *model)
        {
            self.list().await;
        }
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether any of them can look at pictures.
    pub(crate) fn takes_images(&self) -> bool {
        if let Some(only) = &self.only {
            return only.takes_images();
        }
        let offer = self.offer();
        offer.offered().any(|offered| {
            let model = self.models.model(offered.model.clone());
            model.is_ok_and(|model| model.takes_images())
        })
    }

    /// What a session asks that has chosen this.
    ///
    /// # Errors
    /// The key that was found cannot be one.
    pub(crate) fn asked(&self, chosen: &Chosen) -> Result<Asked, ModelError> {
        let offer = self.offer();
        let model = match (&self.only, offer.chosen(chosen)) {
            (Some(only), _) => Arc::clone(only),
            (None, Some(offered)) => self.models.model(offered.model.clone())?,
            (None, None) => Arc::clone(&self.offline),
        };
        let chosen = chosen.thought.as_ref().and_then(|level| level.parse().ok());
        let has = |level: &ThoughtLevel| model.thought_levels().contains(level);
        let thought = chosen.filter(has).or(self.choices.thought.filter(has));
        Ok(Asked { model, thought })
    }

    /// Whether a session that has chosen this understands what it is told in words.
    pub(crate) fn understands(&self, chosen: &Chosen) -> bool {
        match &self.only {
            Some(only) => only.understands(),
            None => self.offer().chosen(chosen).is_some(),
        }
    }

    /// That a session that has chosen this has the key it needs. One that chose a model whose key was lost since
    /// is opened all the same: another model can be chosen in it.
    ///
    /// # Errors
    /// [`ModelErrorKind::Unauthorized`], and what to do.
    pub(crate) fn ready(&self, chosen: &Chosen) -> Result<(), ModelError> {
        let offer = self.offer();
        // There would be models if the keys had been read.
        if let (None, true, Some(wrong)) = (&self.only, offer.models.is_empty(), &offer.wrong) {
            let why = format!("there is no model to ask: {wrong}");
            return Err(ModelError::of(ModelErrorKind::Unauthorized, why));
        }
        let lacks_key = |offered: &&Offered| offered.model.lacks_key() && !offered.lost;
        let Some(offered) = offer.chosen(chosen).filter(lacks_key) else {
            return Ok(());
        };
        let (model, variable) = (&offered.model, offered.model.key_variable());
        let why = match &offer.wrong {
            Some(wrong) => format!("{model}: its key cannot be read: {wrong}"),
            None if self.choices.keys.has_file() => {
                format!("{model}: there is no key for it; log in, or set {variable}")
            }
            None => format!("{model}: there is no key for it; set {variable}"),
        };
        Err(ModelError::of(ModelErrorKind::Unauthorized, why))
    }

    /// The config options of a session that has chosen this.
    pub(crate) fn options(&self, chosen: &Chosen) -> Vec<SessionConfigOption> {
        let offer = self.offer();
        let Some(current) = offer.chosen(chosen).filter(|_| self.only.is_none()) else {
            return Vec::new();
        };
        let all = offer.models.iter();
        let values = all.filter(|offered| !offered.lost || offered.id == current.id);
        let values = values.map(Offered::value).collect();
        let select = SessionConfigSelect::new(current.id.as_str(), values);
        let mut options = vec![
            SessionConfigOption::new(MODEL, "Model", select)
                .description("The language model that is asked")
                .category(SessionConfigOptionCategory::Model),
        ];
        let asked = self.asked(chosen);
        let model = asked.as_ref().map(|asked| &asked.model);
        let levels = model.map_or(&[][..], |model| model.thought_levels());
        if !levels.is_empty() {
            let usual = SessionConfigSelectOption::new(USUAL, "Default");
            let values = levels
                .iter()
                .map(|level| SessionConfigSelectOption::new(level.as_str(), level.title()));
            let values: Vec<_> = std::iter::once(
                usual.description("As it is configured, or else as the provider has it"),
            )
            .chain(values)
            .collect();
            let level = chosen.thought.as_deref();
            let level = level.filter(|level| levels.iter().any(|known| known.as_str() == *level));
            let select = SessionConfigSelect::new(level.unwrap_or(USUAL), values);
            options.push(
                SessionConfigOption::new(THOUGHT, "Thinking", select)
                    .description("How much the model thinks before it answers")
                    .category(SessionConfigOptionCategory::ThoughtLevel),
            );
        }
        options
    }
}

impl Offer {
    /// Adds a model, unless it is there. One that has the name of another and is elsewhere gets an id that says where.
    fn add(&mut self, model: ProviderModel) {
        let account = model.account();
        let same = |other: &Offered| {
            other.model.to_string() == model.to_string() && other.model.account() == account
        };
        if self.models.iter().any(same) {
            return;
        }
        let mut id = model.to_string();
        if self.models.iter().any(|other| other.id == id) {
            id = format!("{id}@{}", account.place());
        }
        self.models.push(Offered {
            id,
            model,
            lost: false,
        });
    }

    /// Keeps a model that was offered and is not any more, because its key is gone.
    fn keep(&mut self, before: &Offered) {
        if self.models.iter().any(|offered| offered.id == before.id) {
            return;
        }
        let mut model = before.model.clone();
        model.key = None;
        model.keys_unread = self.wrong.as_ref().map(ToString::to_string);
        self.models.push(Offered {
            id: before.id.clone(),
            model,
            lost: true,
        });
    }

    /// Those that can be chosen.
    fn offered(&self) -> impl Iterator<Item = &Offered> {
        self.models.iter().filter(|offered| !offered.lost)
    }

    /// A model of each server at an address of its own that can be asked.
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

    /// What was chosen, or the first if that is not there, or nothing was chosen.
    fn chosen(&self, chosen: &Chosen) -> Option<&Offered> {
        let wanted = chosen.model.as_deref();
        let mut models = self.models.iter();
        let found = models.find(|offered| wanted == Some(offered.id.as_str()));
        found.or(self.offered().next())
    }
}

impl Offered {
    fn value(&self) -> SessionConfigSelectOption {
        let account = self.model.account();
        SessionConfigSelectOption::new(self.id.as_str(), self.model.name.as_str())
            .description(account.place().to_owned())
    }
}
