//! Authentication: how one can log in, and out.

use serde_json::{Value, json};

use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 Agent "authentication";
    1 Must "A method of type `terminal` is named only to clients that can run the agent in a terminal." => offers_terminal_login;
    2 Must "The ids of the methods differ." => ids_differ;
    3 Should "A method that was not named is refused." => rejects_unknown_method;
    4 Must "After a login a session can be opened." => opens_after_login;
    5 Must "After `logout` new sessions want a login." => logout_ends;
    6 Must "That a login is wanted is said with error -32000." => rejects_with_auth_code;
}

async fn offers_terminal_login(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = play.initialize().await?;
    let methods = said["authMethods"].as_array().cloned().unwrap_or_default();
    match methods.iter().find(|method| method["type"] == "terminal") {
        Some(method) => fail(format!(
            "it named {}, which needs a terminal, and the client does not offer `auth.terminal`",
            method["id"]
        )),
        None => Ok(()),
    }
}

async fn ids_differ(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut params = play.initialize_params();
    params["clientCapabilities"]["auth"] = json!({"terminal": true});
    let said = play.initialize_with(params).await?;
    let methods = said["authMethods"].as_array().cloned().unwrap_or_default();
    let mut ids: Vec<&Value> = methods.iter().map(|method| &method["id"]).collect();
    if ids.is_empty() {
        return skip("the agent names no method of logging in");
    }
    while let Some(id) = ids.pop() {
        require(!ids.contains(&id), || {
            format!("two methods have the id {id}")
        })?;
    }
    Ok(())
}

async fn rejects_unknown_method(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let said = play.initialize().await?;
    if said["authMethods"].as_array().is_none_or(Vec::is_empty) {
        return skip("the agent names no method of logging in, and none can be refused");
    }
    let params = json!({"methodId": "acp-check-no-such-method"});
    match play.request("authenticate", params).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("it accepted a method that it has not named"),
    }
}

/// The method of logging in, and that the agent wants to be asked for it.
async fn login(play: &mut AgentHarness) -> Result<Value, CheckStop> {
    play.initialize().await?;
    match play.login() {
        Some(method) => Ok(json!({"methodId": method})),
        None => skip("no method of logging in was named: name one with --login"),
    }
}

async fn opens_after_login(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let login = login(play).await?;
    play.result("authenticate", login).await?;
    let params = play.session_params();
    let answer = play.request("session/new", params).await?;
    require(answer.code() != Some(-32000), || {
        "`authenticate` succeeded, and `session/new` still wants a login".to_owned()
    })
}

/// Logs out, asks for a session, and logs in again, so that the person who runs this still is.
async fn open_without_login(play: &mut AgentHarness) -> Result<ReceivedResponse, CheckStop> {
    let login = login(play).await?;
    play.require_capability("/agentCapabilities/auth/logout")?;
    play.result("authenticate", login.clone()).await?;
    play.result("logout", json!({})).await?;
    let params = play.session_params();
    let answer = play.request("session/new", params).await?;
    play.result("authenticate", login).await?;
    Ok(answer)
}

async fn logout_ends(play: &mut AgentHarness) -> Result<(), CheckStop> {
    match open_without_login(play).await? {
        ReceivedResponse::Error { .. } => Ok(()),
        ReceivedResponse::Result(_) => fail("after `logout` it opened a session without a login"),
    }
}

async fn rejects_with_auth_code(play: &mut AgentHarness) -> Result<(), CheckStop> {
    match open_without_login(play).await?.code() {
        Some(-32000) => Ok(()),
        Some(code) => fail(format!(
            "after `logout`, `session/new` was answered with error {code}, and not -32000"
        )),
        None => skip("after `logout` it opened a session without a login"),
    }
}
