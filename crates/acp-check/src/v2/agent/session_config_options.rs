//! Checks for an agent's session config options.

use serde_json::{Value, json};

use super::values::find_duplicate;
use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "session-config-options";
    1 Must "Config option ids are unique." => has_unique_ids, shared;
    2 Must "Value ids of a config option are unique." => has_unique_value_ids, shared;
    3 Must "Every config option has a valid initial value." => has_valid_initial_values, shared;
    4 Must "The response to `session/set_config_option` contains all config options." => returns_all_options, shared;
    5 Must "The response to `session/set_config_option` has the new value." => returns_new_value, shared;
    6 Must "Boolean options can be set." => sets_boolean, shared;
    7 Must "Setting a config option does not affect other sessions." => leaves_other_sessions, shared;
}

/// Opens a session, and returns its id and its config options. Skips the check if there are none.
async fn open_session_with_options(
    harness: &mut AgentHarness,
) -> Result<(String, Vec<Value>), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let opened = harness.open_session().await?;
    let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
    match opened["configOptions"].as_array() {
        Some(options) if !options.is_empty() => Ok((session, options.clone())),
        _ => skip("the session has no config options"),
    }
}

/// Returns an option's values as one list, or as one list per group. A value may be in several groups.
fn value_lists(option: &Value) -> Vec<Vec<&Value>> {
    let entries = option["options"].as_array().map_or(&[][..], Vec::as_slice);
    let mut groups = entries
        .iter()
        .filter_map(|entry| entry["options"].as_array())
        .peekable();
    match groups.peek() {
        Some(_) => groups.map(|group| value_ids_in(group)).collect(),
        None => vec![value_ids_in(entries)],
    }
}

fn value_ids_in(entries: &[Value]) -> Vec<&Value> {
    entries.iter().map(|entry| &entry["value"]).collect()
}

fn option_values(option: &Value) -> Vec<&Value> {
    value_lists(option).concat()
}

fn current_value(options: &[Value], id: &Value) -> Value {
    let option = options.iter().find(|option| option["configId"] == *id);
    option
        .map(|option| option["currentValue"].clone())
        .unwrap_or_default()
}

/// Sets an option, and returns all options in the response. Skips the check if the agent rejects the value, which is
/// allowed.
async fn set_option(
    harness: &mut AgentHarness,
    session: &str,
    id: &Value,
    (of, value): (&str, &Value),
) -> Result<Vec<Value>, CheckStop> {
    let params = json!({"sessionId": session, "configId": id, "type": of, "value": value});
    match harness.request("session/set_config_option", params).await? {
        ReceivedResponse::Result(response) => {
            let options = response["configOptions"].as_array();
            Ok(options.cloned().unwrap_or_default())
        }
        ReceivedResponse::Error { code: -32601, .. } => fail(
            "the session has config options, but the agent does not support `session/set_config_option`",
        ),
        ReceivedResponse::Error { message, .. } => {
            skip(format!("option {id} cannot be set: {message}"))
        }
    }
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, options) = open_session_with_options(harness).await?;
    match find_duplicate(options.iter().map(|option| &option["configId"])) {
        Some(id) => fail(format!("duplicate config option id {id}")),
        None => Ok(()),
    }
}

async fn has_unique_value_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, options) = open_session_with_options(harness).await?;
    for option in &options {
        let mut lists = value_lists(option).into_iter();
        if let Some(value) = lists.find_map(|list| find_duplicate(list.into_iter())) {
            return fail(format!(
                "duplicate value {value} in config option {}",
                option["configId"]
            ));
        }
    }
    Ok(())
}

async fn has_valid_initial_values(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, options) = open_session_with_options(harness).await?;
    for option in options.iter().filter(|option| option["type"] == "select") {
        require(
            option_values(option).contains(&&option["currentValue"]),
            || {
                format!(
                    "config option {} has the invalid value {}",
                    option["configId"], option["currentValue"]
                )
            },
        )?;
    }
    Ok(())
}

async fn returns_all_options(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, options) = open_session_with_options(harness).await?;
    let Some(option) = options.iter().find(|option| option["type"] == "select") else {
        return skip("the session has no select option");
    };
    // Set the option to its current value, so that nothing else has a reason to change.
    let value = ("id", &option["currentValue"]);
    let now = set_option(harness, &session, &option["configId"], value).await?;
    let gone = |option: &&Value| {
        let id = &option["configId"];
        !now.iter().any(|now| now["configId"] == *id)
    };
    match options.iter().find(gone) {
        Some(option) => fail(format!(
            "config option {} is missing from the response",
            option["configId"]
        )),
        None => Ok(()),
    }
}

/// Returns a select option, and a value other than its current one.
fn find_other_value(options: &[Value]) -> Option<(&Value, &Value)> {
    options.iter().find_map(|option| {
        let mut others = option_values(option).into_iter();
        let other = others.rfind(|value| **value != option["currentValue"])?;
        Some((&option["configId"], other))
    })
}

async fn returns_new_value(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, options) = open_session_with_options(harness).await?;
    let Some((id, value)) = find_other_value(&options) else {
        return skip("no select option has more than one value");
    };
    let now = set_option(harness, &session, id, ("id", value)).await?;
    let now = current_value(&now, id);
    require(now == *value, || {
        format!("option {id} was set to {value}, but is {now} in the response")
    })
}

async fn sets_boolean(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, options) = open_session_with_options(harness).await?;
    let Some(option) = options.iter().find(|option| option["type"] == "boolean") else {
        return skip("the session has no boolean option");
    };
    let id = &option["configId"];
    let value = json!(option["currentValue"] != json!(true));
    let now = set_option(harness, &session, id, ("boolean", &value)).await?;
    let now = current_value(&now, id);
    require(now == value, || {
        format!("option {id} was set to {value}, but is {now} in the response")
    })
}

async fn leaves_other_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (first, options_of_first) = open_session_with_options(harness).await?;
    let Some((id, value)) = find_other_value(&options_of_first) else {
        return skip("no select option has more than one value");
    };
    let second = harness.new_session().await?;
    set_option(harness, &first, id, ("id", value)).await?;
    // The other session must not get an update, because an update would mean that its options have changed.
    harness.wait_until_quiet().await?;
    let changed = harness.updates().find(|params| {
        let options = params["update"]["configOptions"].as_array();
        params["sessionId"] == *second
            && options.is_some_and(|options| current_value(options, id) == *value)
    });
    require(changed.is_none(), || {
        format!("setting option {id} in one session changed it in another")
    })
}
