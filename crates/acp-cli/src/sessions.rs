//! `acp sessions`: the sessions that an agent keeps.

use std::path::Path;

use acp::client::AgentConnection;
use acp::v1::{ListSessionsRequest, SessionInfo};
use acp_host::clean;

use crate::args::{ListFormat, SessionsArgs};
use crate::environment::ForAgent;
use crate::exit::Exit;
use crate::login;
use crate::screen::{Screen, print};
use crate::start::{Failure, Target};
use crate::visit::visit;

/// How many sessions are listed at most, and how many pages are asked for.
const MOST: usize = 10_000;

pub(crate) async fn sessions(args: SessionsArgs) -> Exit {
    let asked = args.cwd.as_deref().unwrap_or(Path::new("."));
    let cwd = match std::fs::canonicalize(asked) {
        Ok(cwd) => cwd,
        Err(e) => return Exit::usage(format!("--cwd {}: {e}", asked.display())),
    };
    let given = match ForAgent::of(&args.env) {
        Ok(given) => given,
        Err(exit) => return exit,
    };
    let target = Target {
        command: &args.agent,
        cwd: &cwd,
        protocol: args.protocol,
        given: &given,
    };
    let mut request = ListSessionsRequest::new();
    if args.cwd.is_some() {
        request = request.cwd(cwd.to_string_lossy());
    }
    let work = async |agent: &AgentConnection, screen: &Screen| {
        list(target, agent, request, args.format, screen).await
    };
    match visit(target, work).await {
        Ok(()) => Exit::SUCCESS,
        Err(exit) => exit,
    }
}

/// Prints page by page.
async fn list(
    target: Target<'_>,
    agent: &AgentConnection,
    mut request: ListSessionsRequest,
    format: ListFormat,
    screen: &Screen,
) -> Result<(), Failure> {
    let mut listed = 0;
    for _ in 0..MOST {
        let page = match agent.list_sessions(&request).await {
            Err(error) if error.is_auth_required() => {
                return Err(login::needed(&target, agent, &error).into());
            }
            page => page?,
        };
        let fit = page.sessions.get(..MOST - listed);
        let sessions = fit.unwrap_or(&page.sessions);
        listed += sessions.len();
        if !print(shown(sessions, format)?.as_bytes()) {
            // Whoever reads the output has had enough: as `head` does.
            return Err(Exit::UNREAD.into());
        }
        let next = page.next_cursor;
        if sessions.len() < page.sessions.len() || (listed == MOST && next.is_some()) {
            screen.note(&format!("there are more; these are the first {MOST}"));
            return Ok(());
        }
        if next.is_none() {
            if listed == 0 {
                screen.note("the agent has no sessions");
            }
            return Ok(());
        }
        if next == request.cursor {
            break;
        }
        request.cursor = next;
    }
    let message = "the agent's list of sessions does not come to an end";
    Err(Exit::failed(message).into())
}

fn shown(sessions: &[SessionInfo], format: ListFormat) -> Result<String, Exit> {
    let mut text = String::new();
    if format == ListFormat::Json {
        for session in sessions {
            let line = serde_json::to_string(session)
                .map_err(|e| Exit::failed(format!("a session cannot be written: {e}")))?;
            text.push_str(&line);
            text.push('\n');
        }
        return Ok(text);
    }
    let rows: Vec<[String; 4]> = sessions
        .iter()
        .map(|session| {
            let updated = session.updated_at.as_deref().unwrap_or("-");
            let title = session.title.as_deref().unwrap_or("(without a title)");
            [session.session_id.as_str(), updated, &session.cwd, title].map(clean::line)
        })
        .collect();
    let width = |column: fn(&[String; 4]) -> &String| {
        let widths = rows.iter().map(|row| column(row).chars().count());
        widths.max().unwrap_or_default()
    };
    let (ids, dates, directories) = (width(|r| &r[0]), width(|r| &r[1]), width(|r| &r[2]));
    for [id, updated, cwd, title] in &rows {
        text.push_str(&format!(
            "{id:ids$}  {updated:dates$}  {cwd:directories$}  {title}\n"
        ));
    }
    Ok(text)
}
