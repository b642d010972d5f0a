//! The status of sessions. Unstable.

use super::steps::{never_called, used};
use crate::check::checks;
use crate::verdict::Stop;
use crate::with_client::ClientPlay;

checks! { V1 V2 Client "session-status";
    101 Must "The status of a session is asked for only where the agent has offered that." => offered;
}

async fn offered(play: &mut ClientPlay) -> Result<(), Stop> {
    used(play).await?;
    never_called(play, &["session/status"], "status")
}
