//! Session info: titles that change.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::options::AgentTask;
use crate::verdict::{CheckStop, require, skip};

checks! { V1 Agent "session-info";
    1 Should "`session/list` shows the last title sent in an update." => title_in_list;
    2 Should "No title updates are sent for a deleted session." => not_after_deletion;
}

/// The last title that was told of a session.
fn title(play: &AgentHarness, session: &str) -> Option<Value> {
    let of_session = play
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

/// Lets the agent give a session a title.
async fn titled_session(play: &mut AgentHarness) -> Result<(String, Value), CheckStop> {
    let session = play.session().await?;
    play.task(&session, AgentTask::Answer).await?;
    play.hush().await?;
    match title(play, &session) {
        Some(title) => Ok((session, title)),
        None => skip("the agent sent no session title"),
    }
}

async fn title_in_list(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = titled_session(play).await?;
    play.require_capability("/agentCapabilities/sessionCapabilities/list")?;
    let params = json!({"cwd": play.place().project()});
    let list = play.result("session/list", params).await?;
    // Another title may have come meanwhile.
    let told = title(play, &session).unwrap_or_default();
    let sessions = list["sessions"].as_array().into_iter().flatten();
    let mut listed = sessions.filter(|listed| listed["sessionId"] == session.as_str());
    let Some(listed) = listed.next() else {
        return skip("the session is not on the first page of the list");
    };
    let title = &listed["title"];
    require(*title == told, || {
        format!("the session has title {told}, but the list says {title}")
    })
}

async fn not_after_deletion(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let (session, _) = titled_session(play).await?;
    play.require_capability("/agentCapabilities/sessionCapabilities/delete")?;
    play.result("session/delete", json!({"sessionId": session}))
        .await?;
    let before = play.messages.len();
    play.hush().await?;
    let mut updates = play.updates_since(before);
    let late = updates.any(|params| {
        params["sessionId"] == session.as_str()
            && params["update"]["sessionUpdate"] == "session_info_update"
    });
    require(!late, || {
        "it sent a `session_info_update` for a deleted session".to_owned()
    })
}
