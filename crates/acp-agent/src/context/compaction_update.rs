//! How far a compaction is, for clients that show that.

use acp::agent::Session;
use acp::v1::{CompactionUpdate, SessionUpdate};

/// Whether the client shows compactions.
pub(crate) fn shows_compaction(session: &Session) -> bool {
    let capabilities = session.client().capabilities();
    let session = capabilities.session.as_ref();
    session.is_some_and(|session| session.compaction.is_some())
}

/// Tells a client that shows compactions how far one is.
pub(crate) async fn show_compaction(
    session: &Session,
    update: CompactionUpdate,
) -> acp::Result<()> {
    if shows_compaction(session) {
        let update = SessionUpdate::CompactionUpdate(update.into());
        session.update(update).await?;
    }
    Ok(())
}
