//! Checks for an agent's session modes.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "session-modes";
    1 Must "The current mode of a new session is one of the available modes." => current_mode_is_available, shared;
    2 Must "Mode ids are unique." => has_unique_ids, shared;
    3 Must "`session/set_mode` sets an available mode." => sets_mode, shared;
    4 Should "`session/set_mode` with an unavailable mode fails." => rejects_unknown_mode, shared;
    5 Must "The agent switches only to available modes." => changes_to_available_mode, shared;
    6 Must "The mode can be set during a turn." => sets_mode_during_turn, shared;
    7 Should "`session/set_mode` for an unknown session fails." => rejects_unknown_session, shared;
}

/// Opens a session, and returns its id and its modes. Skips the check if the session has none.
pub(super) async fn session_with_modes(
    harness: &mut AgentHarness,
) -> Result<(String, Value), CheckStop> {
    let opened = harness.open_session().await?;
    let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
    match &opened["modes"] {
        Value::Object(_) => Ok((session, opened["modes"].clone())),
        _ => skip("the agent's sessions have no modes"),
    }
}

/// Returns the ids of the available modes.
fn available_ids(modes: &Value) -> Vec<&str> {
    let modes = modes["availableModes"].as_array().into_iter().flatten();
    modes.filter_map(|mode| mode["id"].as_str()).collect()
}

/// Switches to a mode other than the current one, and returns its id. Tries one mode after another, because some may be
/// unavailable. For example, an agent that runs as root may reject a mode that never asks.
pub(super) async fn set_other_mode(
    harness: &mut AgentHarness,
    session: &str,
    modes: &Value,
) -> Result<String, CheckStop> {
    let mut refused = None;
    let ids = available_ids(modes).into_iter();
    for id in ids.filter(|id| modes["currentModeId"] != *id) {
        let params = json!({"sessionId": session, "modeId": id});
        match harness.request("session/set_mode", params).await? {
            ReceivedResponse::Result(_) => return Ok(id.to_owned()),
            ReceivedResponse::Error { code, message, .. } => refused = Some((code, message)),
        }
    }
    match refused {
        Some((code, message)) => fail(format!(
            "cannot set another mode: `session/set_mode` failed with error {code}: {message}"
        )),
        None => skip("the agent has only one mode"),
    }
}

async fn current_mode_is_available(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, modes) = session_with_modes(harness).await?;
    let current = modes["currentModeId"].as_str().unwrap_or_default();
    require(available_ids(&modes).contains(&current), || {
        format!(
            "the current mode {current:?} is not one of {}",
            available_ids(&modes).join(", ")
        )
    })
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, modes) = session_with_modes(harness).await?;
    let ids = available_ids(&modes);
    let twice = ids
        .iter()
        .find(|id| ids.iter().filter(|other| other == id).count() > 1);
    match twice {
        Some(id) => fail(format!("duplicate mode id {id:?}")),
        None => Ok(()),
    }
}

async fn sets_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, modes) = session_with_modes(harness).await?;
    set_other_mode(harness, &session, &modes).await.map(drop)
}

async fn rejects_unknown_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = session_with_modes(harness).await?;
    let params = json!({"sessionId": session, "modeId": "no-such-mode"});
    match harness.request("session/set_mode", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent accepted the unavailable mode \"no-such-mode\"")
        }
    }
}

async fn changes_to_available_mode(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, modes) = session_with_modes(harness).await?;
    let turn = harness.run_task_or_skip(&session, AgentTask::Plan).await?;
    let mut changes = turn.updates_of_type("current_mode_update").peekable();
    if changes.peek().is_none() {
        return skip("the agent did not change its mode on its own");
    }
    let ids = available_ids(&modes);
    let current = |update: &Value| {
        update["currentModeId"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    match changes.map(current).find(|id| !ids.contains(&id.as_str())) {
        Some(id) => fail(format!(
            "the mode is now {id:?}, which is not one of {}",
            ids.join(", ")
        )),
        None => Ok(()),
    }
}

async fn sets_mode_during_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, modes) = session_with_modes(harness).await?;
    let set = async |harness: &mut AgentHarness| set_other_mode(harness, &session, &modes).await;
    harness.run_during_turn(&session, set).await.map(drop)
}

async fn rejects_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (_, modes) = session_with_modes(harness).await?;
    let params = json!({"sessionId": "sess_nobody_has_opened", "modeId": modes["currentModeId"]});
    match harness.request("session/set_mode", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("`session/set_mode` for an unknown session succeeded"),
    }
}
