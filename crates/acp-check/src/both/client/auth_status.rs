//! Checks how a client uses the authentication status. Unstable.

use serde_json::{Value, json};

use super::steps::{
    capability_mut, end_turn, require_never_called, serve_one_turn, wait_for_prompt,
};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V1 V2 Client "auth-status";
    101 Must "`auth/status` is sent only if the agent supports it." => requests_status_only_if_supported;
    102 Must "An unknown state is treated as `unknown`." => tolerates_unknown_state;
    103 May "`auth/status_update` is accepted at any time." => tolerates_status_changes;
}

async fn requests_status_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    serve_one_turn(harness).await?;
    require_never_called(harness, &["auth/status"], "auth.status")
}

/// Advertises support for `auth/status`, reports a status after the client's first prompt, and requires that the client
/// still responds.
async fn require_tolerance(
    harness: &mut ClientHarness,
    what: &str,
    status: Value,
) -> Result<(), CheckStop> {
    capability_mut(harness, "auth")["status"] = json!({});
    harness.results.insert("auth/status", status.clone());
    let prompted = wait_for_prompt(harness).await?;
    harness
        .wire
        .send_notification("auth/status_update", status)
        .await?;
    harness.require_responsive_v2(what).await?;
    end_turn(harness, &prompted).await
}

async fn tolerates_unknown_state(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let status = json!({"state": "_acp-check/perhaps", "accounts": [{"label": "Check"}]});
    require_tolerance(harness, "an unknown authentication state", status).await
}

async fn tolerates_status_changes(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let accounts = json!([{"label": "Check", "active": null, "email": "nobody@example.org"}]);
    let status = json!({"state": "authenticated", "accounts": accounts});
    require_tolerance(harness, "an authentication status update", status).await
}
