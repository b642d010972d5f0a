//! Checks for an agent's authentication status: whether sessions can be opened without a login. Unstable.
//!
//! Checks that log out need an auth method in the options, and log in again.

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::require_shape;
use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "auth-status"
    fresh "logs out and in, which changes the whole agent" requires "auth/status";
    1 Must "The response to `auth/status` has a state, and every account in it has a label." => returns_valid_status;
    2 Must "`auth/status` works without a login." => returns_status_without_login;
    3 Should "After `logout`, `auth/status` no longer reports that the user is logged in." => updates_status_after_logout;
    4 Must "If the state is `not_required`, `session/new` works without a login." => allows_session_without_login;
    5 Should "Each status change is reported exactly once." => reports_each_change_once;
    6 Must "A status update matches the response to `auth/status`." => reports_current_status;
}

const STATUS_METHOD: &str = "auth/status";

async fn request_status(harness: &mut AgentHarness) -> Result<Value, CheckStop> {
    let response = harness.request_result(STATUS_METHOD, json!({})).await?;
    require_shape(harness, "AuthStatusResponse", &response)?;
    Ok(response)
}

/// Logs out, requests the status, and logs in again. Skips the check if no auth method was chosen with `--login`.
async fn request_status_logged_out(
    harness: &mut AgentHarness,
) -> Result<ReceivedResponse, CheckStop> {
    let Some(method) = harness.auth_method() else {
        return skip("no auth method given; choose one with --login");
    };
    let login = json!({"methodId": method});
    let (in_by, out_by) = match harness.version() {
        SchemaVersion::V1 => {
            harness.require_capability("/agentCapabilities/auth/logout")?;
            ("authenticate", "logout")
        }
        SchemaVersion::V2 => ("auth/login", "auth/logout"),
    };
    harness.request_result(in_by, login.clone()).await?;
    harness.request_result(out_by, json!({})).await?;
    let response = harness.request(STATUS_METHOD, json!({})).await?;
    harness.request_result(in_by, login).await?;
    Ok(response)
}

/// Logs out and in again. Returns the status updates sent meanwhile, and the final status.
async fn collect_status_changes(
    harness: &mut AgentHarness,
) -> Result<(Vec<Value>, Value), CheckStop> {
    request_status_logged_out(harness).await?;
    harness.wait_until_quiet().await?;
    let messages = harness.messages.iter();
    let reported = messages.filter(|message| message.method() == "auth/status_update");
    let reported = reported.map(|message| message.params().clone()).collect();
    Ok((reported, request_status(harness).await?))
}

async fn returns_valid_status(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    request_status(harness).await.map(drop)
}

async fn returns_status_without_login(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let asked = harness.request(STATUS_METHOD, json!({})).await?;
    require(asked.code() != Some(-32000), || {
        "`auth/status` failed with error -32000".to_owned()
    })?;
    match request_status_logged_out(harness).await {
        Ok(asked) => require(asked.code() != Some(-32000), || {
            "after `logout`, `auth/status` failed with error -32000".to_owned()
        }),
        // This agent cannot be logged out by the check. The request above was not rejected.
        Err(CheckStop::Skip(_)) => Ok(()),
        Err(stop) => Err(stop),
    }
}

async fn updates_status_after_logout(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    match request_status_logged_out(harness).await? {
        ReceivedResponse::Result(status) => {
            let state = &status["state"];
            require(
                *state != "authenticated" && *state != "not_required",
                || format!("after `logout`, the state is {state}"),
            )
        }
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "after `logout`, `auth/status` failed with error {code}: {message}"
        )),
    }
}

async fn allows_session_without_login(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let status = request_status(harness).await?;
    let params = harness.session_params();
    let opened = harness.request("session/new", params).await?;
    require(
        status["state"] != "not_required" || opened.code() != Some(-32000),
        || "the state is \"not_required\", but `session/new` requires a login".to_owned(),
    )
}

async fn reports_each_change_once(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (reported, _) = collect_status_changes(harness).await?;
    let same = |pair: &&[Value]| matches!(pair, [first, second] if first == second);
    match reported.windows(2).find(same) {
        Some(pair) => fail(format!(
            "the agent sent the same status twice in a row: {}",
            pair[0]
        )),
        None => Ok(()),
    }
}

async fn reports_current_status(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (reported, status) = collect_status_changes(harness).await?;
    for reported in &reported {
        require_shape(harness, "AuthStatusResponse", reported)?;
    }
    let last = reported
        .last()
        .map_or(&status["state"], |reported| &reported["state"]);
    require(*last == status["state"], || {
        format!(
            "the last reported state is {last}, but `auth/status` returns {}",
            status["state"]
        )
    })
}
