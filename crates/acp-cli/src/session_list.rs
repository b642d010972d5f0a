//! The sessions that an agent lists, for commands that look for some of them.

use acp::client::AgentConnection;
use acp::v1::{ListSessionsRequest, SessionInfo};

use crate::exit::CommandExit;
use crate::login;
use crate::start::{StartFailure, StartTarget};

/// The maximum number of sessions to list. Also limits the number of pages to request.
pub(crate) const MAX_SESSIONS: usize = 10_000;

/// Returns the sessions that the agent lists and that match a condition.
pub(crate) async fn list_matching(
    target: StartTarget<'_>,
    agent: &AgentConnection,
    mut request: ListSessionsRequest,
    is_match: impl Fn(&SessionInfo) -> bool,
) -> Result<Vec<SessionInfo>, StartFailure> {
    let mut matching = Vec::new();
    for _ in 0..MAX_SESSIONS {
        let page = match agent.list_sessions(&request).await {
            Err(error) if error.is_auth_required() => {
                return Err(login::login_required_exit(&target, agent, &error).into());
            }
            page => page?,
        };
        matching.extend(page.sessions.into_iter().filter(&is_match));
        match page.next_cursor {
            Some(next) if request.cursor.as_ref() == Some(&next) => return Err(endless_list_exit()),
            Some(next) if matching.len() < MAX_SESSIONS => request.cursor = Some(next),
            _ => return Ok(matching),
        }
    }
    Err(endless_list_exit())
}

/// Returns the failure for an agent that always says that there are more sessions.
pub(crate) fn endless_list_exit() -> StartFailure {
    CommandExit::failed("the agent's session list never ends").into()
}
