//! The status of authentication: whether sessions can be opened without a login. Unstable.
//!
//! The checks that log out need the method of logging in to be named, and log in again.

use serde_json::{Value, json};

use acp_rules::schema::Version;

use super::steps::{has_shape, of_agent};
use crate::check::checks;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;

checks! { V1 V2 Agent "auth-status";
    1 Must "`auth/status` is answered with a state; where there are accounts, each has a label." => answers;
    2 Must "`auth/status` is not refused for want of a login." => needs_no_login;
    3 Should "After a logout the state is not that of one who is logged in." => logged_out;
    4 Must "Where the state is that no login is needed, none is wanted for a session." => not_required;
    5 Should "A change of the status is told once." => told_once;
    6 Must "What is told of a change is the status that `auth/status` answers." => told_right;
}

const STATUS: &str = "auth/status";

async fn needs_status(play: &mut AgentPlay) -> Result<(), Stop> {
    play.initialize().await?;
    play.needs(&of_agent(play, STATUS))
}

async fn status(play: &mut AgentPlay) -> Result<Value, Stop> {
    let answer = play.result(STATUS, json!({})).await?;
    has_shape(play, "AuthStatusResponse", &answer)?;
    Ok(answer)
}

/// Logs out, asks for the status, and logs in again. A skip where it is not known how to.
async fn status_outside(play: &mut AgentPlay) -> Result<Answer, Stop> {
    let Some(method) = play.login() else {
        return skip("no method of logging in was named: name one with --login");
    };
    let login = json!({"methodId": method});
    let (in_by, out_by) = match play.version() {
        Version::V1 => {
            play.needs("/agentCapabilities/auth/logout")?;
            ("authenticate", "logout")
        }
        Version::V2 => ("auth/login", "auth/logout"),
    };
    play.result(in_by, login.clone()).await?;
    play.result(out_by, json!({})).await?;
    let answer = play.request(STATUS, json!({})).await?;
    play.result(in_by, login).await?;
    Ok(answer)
}

/// What was told of changes, while one logged out and in again, and the status in the end.
async fn told(play: &mut AgentPlay) -> Result<(Vec<Value>, Value), Stop> {
    needs_status(play).await?;
    status_outside(play).await?;
    play.quiet().await?;
    let messages = play.messages.iter();
    let told = messages.filter(|message| message.method() == "auth/status_update");
    let told = told.map(|message| message.params().clone()).collect();
    Ok((told, status(play).await?))
}

async fn answers(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_status(play).await?;
    status(play).await.map(drop)
}

async fn needs_no_login(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_status(play).await?;
    let asked = play.request(STATUS, json!({})).await?;
    require(asked.code() != Some(-32000), || {
        "`auth/status` was refused with -32000".to_owned()
    })?;
    match status_outside(play).await {
        Ok(asked) => require(asked.code() != Some(-32000), || {
            "after a logout, `auth/status` was refused with -32000".to_owned()
        }),
        // Before it, it was not refused.
        Err(Stop::Skip(_)) => Ok(()),
        Err(stop) => Err(stop),
    }
}

async fn logged_out(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_status(play).await?;
    match status_outside(play).await? {
        Answer::Result(status) => {
            let state = &status["state"];
            require(
                *state != "authenticated" && *state != "not_required",
                || format!("after a logout the state is {state}"),
            )
        }
        Answer::Error { code, message, .. } => fail(format!(
            "after a logout `auth/status` was answered with error {code}: {message}"
        )),
    }
}

async fn not_required(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_status(play).await?;
    let status = status(play).await?;
    let params = play.session_params();
    let opened = play.request("session/new", params).await?;
    require(
        status["state"] != "not_required" || opened.code() != Some(-32000),
        || "the state is \"not_required\", and `session/new` wants a login".to_owned(),
    )
}

async fn told_once(play: &mut AgentPlay) -> Result<(), Stop> {
    let (told, _) = told(play).await?;
    let same = |pair: &&[Value]| matches!(pair, [first, second] if first == second);
    match told.windows(2).find(same) {
        Some(pair) => fail(format!("it told the same twice in a row: {}", pair[0])),
        None => Ok(()),
    }
}

async fn told_right(play: &mut AgentPlay) -> Result<(), Stop> {
    let (told, status) = told(play).await?;
    for told in &told {
        has_shape(play, "AuthStatusResponse", told)?;
    }
    let last = told.last().map_or(&status["state"], |told| &told["state"]);
    require(*last == status["state"], || {
        format!(
            "the state that was told last is {last}, and `auth/status` answers {}",
            status["state"]
        )
    })
}
