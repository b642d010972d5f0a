//! Checks for an agent's session config options.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

use super::session_modes::set_other_mode;

checks! { V1 Agent "session-config-options";
    1 Must "Config option ids are unique." => has_unique_ids, shared;
    2 Must "Every config option has a valid initial value." => has_valid_initial_values, shared;
    3 Must "Category names that do not start with `_` are defined in the specification." => uses_known_categories, shared;
    4 Must "The response to `session/set_config_option` contains all config options." => returns_all_options, shared;
    5 Must "The response to `session/set_config_option` has the new value." => returns_new_value, shared;
    6 Must "The response to `session/set_config_option` contains only valid values." => returned_values_are_valid, shared;
    7 Should "`session/set_config_option` with an unknown option fails." => rejects_unknown_option, shared;
    8 Should "`session/set_config_option` with an invalid value fails." => rejects_invalid_value, shared;
    9 Must "A `config_option_update` contains all config options." => update_has_all_options, shared;
    10 Must "A `config_option_update` contains only valid values." => updated_values_are_valid, shared;
    11 Must "Boolean options are sent only to clients with the `session.configOptions.boolean` capability." => sends_booleans_only_if_supported, shared;
    12 Must "Boolean options are set with boolean values." => sets_boolean, fresh "declares other capabilities in `initialize`";
    13 Must "A config option can be set during a turn." => sets_option_during_turn, shared;
    14 Must "Setting a config option does not affect other sessions." => leaves_other_sessions, shared;
    15 Should "An agent with modes reports them as `modes` and as a config option of category `mode`." => has_mode_option_and_modes, shared;
    16 Should "Initially, `modes` and the config option of category `mode` agree." => has_same_initial_mode, shared;
    17 Should "`session/set_mode` also updates the config option of category `mode`." => keeps_mode_in_sync, shared;
    18 Must "Every config option of a loaded session has a valid value." => has_options_after_load, shared;
    19 Must "Every config option of a resumed session has a valid value." => has_options_after_resume, shared;
}

/// Opens a session, and returns its id and its config options. Skips the check if the session has none.
async fn session_with_options(
    harness: &mut AgentHarness,
) -> Result<(String, Vec<Value>), CheckStop> {
    let opened = harness.open_session().await?;
    let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
    let options = config_options(&opened);
    if options.is_empty() {
        return skip("the agent's sessions have no config options");
    }
    Ok((session, options))
}

/// Returns the config options from a response or an update.
fn config_options(of: &Value) -> Vec<Value> {
    of["configOptions"].as_array().cloned().unwrap_or_default()
}

fn option_ids(options: &[Value]) -> Vec<&str> {
    options
        .iter()
        .filter_map(|option| option["id"].as_str())
        .collect()
}

fn option_with_id<'a>(options: &'a [Value], id: &Value) -> &'a Value {
    options
        .iter()
        .find(|option| option["id"] == *id)
        .unwrap_or(&Value::Null)
}

/// Returns the values of a select option, which may be grouped.
fn option_values(option: &Value) -> Vec<&Value> {
    let entries = option["options"].as_array().into_iter().flatten();
    let values = entries.flat_map(|entry| match entry["options"].as_array() {
        Some(group) => group.iter().map(|entry| &entry["value"]).collect(),
        None => vec![&entry["value"]],
    });
    values.collect()
}

/// Requires that the current value of every option is one of its possible values.
fn require_values(options: &[Value], when: &str) -> Result<(), CheckStop> {
    for option in options {
        let current = &option["currentValue"];
        let fits = match option["type"].as_str() {
            Some("select") => option_values(option).contains(&current),
            Some("boolean") => current.is_boolean(),
            // The values of other types of options are unknown.
            _ => true,
        };
        require(fits, || {
            let id = &option["id"];
            format!("{when}, option {id} has the invalid value {current}")
        })?;
    }
    Ok(())
}

/// Returns the option for the checks to change: the mode option or, if there is none, the first select option. Modes
/// come first, because switching to another model may fail.
fn find_select_option(options: &[Value]) -> Result<&Value, CheckStop> {
    let choices = || options.iter().filter(|option| option["type"] == "select");
    let modes = choices().find(|option| option["category"] == "mode");
    match modes.or_else(|| choices().next()) {
        Some(option) => Ok(option),
        None => skip("the session has no select config option"),
    }
}

/// Returns the id of a select option, and a value other than its current one.
fn find_other_value(options: &[Value]) -> Result<(Value, Value), CheckStop> {
    let option = find_select_option(options)?;
    let values = option_values(option);
    let other = values
        .into_iter()
        .find(|value| **value != option["currentValue"]);
    match other {
        Some(value) => Ok((option["id"].clone(), value.clone())),
        None => skip("the option has only one value"),
    }
}

fn setting_params(session: &str, id: &Value, value: &Value) -> Value {
    json!({"sessionId": session, "configId": id, "value": value})
}

const SET_METHOD: &str = "session/set_config_option";

/// Sets an option to its current value, and returns the current options from the response.
async fn read_current_options(
    harness: &mut AgentHarness,
    session: &str,
    known: &[Value],
) -> Result<Vec<Value>, CheckStop> {
    let option = find_select_option(known)?;
    let params = setting_params(session, &option["id"], &option["currentValue"]);
    Ok(config_options(
        &harness.request_result(SET_METHOD, params).await?,
    ))
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, options) = session_with_options(harness).await?;
    let ids = option_ids(&options);
    match ids
        .iter()
        .find(|id| ids.iter().filter(|other| other == id).count() > 1)
    {
        Some(id) => fail(format!("duplicate config option id {id:?}")),
        None => Ok(()),
    }
}

async fn has_valid_initial_values(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, options) = session_with_options(harness).await?;
    require_values(&options, "at first")
}

async fn uses_known_categories(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    const KNOWN_CATEGORIES: [&str; 4] = ["mode", "model", "model_config", "thought_level"];
    let (_, options) = session_with_options(harness).await?;
    let mut categories = options
        .iter()
        .filter_map(|option| option["category"].as_str());
    match categories.find(|name| !KNOWN_CATEGORIES.contains(name) && !name.starts_with('_')) {
        Some(name) => fail(format!(
            "category {name:?} is not in the specification and does not start with `_`"
        )),
        None => Ok(()),
    }
}

async fn returns_all_options(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, before) = session_with_options(harness).await?;
    let after = read_current_options(harness, &session, &before).await?;
    match option_ids(&before)
        .iter()
        .find(|id| !option_ids(&after).contains(id))
    {
        Some(id) => fail(format!("the response does not contain option {id:?}")),
        None => Ok(()),
    }
}

/// Sets a select option to another value. Returns the option's id, the value, and the options in the response. Skips
/// the check if the agent rejects the value.
async fn set_other_value(
    harness: &mut AgentHarness,
) -> Result<(Value, Value, Vec<Value>), CheckStop> {
    let (session, before) = session_with_options(harness).await?;
    let (id, value) = find_other_value(&before)?;
    match harness
        .request(SET_METHOD, setting_params(&session, &id, &value))
        .await?
    {
        ReceivedResponse::Result(result) => Ok((id, value, config_options(&result))),
        ReceivedResponse::Error { code, message, .. } => skip(format!(
            "option {id} cannot be set to {value}: {message} (error {code})"
        )),
    }
}

async fn returns_new_value(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (id, value, after) = set_other_value(harness).await?;
    let current = &option_with_id(&after, &id)["currentValue"];
    require(*current == value, || {
        format!("option {id} was set to {value}, but the response contains {current}")
    })
}

async fn returned_values_are_valid(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (.., after) = set_other_value(harness).await?;
    require_values(&after, "in the response")
}

async fn require_rejected(
    harness: &mut AgentHarness,
    params: Value,
    what: &str,
) -> Result<(), CheckStop> {
    match harness.request(SET_METHOD, params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail(format!("{what} was set")),
    }
}

async fn rejects_unknown_option(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = session_with_options(harness).await?;
    let params = setting_params(&session, &json!("no-such-option"), &json!("x"));
    require_rejected(harness, params, "an unknown option").await
}

async fn rejects_invalid_value(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, options) = session_with_options(harness).await?;
    let id = find_select_option(&options)?["id"].clone();
    let params = setting_params(&session, &id, &json!("no-such-value"));
    require_rejected(harness, params, "an invalid value").await
}

/// Makes the agent change its own options. Returns the session's id, the options before the change, and the options in
/// the last update.
async fn wait_for_agent_change(
    harness: &mut AgentHarness,
) -> Result<(String, Vec<Value>, Vec<Value>), CheckStop> {
    let (session, before) = session_with_options(harness).await?;
    let turn = harness.run_task_or_skip(&session, AgentTask::Plan).await?;
    match turn.updates_of_type("config_option_update").last() {
        Some(update) => Ok((session, before, config_options(update))),
        None => skip("the agent did not change its config options on its own"),
    }
}

async fn update_has_all_options(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, before, updated) = wait_for_agent_change(harness).await?;
    // The response to a request that changes nothing contains the current options.
    let known = if updated.is_empty() {
        before
    } else {
        updated.clone()
    };
    let now = read_current_options(harness, &session, &known).await?;
    match option_ids(&now)
        .iter()
        .find(|id| !option_ids(&updated).contains(id))
    {
        Some(id) => fail(format!("option {id:?} is missing from the update")),
        None => Ok(()),
    }
}

async fn updated_values_are_valid(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, _, updated) = wait_for_agent_change(harness).await?;
    require_values(&updated, "in the update")
}

async fn sends_booleans_only_if_supported(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, options) = session_with_options(harness).await?;
    match options.iter().find(|option| option["type"] == "boolean") {
        Some(option) => fail(format!(
            "option {} is boolean, but the client does not support boolean options",
            option["id"]
        )),
        None => Ok(()),
    }
}

async fn sets_boolean(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["session"] = json!({"configOptions": {"boolean": {}}});
    harness.initialize_with(params).await?;
    let (session, before) = session_with_options(harness).await?;
    let Some(option) = before.iter().find(|option| option["type"] == "boolean") else {
        return skip("the session has no boolean config option");
    };
    let (id, value) = (option["id"].clone(), json!(option["currentValue"] == false));
    let mut params = setting_params(&session, &id, &value);
    params["type"] = json!("boolean");
    let after = config_options(&harness.request_result(SET_METHOD, params).await?);
    let current = &option_with_id(&after, &id)["currentValue"];
    require(*current == value, || {
        format!("option {id} was set to {value}, but the response contains {current}")
    })
}

async fn sets_option_during_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, options) = session_with_options(harness).await?;
    find_select_option(&options)?;
    let set =
        async |harness: &mut AgentHarness| read_current_options(harness, &session, &options).await;
    harness.run_during_turn(&session, set).await.map(drop)
}

async fn leaves_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (other, theirs) = session_with_options(harness).await?;
    let (id, value, _) = set_other_value(harness).await?;
    let before = &option_with_id(&theirs, &id)["currentValue"];
    // Setting the same option would not show the value that it had before.
    let Some(another) = theirs
        .iter()
        .find(|option| option["type"] == "select" && option["id"] != id)
    else {
        return skip("the session has only one select config option");
    };
    let params = setting_params(&other, &another["id"], &another["currentValue"]);
    let after = config_options(&harness.request_result(SET_METHOD, params).await?);
    let now = &option_with_id(&after, &id)["currentValue"];
    require(now == before || *now != value, || {
        format!("setting option {id} to {value} in one session changed it to {now} in another")
    })
}

/// Returns the config option that selects the mode.
fn find_mode_option(options: &[Value]) -> Option<&Value> {
    let mut modes = options.iter().filter(|option| option["type"] == "select");
    modes.find(|option| option["category"] == "mode")
}

async fn has_mode_option_and_modes(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let opened = harness.open_session().await?;
    let options = config_options(&opened);
    match (
        opened["modes"].is_object(),
        find_mode_option(&options).is_some(),
    ) {
        (false, false) => skip("the agent's sessions have no modes"),
        (true, true) => Ok(()),
        (true, false) => fail("the session has `modes`, but no config option of category `mode`"),
        (false, true) => fail("the session has a config option of category `mode`, but no `modes`"),
    }
}

async fn has_same_initial_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let opened = harness.open_session().await?;
    let options = config_options(&opened);
    let Some(option) = find_mode_option(&options).filter(|_| opened["modes"].is_object()) else {
        return skip("the agent does not report modes both as `modes` and as a config option");
    };
    let (value, mode) = (&option["currentValue"], &opened["modes"]["currentModeId"]);
    require(value == mode, || {
        format!("the mode is {mode} in `modes`, but {value} in the config option")
    })
}

async fn keeps_mode_in_sync(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let opened = harness.open_session().await?;
    let session = opened["sessionId"].as_str().unwrap_or_default();
    let options_there = config_options(&opened);
    let mode = find_mode_option(&options_there).filter(|_| opened["modes"].is_object());
    let Some(mode) = mode.map(|option| &option["id"]) else {
        return skip("the agent does not report modes both as `modes` and as a config option");
    };
    // The response to setting the option for modes would not show the value that it had before.
    let mut others = options_there
        .iter()
        .filter(|option| option["type"] == "select");
    let Some(another) = others.find(|option| option["id"] != *mode) else {
        return skip(
            "the session has no other config option to set, so the value of the mode option cannot be read",
        );
    };
    let set = set_other_mode(harness, session, &opened["modes"]).await?;
    let params = setting_params(session, &another["id"], &another["currentValue"]);
    let after = config_options(&harness.request_result(SET_METHOD, params).await?);
    let now = &option_with_id(&after, mode)["currentValue"];
    require(*now == set.as_str(), || {
        format!("the mode was set to {set:?}, but the value of the config option is {now}")
    })
}

async fn has_options_after_load(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_options_after_reopen(harness, "/agentCapabilities/loadSession", "session/load").await
}

async fn has_options_after_resume(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let capability = "/agentCapabilities/sessionCapabilities/resume";
    require_options_after_reopen(harness, capability, "session/resume").await
}

async fn require_options_after_reopen(
    harness: &mut AgentHarness,
    capability: &str,
    method: &str,
) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    harness.require_capability(capability)?;
    // An agent need not store a session in which there was no turn.
    harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    let mut params = harness.session_params();
    params["sessionId"] = json!(session);
    let opened = match harness.request(method, params).await? {
        ReceivedResponse::Result(opened) => opened,
        ReceivedResponse::Error { code, message, .. } => {
            return skip(format!("`{method}` failed with error {code}: {message}"));
        }
    };
    let options = config_options(&opened);
    if options.is_empty() {
        return skip("the session has no config options");
    }
    require_values(&options, "after the session was opened again")
}
