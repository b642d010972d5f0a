//! Session list: which sessions there are, and deleting them.

use serde_json::{Value, json};

use super::values::repeated;
use crate::suite::check::checks;
use crate::suite::verdict::{Stop, fail, require};
use crate::suite::{AgentPlay, Task};

checks! { V2 Agent "session-list";
    1 Must "An agent that offers sessions takes `session/list`." => lists;
    2 Should "The list has the sessions that there are: one that was prompted is among them." => knows_sessions;
    3 Should "Asked for one directory, the list has the sessions of no other." => by_directory;
    4 Must "No two sessions of the list have the same id." => ids;
    5 Must "A session that was deleted is not listed any more." => deletes;
}

async fn lists(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    play.needs("/capabilities/session")?;
    let cwd = play.place().project().to_owned();
    play.listed_v2(json!({"cwd": cwd})).await.map(drop)
}

/// A session in which something was said.
async fn spoken(play: &mut AgentPlay) -> Result<String, Stop> {
    let session = play.session_v2().await?;
    play.turn_v2(&session, Task::Answer).await?;
    Ok(session)
}

fn has(listed: &[Value], session: &str) -> bool {
    listed.iter().any(|info| info["sessionId"] == *session)
}

async fn knows_sessions(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = spoken(play).await?;
    let cwd = play.place().project().to_owned();
    let listed = play.listed_v2(json!({"cwd": cwd})).await?;
    require(has(&listed, &session), || {
        format!("the session {session:?} is not in the list of its directory")
    })
}

async fn by_directory(play: &mut AgentPlay) -> Result<(), Stop> {
    spoken(play).await?;
    let elsewhere = play.place().file("elsewhere");
    let listed = play.listed_v2(json!({"cwd": elsewhere})).await?;
    match listed.first() {
        Some(info) => fail(format!(
            "asked for the sessions of another directory, it lists one of {}",
            info["cwd"]
        )),
        None => Ok(()),
    }
}

async fn ids(play: &mut AgentPlay) -> Result<(), Stop> {
    spoken(play).await?;
    let cwd = play.place().project().to_owned();
    let listed = play.listed_v2(json!({"cwd": cwd})).await?;
    match repeated(listed.iter().map(|info| &info["sessionId"])) {
        Some(id) => fail(format!("the session {id} is listed twice")),
        None => Ok(()),
    }
}

async fn deletes(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    play.needs("/capabilities/session/delete")?;
    let session = spoken(play).await?;
    play.result("session/delete", json!({"sessionId": session}))
        .await?;
    let cwd = play.place().project().to_owned();
    let listed = play.listed_v2(json!({"cwd": cwd})).await?;
    require(!has(&listed, &session), || {
        format!("the session {session:?} is still listed after it was deleted")
    })
}
