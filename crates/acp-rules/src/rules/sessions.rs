//! Rules about sessions: which are open, and which messages each side may send about them.

use serde_json::Value;

use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::config::SessionConfig;
use super::messages::SessionMessages;
use super::permissions;
use super::requests::{RuleRequest, RuleRequests};
use super::rule::{Findings, MessagePosition, rules};
use super::states::SessionStates;
use super::table::{BoundedTable, id_field, text_field};
use super::terminals::{DisplayTerminals, RuleTerminals};
use super::tool_calls::RuleToolCalls;
use super::turns::RuleTurns;

rules! {
    UNKNOWN = "session-unknown" Should "session-setup" "An agent refers only to sessions that the client knows.";
    SET_UP = "session-not-set-up" Must "prompt-turn" "A client sends prompts only to open sessions.";
    CLOSED = "session-closed" Should "session-setup" "Neither side sends messages for a closed session.";
    TWICE = "session-id-twice" Must "session-setup" "A new session has a unique id.";
}

/// The maximum number of sessions to remember.
const MAX_SESSIONS: usize = 1024;

/// The maximum number of messages about unknown sessions to remember.
const MAX_EARLY_MESSAGES: usize = 64;

/// Methods whose response contains the id of a new session.
const OPENING_METHODS: &[&str] = &["session/new", "session/fork"];

/// A session, with the information that the rules need about it.
#[derive(Debug)]
pub(super) struct RuleSession {
    /// Whether the session is open.
    is_open: bool,
    /// Whether another session has announced this one as its subagent. The client does not open such a session.
    is_subagent: bool,
    closed_at: Option<MessagePosition>,
    /// The number of pending requests that load or resume the session. Until these get responses, the session's history
    /// may be replayed.
    pending_loads: u32,
    turns: RuleTurns,
    tool_calls: RuleToolCalls,
    config: SessionConfig,
    states: SessionStates,
    display_terminals: DisplayTerminals,
    messages: SessionMessages,
}

impl RuleSession {
    fn new() -> Self {
        Self {
            is_open: false,
            is_subagent: false,
            closed_at: None,
            pending_loads: 0,
            turns: RuleTurns::default(),
            tool_calls: RuleToolCalls::new(),
            config: SessionConfig::default(),
            states: SessionStates::default(),
            display_terminals: DisplayTerminals::new(),
            messages: SessionMessages::new(),
        }
    }
}

/// All sessions of a conversation.
#[derive(Debug)]
pub(super) struct RuleSessions {
    table: BoundedTable<RuleSession>,
    /// Messages about unknown sessions, whose ids may still arrive in the response to a pending request.
    early_messages: Vec<(String, MessagePosition)>,
    /// Whether the client has listed sessions. If so, it may know the ids of sessions that were opened elsewhere.
    has_listed: bool,
}

impl RuleSessions {
    pub(super) fn new() -> Self {
        Self {
            table: BoundedTable::with_capacity(MAX_SESSIONS),
            early_messages: Vec::new(),
            has_listed: false,
        }
    }

    fn get_or_insert(&mut self, id: &str) -> Option<&mut RuleSession> {
        if self.table.get(id).is_none() {
            self.table.insert(id, RuleSession::new());
        }
        self.table.get_mut(id)
    }

    pub(super) fn is_running(&self, id: &str) -> bool {
        self.table
            .get(id)
            .is_some_and(|session| session.turns.is_running())
    }

    pub(super) fn cancel(&mut self, id: &str) {
        if let Some(session) = self.table.get_mut(id) {
            session.turns.cancel();
        }
    }

    /// Checks a client message that refers to a session.
    pub(super) fn check_client_request(
        &mut self,
        found: &mut Findings,
        method: &str,
        id: &str,
        params: &Value,
    ) {
        match method {
            "session/load" | "session/resume" => {
                if let Some(session) = self.get_or_insert(id) {
                    session.pending_loads += 1;
                    session.closed_at = None;
                    session.tool_calls = RuleToolCalls::new();
                    session.states = SessionStates::default();
                    session.messages = SessionMessages::new();
                    session.display_terminals = DisplayTerminals::new();
                }
            }
            "session/prompt" | "session/set_mode" | "session/set_config_option" => {
                let known = self.table.get(id);
                if !known.map_or(!self.table.is_new(id), |session| session.is_open) {
                    let text = format!("sends `{method}` for session {id:?}, which is not open");
                    match known.and_then(|session| session.closed_at) {
                        Some(closed) => {
                            found.report_with_earlier(&SET_UP, Side::Client, closed, text)
                        }
                        None => found.report(&SET_UP, Side::Client, text),
                    }
                    return;
                }
                let Some(session) = self.get_or_insert(id) else {
                    return;
                };
                match method {
                    "session/prompt" => {
                        session.turns.begin_turn(found);
                        session.states.begin_turn();
                    }
                    "session/set_mode" => session.config.set_mode(found, params),
                    _ => session.config.set_option(found, params),
                }
            }
            _ => {}
        }
    }

    /// Checks an agent message that refers to a session.
    pub(super) fn check_agent_request(
        &mut self,
        found: &mut Findings,
        method: &str,
        id: &str,
        params: &Value,
        requests: &RuleRequests,
        terminals: &mut RuleTerminals,
    ) {
        self.has_listed |= requests.is_waiting(&["session/list"], None);
        let update = &params["update"];
        let kind = text_field(update, "sessionUpdate").unwrap_or_default();
        let known = self.table.get(id);
        let is_known = |session: &RuleSession| {
            session.is_open || session.is_subagent || session.pending_loads > 0
        };
        if !known.is_some_and(is_known) {
            match known.and_then(|session| session.closed_at) {
                Some(closed) => {
                    let text = format!("sends `{method}` for session {id:?} after it was closed");
                    found.report_with_earlier(&CLOSED, Side::Agent, closed, text);
                }
                None if !self.table.is_new(id) => {}
                // Agents also report the titles of listed sessions that are not open here.
                None if kind == "session_info_update" && self.has_listed => {}
                None if requests.is_waiting(OPENING_METHODS, None) => {
                    if self.early_messages.len() < MAX_EARLY_MESSAGES {
                        self.early_messages.push((id.to_owned(), found.position));
                    }
                }
                None => {
                    let text = format!("sends `{method}` for unknown session {id:?}");
                    found.report(&UNKNOWN, Side::Agent, text);
                }
            }
            if !requests.is_waiting(OPENING_METHODS, None) {
                // Remember the session, so that it is reported only once.
                let _ = self.get_or_insert(id);
                return;
            }
        }
        if kind == "subagent_update"
            && let Some(subagent) = id_field(update, "sessionId")
            && let Some(session) = self.get_or_insert(subagent)
        {
            session.is_subagent = true;
        }
        let Some(session) = self.get_or_insert(id) else {
            return;
        };
        if session.is_subagent && !session.is_open {
            // It has no turns that a prompt begins, and it may be replayed with its parent.
            if method == "session/request_permission" {
                permissions::check_request(found, params);
            }
            return;
        }
        let replayed = session.pending_loads > 0;
        match method {
            "session/request_permission" => {
                permissions::check_request(found, params);
                session.tool_calls.check_permission(found, params);
                session.states.check_permission(found);
            }
            "session/update" => {
                session.turns.update(found, kind, replayed);
                session.tool_calls.update(found, kind, update, replayed);
                session.config.update(found, kind, update);
                match found.version {
                    SchemaVersion::V1 => {
                        if !replayed && matches!(kind, "tool_call" | "tool_call_update") {
                            terminals.check_content(found, update);
                        }
                    }
                    SchemaVersion::V2 => {
                        session.states.update(found, kind, update);
                        session.display_terminals.update(found, kind, update);
                        session.messages.update(found, kind, update);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn check_response(
        &mut self,
        found: &mut Findings,
        open: &RuleRequest,
        result: Result<&Value, &Value>,
        requests: &RuleRequests,
    ) {
        match open.method.as_str() {
            "session/list" => self.has_listed = true,
            "session/new" | "session/fork" => self.check_opened(found, open, result, requests),
            _ => {}
        }
        let Some(asked) = &open.session else { return };
        let Some(session) = self.table.get_mut(asked) else {
            return;
        };
        match open.method.as_str() {
            "session/load" | "session/resume" => {
                session.pending_loads = session.pending_loads.saturating_sub(1);
                if let Ok(result) = result {
                    session.is_open = true;
                    session.config.apply_session_setup(found, result);
                }
            }
            "session/close" if result.is_ok() => {
                session.is_open = false;
                session.closed_at = Some(found.position);
            }
            "session/prompt" if found.version == SchemaVersion::V1 => {
                session.turns.check_response(found, open, result);
            }
            "session/prompt" if result.is_err() => session.states.fail_prompt(),
            "session/set_config_option" => {
                if let Ok(result) = result {
                    session.config.apply_options(found, result);
                }
            }
            "session/request_permission" | "elicitation/create" => {
                session.turns.record_user_answer()
            }
            _ => {}
        }
    }

    /// Handles the response to a request that opens a session. Once no such request is pending, reports early messages
    /// about sessions that were never opened.
    fn check_opened(
        &mut self,
        found: &mut Findings,
        open: &RuleRequest,
        result: Result<&Value, &Value>,
        requests: &RuleRequests,
    ) {
        if let Ok(result) = result
            && let Some(id) = id_field(result, "sessionId")
        {
            let method = &open.method;
            if let Some(session) = self.get_or_insert(id) {
                if session.is_open {
                    let text =
                        format!("responds to `{method}` with id {id:?}, which is already in use");
                    found.report(&TWICE, Side::Agent, text);
                }
                session.is_open = true;
                session.closed_at = None;
                session.config.apply_session_setup(found, result);
            }
        }
        if requests.is_waiting(OPENING_METHODS, None) {
            return;
        }
        for (id, early) in std::mem::take(&mut self.early_messages) {
            if self
                .table
                .get(&id)
                .is_some_and(|session| !session.is_open && session.pending_loads == 0)
            {
                let text = format!("refers to session {id:?}, which the client does not know");
                found.report_earlier(&UNKNOWN, Side::Agent, early, text);
            }
        }
    }

    /// Reports any turns left unfinished when the agent closes its output.
    pub(super) fn agent_closed(&mut self, found: &mut Findings) {
        if found.version == SchemaVersion::V2 {
            for session in self.table.values_mut() {
                session.states.agent_closed(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    const INFO_UPDATE: &str = r#"{"method":"session/update","params":{"sessionId":"t",
        "update":{"sessionUpdate":"agent_message_chunk","content":{}}}}"#;

    #[test]
    fn updates_must_name_a_known_session() {
        let mut talk = ExpectedConversation::session();
        talk.agent_sends("session-unknown agent", INFO_UPDATE);
        talk.update("", r#"{"sessionUpdate":"available_commands_update"}"#);
    }

    #[test]
    fn early_updates_belong_to_the_session_being_opened() {
        let mut talk = ExpectedConversation::v1();
        talk.client_requests(1, "session/new", "{}");
        talk.agent_sends_valid(INFO_UPDATE);
        talk.agent_sends_valid(r#"{"id":1,"result":{"sessionId":"t"}}"#);
        talk.agent_sends_valid(INFO_UPDATE);
        let mut talk = ExpectedConversation::v1();
        talk.client_requests(1, "session/new", "{}");
        talk.agent_sends_valid(INFO_UPDATE);
        talk.agent_sends(
            "session-unknown agent",
            r#"{"id":1,"result":{"sessionId":"u"}}"#,
        );
    }

    #[test]
    fn announced_subagents_are_known() {
        let mut talk = ExpectedConversation::session();
        talk.update("", r#"{"sessionUpdate":"subagent_update","sessionId":"t"}"#);
        talk.agent_sends_valid(INFO_UPDATE);
        // It has a subagent of its own.
        talk.agent_sends_valid(
            r#"{"method":"session/update","params":{"sessionId":"t",
                "update":{"sessionUpdate":"subagent_update","sessionId":"u"}}}"#,
        );
        talk.agent_sends_valid(
            r#"{"method":"session/update","params":{"sessionId":"u",
                "update":{"sessionUpdate":"agent_message_chunk","content":{}}}}"#,
        );
        // The client has not opened it.
        talk.client_sends(
            "session-not-set-up client",
            r#"{"id":9,"method":"session/prompt","params":{"sessionId":"t","prompt":[]}}"#,
        );
    }

    #[test]
    fn prompt_requires_an_open_session() {
        let prompt = r#"{"id":9,"method":"session/prompt","params":{"sessionId":"t","prompt":[]}}"#;
        let mut talk = ExpectedConversation::session();
        talk.client_sends("session-not-set-up client", prompt);
        let mut talk = ExpectedConversation::session();
        talk.client_requests(1, "session/load", r#"{"sessionId":"t"}"#);
        talk.agent_sends_valid(INFO_UPDATE);
        talk.agent_sends_valid(r#"{"id":1,"result":{}}"#);
        talk.client_sends_valid(prompt);
    }

    #[test]
    fn closed_session_must_not_be_used() {
        let mut talk = ExpectedConversation::session();
        talk.client_requests(1, "session/close", r#"{"sessionId":"s"}"#);
        let update = r#"{"sessionUpdate":"available_commands_update"}"#;
        talk.update("", update);
        talk.agent_sends_valid(r#"{"id":1,"result":{}}"#);
        talk.update("session-closed agent", update);
        talk.client_sends(
            "session-not-set-up client",
            r#"{"id":9,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
        );
    }

    #[test]
    fn new_session_must_have_a_new_id() {
        let mut talk = ExpectedConversation::session();
        talk.client_requests(1, "session/new", "{}");
        talk.agent_sends(
            "session-id-twice agent",
            r#"{"id":1,"result":{"sessionId":"s"}}"#,
        );
        talk.client_requests(2, "session/new", "{}");
        talk.agent_sends_valid(r#"{"id":2,"result":{"sessionId":"t"}}"#);
    }
}
