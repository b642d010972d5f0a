//! Checks how a client logs in and out.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, fail, require, skip};
use acp_rules::schema::Envelope;

checks! { V2 Client "authentication";
    101 Must "If the agent offers no auth methods, neither `auth/login` nor `auth/logout` is sent." => logs_in_only_if_offered;
    102 Must "`auth/login` is not sent with a `terminal` auth method." => does_not_use_terminal_auth_method;
    103 Must "`auth/login` uses an auth method the agent offered." => uses_offered_auth_method;
    104 May "After a login, the client opens its session." => continues_after_login;
}

/// Rejects `session/new` until the client logs in. Returns the auth method that it used, or `None` if no login arrives
/// in time.
async fn wait_for_login(
    harness: &mut ClientHarness,
    methods: Value,
) -> Result<Option<Value>, CheckStop> {
    harness.initialize_result["authMethods"] = methods;
    harness.initialize_v2().await?;
    let patience = harness.wire.timeout();
    let waiting = async {
        while let Some(message) = harness.next().await? {
            match message.envelope() {
                Some(Envelope::Request {
                    id,
                    method: "session/new",
                    ..
                }) => {
                    harness
                        .wire
                        .send_error(id, -32000, "Authentication required")
                        .await?;
                }
                Some(Envelope::Request {
                    id,
                    method: "auth/login",
                    params,
                }) => {
                    let method = params.map(|params| params["methodId"].clone());
                    harness.wire.send_result(id, json!({})).await?;
                    return Ok(method);
                }
                _ => harness.serve(&message).await?,
            }
        }
        Ok(None)
    };
    // A user may have to decide, so a client that does not log in is not wrong.
    tokio::time::timeout(patience, waiting)
        .await
        .unwrap_or(Ok(None))
}

async fn logs_in_only_if_offered(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    match wait_for_login(harness, json!([])).await? {
        Some(_) => {
            fail("the client called `auth/login`, although the agent offers no auth methods")
        }
        None => {
            let out = harness
                .messages
                .iter()
                .any(|message| message.method() == "auth/logout");
            require(!out, || {
                "the client called `auth/logout`, although the agent offers no auth methods"
                    .to_owned()
            })
        }
    }
}

async fn does_not_use_terminal_auth_method(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let methods =
        json!([{"type": "terminal", "methodId": "tty", "name": "Terminal", "args": ["login"]}]);
    match wait_for_login(harness, methods).await? {
        Some(method) => fail(format!(
            "the client called `auth/login` with {method}, which is a `terminal` auth method"
        )),
        None => Ok(()),
    }
}

fn env_var_method() -> Value {
    json!([{"type": "agent", "methodId": "acp-check-key", "name": "Key"}])
}

async fn uses_offered_auth_method(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    match wait_for_login(harness, env_var_method()).await? {
        Some(method) => require(method == "acp-check-key", || {
            format!("the client called `auth/login` with {method}, which the agent did not offer")
        }),
        None => skip("the client did not log in"),
    }
}

async fn continues_after_login(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    match wait_for_login(harness, env_var_method()).await? {
        Some(_) => harness.wait_for_message("session/new").await.map(drop),
        None => skip("the client did not log in"),
    }
}
