//! What can be typed in a session, told to its client: "Slash commands" of the specification.

use std::sync::Arc;

use acp::agent::Session;

use crate::context::commands::custom::CustomCommands;
use crate::session::SessionState;

/// Announces what can be typed, if that has changed: slash commands, "Advertising commands". For a model that
/// understands words these are also the user's own, which are looked for in the session's directories. Where only the
/// client sees those, there are none of the user's own: it can read files for an agent, and cannot list them.
///
/// # Errors
/// The connection has ended.
pub(crate) async fn announce(
    session: &Session,
    state: &SessionState,
    understands: bool,
) -> acp::Result<()> {
    let mut commands = state.commands.lock().await;
    let mut available = if understands {
        if let Ok(own) = state.access() {
            let tree = Arc::clone(&own.tree);
            let found =
                tokio::task::spawn_blocking(move || CustomCommands::under(tree.roots())).await;
            commands.set_custom_commands(found.unwrap_or_default());
        }
        commands.available()
    } else {
        crate::commands::available()
    };
    available.extend(state.servers.commands());
    if commands.announced.as_ref() != Some(&available) {
        session.commands(available.clone()).await?;
        commands.announced = Some(available);
    }
    Ok(())
}

/// Announces it anew each time when the session's MCP servers have other prompts.
pub(crate) fn announce_changes(session: Session, state: &Arc<SessionState>) {
    // It must not keep alive what it watches.
    let watched = Arc::downgrade(state);
    state.servers.on_change(move || {
        let (session, state) = (session.clone(), watched.upgrade()?);
        Some(async move {
            let announced = announce(&session, &state, state.follows_instructions()).await;
            if let Err(error) = &announced {
                tracing::debug!(%error, "cannot announce the MCP servers' prompts");
            }
            announced.is_ok()
        })
    });
}
