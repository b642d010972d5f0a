//! Reports compaction progress to clients that display it.

use acp::agent::Session;
use acp::v1::{CompactionUpdate, SessionUpdate};

/// Returns `true` if the client supports compaction updates.
pub(crate) fn supports_compaction_updates(session: &Session) -> bool {
    let capabilities = session.client().capabilities();
    let session = capabilities.session.as_ref();
    session.is_some_and(|session| session.compaction.is_some())
}

/// Reports the progress of a compaction to clients that support it.
pub(crate) async fn show_compaction(
    session: &Session,
    update: CompactionUpdate,
) -> acp::Result<()> {
    if supports_compaction_updates(session) {
        let update = SessionUpdate::CompactionUpdate(update.into());
        session.send_update(update).await?;
    }
    Ok(())
}
