//! Authentication: logging in before a session is opened.

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{WATCHED, maybe, watch};

checks! { V1 Client "authentication";
    101 Must "If the agent requires a login, no session is opened and no prompt is sent." => no_prompt;
    102 Must "`authenticate` uses an auth method the agent offered." => named_method;
    103 Should "After a successful login, the session is opened." => goes_on;
    104 Must "After a failed login, no prompt is sent." => failed;
}

/// What is sent in a session.
const IN_A_SESSION: &[&str] = &[
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
];

/// Refuses the first session for want of a login.
async fn unauthenticated(play: &mut ClientHarness) -> Result<(), CheckStop> {
    play.introduction["authMethods"] = json!([
        {"id": "acp-check/login", "name": "By a word", "description": "No word is asked for."},
        {"id": "other", "name": "By another"},
    ]);
    let (id, _) = play.expect("session/new").await?;
    play.wire
        .refuse(&id, -32000, "Authentication required")
        .await
}

/// The client's login, unless it leaves that to the person.
async fn login(play: &mut ClientHarness) -> Result<(Value, Value), CheckStop> {
    unauthenticated(play).await?;
    match maybe(play, "authenticate").await? {
        Some(login) => Ok(login),
        None => skip("the client did not send `authenticate`"),
    }
}

async fn no_prompt(play: &mut ClientHarness) -> Result<(), CheckStop> {
    unauthenticated(play).await?;
    let until = Instant::now() + WATCHED;
    while let Ok(next) = timeout_at(until, play.next()).await {
        let Some(message) = next? else {
            break;
        };
        let id = message.0["id"].clone();
        let method = message.method();
        require(!IN_A_SESSION.contains(&method), || {
            format!("it sent `{method}` though there is no session")
        })?;
        // Whatever it tries, the agent lets nobody in.
        if !method.is_empty() && !id.is_null() {
            play.wire
                .refuse(&id, -32000, "Authentication required")
                .await?;
        }
    }
    Ok(())
}

async fn named_method(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, params) = login(play).await?;
    let method = &params["methodId"];
    require(*method == "acp-check/login" || *method == "other", || {
        format!("it used unknown auth method {method}")
    })?;
    play.wire.answer(&id, json!({})).await
}

async fn goes_on(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = login(play).await?;
    play.wire.answer(&id, json!({})).await?;
    match maybe(play, "session/new").await? {
        Some((id, _)) => {
            let session = play.session.clone();
            play.wire.answer(&id, session).await
        }
        None => fail("it did not send `session/new` after the login"),
    }
}

async fn failed(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = login(play).await?;
    play.wire
        .refuse(&id, -32603, "That was not the word")
        .await?;
    play.session = Value::Null;
    watch(play, IN_A_SESSION, "although the login failed").await
}
