//! What checks do in either version, each in its way.

use serde_json::{Value, json};

use acp_rules::schema::{Schema, SchemaVersion};

use crate::agent_harness::AgentHarness;
use crate::options::AgentTask;
use crate::turns::CheckTurn;
use crate::verdict::{CheckStop, fail, skip};

/// Where an agent says whether it offers something, such as `auth/status`.
pub(super) fn of_agent(harness: &AgentHarness, name: &str) -> String {
    match harness.version() {
        SchemaVersion::V1 => format!("/agentCapabilities/{name}"),
        SchemaVersion::V2 => format!("/capabilities/{name}"),
    }
}

/// Where an agent says what it offers for its sessions.
pub(super) fn of_sessions(harness: &AgentHarness, name: &str) -> String {
    match harness.version() {
        SchemaVersion::V1 => of_agent(harness, &format!("sessionCapabilities/{name}")),
        SchemaVersion::V2 => of_agent(harness, &format!("session/{name}")),
    }
}

/// Initializes, and goes on only if the agent offers this for its sessions.
pub(super) async fn needs_of_sessions(
    harness: &mut AgentHarness,
    name: &str,
) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let offered = of_sessions(harness, name);
    harness.require_capability(&offered)
}

/// Lets the agent do a task in a session, to its end.
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

/// A session in which something was said.
pub(super) async fn spoken(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = harness.session().await?;
    turn(harness, &session, AgentTask::Answer).await?;
    Ok(session)
}

/// The sessions of the check's directory, page by page, that are listed with this filter of archived ones.
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

/// What is listed of a session. A skip if it is not: an agent may know a session only after a while.
pub(super) fn info<'a>(listed: &'a [Value], session: &str) -> Result<&'a Value, CheckStop> {
    match listed.iter().find(|info| info["sessionId"] == *session) {
        Some(info) => Ok(info),
        None => skip("the session is not listed"),
    }
}

/// Whether a session is in a list.
pub(super) fn has(listed: &[Value], session: &str) -> bool {
    listed.iter().any(|info| info["sessionId"] == *session)
}

/// That a value has the shape that the schema gives it.
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
