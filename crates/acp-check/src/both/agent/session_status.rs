//! Checks for the status that an agent reports for a session: whether it is in memory. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::{
    new_session_with_turn, require_session_capability, require_shape, run_task, session_capability,
};
use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::agent_harness_v2::reported_state;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "session-status";
    1 Must "A new session has the status `open`." => reports_new_session_open, shared;
    2 Should "A closed session does not have the status `open`." => reports_closed_session_not_open, shared;
    3 Must "A status request for an unknown session fails with a not-found error that contains the session's id." => rejects_unknown_session, shared;
    4 Must "Requesting the status of a closed session neither opens it nor triggers updates for it." => does_not_open_session, shared;
}

// Checks for version 2 only. Their numbers continue those above.
checks! { V2 Agent "session-status";
    5 Should "The status of an open session includes its state." => includes_state, shared;
    6 Must "The state in the status is the last state that the agent reported." => reports_last_state, shared;
}

const STATUS_METHOD: &str = "session/status";

/// Requests a session's status and returns the result.
async fn request_status(harness: &mut AgentHarness, session: &str) -> Result<Value, CheckStop> {
    let response = harness
        .request_result(STATUS_METHOD, json!({"sessionId": session}))
        .await?;
    require_shape(harness, "SessionStatusResponse", &response)?;
    Ok(response)
}

/// Opens a session, runs one turn, closes the session, and returns its id.
async fn create_closed_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    require_session_capability(harness, "status").await?;
    if harness.version() == SchemaVersion::V1 {
        harness.require_capability(&session_capability(harness, "close"))?;
    }
    let session = new_session_with_turn(harness).await?;
    let params = json!({"sessionId": session});
    harness
        .request_result("session/close", params.clone())
        .await?;
    match harness.request(STATUS_METHOD, params).await? {
        ReceivedResponse::Error { code: -32002, .. } => {
            skip("the agent does not store closed sessions")
        }
        _ => Ok(session),
    }
}

async fn reports_new_session_open(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "status").await?;
    let session = harness.new_session().await?;
    let response = request_status(harness, &session).await?;
    require(response["status"] == "open", || {
        format!(
            "the session is open, but its status is {}",
            response["status"]
        )
    })
}

async fn reports_closed_session_not_open(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_closed_session(harness).await?;
    let response = request_status(harness, &session).await?;
    require(response["status"] != "open", || {
        "the session is closed, but its status is \"open\"".to_owned()
    })
}

async fn rejects_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "status").await?;
    let params = json!({"sessionId": UNKNOWN_SESSION});
    match harness.request(STATUS_METHOD, params).await? {
        ReceivedResponse::Error {
            code: -32002,
            error,
            ..
        } => require(error["data"]["sessionId"] == UNKNOWN_SESSION, || {
            format!(
                "the error's data does not contain the session's `sessionId`: {}",
                error["data"]
            )
        }),
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "`session/status` failed with error {code} ({message}); expected -32002"
        )),
        ReceivedResponse::Result(response) => fail(format!(
            "`session/status` succeeded with {response}; expected an error"
        )),
    }
}

async fn does_not_open_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_closed_session(harness).await?;
    harness.wait_until_quiet().await?;
    let before = harness.messages.len();
    let first = request_status(harness, &session).await?;
    harness.wait_until_quiet().await?;
    let second = request_status(harness, &session).await?;
    require(first["status"] == second["status"], || {
        format!(
            "requesting the status changed the status from {} to {}",
            first["status"], second["status"]
        )
    })?;
    let mut reported = harness.updates_since(before);
    match reported.find(|params| params["sessionId"] == *session) {
        Some(params) => fail(format!(
            "after a request for the status of a closed session, the agent sent {}",
            params["update"]["sessionUpdate"]
        )),
        None => Ok(()),
    }
}

async fn includes_state(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "status").await?;
    let session = harness.new_session().await?;
    let response = request_status(harness, &session).await?;
    require(
        !response["state"].is_null() || response["status"] != "open",
        || format!("the session is open, but `state` is missing: {response}"),
    )
}

/// Requires that the session's status matches the state most recently reported by the agent, if any.
async fn require_same_state(harness: &mut AgentHarness, session: &str) -> Result<(), CheckStop> {
    let response = request_status(harness, session).await?;
    let updates = harness.updates().rev();
    let mut reported = updates
        .filter(|params| params["sessionId"] == *session)
        .filter_map(|params| reported_state(&params["update"]));
    let Some(reported) = reported.next() else {
        return skip("the agent reported no state");
    };
    let said = &response["state"]["state"];
    require(said.is_null() || *said == *reported, || {
        format!("the state in the status is {said}, but the last reported state is {reported:?}")
    })
}

async fn reports_last_state(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "status").await?;
    let session = harness.new_session().await?;
    run_task(harness, &session, AgentTask::Answer).await?;
    require_same_state(harness, &session).await?;
    harness.begin_task_v2(&session, AgentTask::Long).await?;
    harness
        .wait_until("a `state_update` when the work began", |_, message| {
            let update = &message.params()["update"];
            reported_state(update)
                .filter(|state| *state != "idle")
                .map(drop)
        })
        .await?;
    require_same_state(harness, &session).await
}
