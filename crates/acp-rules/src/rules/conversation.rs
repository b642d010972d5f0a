//! A conversation, told message by message: each message goes to the rules that it concerns.

use serde_json::Value;

use crate::schema::message::{Direction, Envelope};
use crate::schema::version::Version;

use super::capabilities::Capabilities;
use super::elicitation::Elicitations;
use super::initialization::Initialization;
use super::requests::{Open, Requests};
use super::rule::{Finding, Findings, Moment, Rule};
use super::sessions::Sessions;
use super::table::id;
use super::terminals::Terminals;
use super::{capabilities, elicitation, initialization, requests, sessions, terminals};
use super::{config, messages, permissions, states, tool_calls, turns};

/// A conversation, as far as rules need to know it.
#[derive(Debug)]
pub struct Rules {
    found: Findings,
    initialization: Initialization,
    capabilities: Capabilities,
    requests: Requests,
    sessions: Sessions,
    terminals: Terminals,
    elicitations: Elicitations,
    /// A side has closed its output.
    closed: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// A conversation that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self {
            found: Findings {
                now: Moment::default(),
                version: Version::V1,
                findings: Vec::new(),
            },
            initialization: Initialization::default(),
            capabilities: Capabilities::default(),
            requests: Requests::default(),
            sessions: Sessions::new(),
            terminals: Terminals::new(),
            elicitations: Elicitations::new(),
            closed: false,
        }
    }

    /// Every rule.
    pub fn all() -> impl Iterator<Item = &'static Rule> {
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

    /// The version that was agreed on; version 1 before that.
    #[must_use]
    pub fn version(&self) -> Version {
        self.found.version
    }

    /// The method that a message answers, if it is an answer to a request that is known. To be asked before the
    /// message is told.
    #[must_use]
    pub fn asked(&self, direction: Direction, message: &Value) -> Option<&str> {
        match Envelope::read(message)? {
            Envelope::Response { id, .. } => self.requests.method(direction, id),
            _ => None,
        }
    }

    /// The next message, and what is wrong with it, or with an earlier one because of it.
    pub fn message(&mut self, at: Moment, direction: Direction, message: &Value) -> Vec<Finding> {
        self.found.now = at;
        let none = Value::Null;
        match Envelope::read(message) {
            Some(Envelope::Request { id, method, params }) => {
                let params = params.unwrap_or(&none);
                self.call(direction, method, params, Some(id));
            }
            Some(Envelope::Notification { method, params }) => {
                self.call(direction, method, params.unwrap_or(&none), None);
            }
            Some(Envelope::Response { id, result }) => {
                let found = &mut self.found;
                let open = self.requests.answer(found, direction, id, result.is_err());
                if let Some(open) = open {
                    self.answer(&open, result);
                }
            }
            None => {}
        }
        std::mem::take(&mut self.found.findings)
    }

    /// The side that sends in `direction` has closed its output, of its own accord.
    pub fn closed(&mut self, at: Moment, direction: Direction) -> Vec<Finding> {
        self.found.now = at;
        // A client may leave at any time, with a question open that nobody answers any more.
        if !std::mem::replace(&mut self.closed, true) && direction == Direction::ToClient {
            self.requests.agent_closed(&mut self.found);
            self.sessions.agent_closed(&mut self.found);
        }
        std::mem::take(&mut self.found.findings)
    }

    /// Someone else has ended the conversation: neither side is to blame for what is left.
    pub fn broken_off(&mut self) {
        self.closed = true;
    }

    /// Something was sent in `direction` that is not known.
    pub fn missed(&mut self, direction: Direction) {
        self.requests.missed(direction);
    }

    /// The conversation is over. To be told last.
    pub fn end(&mut self, at: Moment) -> Vec<Finding> {
        self.found.now = at;
        self.requests.end(&mut self.found);
        let sessions = &self.sessions;
        self.terminals
            .end(&mut self.found, |session| sessions.is_running(session));
        std::mem::take(&mut self.found.findings)
    }

    fn call(&mut self, direction: Direction, method: &str, params: &Value, number: Option<&Value>) {
        let found = &mut self.found;
        self.initialization.call(found, direction, method, params);
        match method {
            "initialize" => self.capabilities.asked(params),
            _ if self.initialization.done => {
                self.capabilities.call(found, direction, method, params);
            }
            _ => {}
        }
        if let Some(number) = number {
            self.requests.ask(found, direction, number, method, params);
        }
        let session = id(params, "sessionId");
        match (direction, method) {
            (_, "$/cancel_request") => {
                if let Some(session) = self.requests.take_back(found, direction, params) {
                    self.sessions.cancelled(&session);
                }
            }
            (Direction::ToClient, "elicitation/create") => self.elicitations.created(params),
            (Direction::ToClient, "elicitation/complete") => {
                self.elicitations.completed(found, params);
            }
            (Direction::ToAgent, "session/cancel") => {
                if let Some(session) = session {
                    self.requests.cancel(found, session);
                    self.sessions.cancelled(session);
                }
            }
            (Direction::ToAgent, _) => {
                if let Some(session) = session {
                    self.sessions.client_calls(found, method, session, params);
                }
            }
            (Direction::ToClient, _) => {
                if let Some(session) = session {
                    let (requests, terminals) = (&self.requests, &mut self.terminals);
                    (self.sessions)
                        .agent_calls(found, method, session, params, requests, terminals);
                }
                if found.version == Version::V1 && method.starts_with("terminal/") {
                    self.terminals.called(found, method, params);
                }
            }
        }
        if method == "session/update"
            && direction == Direction::ToClient
            && params["update"]["sessionUpdate"] == "config_option_update"
        {
            self.capabilities.options(found, &params["update"]);
        }
    }

    fn answer(&mut self, open: &Open, result: Result<&Value, &Value>) {
        let found = &mut self.found;
        if let Err(error) = result {
            self.capabilities.refused(error);
        }
        match (open.method.as_str(), result) {
            ("initialize", Ok(result)) => {
                self.initialization.answer(found, result);
                self.capabilities.answered(found, result);
            }
            ("session/request_permission", _) => permissions::answered(found, open, result),
            (method, _) if method.starts_with("terminal/") => {
                self.terminals.answered(found, open, result);
            }
            (method, Ok(result)) if method.starts_with("session/") => {
                self.capabilities.options(found, result);
            }
            _ => {}
        }
        self.sessions.answered(found, open, result, &self.requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_rules_are_different() {
        let mut names: Vec<&str> = Rules::all().map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for rule in Rules::all() {
            assert!(rule.requirement.ends_with('.'), "{}", rule.name);
        }
    }
}
