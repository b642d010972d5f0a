//! Checks how an agent lists sessions.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "session-list";
    1 Must "`session/list` without params returns sessions." => returns_sessions, shared;
    2 Should "A session with at least one prompt is listed." => lists_prompted_session, shared;
    3 Must "With `cwd`, only sessions in that directory are listed." => filters_by_directory, shared;
    4 Must "If there are no sessions, the list is empty." => returns_empty_list_for_other_directory, shared;
    5 Should "A request with an unknown cursor fails." => rejects_unknown_cursor, shared;
    6 Must "Each session is listed once across all pages." => lists_each_session_once, shared;
    7 Must "A session is listed with its working directory." => lists_working_directory, shared;
    8 Should "An agent that does not support `session/list` rejects it." => rejects_unsupported_list, shared;
    9 Must "`session/set_title` returns the new title, and the session is listed with it." => sets_title, shared;
    10 Must "Setting an empty title fails with an invalid-params error." => rejects_empty_title, shared;
    11 Must "Setting the title of an unknown session fails." => rejects_title_for_unknown_session, shared;
}

const LIST_CAPABILITY: &str = "/agentCapabilities/sessionCapabilities/list";
const TITLE_CAPABILITY: &str = "/agentCapabilities/sessionCapabilities/title";

/// The title that checks set for a session.
pub(crate) const NEW_TITLE: &str = "Set by the check";

/// The maximum number of pages to request.
const MAX_PAGES: usize = 200;

/// Returns all listed sessions, fetching page after page up to the maximum.
pub(super) async fn list_sessions(
    harness: &mut AgentHarness,
    params: Value,
) -> Result<Vec<Value>, CheckStop> {
    let mut sessions = Vec::new();
    let mut params = params;
    for _ in 0..MAX_PAGES {
        let mut page = harness
            .request_result("session/list", params.clone())
            .await?;
        match page["sessions"].take() {
            Value::Array(listed) => sessions.extend(listed),
            other => {
                return fail(format!(
                    "`sessions` in the response to `session/list` is not a list: {other}"
                ));
            }
        }
        match page["nextCursor"].take() {
            Value::Null => return Ok(sessions),
            next => params["cursor"] = next,
        }
    }
    skip(format!("the list has more than {MAX_PAGES} pages"))
}

/// Opens sessions, runs one turn in each, and returns their ids. Skips the check unless the agent can list sessions.
async fn open_sessions(
    harness: &mut AgentHarness,
    how_many: usize,
) -> Result<Vec<String>, CheckStop> {
    harness.initialize().await?;
    harness.require_capability(LIST_CAPABILITY)?;
    let mut sessions = Vec::new();
    for _ in 0..how_many {
        let session = harness.new_session().await?;
        harness.run_task(&session, AgentTask::Answer).await?;
        sessions.push(session);
    }
    Ok(sessions)
}

/// Creates a directory that has no sessions.
fn create_other_directory(harness: &AgentHarness) -> Result<PathBuf, CheckStop> {
    let elsewhere = harness.directory().project().with_file_name("elsewhere");
    match std::fs::create_dir(&elsewhere) {
        Ok(()) => Ok(elsewhere),
        Err(e) => Err(CheckStop::Harness(format!(
            "cannot create a directory: {e}"
        ))),
    }
}

fn find_session<'a>(listed: &'a [Value], session: &str) -> Option<&'a Value> {
    listed.iter().find(|listed| listed["sessionId"] == session)
}

async fn returns_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    open_sessions(harness, 0).await?;
    let page = harness.request_result("session/list", json!({})).await?;
    require(page["sessions"].is_array(), || {
        format!("the response has no `sessions` list: {page}")
    })
}

async fn lists_prompted_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let sessions = open_sessions(harness, 1).await?;
    let listed = list_sessions(harness, json!({"cwd": harness.directory().project()})).await?;
    for session in sessions {
        require(find_session(&listed, &session).is_some(), || {
            format!("session {session:?} had a turn, but is not listed")
        })?;
    }
    Ok(())
}

async fn filters_by_directory(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let sessions = open_sessions(harness, 1).await?;
    let other = create_other_directory(harness)?;
    let listed = list_sessions(harness, json!({"cwd": other})).await?;
    for session in sessions {
        require(find_session(&listed, &session).is_none(), || {
            format!(
                "requested sessions in {}, but got session {session:?}, which is in {}",
                other.display(),
                harness.directory().project().display()
            )
        })?;
    }
    Ok(())
}

async fn returns_empty_list_for_other_directory(
    harness: &mut AgentHarness,
) -> Result<(), CheckStop> {
    open_sessions(harness, 0).await?;
    let elsewhere = create_other_directory(harness)?;
    let params = json!({"cwd": elsewhere});
    match harness.request("session/list", params).await? {
        ReceivedResponse::Result(page) => require(page["sessions"] == json!([]), || {
            format!(
                "there are no sessions in {}, but the agent listed {}",
                elsewhere.display(),
                page["sessions"]
            )
        }),
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "there are no sessions in {}, but `session/list` failed with error {code}: {message}",
            elsewhere.display()
        )),
    }
}

async fn rejects_unknown_cursor(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    open_sessions(harness, 0).await?;
    let params = json!({"cursor": "acp-check no such cursor"});
    match harness.request("session/list", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("the agent accepted an unknown cursor"),
    }
}

async fn lists_each_session_once(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    open_sessions(harness, 3).await?;
    let listed = list_sessions(harness, json!({"cwd": harness.directory().project()})).await?;
    let mut ids: Vec<&Value> = listed.iter().map(|listed| &listed["sessionId"]).collect();
    while let Some(id) = ids.pop() {
        require(!ids.contains(&id), || {
            format!("session {id} is listed twice")
        })?;
    }
    Ok(())
}

async fn lists_working_directory(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let sessions = open_sessions(harness, 1).await?;
    let listed = list_sessions(harness, json!({})).await?;
    let Some(listed) = sessions
        .first()
        .and_then(|session| find_session(&listed, session))
    else {
        return skip("the session is not listed");
    };
    let project = harness.directory().project();
    require(listed["cwd"] == json!(project), || {
        format!(
            "the session was opened in {}, but is listed with working directory {}",
            project.display(),
            listed["cwd"]
        )
    })
}

async fn rejects_unsupported_list(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    harness.initialize().await?;
    if harness.require_capability(LIST_CAPABILITY).is_ok() {
        return skip("the agent supports `session/list`");
    }
    match harness.request("session/list", json!({})).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent does not support `session/list`, but the request succeeded")
        }
    }
}

/// Opens a session, runs one turn, and returns the session's id. Skips the check unless the agent lets clients set
/// titles.
async fn create_session_for_title(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    harness.initialize().await?;
    harness.require_capability(TITLE_CAPABILITY)?;
    let session = harness.new_session().await?;
    harness.run_task(&session, AgentTask::Answer).await?;
    Ok(session)
}

async fn sets_title(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_session_for_title(harness).await?;
    let params = json!({"sessionId": session, "title": NEW_TITLE});
    let response = harness.request_result("session/set_title", params).await?;
    let Some(kept) = response["title"].as_str() else {
        return fail(format!("the response has no `title`: {response}"));
    };
    harness.require_capability(LIST_CAPABILITY)?;
    let listed = list_sessions(harness, json!({"cwd": harness.directory().project()})).await?;
    let Some(listed) = find_session(&listed, &session) else {
        return skip("the session is not listed");
    };
    require(listed["title"] == kept, || {
        format!(
            "the returned title is {kept:?}, but the listed title is {}",
            listed["title"]
        )
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
