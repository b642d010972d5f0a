//! Steps that checks take in either version, in the way of that version.

use serde_json::{Value, json};

use acp_rules::schema::{Schema, SchemaVersion};

use crate::agent_harness::AgentHarness;
use crate::options::AgentTask;
use crate::turns::CheckTurn;
use crate::verdict::{CheckStop, fail, skip};

/// Returns the pointer to an agent's capability, such as `auth/status`.
pub(super) fn of_agent(harness: &AgentHarness, name: &str) -> String {
    match harness.version() {
        SchemaVersion::V1 => format!("/agentCapabilities/{name}"),
        SchemaVersion::V2 => format!("/capabilities/{name}"),
    }
}

/// Returns the pointer to an agent's session capability.
pub(super) fn of_sessions(harness: &AgentHarness, name: &str) -> String {
    match harness.version() {
        SchemaVersion::V1 => of_agent(harness, &format!("sessionCapabilities/{name}")),
        SchemaVersion::V2 => of_agent(harness, &format!("session/{name}")),
    }
}

/// Initializes, and skips unless the agent supports this session capability.
pub(super) async fn needs_of_sessions(
    harness: &mut AgentHarness,
    name: &str,
) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let offered = of_sessions(harness, name);
    harness.require_capability(&offered)
}

/// Makes the agent do a task in a session, and waits for the end of the turn.
pub(super) async fn turn(
    harness: &mut AgentHarness,
    session: &str,
    task: AgentTask,
) -> Result<CheckTurn, CheckStop> {
    match harness.version() {
        SchemaVersion::V1 => harness.turn(session, task).await,
        SchemaVersion::V2 => harness.turn_v2(session, task).await,
    }
}

/// Returns a session with a turn.
pub(super) async fn spoken(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = harness.session().await?;
    turn(harness, &session, AgentTask::Answer).await?;
    Ok(session)
}

/// Returns the sessions in the check's directory, page by page, with this filter for archived ones.
pub(super) async fn listed(
    harness: &mut AgentHarness,
    archived: Option<&str>,
) -> Result<Vec<Value>, CheckStop> {
    let mut params = json!({"cwd": harness.place().project()});
    if let Some(archived) = archived {
        params["archived"] = json!(archived);
    }
    harness.list_sessions_v2(params).await
}

/// Returns what is listed of a session. Skips if it is not listed: an agent may list a session late.
pub(super) fn info<'a>(listed: &'a [Value], session: &str) -> Result<&'a Value, CheckStop> {
    match listed.iter().find(|info| info["sessionId"] == *session) {
        Some(info) => Ok(info),
        None => skip("the session is not listed"),
    }
}

/// Returns `true` if a session is in a list.
pub(super) fn has(listed: &[Value], session: &str) -> bool {
    listed.iter().any(|info| info["sessionId"] == *session)
}

/// Requires that a value matches its schema.
pub(super) fn has_shape(
    harness: &AgentHarness,
    shape: &str,
    value: &Value,
) -> Result<(), CheckStop> {
    let faults = Schema::of(harness.version()).check_value(shape, value, "");
    match faults.first() {
        Some(fault) => fail(format!("{fault}, in {value}")),
        None => Ok(()),
    }
}
