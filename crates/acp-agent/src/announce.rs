//! Announces a session's slash commands to the client. See "Slash Commands" in the specification.

use std::sync::Arc;

use acp::agent::Session;

use crate::context::commands::custom::CustomCommands;
use crate::session::SessionState;

/// Announces the available slash commands if they have changed ("Advertising commands" in the specification). If the
/// model `understands` text, these include the user's custom commands, read from the session's directories. If only the
/// client can access those directories, there are no custom commands, because a client can read files for an agent but
/// not list them.
///
/// # Errors
/// The connection is closed.
pub(crate) async fn announce_commands(
    session: &Session,
    state: &SessionState,
    understands: bool,
) -> acp::Result<()> {
    let mut commands = state.commands.lock().await;
    let mut available = if understands {
        if let Ok(own) = state.access() {
            let tree = Arc::clone(&own.tree);
            let found =
                tokio::task::spawn_blocking(move || CustomCommands::find_in(tree.roots())).await;
            commands.set_custom_commands(found.unwrap_or_default());
        }
        commands.available()
    } else {
        crate::commands::available_commands()
    };
    available.extend(state.servers.commands());
    if commands.announced.as_ref() != Some(&available) {
        session.set_commands(available.clone()).await?;
        commands.announced = Some(available);
    }
    Ok(())
}

/// Announces the commands again whenever the prompts from the session's MCP servers change.
pub(crate) fn announce_changes(session: Session, state: &Arc<SessionState>) {
    // The callback must not keep the session alive after it is closed.
    let watched = Arc::downgrade(state);
    state.servers.on_change(move || {
        let (session, state) = (session.clone(), watched.upgrade()?);
        Some(async move {
            let announced = announce_commands(&session, &state, state.follows_instructions()).await;
            if let Err(error) = &announced {
                tracing::debug!(%error, "cannot announce the MCP servers' prompts");
            }
            announced.is_ok()
        })
    });
}
