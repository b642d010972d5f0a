//! Checks how a client logs in before it opens a session.

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require, skip};

use super::steps::{WATCH_TIME, require_none_of, wait_for_optional_message};

checks! { V1 Client "authentication";
    101 Must "If the agent requires a login, no session is opened and no prompt is sent." => sends_no_prompt_without_login;
    102 Must "`authenticate` uses an auth method the agent offered." => uses_offered_method;
    103 Should "After a successful login, the session is opened." => opens_session_after_login;
    104 Must "After a failed login, no prompt is sent." => sends_no_prompt_after_failed_login;
}

/// Methods that require an open session.
const SESSION_METHODS: &[&str] = &[
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
];

/// Offers auth methods, then rejects the first `session/new` because it requires a login.
async fn require_login(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    harness.initialize_result["authMethods"] = json!([
        {"id": "acp-check/login", "name": "Password", "description": "No password is needed."},
        {"id": "other", "name": "Another password"},
    ]);
    let (id, _) = harness.wait_for_message("session/new").await?;
    harness
        .wire
        .send_error(&id, -32000, "Authentication required")
        .await
}

/// Waits for `authenticate`, and returns its id and params. Skips the check if it does not arrive.
async fn wait_for_login(harness: &mut ClientHarness) -> Result<(Value, Value), CheckStop> {
    require_login(harness).await?;
    match wait_for_optional_message(harness, "authenticate").await? {
        Some(login) => Ok(login),
        None => skip("the client did not send `authenticate`"),
    }
}

async fn sends_no_prompt_without_login(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    require_login(harness).await?;
    let until = Instant::now() + WATCH_TIME;
    while let Ok(next) = timeout_at(until, harness.next()).await {
        let Some(message) = next? else {
            break;
        };
        let id = message.0["id"].clone();
        let method = message.method();
        require(!SESSION_METHODS.contains(&method), || {
            format!("the client sent `{method}`, although no session is open")
        })?;
        // Reject every attempt to open a session.
        if !method.is_empty() && !id.is_null() {
            harness
                .wire
                .send_error(&id, -32000, "Authentication required")
                .await?;
        }
    }
    Ok(())
}

async fn uses_offered_method(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, params) = wait_for_login(harness).await?;
    let method = &params["methodId"];
    require(*method == "acp-check/login" || *method == "other", || {
        format!("the client used the unknown auth method {method}")
    })?;
    harness.wire.send_result(&id, json!({})).await
}

async fn opens_session_after_login(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = wait_for_login(harness).await?;
    harness.wire.send_result(&id, json!({})).await?;
    match wait_for_optional_message(harness, "session/new").await? {
        Some((id, _)) => {
            let session = harness.session.clone();
            harness.wire.send_result(&id, session).await
        }
        None => fail("the client did not send `session/new` after the login"),
    }
}

async fn sends_no_prompt_after_failed_login(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let (id, _) = wait_for_login(harness).await?;
    harness
        .wire
        .send_error(&id, -32603, "Wrong password")
        .await?;
    harness.session = Value::Null;
    require_none_of(harness, SESSION_METHODS, "although the login failed").await
}
