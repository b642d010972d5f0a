//! The status of a session: whether the agent has it in memory. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::Version;

use super::steps::{has_shape, needs_of_sessions, of_sessions, spoken, turn};
use crate::check::checks;
use crate::options::Task;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;
use crate::with_agent::NO_SESSION;
use crate::with_agent_v2::state;

checks! { V1 V2 Agent "session-status";
    1 Must "A session that was just opened is open." => is_open;
    2 Should "A session that was closed is not open." => is_saved;
    3 Must "A session that there is not has no status: that is refused as not found, and the error names the session." => of_none;
    4 Must "Asking for the status of a session that was closed neither opens it nor tells of it." => changes_nothing;
}

// What only version 2 has, numbered on.
checks! { V2 Agent "session-status";
    5 Should "The status of an open session comes with the state that it is in." => has_state;
    6 Must "The state that comes with the status is the one that was told last." => last_state;
}

const STATUS: &str = "session/status";

/// The whole answer to a request for a status.
async fn status(play: &mut AgentPlay, session: &str) -> Result<Value, Stop> {
    let answer = play.result(STATUS, json!({"sessionId": session})).await?;
    has_shape(play, "SessionStatusResponse", &answer)?;
    Ok(answer)
}

/// A session in which something was said, and which was closed.
async fn closed(play: &mut AgentPlay) -> Result<String, Stop> {
    needs_of_sessions(play, "status").await?;
    if play.version() == Version::V1 {
        play.needs(&of_sessions(play, "close"))?;
    }
    let session = spoken(play).await?;
    let params = json!({"sessionId": session});
    play.result("session/close", params.clone()).await?;
    match play.request(STATUS, params).await? {
        Answer::Error { code: -32002, .. } => skip("the agent keeps no session that was closed"),
        _ => Ok(session),
    }
}

async fn is_open(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "status").await?;
    let session = play.session().await?;
    let answer = status(play, &session).await?;
    require(answer["status"] == "open", || {
        format!(
            "the session is open, and its status is {}",
            answer["status"]
        )
    })
}

async fn is_saved(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = closed(play).await?;
    let answer = status(play, &session).await?;
    require(answer["status"] != "open", || {
        "the session was closed, and its status is \"open\"".to_owned()
    })
}

async fn of_none(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "status").await?;
    let params = json!({"sessionId": NO_SESSION});
    match play.request(STATUS, params).await? {
        Answer::Error {
            code: -32002,
            error,
            ..
        } => require(error["data"]["sessionId"] == NO_SESSION, || {
            format!(
                "the error's data has no `sessionId` of the session: {}",
                error["data"]
            )
        }),
        Answer::Error { code, message, .. } => fail(format!(
            "it was refused with {code} ({message}) instead of -32002"
        )),
        Answer::Result(answer) => fail(format!("it was answered with {answer}")),
    }
}

async fn changes_nothing(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = closed(play).await?;
    play.quiet().await?;
    let before = play.messages.len();
    let first = status(play, &session).await?;
    play.quiet().await?;
    let second = status(play, &session).await?;
    require(first["status"] == second["status"], || {
        format!(
            "the status was {}, and after it was asked for, {}",
            first["status"], second["status"]
        )
    })?;
    let mut told = play.updates_since(before);
    match told.find(|params| params["sessionId"] == *session) {
        Some(params) => fail(format!(
            "asked for the status of a session that was closed, it sent {}",
            params["update"]["sessionUpdate"]
        )),
        None => Ok(()),
    }
}

async fn has_state(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "status").await?;
    let session = play.session().await?;
    let answer = status(play, &session).await?;
    require(
        !answer["state"].is_null() || answer["status"] != "open",
        || format!("the session is open, and there is no `state`: {answer}"),
    )
}

/// That the status has the state that was told last, if it has one.
async fn agrees(play: &mut AgentPlay, session: &str) -> Result<(), Stop> {
    let answer = status(play, session).await?;
    let updates = play.updates().rev();
    let mut told = updates
        .filter(|params| params["sessionId"] == *session)
        .filter_map(|params| state(&params["update"]));
    let Some(told) = told.next() else {
        return skip("the agent has told of no state");
    };
    let said = &answer["state"]["state"];
    require(said.is_null() || *said == *told, || {
        format!("the state with the status is {said}, and the one that was told last is {told:?}")
    })
}

async fn last_state(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "status").await?;
    let session = play.session().await?;
    turn(play, &session, Task::Answer).await?;
    agrees(play, &session).await?;
    play.begin_task_v2(&session, Task::Long).await?;
    play.until("a `state_update` when the work began", |_, message| {
        let update = &message.params()["update"];
        state(update).filter(|state| *state != "idle").map(drop)
    })
    .await?;
    agrees(play, &session).await
}
