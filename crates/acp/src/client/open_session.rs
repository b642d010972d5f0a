//! Sends the requests that open sessions.

use std::sync::Arc;

use acp_wire::v1::{self, McpServer, SessionId};
use acp_wire::{Request, v2};

use super::agent::AgentConnection;
use super::session::ClientSession;
use crate::client_core::{OpenSessionResult, ReplayBackup};
use crate::connection::RequestOptions;
use crate::dialect;
use crate::error::Result;
use crate::session_setup::SessionSetup;

/// Builds a request that opens a session with the given setup.
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

/// An existing session that is being reopened.
pub(super) struct SessionReopening {
    id: SessionId,
    /// The backup to restore if the replay fails, or `None` if there is no replay.
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
        let before = agent.0.sessions.begin_replay(&id);
        Self {
            id,
            replay_backup: Some(before),
        }
    }
}

impl AgentConnection {
    /// Opens the existing session `old`, or a new session.
    pub(super) async fn open<R: Request<Response: OpenSessionResult>>(
        &self,
        request: &R,
        old: Option<SessionReopening>,
    ) -> Result<ClientSession> {
        let id = old.as_ref().map(|old| old.id.clone());
        let ask = RequestOptions {
            // A replay is sent before the response, and must also be handled first.
            is_ordered: old.as_ref().is_some_and(|old| old.replay_backup.is_some()),
            ..RequestOptions::default()
        };
        let sessions = Arc::clone(&self.0.sessions);
        // Keep this until the response names the session, even if the caller no longer waits for the response.
        let opening = sessions.begin_opening(id.as_ref());
        let on_answer = move |answer: Result<&R::Response, &crate::Error>| {
            let _opening = opening;
            match answer {
                Ok(answer) => {
                    let id = answer.new_session().or(old.as_ref().map(|old| &old.id));
                    if let Some(id) = id {
                        sessions.announce(id, &answer.announcement());
                    }
                }
                Err(_) => {
                    if let Some(old) = old
                        && let Some(before) = old.replay_backup
                    {
                        sessions.undo_replay(&old.id, before);
                    }
                }
            }
        };
        let conn = self.connection();
        let answer = conn.request_with(request, ask, on_answer).await?;
        // Either the request or its response contains the id.
        let id = answer.new_session().cloned().or(id);
        Ok(self.session(id.unwrap_or_else(|| "".into())))
    }
}
