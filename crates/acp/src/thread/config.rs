//! A thread's config options. If an agent has modes or models but no options for them, the thread adds some.

use acp_wire::v1::{
    ModelId, SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelect, SessionConfigSelectOption, SessionModeId, SessionModeState,
    SessionModelState,
};

use super::Thread;

/// The id of the config option for the modes of an agent without a mode option.
pub(crate) const MODE_OPTION_ID: &str = "mode";

/// The id of the config option for the models of an agent without a model option.
pub(crate) const MODEL_OPTION_ID: &str = "model";

fn has_category(option: &SessionConfigOption, category: &SessionConfigOptionCategory) -> bool {
    option.category.as_ref() == Some(category)
}

impl Thread {
    /// Applies the modes, models and config options that the agent reports when a session is opened.
    ///
    /// An agent can send all three, because config options supersede modes and models. The config options take
    /// precedence.
    pub fn apply_session_setup(
        &mut self,
        modes: Option<&SessionModeState>,
        models: Option<&SessionModelState>,
        options: Option<&[SessionConfigOption]>,
    ) {
        use SessionConfigOptionCategory::{Mode, Model};
        self.revision += 1;
        let options = options.unwrap_or_default();
        if !self.fits_within(options) || !self.fits_within(&modes) || !self.fits_within(&models) {
            return;
        }
        let has = |category| options.iter().any(|o| has_category(o, category));
        let modes = modes.filter(|_| !has(&Mode)).map(to_mode_option);
        let models = models.filter(|_| !has(&Model)).map(to_model_option);
        self.uses_set_mode = modes.is_some();
        self.uses_set_model = models.is_some();
        self.config_options = modes.into_iter().chain(models).collect();
        self.config_options.extend(options.iter().cloned());
    }

    /// Replaces the agent's config options with those in the response to `session/set_config_option`. If it contains
    /// none, the options are unchanged.
    pub fn set_config_options(&mut self, options: &[SessionConfigOption]) {
        if !options.is_empty() {
            self.revision += 1;
            self.replace_config_options(options);
        }
    }

    /// Replaces the agent's config options, but keeps those for modes and models.
    pub(super) fn replace_config_options(&mut self, options: &[SessionConfigOption]) {
        use SessionConfigOptionCategory::{Mode, Model};
        if !self.fits_within(options) {
            return;
        }
        let has = |category| options.iter().any(|o| has_category(o, category));
        self.uses_set_mode &= !has(&Mode);
        self.uses_set_model &= !has(&Model);
        let (modes, models) = (self.uses_set_mode, self.uses_set_model);
        self.config_options.retain(|o| {
            modes && o.id.as_str() == MODE_OPTION_ID && has_category(o, &Mode)
                || models && o.id.as_str() == MODEL_OPTION_ID && has_category(o, &Model)
        });
        self.config_options.extend(options.iter().cloned());
    }

    /// Returns `true` if the agent has no option for the mode, so that it must be set with `session/set_mode`.
    pub(crate) fn uses_set_mode(&self) -> bool {
        self.uses_set_mode
    }

    /// Returns `true` if the agent has no option for the model, so that it must be set with `session/set_model`.
    pub(crate) fn uses_set_model(&self) -> bool {
        self.uses_set_model
    }

    /// Sets the session's current mode.
    pub fn set_mode(&mut self, mode: &SessionModeId) {
        self.set_current_value(&SessionConfigOptionCategory::Mode, mode.as_str());
    }

    /// Sets the session's current model.
    pub fn set_model(&mut self, model: &ModelId) {
        self.set_current_value(&SessionConfigOptionCategory::Model, model.as_str());
    }

    fn set_current_value(&mut self, category: &SessionConfigOptionCategory, value: &str) {
        self.revision += 1;
        if !self.fits_within(value) {
            return;
        }
        let mut options = self.config_options.iter_mut();
        let option = options.find(|o| has_category(o, category));
        if let Some(SessionConfigKind::Select(select)) = option.map(|o| &mut o.kind) {
            select.current_value = value.into();
        }
    }
}

fn new_select_value(
    id: &str,
    name: &str,
    description: Option<&String>,
) -> SessionConfigSelectOption {
    let mut value = SessionConfigSelectOption::new(id, name);
    value.description = description.cloned();
    value
}

/// Creates a config option for the agent's modes.
fn to_mode_option(modes: &SessionModeState) -> SessionConfigOption {
    let values = modes.available_modes.iter();
    let values = values.map(|m| new_select_value(m.id.as_str(), &m.name, m.description.as_ref()));
    let select = SessionConfigSelect::new(modes.current_mode_id.as_str(), values.collect());
    SessionConfigOption::new(SessionConfigId::from(MODE_OPTION_ID), "Mode", select)
        .category(SessionConfigOptionCategory::Mode)
}

/// Creates a config option for the agent's models.
fn to_model_option(models: &SessionModelState) -> SessionConfigOption {
    let values = models.available_models.iter();
    let values =
        values.map(|m| new_select_value(m.model_id.as_str(), &m.name, m.description.as_ref()));
    let select = SessionConfigSelect::new(models.current_model_id.as_str(), values.collect());
    SessionConfigOption::new(SessionConfigId::from(MODEL_OPTION_ID), "Model", select)
        .category(SessionConfigOptionCategory::Model)
}
