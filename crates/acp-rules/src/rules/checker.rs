//! Checks a whole conversation by passing each message to the rules that apply to it.

use serde_json::Value;

use crate::schema::message::{Direction, Envelope};
use crate::schema::version::SchemaVersion;

use super::capabilities::Capabilities;
use super::elicitation::Elicitations;
use super::initialization::Initialization;
use super::requests::{RuleRequest, RuleRequests};
use super::rule::{Finding, Findings, MessagePosition, Rule};
use super::sessions::RuleSessions;
use super::table::id_field;
use super::terminals::RuleTerminals;
use super::{capabilities, elicitation, initialization, requests, sessions, terminals};
use super::{config, messages, permissions, states, tool_calls, turns};

/// Checks one conversation against the protocol rules, and keeps the state that they need.
#[derive(Debug)]
pub struct RuleChecker {
    findings: Findings,
    initialization: Initialization,
    capabilities: Capabilities,
    requests: RuleRequests,
    sessions: RuleSessions,
    terminals: RuleTerminals,
    elicitations: Elicitations,
    /// Whether either side has closed its output.
    is_closed: bool,
}

impl Default for RuleChecker {
    fn default() -> Self {
        Self::new()
    }
}

impl RuleChecker {
    /// Creates a checker for a conversation that has no messages yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            findings: Findings {
                position: MessagePosition::default(),
                version: SchemaVersion::V1,
                findings: Vec::new(),
            },
            initialization: Initialization::default(),
            capabilities: Capabilities::default(),
            requests: RuleRequests::default(),
            sessions: RuleSessions::new(),
            terminals: RuleTerminals::new(),
            elicitations: Elicitations::new(),
            is_closed: false,
        }
    }

    /// Returns all protocol rules that the checker applies.
    pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
        let subjects = [
            initialization::RULES,
            capabilities::RULES,
            requests::RULES,
            sessions::RULES,
            turns::RULES,
            permissions::RULES,
            tool_calls::RULES,
            terminals::RULES,
            config::RULES,
            states::RULES,
            messages::RULES,
            elicitation::RULES,
        ];
        subjects.into_iter().flatten().copied()
    }

    /// Returns the negotiated version, or version 1 before the negotiation.
    #[must_use]
    pub fn version(&self) -> SchemaVersion {
        self.findings.version
    }

    /// Returns the method of the request that `message` responds to, or `None` if `message` is not a response or the
    /// request is unknown. Call this before [`check_message`](Self::check_message), which forgets the request.
    #[must_use]
    pub fn request_method(&self, direction: Direction, message: &Value) -> Option<&str> {
        match Envelope::parse(message)? {
            Envelope::Response { id, .. } => self.requests.method_for_response(direction, id),
            _ => None,
        }
    }

    /// Checks the next message. Returns the findings about the message, and about earlier messages that it shows to be
    /// wrong.
    pub fn check_message(
        &mut self,
        at: MessagePosition,
        direction: Direction,
        message: &Value,
    ) -> Vec<Finding> {
        self.findings.position = at;
        let none = Value::Null;
        match Envelope::parse(message) {
            Some(Envelope::Request { id, method, params }) => {
                let params = params.unwrap_or(&none);
                self.handle_call(direction, method, params, Some(id));
            }
            Some(Envelope::Notification { method, params }) => {
                self.handle_call(direction, method, params.unwrap_or(&none), None);
            }
            Some(Envelope::Response { id, result }) => {
                let found = &mut self.findings;
                let open = self
                    .requests
                    .take_request(found, direction, id, result.is_err());
                if let Some(open) = open {
                    self.handle_response(&open, result);
                }
            }
            None => {}
        }
        std::mem::take(&mut self.findings.findings)
    }

    /// Records that the sender of messages in `direction` has closed its output on its own.
    pub fn close_side(&mut self, at: MessagePosition, direction: Direction) -> Vec<Finding> {
        self.findings.position = at;
        // A client may close at any time, even if requests from the agent are pending, which then get no response.
        if !std::mem::replace(&mut self.is_closed, true) && direction == Direction::ToClient {
            self.requests.agent_closed(&mut self.findings);
            self.sessions.agent_closed(&mut self.findings);
        }
        std::mem::take(&mut self.findings.findings)
    }

    /// Records that the conversation was interrupted from outside, so that unfinished requests are not reported.
    pub fn interrupt(&mut self) {
        self.is_closed = true;
    }

    /// Records that a message in `direction` was missed. Its content is unknown.
    pub fn record_missed_message(&mut self, direction: Direction) {
        self.requests.record_missed_message(direction);
    }

    /// Ends the conversation, and returns the findings about unfinished requests, sessions and terminals. Call this
    /// last.
    pub fn end(&mut self, at: MessagePosition) -> Vec<Finding> {
        self.findings.position = at;
        self.requests.end(&mut self.findings);
        let sessions = &self.sessions;
        self.terminals
            .end(&mut self.findings, |session| sessions.is_running(session));
        std::mem::take(&mut self.findings.findings)
    }

    fn handle_call(
        &mut self,
        direction: Direction,
        method: &str,
        params: &Value,
        number: Option<&Value>,
    ) {
        let found = &mut self.findings;
        self.initialization
            .check_call(found, direction, method, params);
        match method {
            "initialize" => self.capabilities.apply_request(params),
            _ if self.initialization.is_done => {
                self.capabilities
                    .check_call(found, direction, method, params);
            }
            _ => {}
        }
        if let Some(number) = number {
            self.requests
                .add_request(found, direction, number, method, params);
        }
        let session = id_field(params, "sessionId");
        match (direction, method) {
            (_, "$/cancel_request") => {
                if let Some(session) = self.requests.cancel_request(found, direction, params) {
                    self.sessions.cancel(&session);
                }
            }
            (Direction::ToClient, "elicitation/create") => self.elicitations.create(params),
            (Direction::ToClient, "elicitation/complete") => {
                self.elicitations.complete(found, params);
            }
            (Direction::ToAgent, "session/cancel") => {
                if let Some(session) = session {
                    self.requests.cancel(found, session);
                    self.sessions.cancel(session);
                }
            }
            (Direction::ToAgent, _) => {
                if let Some(session) = session {
                    self.sessions
                        .check_client_request(found, method, session, params);
                }
            }
            (Direction::ToClient, _) => {
                if let Some(session) = session {
                    let (requests, terminals) = (&self.requests, &mut self.terminals);
                    (self.sessions)
                        .check_agent_request(found, method, session, params, requests, terminals);
                }
                if found.version == SchemaVersion::V1 && method.starts_with("terminal/") {
                    self.terminals.check_request(found, method, params);
                }
            }
        }
        if method == "session/update"
            && direction == Direction::ToClient
            && params["update"]["sessionUpdate"] == "config_option_update"
        {
            self.capabilities.check_options(found, &params["update"]);
        }
    }

    fn handle_response(&mut self, open: &RuleRequest, result: Result<&Value, &Value>) {
        let found = &mut self.findings;
        if let Err(error) = result {
            self.capabilities.apply_error(error);
        }
        match (open.method.as_str(), result) {
            ("initialize", Ok(result)) => {
                self.initialization.check_response(found, result);
                self.capabilities.apply_response(found, result);
            }
            ("session/request_permission", _) => permissions::check_response(found, open, result),
            (method, _) if method.starts_with("terminal/") => {
                self.terminals.check_response(found, open, result);
            }
            (method, Ok(result)) if method.starts_with("session/") => {
                self.capabilities.check_options(found, result);
            }
            _ => {}
        }
        self.sessions
            .check_response(found, open, result, &self.requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_names_are_unique() {
        let mut names: Vec<&str> = RuleChecker::all_rules().map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for rule in RuleChecker::all_rules() {
            assert!(rule.requirement.ends_with('.'), "{}", rule.name);
        }
    }
}
