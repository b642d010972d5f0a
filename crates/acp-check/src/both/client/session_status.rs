//! Checks how a client requests the status of sessions. Unstable.

use super::steps::{require_never_called, serve_one_turn};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::CheckStop;

checks! { V1 V2 Client "session-status";
    101 Must "`session/status` is sent only if the agent supports it." => requests_status_only_if_supported;
}

async fn requests_status_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    serve_one_turn(harness).await?;
    require_never_called(harness, &["session/status"], "status")
}
