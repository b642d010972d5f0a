//! Opening sessions: the requests, and the session data in their responses.

use std::sync::Arc;

use acp_wire::v1::{self, McpServer, SessionId};
use acp_wire::{Request, v2};

use super::agent::AgentConnection;
use super::session::ClientSession;
use super::sessions::{ClientSessions, ReplayBackup, SessionAnnouncement};
use crate::connection::RequestOptions;
use crate::dialect;
use crate::error::Result;
use crate::session_setup::SessionSetup;

/// Builds a request that opens a session from its setup.
macro_rules! request {
    ($setup:ident, $request:expr, $servers:expr) => {{
        let mut request = $request;
        request.mcp_servers = $servers($setup.mcp_servers);
        request.additional_directories = $setup.additional_directories;
        request.system_prompt = $setup.system_prompt;
        request.meta = $setup.meta;
        request
    }};
}

fn servers_to_v2(servers: Vec<McpServer>) -> Vec<v2::McpServer> {
    let servers = servers.into_iter();
    servers.filter_map(dialect::mcp_server_to_v2).collect()
}

impl SessionSetup {
    pub(super) fn new_v1(self) -> v1::NewSessionRequest {
        let request = v1::NewSessionRequest::new(self.cwd, Vec::new());
        request!(self, request, |servers| servers)
    }

    pub(super) fn load_v1(self, id: &SessionId) -> v1::LoadSessionRequest {
        let request = v1::LoadSessionRequest::new(id, self.cwd, Vec::new());
        request!(self, request, |servers| servers)
    }

    pub(super) fn resume_v1(self, id: &SessionId) -> v1::ResumeSessionRequest {
        let request = v1::ResumeSessionRequest::new(id, self.cwd);
        request!(self, request, |servers| servers)
    }

    pub(super) fn fork_v1(self, id: &SessionId) -> v1::ForkSessionRequest {
        let request = v1::ForkSessionRequest::new(id, self.cwd);
        request!(self, request, |servers| servers)
    }

    pub(super) fn new_v2(self) -> v2::NewSessionRequest {
        let request = v2::NewSessionRequest::new(self.cwd);
        request!(self, request, servers_to_v2)
    }

    pub(super) fn resume_v2(self, id: &SessionId) -> v2::ResumeSessionRequest {
        let request = v2::ResumeSessionRequest::new(id, self.cwd);
        request!(self, request, servers_to_v2)
    }

    pub(super) fn fork_v2(self, id: &SessionId) -> v2::ForkSessionRequest {
        let request = v2::ForkSessionRequest::new(id, self.cwd);
        request!(self, request, servers_to_v2)
    }
}

/// A response to a request that opens a session.
pub(super) trait OpenedSessionResponse {
    /// Returns the session id, if the response is for a new session.
    fn new_session(&self) -> Option<&SessionId>;
    /// Applies the response to the session.
    fn apply(&self, sessions: &ClientSessions, id: &SessionId);
}

macro_rules! answers {
    ($tell:ident: $($answer:ty => $id:expr;)+) => { $(
        impl OpenedSessionResponse for $answer {
            fn new_session(&self) -> Option<&SessionId> {
                let id: fn(&Self) -> Option<&SessionId> = $id;
                id(self)
            }
            fn apply(&self, sessions: &ClientSessions, id: &SessionId) {
                $tell!(self, sessions, id);
            }
        }
    )+ };
}

macro_rules! tell_v1 {
    ($answer:ident, $sessions:ident, $id:ident) => {
        $sessions.apply_announcement(
            $id,
            &SessionAnnouncement {
                modes: $answer.modes.as_ref(),
                models: $answer.models.as_ref(),
                options: $answer.config_options.as_deref(),
            },
        )
    };
}

macro_rules! tell_v2 {
    ($answer:ident, $sessions:ident, $id:ident) => {
        apply_v2_announcement(
            $sessions,
            $id,
            &$answer.config_options,
            &$answer.available_commands,
        )
    };
}

answers! { tell_v1:
    v1::NewSessionResponse => |answer| Some(&answer.session_id);
    v1::ForkSessionResponse => |answer| Some(&answer.session_id);
    v1::LoadSessionResponse => |_| None;
    v1::ResumeSessionResponse => |_| None;
}

answers! { tell_v2:
    v2::NewSessionResponse => |answer| Some(&answer.session_id);
    v2::ForkSessionResponse => |answer| Some(&answer.session_id);
    v2::ResumeSessionResponse => |_| None;
}

fn apply_v2_announcement(
    sessions: &ClientSessions,
    id: &SessionId,
    options: &[v2::SessionConfigOption],
    commands: &[v2::AvailableCommand],
) {
    let options = dialect::options_from_v2(options.to_vec());
    let opened = SessionAnnouncement {
        options: Some(&options),
        ..SessionAnnouncement::default()
    };
    sessions.apply_announcement(id, &opened);
    if !commands.is_empty() {
        let announce = |thread: &mut crate::Thread| thread.set_commands(commands);
        sessions.with_session(id, |state| state.thread.change(announce));
    }
}

/// An existing session that is opened again.
pub(super) struct SessionReopening {
    id: SessionId,
    /// The backup that is restored if a replay fails. `None` if the session is opened without a replay.
    replay_backup: Option<Option<ReplayBackup>>,
}

impl SessionReopening {
    pub(super) fn resume(id: SessionId) -> Self {
        Self {
            id,
            replay_backup: None,
        }
    }

    pub(super) fn replay(agent: &AgentConnection, id: SessionId) -> Self {
        let before = agent.0.sessions.claim_for_replay(&id);
        Self {
            id,
            replay_backup: Some(before),
        }
    }
}

impl AgentConnection {
    /// Opens a session: a new one, or the existing session `old`.
    pub(super) async fn open<R: Request<Response: OpenedSessionResponse>>(
        &self,
        request: &R,
        old: Option<SessionReopening>,
        ask: RequestOptions,
    ) -> Result<ClientSession> {
        let id = old.as_ref().map(|old| old.id.clone());
        let sessions = Arc::clone(&self.0.sessions);
        // Held until the response names the session, even if the caller no longer waits for it.
        let opening = sessions.begin_opening(id.as_ref());
        let on_answer = move |answer: Result<&R::Response, &crate::Error>| {
            let _opening = opening;
            match (answer, old) {
                (Ok(answer), old) => {
                    let id = answer.new_session().or(old.as_ref().map(|old| &old.id));
                    if let Some(id) = id {
                        answer.apply(&sessions, id);
                    }
                }
                (
                    Err(_),
                    Some(SessionReopening {
                        id,
                        replay_backup: Some(before),
                    }),
                ) => sessions.restore(&id, before),
                (Err(_), _) => {}
            }
        };
        let conn = self.connection();
        let answer = conn.request_with(request, ask, on_answer).await?;
        // Either the request or its response contains the id.
        let id = answer.new_session().cloned().or(id);
        Ok(self.session(id.unwrap_or_else(|| "".into())))
    }
}
