//! `acp sessions rename`, `archive` and `unarchive`: what an agent that keeps its sessions is asked to do with one.

use acp::client::AgentConnection;
use acp::v1::SessionId;
use acp_config::SessionNames;
use acp_host::clean;

use crate::args::sessions::{ManageSessionArgs, RenameSessionArgs};
use crate::args::shared::directory;
use crate::exit::Exit;
use crate::login;
use crate::screen::{Screen, print};
use crate::start::{Failure, Target, gone};
use crate::visit::visit;

/// What is done with a session. Gives what is printed.
enum SessionChange {
    Rename(String),
    Archive,
    Unarchive,
}

impl SessionChange {
    async fn make(&self, agent: &AgentConnection, id: &SessionId) -> acp::Result<String> {
        match self {
            Self::Rename(title) => {
                let title = agent.set_session_title(id, title).await?;
                Ok(format!("renamed: {}", clean::line(&title)))
            }
            Self::Archive => {
                agent.archive_session(id).await?;
                Ok("archived; `acp sessions --archived` lists it".to_owned())
            }
            Self::Unarchive => {
                agent.unarchive_session(id).await?;
                Ok("no longer archived".to_owned())
            }
        }
    }
}

pub(super) async fn rename(args: RenameSessionArgs) -> Result<(), Exit> {
    let rename = SessionChange::Rename(args.title);
    let args = ManageSessionArgs {
        session: args.session,
        which: args.which,
        cwd: args.cwd,
    };
    change(&args, &rename).await
}

pub(super) async fn archive(args: ManageSessionArgs) -> Result<(), Exit> {
    change(&args, &SessionChange::Archive).await
}

pub(super) async fn unarchive(args: ManageSessionArgs) -> Result<(), Exit> {
    change(&args, &SessionChange::Unarchive).await
}

async fn change(args: &ManageSessionArgs, change: &SessionChange) -> Result<(), Exit> {
    let cwd = directory(&args.cwd)?;
    let agent = args.which.choose(&cwd)?;
    let named = SessionNames::of(agent.key(), &cwd).find(&args.session)?;
    let id = named.map_or_else(|| args.session.clone(), |named| named.id);
    let target = Target {
        agent: &agent,
        cwd: &cwd,
    };
    let work = async |connection: &AgentConnection, screen: &Screen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        match change.make(connection, &id.as_str().into()).await {
            Err(error) if error.is_auth_required() => {
                Err(login::needed(&target, connection, &error).into())
            }
            Err(error) if gone(&error) => {
                let message = format!("{} has no session {}", agent.title(), clean::line(&id));
                Err(Exit::failed(message).into())
            }
            changed => Ok::<String, Failure>(changed?),
        }
    };
    let changed = visit(target, work).await?;
    print(format!("{changed}\n").as_bytes());
    Ok(())
}
