//! Checks how a client uses archived sessions. Unstable.

use super::steps::{require_never_called, serve_one_turn};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require};

checks! { V1 V2 Client "session-archive";
    101 Must "`session/archive` and `session/unarchive` are sent only if the agent supports them." => archives_only_if_supported;
    102 Must "The archive filter is used only if the agent supports it." => filters_only_if_supported;
}

async fn archives_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    serve_one_turn(harness).await?;
    require_never_called(
        harness,
        &["session/archive", "session/unarchive"],
        "archive",
    )
}

async fn filters_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    serve_one_turn(harness).await?;
    let filtered = harness.messages.iter().any(|message| {
        message.method() == "session/list" && !message.params()["archived"].is_null()
    });
    require(!filtered, || {
        "the client called `session/list` with `archived`, but the agent does not support `archive`"
            .to_owned()
    })
}
