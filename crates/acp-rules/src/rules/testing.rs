//! Helpers that test rules on conversations written as short lists of messages.

use serde_json::{Value, json};

use super::checker::RuleChecker;
use super::rule::{Finding, MessagePosition};
use crate::schema::message::Direction;

/// A conversation to which the rules are applied. Expected findings are written as `"rule side, rule side"`.
pub(super) struct ExpectedConversation {
    rules: RuleChecker,
    now: MessagePosition,
}

impl ExpectedConversation {
    pub(super) fn new() -> Self {
        Self {
            rules: RuleChecker::new(),
            now: MessagePosition::default(),
        }
    }

    /// Starts a version 1 conversation with the given client and agent capabilities.
    pub(super) fn with(client: &str, agent: &str) -> Self {
        let mut talk = Self::new();
        let params = format!(r#"{{"protocolVersion":1,"clientCapabilities":{client}}}"#);
        talk.client_requests("init", "initialize", &params);
        talk.agent_sends_valid(&format!(
            r#"{{"id":"init","result":{{"protocolVersion":1,"agentCapabilities":{agent}}}}}"#
        ));
        talk
    }

    /// Starts a version 1 conversation in which both sides support most capabilities.
    pub(super) fn v1() -> Self {
        Self::with(
            r#"{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}"#,
            r#"{"loadSession":true,"sessionCapabilities":{"list":{},"close":{},"resume":{}}}"#,
        )
    }

    /// Starts a version 1 conversation with an open session `s`.
    pub(super) fn session() -> Self {
        Self::v1().opened()
    }

    pub(super) fn v2() -> Self {
        let mut talk = Self::new();
        talk.client_requests("init", "initialize", r#"{"protocolVersion":2}"#);
        talk.agent_sends_valid(
            r#"{"id":"init","result":{"protocolVersion":2,"capabilities":{"session":{}}}}"#,
        );
        talk
    }

    /// Starts a version 2 conversation with an open session `s`.
    pub(super) fn session_v2() -> Self {
        Self::v2().opened()
    }

    fn opened(mut self) -> Self {
        self.client_requests("new", "session/new", r#"{"cwd":"/"}"#);
        self.agent_sends_valid(r#"{"id":"new","result":{"sessionId":"s"}}"#);
        self
    }

    #[track_caller]
    fn message(&mut self, direction: Direction, message: &Value, expected: &str) {
        self.now.index += 1;
        self.now.time_us += 1000;
        let found = self.rules.check_message(self.now, direction, message);
        assert_eq!(describe_findings(&found), expected, "{message}: {found:?}");
    }

    /// Sends a message from the agent, and expects the findings `expected`.
    #[track_caller]
    pub(super) fn agent_sends(&mut self, expected: &str, message: &str) {
        let message = serde_json::from_str(message).unwrap();
        self.message(Direction::ToClient, &message, expected);
    }

    /// Sends a message from the client, and expects the findings `expected`.
    #[track_caller]
    pub(super) fn client_sends(&mut self, expected: &str, message: &str) {
        let message = serde_json::from_str(message).unwrap();
        self.message(Direction::ToAgent, &message, expected);
    }

    /// Sends a message from the agent, and expects no findings.
    #[track_caller]
    pub(super) fn agent_sends_valid(&mut self, message: &str) {
        self.agent_sends("", message);
    }

    /// Sends a message from the client, and expects no findings.
    #[track_caller]
    pub(super) fn client_sends_valid(&mut self, message: &str) {
        self.client_sends("", message);
    }

    /// Sends a request from the client, and expects no findings.
    #[track_caller]
    pub(super) fn client_requests(&mut self, id: impl Into<Value>, method: &str, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap();
        let message = json!({"id": id.into(), "method": method, "params": params});
        self.message(Direction::ToAgent, &message, "");
    }

    /// Sends a request from the agent, and expects no findings.
    #[track_caller]
    pub(super) fn agent_requests(&mut self, id: impl Into<Value>, method: &str, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap();
        let message = json!({"id": id.into(), "method": method, "params": params});
        self.message(Direction::ToClient, &message, "");
    }

    /// Sends an update for the session `s`, and expects the findings `expected`.
    #[track_caller]
    pub(super) fn update(&mut self, expected: &str, update: &str) {
        let update: Value = serde_json::from_str(update).unwrap();
        let params = json!({"sessionId": "s", "update": update});
        let message = json!({"method": "session/update", "params": params});
        self.message(Direction::ToClient, &message, expected);
    }

    /// Sends a prompt in the session `s`, and expects no findings.
    #[track_caller]
    pub(super) fn prompt(&mut self, id: impl Into<Value>) {
        self.client_requests(id, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#);
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now.time_us += seconds * 1_000_000;
    }

    /// Closes the agent's output and then the client's, ends the conversation, and expects the findings `expected`.
    #[track_caller]
    pub(super) fn end_agent_first(&mut self, expected: &str) {
        let mut found = self.rules.close_side(self.now, Direction::ToClient);
        found.extend(self.rules.close_side(self.now, Direction::ToAgent));
        found.extend(self.rules.end(self.now));
        assert_eq!(describe_findings(&found), expected, "{found:?}");
    }

    /// Closes the client's output and then the agent's, ends the conversation, and expects the findings `expected`.
    #[track_caller]
    pub(super) fn end_client_first(&mut self, expected: &str) {
        let mut found = self.rules.close_side(self.now, Direction::ToAgent);
        found.extend(self.rules.close_side(self.now, Direction::ToClient));
        found.extend(self.rules.end(self.now));
        assert_eq!(describe_findings(&found), expected, "{found:?}");
    }
}

fn describe_findings(found: &[Finding]) -> String {
    let described = found.iter().map(|f| format!("{} {}", f.rule.name, f.side));
    described.collect::<Vec<_>>().join(", ")
}
