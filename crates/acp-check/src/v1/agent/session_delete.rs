//! Checks how an agent deletes sessions.

use serde_json::json;

use super::session_list::list_sessions;
use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "session-delete";
    1 Must "A deleted session is no longer listed." => omits_deleted_session, shared;
    2 Should "Deleting an unknown session succeeds." => deletes_unknown_session, shared;
    3 Should "Deleting a session twice succeeds." => accepts_deleting_twice, shared;
    4 Should "An agent that does not support `session/delete` rejects it." => rejects_unsupported_delete, shared;
}

const SESSION_CAPABILITIES: &str = "/agentCapabilities/sessionCapabilities";

/// Opens a session, runs one turn, deletes the session, and returns its id. Closes the session first if possible,
/// because agents may refuse to delete an open session.
async fn create_deleted_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    harness.initialize().await?;
    harness.require_capability(&format!("{SESSION_CAPABILITIES}/delete"))?;
    let session = harness.new_session().await?;
    let params = json!({"sessionId": session});
    harness.run_task(&session, AgentTask::Answer).await?;
    let closes = harness
        .require_capability(&format!("{SESSION_CAPABILITIES}/close"))
        .is_ok();
    if closes {
        harness
            .request_result("session/close", params.clone())
            .await?;
    }
    match harness.request("session/delete", params).await? {
        ReceivedResponse::Result(_) => Ok(session),
        ReceivedResponse::Error { message, .. } if !closes => skip(format!(
            "the agent cannot close sessions, and does not delete open sessions: {message}"
        )),
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "`session/delete` for an existing session failed with error {code}: {message}"
        )),
    }
}

async fn omits_deleted_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_deleted_session(harness).await?;
    harness.require_capability(&format!("{SESSION_CAPABILITIES}/list"))?;
    let listed = list_sessions(harness, json!({"cwd": harness.directory().project()})).await?;
    let found = listed.iter().any(|listed| listed["sessionId"] == session);
    require(!found, || {
        format!("session {session:?} was deleted, but is still listed")
    })
}

async fn deletes_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability(&format!("{SESSION_CAPABILITIES}/delete"))?;
    harness
        .request_result("session/delete", json!({"sessionId": UNKNOWN_SESSION}))
        .await?;
    Ok(())
}

async fn accepts_deleting_twice(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_deleted_session(harness).await?;
    harness
        .request_result("session/delete", json!({"sessionId": session}))
        .await?;
    Ok(())
}

async fn rejects_unsupported_delete(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = harness.new_session().await?;
    if harness
        .require_capability(&format!("{SESSION_CAPABILITIES}/delete"))
        .is_ok()
    {
        return skip("the agent supports `session/delete`");
    }
    let params = json!({"sessionId": session});
    match harness.request("session/delete", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent does not support `session/delete`, but the request succeeded")
        }
    }
}
