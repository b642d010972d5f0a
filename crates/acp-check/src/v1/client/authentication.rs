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

/// Methods that belong to a session.
const IN_A_SESSION: &[&str] = &[
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
];

/// Rejects the first session because a login is required.
async fn unauthenticated(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.introduction["authMethods"] = json!([
        {"id": "acp-check/login", "name": "By a word", "description": "No word is asked for."},
        {"id": "other", "name": "By another"},
    ]);
    let (id, _) = harness.expect("session/new").await?;
    harness
        .wire
        .refuse(&id, -32000, "Authentication required")
        .await
}

/// Waits for the client's login. Skips if it leaves that to the user.
async fn login(harness: &mut ClientHarness) -> Result<(Value, Value), CheckStop> {
    unauthenticated(harness).await?;
    match maybe(harness, "authenticate").await? {
        Some(login) => Ok(login),
        None => skip("the client did not send `authenticate`"),
    }
}

async fn no_prompt(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    unauthenticated(harness).await?;
    let until = Instant::now() + WATCHED;
    while let Ok(next) = timeout_at(until, harness.next()).await {
        let Some(message) = next? else {
            break;
        };
        let id = message.0["id"].clone();
        let method = message.method();
        require(!IN_A_SESSION.contains(&method), || {
            format!("it sent `{method}` though there is no session")
        })?;
        // Reject every attempt.
        if !method.is_empty() && !id.is_null() {
            harness
                .wire
                .refuse(&id, -32000, "Authentication required")
                .await?;
        }
    }
    Ok(())
}

async fn named_method(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, params) = login(harness).await?;
    let method = &params["methodId"];
    require(*method == "acp-check/login" || *method == "other", || {
        format!("it used unknown auth method {method}")
    })?;
    harness.wire.answer(&id, json!({})).await
}

async fn goes_on(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = login(harness).await?;
    harness.wire.answer(&id, json!({})).await?;
    match maybe(harness, "session/new").await? {
        Some((id, _)) => {
            let session = harness.session.clone();
            harness.wire.answer(&id, session).await
        }
        None => fail("it did not send `session/new` after the login"),
    }
}

async fn failed(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = login(harness).await?;
    harness
        .wire
        .refuse(&id, -32603, "That was not the word")
        .await?;
    harness.session = Value::Null;
    watch(harness, IN_A_SESSION, "although the login failed").await
}
