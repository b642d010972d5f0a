//! `acp sessions delete` and `prune`: delete sessions that the agent stores.

use std::path::Path;

use acp::client::AgentConnection;
use acp::jsonrpc;
use acp::v1::{ListSessionsRequest, SessionId, SessionInfo};
use acp_config::SessionNames;
use acp_host::terminal_text;
use jiff::Timestamp;

use super::live::live_server;
use super::table::render_sessions;
use crate::agent_session::with_agent;
use crate::args::sessions::{DeleteSessionArgs, PruneArgs};
use crate::args::shared::{ListFormat, absolute_directory};
use crate::exit::CommandExit;
use crate::login;
use crate::screen::{TerminalScreen, print};
use crate::session_list::list_matching;
use crate::start::{StartFailure, StartTarget, is_not_found};
use crate::terminal_user;

pub(super) async fn delete_session(args: DeleteSessionArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let names = SessionNames::open(agent.storage_key(), &cwd);
    let named = names.find(&args.session)?;
    let id = named.map_or_else(|| args.session.clone(), |named| named.id);
    let question = format!(
        "Delete session {}?",
        terminal_text::clean_line(&args.session)
    );
    confirm(&question, args.yes)?;
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
        // Agents do not have to report that there is no such session.
        let found = match connection.capabilities().session_capabilities.list {
            Some(_) => {
                let is_match = |session: &SessionInfo| session.session_id.as_str() == id;
                let request = ListSessionsRequest::new();
                let matching = list_matching(target, connection, request, is_match).await?;
                !matching.is_empty()
            }
            None => true,
        };
        let deleted = match found {
            true => {
                connection
                    .delete_session(&SessionId::from(id.as_str()))
                    .await
            }
            false => Err(acp::Error::Rpc(jsonrpc::Error::resource_not_found(""))),
        };
        match deleted {
            Err(error) if is_not_found(&error) => {
                let message = format!(
                    "session not found in {}: {}",
                    agent.display_name(),
                    terminal_text::clean_line(&id)
                );
                Err(CommandExit::failed(message).into())
            }
            deleted => checked(target, connection, deleted),
        }
    };
    with_agent(target, work).await?;
    forget_names(&names, &id)?;
    print(b"deleted\n");
    Ok(())
}

pub(super) async fn prune_sessions(args: PruneArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let names = SessionNames::open(agent.storage_key(), &cwd);
    let live = live_server(&agent, &cwd)?;
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: live.as_ref(),
    };
    let before = Timestamp::now() - args.older_than;
    let work = async |connection: &AgentConnection, screen: &TerminalScreen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        let old = old_sessions(target, connection, &cwd, before).await?;
        if old.is_empty() {
            screen.note("no sessions are older");
            return Ok::<_, StartFailure>(());
        }
        let listed = render_sessions(
            &old,
            &names.list().map_err(CommandExit::from)?,
            ListFormat::Text,
        )?;
        print(listed.as_bytes());
        let noun = if old.len() == 1 {
            "session"
        } else {
            "sessions"
        };
        confirm(&format!("Delete {} {noun}?", old.len()), args.yes)?;
        for session in &old {
            let deleted = connection.delete_session(&session.session_id).await;
            checked(target, connection, deleted)?;
            forget_names(&names, session.session_id.as_str())?;
        }
        print(format!("deleted {} {noun}\n", old.len()).as_bytes());
        Ok(())
    };
    with_agent(target, work).await
}

/// Returns the sessions in this directory that have not changed since a time. Sessions without a time are not old.
async fn old_sessions(
    target: StartTarget<'_>,
    agent: &AgentConnection,
    cwd: &Path,
    before: Timestamp,
) -> Result<Vec<SessionInfo>, StartFailure> {
    let request = ListSessionsRequest::new().cwd(cwd.to_string_lossy());
    let is_old = |session: &SessionInfo| {
        let changed = session
            .updated_at
            .as_deref()
            .and_then(|time| time.parse().ok());
        // The agent may ignore the directory that it was asked for.
        let is_here = Path::new(&session.cwd) == cwd;
        is_here && changed.is_some_and(|changed: Timestamp| changed < before)
    };
    list_matching(target, agent, request, is_old).await
}

/// Turns the failure of a request into one of the command.
fn checked(
    target: StartTarget<'_>,
    agent: &AgentConnection,
    deleted: acp::Result<()>,
) -> Result<(), StartFailure> {
    match deleted {
        Err(error) if error.is_auth_required() => {
            Err(login::login_required_exit(&target, agent, &error).into())
        }
        deleted => Ok(deleted?),
    }
}

/// Removes the names of a session that is gone.
fn forget_names(names: &SessionNames, id: &str) -> Result<(), CommandExit> {
    for named in names.list()?.into_iter().filter(|named| named.id == id) {
        names.remove(&named.name)?;
    }
    Ok(())
}

/// Asks the user, unless `--yes` is given.
fn confirm(question: &str, yes: bool) -> Result<(), CommandExit> {
    if yes {
        return Ok(());
    }
    if !terminal_user::can_ask() {
        return Err(CommandExit::usage(
            "deleting needs a confirmation: use --yes where there is no terminal",
        ));
    }
    match tokio::task::block_in_place(|| terminal_user::confirm(question)) {
        true => Ok(()),
        false => Err(CommandExit::failed("nothing was deleted")),
    }
}
