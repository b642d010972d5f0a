//! Rules about initialization: it comes first, and both sides use the negotiated version.

use serde_json::Value;

use crate::schema::message::Direction;
use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::rule::{Findings, rules};

rules! {
    FIRST = "initialize-first" Must "initialization" "A client initializes the connection before anything else.";
    AGAIN = "initialize-twice" Should "initialization" "A client initializes the connection only once.";
    AGREED = "version-not-agreed" Should "initialization" "A client that does not support the agent's protocol version closes the connection.";
    EXISTS = "version-unknown" Should "initialization" "An agent responds to `initialize` with a protocol version that the specification defines.";
}

/// The state needed by the rules about initialization.
#[derive(Debug, Default)]
pub(super) struct Initialization {
    /// The version in the latest `initialize` request.
    requested_version: Option<u64>,
    /// The version in the response, if the client probably does not support it.
    unsupported_version: Option<u64>,
    /// Whether `initialize` has succeeded.
    pub(super) is_done: bool,
    /// Whether a missing `initialize` was reported. If so, the capabilities are unknown.
    is_reported: bool,
}

impl Initialization {
    pub(super) fn check_call(
        &mut self,
        found: &mut Findings,
        direction: Direction,
        method: &str,
        params: &Value,
    ) {
        if direction == Direction::ToClient {
            return;
        }
        if method == "initialize" {
            if self.is_done {
                found.report(&AGAIN, Side::Client, "sends `initialize` again");
            }
            self.requested_version = params["protocolVersion"].as_u64();
            return;
        }
        if method.starts_with(['_', '$']) {
            return;
        }
        if !self.is_done && !self.is_reported {
            self.is_reported = true;
            let text = format!("sends `{method}` before the response to `initialize`");
            found.report(&FIRST, Side::Client, text);
        }
        if let Some(version) = self.unsupported_version.take() {
            let wanted = self.requested_version.unwrap_or_default();
            let text = format!(
                "continues with `{method}`, although it supports only versions up to {wanted} and the agent responded with version {version}"
            );
            found.report(&AGREED, Side::Client, text);
        }
    }

    pub(super) fn check_response(&mut self, found: &mut Findings, result: &Value) {
        self.is_done = true;
        let Some(version) = result["protocolVersion"].as_u64() else {
            return;
        };
        match version {
            1 => found.version = SchemaVersion::V1,
            2 => found.version = SchemaVersion::V2,
            _ => {
                let text =
                    format!("responds to `initialize` with unknown protocol version {version}");
                found.report(&EXISTS, Side::Agent, text);
            }
        }
        self.unsupported_version = self
            .requested_version
            .filter(|wanted| version > *wanted)
            .map(|_| version);
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    #[test]
    fn nothing_may_precede_initialize_and_its_response() {
        let mut talk = ExpectedConversation::new();
        talk.client_sends_valid(r#"{"method":"_hello","params":{}}"#);
        talk.client_requests(0, "initialize", r#"{"protocolVersion":1}"#);
        talk.client_sends(
            "initialize-first client",
            r#"{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        );
        // The missing `initialize` is reported once.
        talk.client_sends_valid(r#"{"id":2,"method":"session/list","params":{}}"#);
        let mut talk = ExpectedConversation::v1();
        talk.client_sends(
            "initialize-twice client",
            r#"{"id":9,"method":"initialize","params":{"protocolVersion":1}}"#,
        );
    }

    #[test]
    fn version_must_be_supported_by_both_sides() {
        let mut talk = ExpectedConversation::new();
        talk.client_requests(0, "initialize", r#"{"protocolVersion":65535}"#);
        talk.agent_sends(
            "version-unknown agent",
            r#"{"id":0,"result":{"protocolVersion":65535}}"#,
        );
        let mut talk = ExpectedConversation::new();
        talk.client_requests(0, "initialize", r#"{"protocolVersion":1}"#);
        talk.agent_sends_valid(
            r#"{"id":0,"result":{"protocolVersion":2,"capabilities":{"session":{}}}}"#,
        );
        talk.client_sends(
            "version-not-agreed client",
            r#"{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        );
        let mut talk = ExpectedConversation::new();
        talk.client_requests(0, "initialize", r#"{"protocolVersion":2}"#);
        talk.agent_sends_valid(r#"{"id":0,"result":{"protocolVersion":1}}"#);
        talk.client_sends_valid(
            r#"{"id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        );
    }
}
