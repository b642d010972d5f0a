//! `--continue`: finds the latest session of a directory.

use std::collections::BTreeSet;
use std::path::Path;

use acp::client::AgentConnection;
use acp::v1::{ListSessionsRequest, SessionId, SessionInfo};
use acp_config::{AgentChoice, SessionName, SessionNames};
use acp_host::Policy;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::agent_session::with_confined_agent;
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::live::{AttachMode, LiveTarget};
use crate::screen::TerminalScreen;
use crate::session_list::list_matching;
use crate::start::{StartFailure, StartTarget};

/// Where to look for the latest session, and the options of the command that will continue it.
pub(crate) struct LatestSessionQuery<'a> {
    pub(crate) agent: &'a AgentChoice,
    pub(crate) cwd: &'a Path,
    /// The agent is confined while it lists its sessions, too.
    pub(crate) confinement: Option<&'a Confinement>,
    pub(crate) policy: Option<Policy>,
    /// Whether to ignore local servers (`--no-server`).
    pub(crate) no_server: bool,
}

/// The latest session of a directory.
pub(crate) struct LatestSession {
    pub(crate) id: String,
    /// If it has a name, commands that use this name can join it.
    name: Option<SessionName>,
}

impl LatestSession {
    /// Returns the values of `--session` and `--resume` that mean this session.
    pub(crate) fn into_options(self) -> (Option<SessionName>, Option<String>) {
        match self.name {
            Some(name) => (Some(name), None),
            None => (None, Some(self.id)),
        }
    }
}

/// The sessions of a live agent.
#[derive(Default, Deserialize)]
struct LiveSessionList {
    sessions: Vec<LiveSessionSummary>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveSessionSummary {
    session_id: SessionId,
    cwd: Option<String>,
    turn: Option<serde_json::Value>,
}

impl LatestSessionQuery<'_> {
    /// Finds the session. Asks the agent that holds the live sessions of the directory, or else starts the agent.
    pub(crate) async fn find(&self) -> Result<LatestSession, CommandExit> {
        let live = match self.no_server {
            true => None,
            false => LiveTarget {
                agent: self.agent,
                cwd: self.cwd,
                confinement: self.confinement,
                policy: self.policy,
            }
            .attach(AttachMode::IfRunning)?,
        };
        let target = StartTarget {
            agent: self.agent,
            cwd: self.cwd,
            live: live.as_ref(),
        };
        let work = async |connection: &AgentConnection, _: &TerminalScreen| {
            self.ask_agent(target, connection).await
        };
        let id = with_confined_agent(target, self.confinement, work).await?;
        let names = SessionNames::open(self.agent.storage_key(), self.cwd).list()?;
        let named = names.into_iter().find(|named| named.id == id.as_str());
        let name = named.and_then(|named| named.name.parse().ok());
        Ok(LatestSession {
            id: id.as_str().to_owned(),
            name,
        })
    }

    async fn ask_agent(
        &self,
        target: StartTarget<'_>,
        connection: &AgentConnection,
    ) -> Result<SessionId, StartFailure> {
        let agent = self.agent.display_name();
        let offers = connection.capabilities();
        if !offers.load_session && offers.session_capabilities.resume.is_none() {
            let message = format!(
                "cannot use --continue: {agent} cannot continue sessions (it supports neither loadSession nor sessionCapabilities.resume)"
            );
            return Err(CommandExit::usage(message).into());
        }
        if offers.session_capabilities.list.is_none() {
            let message = format!(
                "cannot use --continue: {agent} cannot list its sessions (it does not support sessionCapabilities.list); choose one with --session NAME or --resume ID"
            );
            return Err(CommandExit::usage(message).into());
        }
        let request = ListSessionsRequest::new().cwd(self.cwd.to_string_lossy());
        // The agent may ignore the directory that it was asked for.
        let is_here = |session: &SessionInfo| {
            Path::new(&session.cwd) == self.cwd && session.archived != Some(true)
        };
        let listed = list_matching(target, connection, request, is_here).await?;
        match latest(listed, &self.sessions_with_turns(connection).await?) {
            Latest::One(id) => Ok(id),
            Latest::None => Err(CommandExit::failed(format!(
                "{agent} has no session in {} to continue; start one without --continue, or list all with `{}`",
                self.cwd.display(),
                target.command_hint(&["sessions"])
            ))
            .into()),
            Latest::Unknown => Err(CommandExit::failed(format!(
                "cannot tell which session is the latest: {agent} does not say when its sessions changed; choose one with --resume ID, and list them with `{}`",
                target.command_hint(&["sessions"])
            ))
            .into()),
        }
    }

    /// Returns the live sessions of the directory that have a running turn.
    async fn sessions_with_turns(
        &self,
        connection: &AgentConnection,
    ) -> Result<BTreeSet<SessionId>, StartFailure> {
        let meta = connection.capabilities().meta.as_ref();
        if !meta.is_some_and(|meta| meta.contains_key("live")) {
            return Ok(BTreeSet::new());
        }
        let status = connection
            .connection()
            .request_raw("_live/status", &json!({}))
            .await?;
        let status: LiveSessionList = serde_json::from_str(status.get())
            .map_err(|e| CommandExit::failed(format!("invalid response to _live/status: {e}")))?;
        let sessions = status.sessions.into_iter().filter(|session| {
            let is_here = session.cwd.as_deref().map(Path::new) == Some(self.cwd);
            is_here && session.turn.is_some()
        });
        Ok(sessions.map(|session| session.session_id).collect())
    }
}

/// The result of the search.
#[derive(Debug, PartialEq, Eq)]
enum Latest {
    One(SessionId),
    None,
    /// There are several sessions, and nothing that orders them.
    Unknown,
}

/// Returns the session that changed last. A session with a running turn is changing now, whatever the agent has listed.
fn latest(listed: Vec<SessionInfo>, running: &BTreeSet<SessionId>) -> Latest {
    let is_listed = |id: &SessionId| listed.iter().any(|session| session.session_id == *id);
    // Some agents list a session only after its first turn.
    let unlisted = running.iter().filter(|id| !is_listed(id));
    let unlisted = unlisted.map(|id| (id.clone(), None)).collect::<Vec<_>>();
    let listed = listed.into_iter().map(|session| {
        let changed = session.updated_at.as_deref();
        let changed = changed.and_then(|time| time.parse::<Timestamp>().ok());
        (session.session_id, changed)
    });
    let mut sessions: Vec<_> = listed.chain(unlisted).collect();
    if sessions.iter().any(|(id, _)| running.contains(id)) {
        sessions.retain(|(id, _)| running.contains(id));
    }
    let has_times = sessions.iter().any(|(_, changed)| changed.is_some());
    if sessions.len() > 1 && !has_times {
        return Latest::Unknown;
    }
    // Of several that changed at the same time, the first is the one that the agent lists first.
    let last = sessions
        .into_iter()
        .reduce(|last, next| if next.1 > last.1 { next } else { last });
    last.map_or(Latest::None, |(id, _)| Latest::One(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, changed: Option<&str>) -> SessionInfo {
        let session = SessionInfo::new(id, "/");
        match changed {
            Some(time) => session.updated_at(time),
            None => session,
        }
    }

    #[test]
    fn time_decides_in_whatever_zone_it_is_given() {
        let listed = vec![
            session("none", None),
            session("old", Some("2026-03-01T12:00:00Z")),
            session("new", Some("2026-03-01T12:30:00+00:00")),
            session("older", Some("2026-03-01T13:00:00+02:00")),
        ];
        assert_eq!(latest(listed, &BTreeSet::new()), Latest::One("new".into()));
    }

    #[test]
    fn running_turn_is_later_than_any_time() {
        let listed = vec![
            session("ended", Some("2026-03-01T12:00:00Z")),
            session("running", Some("2026-03-01T11:00:00Z")),
        ];
        let running = BTreeSet::from(["running".into()]);
        assert_eq!(
            latest(listed.clone(), &running),
            Latest::One("running".into())
        );
        let unlisted = BTreeSet::from(["first turn".into()]);
        assert_eq!(latest(listed, &unlisted), Latest::One("first turn".into()));
    }

    #[test]
    fn sessions_without_times_are_not_guessed_at() {
        let none = BTreeSet::new();
        assert_eq!(latest(Vec::new(), &none), Latest::None);
        let only = vec![session("only", None)];
        assert_eq!(latest(only, &none), Latest::One("only".into()));
        let two = vec![session("a", None), session("b", Some("yesterday"))];
        assert_eq!(latest(two, &none), Latest::Unknown);
    }
}
