//! Session delete: taking sessions out of the list.

use serde_json::json;

use super::session_list::listed;
use crate::check::checks;
use crate::options::Task;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;
use crate::with_agent::NO_SESSION;

checks! { V1 Agent "session-delete";
    1 Must "A session that was deleted is not listed any more." => not_listed;
    2 Should "Deleting a session that there is not succeeds." => unknown;
    3 Should "Deleting a session twice succeeds." => twice;
    4 Should "An agent that does not offer to delete sessions refuses to." => not_offered;
}

const SESSION: &str = "/agentCapabilities/sessionCapabilities";

/// A session in which something was said and which was then deleted. What deleting an open one does is the agent's
/// business, so it is closed before.
async fn deleted(play: &mut AgentPlay) -> Result<String, Stop> {
    play.initialize().await?;
    play.needs(&format!("{SESSION}/delete"))?;
    let session = play.session().await?;
    let params = json!({"sessionId": session});
    play.turn(&session, Task::Answer).await?;
    let closes = play.needs(&format!("{SESSION}/close")).is_ok();
    if closes {
        play.result("session/close", params.clone()).await?;
    }
    match play.request("session/delete", params).await? {
        Answer::Result(_) => Ok(session),
        Answer::Error { message, .. } if !closes => skip(format!(
            "sessions cannot be closed, and the agent does not delete one that is open: {message}"
        )),
        Answer::Error { code, message, .. } => fail(format!(
            "`session/delete` of a session of its own was answered with error {code}: {message}"
        )),
    }
}

async fn not_listed(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = deleted(play).await?;
    play.needs(&format!("{SESSION}/list"))?;
    let listed = listed(play, json!({"cwd": play.place().project()})).await?;
    let found = listed.iter().any(|listed| listed["sessionId"] == session);
    require(!found, || {
        format!("session {session:?} was deleted, and is still listed")
    })
}

async fn unknown(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    play.needs(&format!("{SESSION}/delete"))?;
    play.result("session/delete", json!({"sessionId": NO_SESSION}))
        .await?;
    Ok(())
}

async fn twice(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = deleted(play).await?;
    play.result("session/delete", json!({"sessionId": session}))
        .await?;
    Ok(())
}

async fn not_offered(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = play.session().await?;
    if play.needs(&format!("{SESSION}/delete")).is_ok() {
        return skip("the agent offers `session/delete`");
    }
    let params = json!({"sessionId": session});
    match play.request("session/delete", params).await? {
        Answer::Error { .. } => Ok(()),
        Answer::Result(_) => {
            fail("it does not offer `session/delete`, and answered it with a result")
        }
    }
}
