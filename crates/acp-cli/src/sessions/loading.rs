//! Loads a session for `acp sessions export` and `acp sessions watch`.

use acp::client::{AgentConnection, ClientSession, SessionSetup};
use acp_config::SessionNames;

use crate::exit::CommandExit;
use crate::login;
use crate::start::{StartFailure, StartTarget, is_not_found};

/// Loads a session with its history, by its name or id. `purpose` is the verb for the error message.
pub(super) async fn load_session(
    target: StartTarget<'_>,
    connection: &AgentConnection,
    name_or_id: &str,
    purpose: &str,
) -> Result<ClientSession, StartFailure> {
    let agent = target.agent;
    if !connection.capabilities().load_session {
        let message = format!(
            "cannot {purpose} sessions of {}: it does not support loadSession",
            agent.display_name()
        );
        return Err(CommandExit::usage(message).into());
    }
    let names = SessionNames::open(agent.storage_key(), target.cwd);
    let named = names.find(name_or_id).map_err(CommandExit::from)?;
    let id = named.map_or_else(|| name_or_id.to_owned(), |named| named.id);
    let setup = SessionSetup::new(target.cwd);
    match connection.load_session(id.as_str(), setup).await {
        Err(error) if error.is_auth_required() => {
            Err(login::login_required_exit(&target, connection, &error).into())
        }
        Err(error) if is_not_found(&error) => {
            let message = format!("session not found in {}: {id}", agent.display_name());
            Err(CommandExit::failed(message).into())
        }
        loaded => Ok(loaded?),
    }
}
