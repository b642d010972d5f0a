//! Steps shared by the checks of both protocol versions.

use serde_json::{Value, json};

use acp_rules::schema::{Schema, SchemaVersion};

use crate::agent_harness::AgentHarness;
use crate::capability::capability_pointer;
use crate::options::AgentTask;
use crate::turns::CheckTurn;
use crate::verdict::{CheckStop, fail, skip};

/// Returns the JSON pointer to a capability of an agent, such as `auth/status`.
pub(super) fn agent_capability(harness: &AgentHarness, name: &str) -> String {
    capability_pointer(harness.version(), name)
}

/// Returns the JSON pointer to a session capability of an agent.
pub(super) fn session_capability(harness: &AgentHarness, name: &str) -> String {
    match harness.version() {
        SchemaVersion::V1 => agent_capability(harness, &format!("sessionCapabilities/{name}")),
        SchemaVersion::V2 => agent_capability(harness, &format!("session/{name}")),
    }
}

/// Initializes the connection. Skips the check unless the agent supports this session capability.
pub(super) async fn require_session_capability(
    harness: &mut AgentHarness,
    name: &str,
) -> Result<(), CheckStop> {
    harness.initialize().await?;
    let offered = session_capability(harness, name);
    harness.require_capability(&offered)
}

/// Makes the agent do a task in a session, and waits for the end of the turn.
pub(super) async fn run_task(
    harness: &mut AgentHarness,
    session: &str,
    task: AgentTask,
) -> Result<CheckTurn, CheckStop> {
    match harness.version() {
        SchemaVersion::V1 => harness.run_task(session, task).await,
        SchemaVersion::V2 => harness.run_task_v2(session, task).await,
    }
}

/// Opens a session, runs one turn, and returns the session's id.
pub(super) async fn new_session_with_turn(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = harness.new_session().await?;
    run_task(harness, &session, AgentTask::Answer).await?;
    Ok(session)
}

/// Returns the listed sessions in the check's directory, fetching one page after another. `archived` is the archive
/// filter, if any.
pub(super) async fn list_sessions(
    harness: &mut AgentHarness,
    archived: Option<&str>,
) -> Result<Vec<Value>, CheckStop> {
    let mut params = json!({"cwd": harness.directory().project()});
    if let Some(archived) = archived {
        params["archived"] = json!(archived);
    }
    harness.list_sessions_v2(params).await
}

/// Returns a session's entry in a list. Skips the check if there is none, because an agent may list new sessions late.
pub(super) fn find_session<'a>(listed: &'a [Value], session: &str) -> Result<&'a Value, CheckStop> {
    match listed.iter().find(|info| info["sessionId"] == *session) {
        Some(info) => Ok(info),
        None => skip("the session is not listed"),
    }
}

/// Returns `true` if a session is in the list.
pub(super) fn contains_session(listed: &[Value], session: &str) -> bool {
    listed.iter().any(|info| info["sessionId"] == *session)
}

/// Requires that a value matches its schema.
pub(super) fn require_shape(
    harness: &AgentHarness,
    shape: &str,
    value: &Value,
) -> Result<(), CheckStop> {
    let faults = Schema::for_version(harness.version()).check_value(shape, value, "");
    match faults.first() {
        Some(fault) => fail(format!("{fault}, in {value}")),
        None => Ok(()),
    }
}
