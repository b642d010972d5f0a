//! Checks how an agent handles login and logout.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "authentication"
    fresh "depends on whether the user is logged in";
    1 Must "`terminal` auth methods are offered only to clients that support them." => offers_terminal_login;
    2 Must "Auth method ids are unique." => has_unique_ids;
    3 Should "`authenticate` with an unknown auth method fails." => rejects_unknown_method;
    4 Must "After `authenticate`, a session can be opened." => opens_session_after_authenticate;
    5 Must "After `logout`, new sessions require a login." => requires_login_after_logout;
    6 Must "A required login is reported with error -32000." => returns_auth_required_error;
}

async fn offers_terminal_login(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = harness.initialize().await?;
    let methods = said["authMethods"].as_array().cloned().unwrap_or_default();
    match methods.iter().find(|method| method["type"] == "terminal") {
        Some(method) => fail(format!(
            "the agent offered {}, which requires a terminal, but the client does not support `auth.terminal`",
            method["id"]
        )),
        None => Ok(()),
    }
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = harness.initialize_params();
    params["clientCapabilities"]["auth"] = json!({"terminal": true});
    let said = harness.initialize_with(params).await?;
    let methods = said["authMethods"].as_array().cloned().unwrap_or_default();
    let mut ids: Vec<&Value> = methods.iter().map(|method| &method["id"]).collect();
    if ids.is_empty() {
        return skip("the agent offers no auth methods");
    }
    while let Some(id) = ids.pop() {
        require(!ids.contains(&id), || {
            format!("duplicate auth method id {id}")
        })?;
    }
    Ok(())
}

async fn rejects_unknown_method(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = harness.initialize().await?;
    if said["authMethods"].as_array().is_none_or(Vec::is_empty) {
        return skip(
            "the agent offers no auth methods, so it is not required to reject unknown ones",
        );
    }
    let params = json!({"methodId": "acp-check-no-such-method"});
    match harness.request("authenticate", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("the agent accepted an auth method that it did not offer")
        }
    }
}

/// Initializes the connection, and returns params for `authenticate`. Skips the check unless an auth method was chosen.
async fn login_params(harness: &mut AgentHarness) -> Result<Value, CheckStop> {
    harness.initialize().await?;
    match harness.auth_method() {
        Some(method) => Ok(json!({"methodId": method})),
        None => skip("no auth method given; choose one with --login"),
    }
}

async fn opens_session_after_authenticate(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let login = login_params(harness).await?;
    harness.request_result("authenticate", login).await?;
    let params = harness.session_params();
    let response = harness.request("session/new", params).await?;
    require(response.code() != Some(-32000), || {
        "`authenticate` succeeded, but `session/new` still requires a login".to_owned()
    })
}

/// Logs out, tries to open a session, and logs in again so that the user running the check stays logged in.
async fn open_without_login(harness: &mut AgentHarness) -> Result<ReceivedResponse, CheckStop> {
    let login = login_params(harness).await?;
    harness.require_capability("/agentCapabilities/auth/logout")?;
    harness
        .request_result("authenticate", login.clone())
        .await?;
    harness.request_result("logout", json!({})).await?;
    let params = harness.session_params();
    let response = harness.request("session/new", params).await?;
    harness.request_result("authenticate", login).await?;
    Ok(response)
}

async fn requires_login_after_logout(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    match open_without_login(harness).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => {
            fail("after `logout`, the agent opened a session without a login")
        }
    }
}

async fn returns_auth_required_error(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    match open_without_login(harness).await?.code() {
        Some(-32000) => Ok(()),
        Some(code) => fail(format!(
            "after `logout`, `session/new` failed with error {code}; expected -32000"
        )),
        None => skip("after `logout`, the agent opened a session without a login"),
    }
}
