//! Checks how an agent handles login and logout.

use serde_json::{Value, json};

use super::values::find_duplicate;
use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V2 Agent "authentication"
    fresh "depends on whether the user is logged in";
    1 Must "An agent with auth methods supports `auth/login`." => supports_login;
    2 Must "An agent with auth methods supports `auth/logout`." => supports_logout;
    3 Must "Auth method ids are unique." => has_unique_ids;
    4 Must "`terminal` auth methods are offered only to clients that support them." => offers_terminal_login;
    5 Must "Environment variable names of a `terminal` auth method are unique." => has_unique_variables;
}

/// Returns the auth methods that the agent offers to a client with these capabilities. Skips the check if there are
/// none.
async fn offered_methods(
    harness: &mut AgentHarness,
    capabilities: Value,
) -> Result<Vec<Value>, CheckStop> {
    let mut params = harness.initialize_params();
    params["capabilities"] = capabilities;
    let said = harness.initialize_with(params).await?;
    match said["authMethods"].as_array() {
        Some(methods) if !methods.is_empty() => Ok(methods.clone()),
        _ => skip("the agent offers no auth methods"),
    }
}

async fn supports_login(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    offered_methods(harness, json!({})).await?;
    // The auth method is unknown, so no login starts. An agent that is logged in may say so, and others reject the
    // method.
    let login = harness.request("auth/login", json!({"methodId": "acp-check/none"}));
    match login.await?.code() {
        Some(-32601) => fail("the agent has auth methods, but does not support `auth/login`"),
        _ => Ok(()),
    }
}

async fn supports_logout(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    offered_methods(harness, json!({})).await?;
    // Log out only if the options contain an auth method for logging in again.
    let Some(method) = harness.auth_method().map(str::to_owned) else {
        return skip(
            "no auth method given; choose one with --login (the check logs out and in again)",
        );
    };
    harness
        .request_result("auth/login", json!({"methodId": method}))
        .await?;
    match harness.request("auth/logout", json!({})).await? {
        ReceivedResponse::Result(_) => Ok(()),
        ReceivedResponse::Error { code: -32601, .. } => {
            fail("the agent has auth methods, but does not support `auth/logout`")
        }
        ReceivedResponse::Error { code, message, .. } => {
            fail(format!("`auth/logout` failed with error {code}: {message}"))
        }
    }
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let methods = offered_methods(harness, json!({"auth": {"terminal": {}}})).await?;
    match find_duplicate(methods.iter().map(|method| &method["methodId"])) {
        Some(id) => fail(format!("duplicate auth method id {id}")),
        None => Ok(()),
    }
}

async fn offers_terminal_login(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let methods = offered_methods(harness, json!({})).await?;
    let terminal = |method: &Value| method["type"] == "terminal";
    require(!methods.iter().any(terminal), || {
        "a `terminal` auth method was offered to a client that does not support `auth.terminal`"
            .to_owned()
    })
}

async fn has_unique_variables(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let methods = offered_methods(harness, json!({"auth": {"terminal": {}}})).await?;
    let mut seen = false;
    for method in methods.iter().filter(|method| method["type"] == "terminal") {
        seen = true;
        let variables = method["env"].as_array().into_iter().flatten();
        if let Some(name) = find_duplicate(variables.map(|variable| &variable["name"])) {
            return fail(format!(
                "the environment of auth method {} contains {name} twice",
                method["methodId"]
            ));
        }
    }
    if seen {
        Ok(())
    } else {
        skip("the agent offers no `terminal` auth method")
    }
}
