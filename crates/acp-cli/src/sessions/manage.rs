//! `acp sessions rename`, `archive` and `unarchive`: change sessions that the agent stores.

use acp::client::AgentConnection;
use acp::v1::SessionId;
use acp_config::SessionNames;
use acp_host::terminal_text;

use super::live::live_server;
use crate::agent_session::with_agent;
use crate::args::sessions::{ManageSessionArgs, RenameSessionArgs};
use crate::args::shared::absolute_directory;
use crate::exit::CommandExit;
use crate::login;
use crate::screen::{TerminalScreen, print};
use crate::start::{StartFailure, StartTarget, is_not_found};

/// A change to a session.
enum SessionChange {
    Rename(String),
    Archive,
    Unarchive,
}

impl SessionChange {
    async fn apply(&self, agent: &AgentConnection, id: &SessionId) -> acp::Result<String> {
        match self {
            Self::Rename(title) => {
                let title = agent.set_session_title(id, title).await?;
                Ok(format!("renamed: {}", terminal_text::clean_line(&title)))
            }
            Self::Archive => {
                agent.archive_session(id).await?;
                Ok("archived; list archived sessions with `acp sessions --archived`".to_owned())
            }
            Self::Unarchive => {
                agent.unarchive_session(id).await?;
                Ok("unarchived".to_owned())
            }
        }
    }
}

pub(super) async fn rename_session(args: RenameSessionArgs) -> Result<(), CommandExit> {
    let rename = SessionChange::Rename(args.title);
    let args = ManageSessionArgs {
        session: args.session,
        agent_choice: args.agent_choice,
        cwd: args.cwd,
    };
    change_session(&args, &rename).await
}

pub(super) async fn archive_session(args: ManageSessionArgs) -> Result<(), CommandExit> {
    change_session(&args, &SessionChange::Archive).await
}

pub(super) async fn unarchive_session(args: ManageSessionArgs) -> Result<(), CommandExit> {
    change_session(&args, &SessionChange::Unarchive).await
}

async fn change_session(
    args: &ManageSessionArgs,
    change: &SessionChange,
) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let named = SessionNames::open(agent.storage_key(), &cwd).find(&args.session)?;
    let id = named.map_or_else(|| args.session.clone(), |named| named.id);
    let live = live_server(&agent, &cwd)?;
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: live.as_ref(),
    };
    let work = async |connection: &AgentConnection, screen: &TerminalScreen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        match change.apply(connection, &id.as_str().into()).await {
            Err(error) if error.is_auth_required() => {
                Err(login::login_required_exit(&target, connection, &error).into())
            }
            Err(error) if is_not_found(&error) => {
                let message = format!(
                    "session not found in {}: {}",
                    agent.display_name(),
                    terminal_text::clean_line(&id)
                );
                Err(CommandExit::failed(message).into())
            }
            changed => Ok::<String, StartFailure>(changed?),
        }
    };
    let changed = with_agent(target, work).await?;
    print(format!("{changed}\n").as_bytes());
    Ok(())
}
