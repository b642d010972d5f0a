//! Checks an agent's config options and converts them, including to session modes for older clients.
//!
//! An agent only implements config options. For clients of version 1, the option of category `mode` is also sent as the
//! session's modes, and the two are kept in sync. See the specification's page "Session Config Options", "Relationship to
//! Session Modes".

use acp_wire::v1::{
    SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigOptionValue, SessionMode, SessionModeId, SessionModeState,
};

use crate::error::{Error, Result};

/// Returns the first select option of category `mode`, ignoring any others.
fn mode_option(options: &[SessionConfigOption]) -> Option<&SessionConfigOption> {
    options.iter().find(|option| {
        option.category == Some(SessionConfigOptionCategory::Mode)
            && matches!(option.kind, SessionConfigKind::Select(_))
    })
}

/// Returns the id of the first select option of a category.
pub(crate) fn find_option_id(
    options: &[SessionConfigOption],
    category: &SessionConfigOptionCategory,
) -> Option<SessionConfigId> {
    let option = options.iter().find(|option| {
        option.category.as_ref() == Some(category)
            && matches!(option.kind, SessionConfigKind::Select(_))
    });
    option.map(|option| option.id.clone())
}

/// Converts the config option of category `mode` to session modes.
pub(crate) fn to_mode_state(options: &[SessionConfigOption]) -> Option<SessionModeState> {
    let SessionConfigKind::Select(select) = &mode_option(options)?.kind else {
        return None;
    };
    let modes: Vec<SessionMode> = select
        .options
        .iter()
        .map(|value| {
            let mode = SessionMode::new(value.value.as_str(), value.name.clone());
            match &value.description {
                Some(description) => mode.description(description.clone()),
                None => mode,
            }
        })
        .collect();
    Some(SessionModeState::new(select.current_value.as_str(), modes))
}

/// Returns the id of the current session mode, if the config options include a mode.
pub(crate) fn current_mode(options: &[SessionConfigOption]) -> Option<SessionModeId> {
    match &mode_option(options)?.kind {
        SessionConfigKind::Select(select) => Some(select.current_value.as_str().into()),
        _ => None,
    }
}

/// Checks that the config option exists and accepts the value.
pub(crate) fn check_option_value(
    options: &[SessionConfigOption],
    id: &SessionConfigId,
    value: &SessionConfigOptionValue,
) -> Result<()> {
    let option = options
        .iter()
        .find(|option| option.id == *id)
        .ok_or_else(|| Error::invalid_params(format!("config option not found: {id}")))?;
    let fits = match (&option.kind, value) {
        (SessionConfigKind::Select(select), SessionConfigOptionValue::Id(value)) => {
            select.options.iter().any(|o| o.value == *value)
        }
        (SessionConfigKind::Boolean { .. }, SessionConfigOptionValue::Boolean(_)) => true,
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Error::invalid_params(format!(
            "invalid value for config option {id}: {value}"
        )))
    }
}

/// Returns the config options that a client supports, including boolean options only if `booleans` is `true`.
pub(crate) fn supported_options(
    options: Vec<SessionConfigOption>,
    booleans: bool,
) -> Vec<SessionConfigOption> {
    options
        .into_iter()
        .filter(|option| booleans || !matches!(option.kind, SessionConfigKind::Boolean { .. }))
        .collect()
}
