//! Session list: which sessions there are, and deleting them.

use serde_json::{Value, json};

use super::values::repeated;
use crate::check::checks;
use crate::options::Task;
use crate::v1::agent::session_list::NEW_TITLE;
use crate::verdict::{Stop, fail, require};
use crate::with_agent::AgentPlay;
use crate::with_agent::NO_SESSION;

checks! { V2 Agent "session-list";
    1 Must "An agent that offers sessions takes `session/list`." => lists;
    2 Should "The list has the sessions that there are: one that was prompted is among them." => knows_sessions;
    3 Should "Asked for one directory, the list has the sessions of no other." => by_directory;
    4 Must "No two sessions of the list have the same id." => ids;
    5 Must "A session that was deleted is not listed any more." => deletes;
    6 Must "A title that was set is answered, and the session is listed with it." => title;
    7 Must "An empty title is refused as wrong params." => empty_title;
    8 Must "Setting the title of a session that there is not is refused." => title_of_none;
}

const TITLE: &str = "/capabilities/session/title";

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

/// A session of an agent that takes titles, in which something was said.
async fn titled_session(play: &mut AgentPlay) -> Result<String, Stop> {
    play.initialize().await?;
    play.needs(TITLE)?;
    spoken(play).await
}

async fn title(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = titled_session(play).await?;
    let params = json!({"sessionId": session, "title": NEW_TITLE});
    let answer = play.result("session/set_title", params).await?;
    let Some(kept) = answer["title"].as_str() else {
        return fail(format!("the answer has no `title`: {answer}"));
    };
    let cwd = play.place().project().to_owned();
    let listed = play.listed_v2(json!({"cwd": cwd})).await?;
    let found = listed.iter().find(|info| info["sessionId"] == *session);
    let listed = found.map_or(&Value::Null, |info| &info["title"]);
    require(listed == kept, || {
        format!("the title was answered as {kept:?}, and is listed as {listed}")
    })
}

async fn empty_title(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = titled_session(play).await?;
    let params = json!({"sessionId": session, "title": ""});
    play.is_refused("session/set_title", params, -32602).await
}

async fn title_of_none(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    play.needs(TITLE)?;
    let params = json!({"sessionId": NO_SESSION, "title": NEW_TITLE});
    play.is_refused("session/set_title", params, -32002).await
}
