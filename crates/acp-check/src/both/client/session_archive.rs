//! Sessions that are archived. Unstable.

use super::steps::{never_called, used};
use crate::check::checks;
use crate::verdict::{Stop, require};
use crate::with_client::ClientPlay;

checks! { V1 V2 Client "session-archive";
    101 Must "Sessions are archived, and taken out of the archive, only where the agent has offered that." => offered;
    102 Must "A list is asked for with a filter of archived sessions only where the agent has offered that." => filter_offered;
}

async fn offered(play: &mut ClientPlay) -> Result<(), Stop> {
    used(play).await?;
    never_called(play, &["session/archive", "session/unarchive"], "archive")
}

async fn filter_offered(play: &mut ClientPlay) -> Result<(), Stop> {
    used(play).await?;
    let filtered = play.messages.iter().any(|message| {
        message.method() == "session/list" && !message.params()["archived"].is_null()
    });
    require(!filtered, || {
        "it called `session/list` with `archived`, and the agent has not offered `archive`"
            .to_owned()
    })
}
