//! The client that is right: it opens a session, prompts once, and ends.

use acp::Transport;
use acp::client::{Client, PermissionRequest, connect};
use acp::v1::RequestPermissionOutcome;

/// Uses an agent.
pub(crate) fn start(transport: Transport) {
    tokio::spawn(async move {
        let Ok(agent) = connect(transport, Right).await else {
            return;
        };
        let Ok(session) = agent.new_session("/").await else {
            return;
        };
        let _ = session.prompt("Do it.").await;
        agent.close();
    });
}

struct Right;

impl Client for Right {
    async fn request_permission(
        &self,
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        Ok(request.allow())
    }
}
