//! Sessions that are archived. Unstable.

use super::steps::{never_called, used};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require};

checks! { V1 V2 Client "session-archive";
    101 Must "Sessions are archived, and taken out of the archive, only where the agent has offered that." => archives_only_if_supported;
    102 Must "A list is asked for with a filter of archived sessions only where the agent has offered that." => filters_only_if_supported;
}

async fn archives_only_if_supported(play: &mut ClientHarness) -> Result<(), CheckStop> {
    used(play).await?;
    never_called(play, &["session/archive", "session/unarchive"], "archive")
}

async fn filters_only_if_supported(play: &mut ClientHarness) -> Result<(), CheckStop> {
    used(play).await?;
    let filtered = play.messages.iter().any(|message| {
        message.method() == "session/list" && !message.params()["archived"].is_null()
    });
    require(!filtered, || {
        "it called `session/list` with `archived`, and the agent has not offered `archive`"
            .to_owned()
    })
}
