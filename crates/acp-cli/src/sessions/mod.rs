//! `acp sessions`: lists the sessions that an agent stores, and manages the user's names for them.

mod cursor;
mod delete;
mod export;
mod live;
mod loading;
mod manage;
mod table;
mod watch;
mod watch_json;
mod when;

use std::path::Path;

use acp::client::AgentConnection;
use acp::v1::{ListSessionsRequest, SessionArchiveFilter, SessionInfo};
use acp_config::{NamedSession, SessionNames};
use acp_host::terminal_text;

use self::table::render_sessions;
use crate::agent_session::with_agent;
use crate::args::sessions::{
    ForgetSessionArgs, ListSessionsArgs, NameSessionArgs, SessionsArgs, SessionsSubcommand,
};
use crate::args::shared::{ListFormat, absolute_directory};
use crate::exit::CommandExit;
use crate::login;
use crate::screen::{TerminalScreen, print};
use crate::session_list::{MAX_SESSIONS, endless_list_exit};
use crate::start::{StartFailure, StartTarget};

pub(crate) async fn run_sessions(args: SessionsArgs) -> CommandExit {
    let done = match args.command {
        None => list_sessions(args.list).await,
        Some(SessionsSubcommand::List(args)) => list_sessions(args).await,
        Some(SessionsSubcommand::Name(args)) => name_session(&args),
        Some(SessionsSubcommand::Forget(args)) => forget_name(&args),
        Some(SessionsSubcommand::Rename(args)) => manage::rename_session(args).await,
        Some(SessionsSubcommand::Archive(args)) => manage::archive_session(args).await,
        Some(SessionsSubcommand::Unarchive(args)) => manage::unarchive_session(args).await,
        Some(SessionsSubcommand::Export(args)) => export::export_session(args).await,
        Some(SessionsSubcommand::Watch(args)) => watch::watch_session(args).await,
        Some(SessionsSubcommand::Status(args)) => live::show_status(args).await,
        Some(SessionsSubcommand::Cancel(args)) => live::cancel_turn(args).await,
        Some(SessionsSubcommand::Queue(args)) => live::change_queue(args).await,
        Some(SessionsSubcommand::Delete(args)) => delete::delete_session(args).await,
        Some(SessionsSubcommand::Prune(args)) => delete::prune_sessions(args).await,
        Some(SessionsSubcommand::Stop(args)) => live::stop_agent(&args),
    };
    match done {
        Ok(()) => CommandExit::SUCCESS,
        Err(exit) => exit,
    }
}

fn name_session(args: &NameSessionArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let has = SessionNames::open(agent.storage_key(), &cwd).assign(&args.name, &args.id, None)?;
    if has == args.id {
        return Ok(());
    }
    Err(CommandExit::usage(format!(
        "the name `{}` is already used for session {has}; remove the name with `acp sessions forget`",
        args.name
    )))
}

fn forget_name(args: &ForgetSessionArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(&args.cwd)?;
    let agent = args.agent_choice.choose(&cwd)?;
    match SessionNames::open(agent.storage_key(), &cwd).remove(&args.name)? {
        Some(id) => {
            print(
                format!(
                    "removed name {} ({})\n",
                    args.name,
                    terminal_text::clean_line(&id)
                )
                .as_bytes(),
            );
            Ok(())
        }
        None => Err(unknown_name_exit(&args.name, &agent.display_name(), &cwd)),
    }
}

/// Returns the `CommandExit` for a session name that does not exist.
fn unknown_name_exit(name: &str, agent: &str, cwd: &Path) -> CommandExit {
    CommandExit::usage(format!(
        "{agent} has no session called `{name}` in {}; list sessions with `acp sessions`",
        cwd.display()
    ))
}

async fn list_sessions(args: ListSessionsArgs) -> Result<(), CommandExit> {
    let cwd = absolute_directory(args.cwd.as_deref().unwrap_or(Path::new(".")))?;
    let agent = args.agent_choice.choose(&cwd)?;
    let names = SessionNames::open(agent.storage_key(), &cwd).list_all()?;
    let target = StartTarget {
        agent: &agent,
        cwd: &cwd,
        live: None,
    };
    let mut request = ListSessionsRequest::new();
    if args.cwd.is_some() {
        request = request.cwd(cwd.to_string_lossy());
    }
    if args.archived {
        request = request.archived(SessionArchiveFilter::Include);
    }
    let work = async |connection: &AgentConnection, screen: &TerminalScreen| {
        if let Some(note) = &agent.note {
            screen.note(note);
        }
        let mut list = ListOutput {
            format: args.format,
            names: &names,
            cwd: &cwd,
            waiting: Vec::new(),
        };
        let lists = &connection.capabilities().session_capabilities.list;
        if lists.is_none() && !names.is_empty() {
            screen.note("the agent cannot list sessions; showing named sessions only");
            if args.archived {
                screen.note("cannot tell which of them are archived");
            }
            let named: Vec<SessionInfo> = names
                .iter()
                .filter(|named| args.cwd.is_none() || Path::new(&named.cwd) == cwd)
                .map(|named| SessionInfo::new(named.id.as_str(), named.cwd.as_str()))
                .collect();
            list.add(&named)?;
            list.print_waiting()?;
            return Ok(());
        }
        let listed = list_pages(target, connection, request, &mut list, screen).await;
        // Even if a page could not be listed.
        list.print_waiting()?;
        listed
    };
    with_agent(target, work).await
}

/// Prints a list of sessions.
struct ListOutput<'a> {
    format: ListFormat,
    names: &'a [NamedSession],
    /// The directory whose sessions come first, in text.
    cwd: &'a Path,
    /// Sessions to print when all are known.
    waiting: Vec<SessionInfo>,
}

impl ListOutput<'_> {
    /// Adds sessions. As JSON, they are printed at once.
    fn add(&mut self, sessions: &[SessionInfo]) -> Result<(), CommandExit> {
        match self.format {
            ListFormat::Text => {
                self.waiting.extend_from_slice(sessions);
                Ok(())
            }
            ListFormat::Json => self.print(sessions),
        }
    }

    /// Prints the sessions that wait, those of this directory first.
    fn print_waiting(&mut self) -> Result<(), CommandExit> {
        let mut sessions = std::mem::take(&mut self.waiting);
        // The sort is stable: otherwise the agent's order stays.
        sessions.sort_by_key(|session| Path::new(&session.cwd) != self.cwd);
        self.print(&sessions)
    }

    fn print(&self, sessions: &[SessionInfo]) -> Result<(), CommandExit> {
        match print(render_sessions(sessions, self.names, self.format)?.as_bytes()) {
            true => Ok(()),
            // The reader has closed stdout, as `head` does.
            false => Err(CommandExit::STDOUT_CLOSED),
        }
    }
}

/// Lists all sessions, requesting one page after another.
async fn list_pages(
    target: StartTarget<'_>,
    agent: &AgentConnection,
    mut request: ListSessionsRequest,
    list: &mut ListOutput<'_>,
    screen: &TerminalScreen,
) -> Result<(), StartFailure> {
    let mut listed = 0;
    for _ in 0..MAX_SESSIONS {
        let page = match agent.list_sessions(&request).await {
            Err(error) if error.is_auth_required() => {
                return Err(login::login_required_exit(&target, agent, &error).into());
            }
            page => page?,
        };
        let fit = page.sessions.get(..MAX_SESSIONS - listed);
        let sessions = fit.unwrap_or(&page.sessions);
        listed += sessions.len();
        list.add(sessions)?;
        let next = page.next_cursor;
        if sessions.len() < page.sessions.len() || (listed == MAX_SESSIONS && next.is_some()) {
            screen.note(&format!("showing the first {MAX_SESSIONS} sessions"));
            return Ok(());
        }
        if next.is_none() {
            let hides = agent.capabilities().session_capabilities.archive.is_some()
                && request.archived.is_none();
            match (listed, hides) {
                (0, true) => {
                    screen.note("no sessions; include archived ones with --archived");
                }
                (0, false) => screen.note("no sessions"),
                _ => {}
            }
            return Ok(());
        }
        if next == request.cursor {
            break;
        }
        request.cursor = next;
    }
    Err(endless_list_exit())
}
