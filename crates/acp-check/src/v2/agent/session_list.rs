//! Checks how an agent lists and deletes sessions.

use serde_json::{Value, json};

use super::values::find_duplicate;
use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::check::checks;
use crate::options::AgentTask;
use crate::v1::agent::session_list::NEW_TITLE;
use crate::verdict::{CheckStop, fail, require};

checks! { V2 Agent "session-list";
    1 Must "An agent with the `session` capability supports `session/list`." => supports_list, shared;
    2 Should "A session with at least one prompt is listed." => lists_prompted_session, shared;
    3 Should "If `cwd` is given, only sessions in that directory are listed." => filters_by_directory, shared;
    4 Must "Session ids in the list are unique." => has_unique_ids, shared;
    5 Must "A deleted session is no longer listed." => omits_deleted_session, shared;
    6 Must "`session/set_title` returns the new title, and the session is listed with it." => sets_title, shared;
    7 Must "Setting an empty title fails with an invalid-params error." => rejects_empty_title, shared;
    8 Must "Setting the title of an unknown session fails." => rejects_title_for_unknown_session, shared;
}

const TITLE_CAPABILITY: &str = "/capabilities/session/title";

async fn supports_list(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session")?;
    let cwd = harness.directory().project().to_owned();
    harness
        .list_sessions_v2(json!({"cwd": cwd}))
        .await
        .map(drop)
}

/// Opens a session, runs one turn, and returns the session's id.
async fn create_prompted_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = harness.new_session_v2().await?;
    harness.run_task_v2(&session, AgentTask::Answer).await?;
    Ok(session)
}

fn contains_session(listed: &[Value], session: &str) -> bool {
    listed.iter().any(|info| info["sessionId"] == *session)
}

async fn lists_prompted_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_prompted_session(harness).await?;
    let cwd = harness.directory().project().to_owned();
    let listed = harness.list_sessions_v2(json!({"cwd": cwd})).await?;
    require(contains_session(&listed, &session), || {
        format!("session {session:?} is missing from the list for its directory")
    })
}

async fn filters_by_directory(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    create_prompted_session(harness).await?;
    let elsewhere = harness.directory().file("elsewhere");
    let listed = harness.list_sessions_v2(json!({"cwd": elsewhere})).await?;
    match listed.first() {
        Some(info) => fail(format!(
            "only sessions in another directory were requested, but the agent listed one in {}",
            info["cwd"]
        )),
        None => Ok(()),
    }
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    create_prompted_session(harness).await?;
    let cwd = harness.directory().project().to_owned();
    let listed = harness.list_sessions_v2(json!({"cwd": cwd})).await?;
    match find_duplicate(listed.iter().map(|info| &info["sessionId"])) {
        Some(id) => fail(format!("session {id} is listed twice")),
        None => Ok(()),
    }
}

async fn omits_deleted_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability("/capabilities/session/delete")?;
    let session = create_prompted_session(harness).await?;
    harness
        .request_result("session/delete", json!({"sessionId": session}))
        .await?;
    let cwd = harness.directory().project().to_owned();
    let listed = harness.list_sessions_v2(json!({"cwd": cwd})).await?;
    require(!contains_session(&listed, &session), || {
        format!("session {session:?} was deleted, but is still listed")
    })
}

/// Like `create_prompted_session`, but skips the check unless the agent lets clients set titles.
async fn create_session_for_title(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    harness.initialize().await?;
    harness.require_capability(TITLE_CAPABILITY)?;
    create_prompted_session(harness).await
}

async fn sets_title(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_session_for_title(harness).await?;
    let params = json!({"sessionId": session, "title": NEW_TITLE});
    let response = harness.request_result("session/set_title", params).await?;
    let Some(kept) = response["title"].as_str() else {
        return fail(format!("the response has no `title`: {response}"));
    };
    let cwd = harness.directory().project().to_owned();
    let listed = harness.list_sessions_v2(json!({"cwd": cwd})).await?;
    let found = listed.iter().find(|info| info["sessionId"] == *session);
    let listed = found.map_or(&Value::Null, |info| &info["title"]);
    require(listed == kept, || {
        format!("the returned title is {kept:?}, but the listed title is {listed}")
    })
}

async fn rejects_empty_title(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_session_for_title(harness).await?;
    let params = json!({"sessionId": session, "title": ""});
    harness
        .request_error("session/set_title", params, -32602)
        .await
}

async fn rejects_title_for_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    harness.require_capability(TITLE_CAPABILITY)?;
    let params = json!({"sessionId": UNKNOWN_SESSION, "title": NEW_TITLE});
    harness
        .request_error("session/set_title", params, -32002)
        .await
}
