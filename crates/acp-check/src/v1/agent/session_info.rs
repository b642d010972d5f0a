//! Checks how an agent reports changed session titles.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, require, skip};

checks! { V1 Agent "session-info";
    1 Should "`session/list` returns the last title that was sent in an update." => lists_last_title, shared;
    2 Should "No title updates are sent for a deleted session." => sends_no_title_after_deletion, shared;
}

/// Returns the session's title from the last update that contains one.
fn last_title(harness: &AgentHarness, session: &str) -> Option<Value> {
    let of_session = harness
        .updates()
        .filter(|params| params["sessionId"] == session);
    let mut titles = of_session.filter_map(|params| {
        let update = &params["update"];
        let of_kind = update["sessionUpdate"] == "session_info_update";
        update
            .get("title")
            .filter(|title| of_kind && title.is_string())
    });
    titles.next_back().cloned()
}

/// Makes the agent set a session's title. Returns the session's id and title.
async fn create_titled_session(harness: &mut AgentHarness) -> Result<(String, Value), CheckStop> {
    let session = harness.new_session().await?;
    harness
        .run_task_or_skip(&session, AgentTask::Answer)
        .await?;
    harness.drain_messages().await?;
    match last_title(harness, &session) {
        Some(title) => Ok((session, title)),
        None => skip("the agent sent no session title"),
    }
}

async fn lists_last_title(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = create_titled_session(harness).await?;
    harness.require_capability("/agentCapabilities/sessionCapabilities/list")?;
    let params = json!({"cwd": harness.directory().project()});
    let list = harness.request_result("session/list", params).await?;
    // The agent may have sent another title in the meantime.
    let reported = last_title(harness, &session).unwrap_or_default();
    let sessions = list["sessions"].as_array().into_iter().flatten();
    let mut listed = sessions.filter(|listed| listed["sessionId"] == session.as_str());
    let Some(listed) = listed.next() else {
        return skip("the session is not on the first page of the list");
    };
    let title = &listed["title"];
    require(*title == reported, || {
        format!("the session's title is {reported}, but it is listed as {title}")
    })
}

async fn sends_no_title_after_deletion(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = create_titled_session(harness).await?;
    harness.require_capability("/agentCapabilities/sessionCapabilities/delete")?;
    harness
        .request_result("session/delete", json!({"sessionId": session}))
        .await?;
    let before = harness.messages.len();
    harness.drain_messages().await?;
    let mut updates = harness.updates_since(before);
    let late = updates.any(|params| {
        params["sessionId"] == session.as_str()
            && params["update"]["sessionUpdate"] == "session_info_update"
    });
    require(!late, || {
        "the agent sent a `session_info_update` for a deleted session".to_owned()
    })
}
