//! What is open on a connection: the requests without a response, and the sessions.

use std::collections::{BTreeSet, HashMap, HashSet};

use acp_rules::schema::Envelope;
use serde_json::Value;

/// The requests without a response, and the sessions of the current check and of earlier ones.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    /// The suite's requests without a response, by id: the method, and the session that it names.
    own_requests: HashMap<String, (String, Option<String>)>,
    /// The ids of the program's requests without a response.
    other_requests: HashSet<String>,
    /// The sessions that this check has opened and not closed.
    open_sessions: BTreeSet<String>,
    /// All sessions of this check.
    sessions: HashSet<String>,
    /// All sessions of earlier checks.
    earlier_sessions: HashSet<String>,
}

impl OpenItems {
    /// Records a message that the suite sends.
    pub(super) fn record_sent(&mut self, message: &Value) {
        match Envelope::parse(message) {
            Some(Envelope::Request { id, method, params }) => {
                let session = session_id(params.unwrap_or(&Value::Null));
                self.own_requests
                    .insert(id.to_string(), (method.to_owned(), session));
            }
            Some(Envelope::Response { id, .. }) => {
                self.other_requests.remove(&id.to_string());
            }
            _ => {}
        }
    }

    /// Records a message that the program sent.
    pub(super) fn record_received(&mut self, message: &Value) {
        match Envelope::parse(message) {
            Some(Envelope::Request { id, .. }) => {
                self.other_requests.insert(id.to_string());
            }
            Some(Envelope::Response { id, result }) => {
                if let Some((method, session)) = self.own_requests.remove(&id.to_string())
                    && let Ok(result) = result
                {
                    self.record_success(&method, session_id(result).or(session));
                }
            }
            _ => {}
        }
    }

    fn record_success(&mut self, method: &str, session: Option<String>) {
        let Some(session) = session else {
            return;
        };
        match method {
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                self.sessions.insert(session.clone());
                self.open_sessions.insert(session);
            }
            "session/close" | "session/delete" => {
                self.open_sessions.remove(&session);
            }
            _ => {}
        }
    }

    /// Returns `true` if a message is about a session of an earlier check.
    pub(super) fn belongs_to_earlier_check(&self, message: &Value) -> bool {
        let session = message.get("params").and_then(session_id);
        session.is_some_and(|session| {
            self.earlier_sessions.contains(&session) && !self.sessions.contains(&session)
        })
    }

    /// Returns `true` if a request of either side has no response.
    pub(super) fn has_unanswered_requests(&self) -> bool {
        !self.own_requests.is_empty() || !self.other_requests.is_empty()
    }

    /// Returns `true` if a request of the suite has no response.
    pub(super) fn has_unanswered_own_requests(&self) -> bool {
        !self.own_requests.is_empty()
    }

    /// Returns the sessions that this check has opened and not closed.
    pub(super) fn open_sessions(&self) -> impl Iterator<Item = &str> {
        self.open_sessions.iter().map(String::as_str)
    }

    /// Makes the sessions of this check those of an earlier one.
    pub(super) fn begin_check(&mut self) {
        self.open_sessions.clear();
        self.earlier_sessions.extend(self.sessions.drain());
    }
}

/// Returns the session id in the params or the result of a message.
fn session_id(of: &Value) -> Option<String> {
    of.get("sessionId")
        .and_then(Value::as_str)
        .map(str::to_owned)
}
