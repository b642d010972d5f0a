//! The status of authentication. Unstable.

use serde_json::{Value, json};

use super::steps::{end, never_called, offer, prompted, used};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V1 V2 Client "auth-status";
    101 Must "`auth/status` is sent only if the agent supports it." => requests_status_only_if_supported;
    102 Must "An unknown state is treated as `unknown`." => unknown_state;
    103 May "`auth/status_update` is accepted at any time." => tolerates_status_changes;
}

async fn requests_status_only_if_supported(play: &mut ClientHarness) -> Result<(), CheckStop> {
    used(play).await?;
    never_called(play, &["auth/status"], "auth.status")
}

/// Offers to tell the status, tells it when the client has prompted, and sees whether the client goes on.
async fn tolerates(play: &mut ClientHarness, what: &str, status: Value) -> Result<(), CheckStop> {
    offer(play, "auth")["status"] = json!({});
    play.answers.insert("auth/status", status.clone());
    let prompted = prompted(play).await?;
    play.wire.notify("auth/status_update", status).await?;
    play.alive_v2(what).await?;
    end(play, &prompted).await
}

async fn unknown_state(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let status = json!({"state": "_acp-check/perhaps", "accounts": [{"label": "Check"}]});
    tolerates(play, "an unknown authentication state", status).await
}

async fn tolerates_status_changes(play: &mut ClientHarness) -> Result<(), CheckStop> {
    let accounts = json!([{"label": "Check", "active": null, "email": "nobody@example.org"}]);
    let status = json!({"state": "authenticated", "accounts": accounts});
    tolerates(play, "an authentication status update", status).await
}
