//! Serves an agent on a Unix-domain socket: each message is a line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp::Transport;
use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use acp_remote::server::TokenUser;

use crate::served_agent::AgentRunner;

/// How long to wait after a connection could not be accepted.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts connections until `ended` is cancelled.
pub(crate) async fn serve_unix(
    listener: &UnixListener,
    runner: &Arc<AgentRunner>,
    ended: &CancellationToken,
) {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    let connections = TaskTracker::new();
    let permits = Arc::new(Semaphore::new(runner.max_connections));
    loop {
        let accepted = async {
            // Further clients wait in the socket's backlog.
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = ended.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // File descriptors may have run out, or the client may have gone.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        if runner.draining.is_cancelled() || !is_same_user(&stream) {
            continue;
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let span = tracing::info_span!("connection", id, agent = runner.agent.name);
        span.in_scope(|| tracing::info!("connection opened"));
        let (reader, writer) = stream.into_split();
        let handled =
            Arc::clone(runner).handle(span, TokenUser::Owner, Transport::new(reader, writer));
        let ended = ended.clone();
        connections.spawn(async move {
            let _permit = permit;
            tokio::select! {
                _ = handled => {}
                () = ended.cancelled() => {}
            }
        });
    }
    connections.close();
    connections.wait().await;
}

/// Returns `true` if a client's process belongs to the user of this process. The permissions of the socket and its
/// directory already ensure this, except while the socket is being created.
fn is_same_user(stream: &UnixStream) -> bool {
    match stream.peer_cred() {
        Ok(credentials) if credentials.uid() == geteuid().as_raw() => true,
        Ok(credentials) => {
            tracing::warn!(
                uid = credentials.uid(),
                "rejecting another user's connection"
            );
            false
        }
        Err(error) => {
            tracing::warn!(%error, "rejecting a connection of an unknown user");
            false
        }
    }
}
