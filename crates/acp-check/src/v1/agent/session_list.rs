//! Session list: which sessions there are.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::check::checks;
use crate::options::Task;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;
use crate::with_agent::NO_SESSION;

checks! { V1 Agent "session-list";
    1 Must "A request without params of its own is answered with a list of sessions." => lists;
    2 Should "A session in which something was said is listed." => lists_own;
    3 Must "Only sessions of the directory that was asked for are listed." => of_directory;
    4 Must "Where there are none, the list is empty, and no error." => none;
    5 Should "A cursor that the agent has not given is refused." => wrong_cursor;
    6 Must "A session is listed once, on whichever page." => once;
    7 Must "A session is listed with the directory that it was opened in." => directory;
    8 Should "An agent that does not offer to list sessions refuses to." => not_offered;
    9 Must "A title that was set is answered, and the session is listed with it." => title;
    10 Must "An empty title is refused as wrong params." => empty_title;
    11 Must "Setting the title of a session that there is not is refused." => title_of_none;
}

const LIST: &str = "/agentCapabilities/sessionCapabilities/list";
const TITLE: &str = "/agentCapabilities/sessionCapabilities/title";

/// The title that a check sets.
pub(crate) const NEW_TITLE: &str = "Set by the check";

/// How many pages are looked at.
const PAGES: usize = 200;

/// Every session that is listed, page by page, as far as there is an end.
pub(super) async fn listed(play: &mut AgentPlay, params: Value) -> Result<Vec<Value>, Stop> {
    let mut sessions = Vec::new();
    let mut params = params;
    for _ in 0..PAGES {
        let mut page = play.result("session/list", params.clone()).await?;
        match page["sessions"].take() {
            Value::Array(listed) => sessions.extend(listed),
            other => {
                return fail(format!(
                    "`sessions` of `session/list` is {other}, and no list"
                ));
            }
        }
        match page["nextCursor"].take() {
            Value::Null => return Ok(sessions),
            next => params["cursor"] = next,
        }
    }
    skip(format!("the list has more than {PAGES} pages"))
}

/// Some sessions in which something was said.
async fn some(play: &mut AgentPlay, how_many: usize) -> Result<Vec<String>, Stop> {
    play.initialize().await?;
    play.needs(LIST)?;
    let mut sessions = Vec::new();
    for _ in 0..how_many {
        let session = play.session().await?;
        play.turn(&session, Task::Answer).await?;
        sessions.push(session);
    }
    Ok(sessions)
}

/// A directory in which no session was opened.
fn elsewhere(play: &AgentPlay) -> Result<PathBuf, Stop> {
    let elsewhere = play.place().project().with_file_name("elsewhere");
    match std::fs::create_dir(&elsewhere) {
        Ok(()) => Ok(elsewhere),
        Err(e) => Err(Stop::Harness(format!("no directory can be made: {e}"))),
    }
}

fn of<'a>(listed: &'a [Value], session: &str) -> Option<&'a Value> {
    listed.iter().find(|listed| listed["sessionId"] == session)
}

async fn lists(play: &mut AgentPlay) -> Result<(), Stop> {
    some(play, 0).await?;
    let page = play.result("session/list", json!({})).await?;
    require(page["sessions"].is_array(), || {
        format!("the answer has no list `sessions`: {page}")
    })
}

async fn lists_own(play: &mut AgentPlay) -> Result<(), Stop> {
    let sessions = some(play, 1).await?;
    let listed = listed(play, json!({"cwd": play.place().project()})).await?;
    for session in sessions {
        require(of(&listed, &session).is_some(), || {
            format!("session {session:?} had a turn, and is not listed")
        })?;
    }
    Ok(())
}

async fn of_directory(play: &mut AgentPlay) -> Result<(), Stop> {
    let sessions = some(play, 1).await?;
    let other = elsewhere(play)?;
    let listed = listed(play, json!({"cwd": other})).await?;
    for session in sessions {
        require(of(&listed, &session).is_none(), || {
            format!(
                "asked for sessions of {}, it listed {session:?}, which is in {}",
                other.display(),
                play.place().project().display()
            )
        })?;
    }
    Ok(())
}

async fn none(play: &mut AgentPlay) -> Result<(), Stop> {
    some(play, 0).await?;
    let elsewhere = elsewhere(play)?;
    let params = json!({"cwd": elsewhere});
    match play.request("session/list", params).await? {
        Answer::Result(page) => require(page["sessions"] == json!([]), || {
            format!(
                "there is no session in {}, and it listed {}",
                elsewhere.display(),
                page["sessions"]
            )
        }),
        Answer::Error { code, message, .. } => fail(format!(
            "there is no session in {}, and it answered with error {code}: {message}",
            elsewhere.display()
        )),
    }
}

async fn wrong_cursor(play: &mut AgentPlay) -> Result<(), Stop> {
    some(play, 0).await?;
    let params = json!({"cursor": "acp-check no such cursor"});
    match play.request("session/list", params).await? {
        Answer::Error { .. } => Ok(()),
        Answer::Result(_) => fail("it took a cursor that it has not given"),
    }
}

async fn once(play: &mut AgentPlay) -> Result<(), Stop> {
    some(play, 3).await?;
    let listed = listed(play, json!({"cwd": play.place().project()})).await?;
    let mut ids: Vec<&Value> = listed.iter().map(|listed| &listed["sessionId"]).collect();
    while let Some(id) = ids.pop() {
        require(!ids.contains(&id), || {
            format!("session {id} is listed twice")
        })?;
    }
    Ok(())
}

async fn directory(play: &mut AgentPlay) -> Result<(), Stop> {
    let sessions = some(play, 1).await?;
    let listed = listed(play, json!({})).await?;
    let Some(listed) = sessions.first().and_then(|session| of(&listed, session)) else {
        return skip("the session is not listed");
    };
    let project = play.place().project();
    require(listed["cwd"] == json!(project), || {
        format!(
            "the session was opened in {}, and is listed with {}",
            project.display(),
            listed["cwd"]
        )
    })
}

async fn not_offered(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    if play.needs(LIST).is_ok() {
        return skip("the agent offers `session/list`");
    }
    match play.request("session/list", json!({})).await? {
        Answer::Error { .. } => Ok(()),
        Answer::Result(_) => {
            fail("it does not offer `session/list`, and answered it with a result")
        }
    }
}

/// A session of an agent that takes titles, in which something was said.
async fn titled_session(play: &mut AgentPlay) -> Result<String, Stop> {
    play.initialize().await?;
    play.needs(TITLE)?;
    let session = play.session().await?;
    play.turn(&session, Task::Answer).await?;
    Ok(session)
}

async fn title(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = titled_session(play).await?;
    let params = json!({"sessionId": session, "title": NEW_TITLE});
    let answer = play.result("session/set_title", params).await?;
    let Some(kept) = answer["title"].as_str() else {
        return fail(format!("the answer has no `title`: {answer}"));
    };
    play.needs(LIST)?;
    let listed = listed(play, json!({"cwd": play.place().project()})).await?;
    let Some(listed) = of(&listed, &session) else {
        return skip("the session is not listed");
    };
    require(listed["title"] == kept, || {
        format!(
            "the title was answered as {kept:?}, and is listed as {}",
            listed["title"]
        )
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
