//! Records what clients do with a live agent.

use acp::jsonrpc::{self, Incoming};
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::agent::LiveAgent;
use super::log::{ClientId, QuestionId};
use crate::users::{AuditEvent, AuditedClient, only_looks};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SentParams {
    session_id: Option<SessionId>,
}

impl LiveAgent {
    /// Records what a client sends, if it can change something. If that fails, it must not be done.
    pub(super) fn audit_sent(
        &self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), jsonrpc::Error> {
        if self.audit.is_none() || only_looks(method) {
            return Ok(());
        }
        let read = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let read: SentParams = read.unwrap_or_default();
        let session = read.session_id.as_ref().map(SessionId::as_str);
        self.audit(client, session, &AuditEvent::Sent { method, params })
    }

    /// Records that a client has sent something that its user may not do.
    pub(super) fn audit_denied(&self, client: ClientId, line: &[u8]) {
        let (method, params) = match jsonrpc::parse(line) {
            Ok(Incoming::Request { method, params, .. }) => (method, params),
            Ok(Incoming::Notification { method, params }) => (method, params),
            Ok(Incoming::Response { .. }) | Err(_) => return,
        };
        let read = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let read: SentParams = read.unwrap_or_default();
        let session = read.session_id.as_ref().map(SessionId::as_str);
        let event = AuditEvent::Denied { method: &method };
        // It is not done in any case. The failure has been logged.
        let _ = self.audit(client, session, &event);
    }

    /// Records an answer of a client. If that fails, the answer must not reach the agent.
    pub(super) fn audit_answer(
        &self,
        client: ClientId,
        session: &SessionId,
        question: QuestionId,
        answer: &Result<Box<RawValue>, jsonrpc::Error>,
    ) -> Result<(), jsonrpc::Error> {
        let Some(asked) = self
            .sessions
            .get(session)
            .and_then(|session| session.question(question))
        else {
            return Ok(());
        };
        let event = AuditEvent::Answered {
            method: &asked.method,
            question: &asked.params,
            answer: answer.as_deref().ok(),
        };
        self.audit(client, Some(session.as_str()), &event)
    }

    fn audit(
        &self,
        client: ClientId,
        session: Option<&str>,
        event: &AuditEvent<'_>,
    ) -> Result<(), jsonrpc::Error> {
        let Some((log, agent)) = &self.audit else {
            return Ok(());
        };
        let client = self.clients.get(&client);
        let who = AuditedClient {
            agent,
            session,
            user: client.and_then(|client| client.user_name()),
            client: client.and_then(|client| client.name.as_deref()),
        };
        log.record(who, event).map_err(|error| {
            jsonrpc::Error::internal(format!("cannot write the audit log: {error}"))
        })
    }
}
