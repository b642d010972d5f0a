//! Authentication status. Unstable.

use serde_json::{Value, json};

use super::steps::{end, never_called, offer, prompted, used};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V1 V2 Client "auth-status";
    101 Must "`auth/status` is sent only if the agent supports it." => requests_status_only_if_supported;
    102 Must "An unknown state is treated as `unknown`." => tolerates_unknown_state;
    103 May "`auth/status_update` is accepted at any time." => tolerates_status_changes;
}

async fn requests_status_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    used(harness).await?;
    never_called(harness, &["auth/status"], "auth.status")
}

/// Advertises the auth status, reports a status after the client's first prompt, and requires that the client still
/// responds.
async fn require_tolerance(
    harness: &mut ClientHarness,
    what: &str,
    status: Value,
) -> Result<(), CheckStop> {
    offer(harness, "auth")["status"] = json!({});
    harness.answers.insert("auth/status", status.clone());
    let prompted = prompted(harness).await?;
    harness.wire.notify("auth/status_update", status).await?;
    harness.alive_v2(what).await?;
    end(harness, &prompted).await
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
