//! Rules about capabilities: each side uses only what the other side supports.

use serde_json::Value;

use crate::schema::message::Direction;
use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::rule::{Findings, rules};
use super::table::{id_field, list_items, text_field};

rules! {
    FS = "fs-not-offered" Must "file-system" "An agent calls `fs/read_text_file` and `fs/write_text_file` only if the client supports them.";
    TERMINAL = "terminal-not-offered" Must "terminals" "An agent calls `terminal/*` only if the client supports terminals.";
    ELICITATION = "elicitation-not-offered" Must "elicitation" "An agent uses only elicitation modes that the client supports.";
    BOOLEAN = "boolean-option-not-offered" Must "session-config-options" "An agent sends boolean config options only to clients that support them.";
    LOGIN = "terminal-login-not-offered" Must "authentication" "An agent offers `terminal` auth methods only to clients that support them.";
    SESSION = "session-method-not-offered" Must "session-setup" "A client calls optional session methods only if the agent supports them.";
    LOGOUT = "logout-not-offered" Must "authentication" "A client calls `logout` only if the agent supports it.";
    METHOD = "auth-method-unknown" Must "authentication" "A client authenticates only with auth methods that the agent offers.";
    CONTENT = "prompt-content-not-offered" Must "prompt-turn" "A prompt contains only content types that the agent supports.";
    MCP = "mcp-transport-not-offered" Must "session-setup" "A client passes MCP servers only if the agent supports their transports.";
    DIRECTORIES = "directories-not-offered" Must "session-setup" "A client passes additional directories only if the agent supports them.";
}

/// The capabilities that each side declared in `initialize`.
#[derive(Debug, Default)]
pub(super) struct Capabilities {
    client: Value,
    agent: Value,
    /// The ids of the auth methods that the agent offers. `None` if they are unknown.
    auth_methods: Option<Vec<String>>,
}

/// Returns `true` if a capability is supported: it is present, and neither null nor false.
fn is_supported(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// Returns the capability that a method requires but the receiver lacks, if any.
fn missing_capability(
    version: SchemaVersion,
    method: &str,
    offered: &Value,
) -> Option<&'static str> {
    let method = match version {
        SchemaVersion::V1 => acp_wire::v1::method(method),
        SchemaVersion::V2 => acp_wire::v2::method(method),
    }?;
    let needed = method.capability?;
    (!method.is_supported(offered)).then_some(needed.path)
}

impl Capabilities {
    /// Records the client's capabilities from an `initialize` request.
    pub(super) fn apply_request(&mut self, params: &Value) {
        // The version is not known until the response. It determines which field applies, but no client sends both
        // fields.
        let said = ["clientCapabilities", "capabilities"];
        let said = said.iter().filter_map(|name| params.get(name)).next();
        self.client = said.cloned().unwrap_or_default();
    }

    /// Records the agent's capabilities from the response to `initialize`, and checks the auth methods in it.
    pub(super) fn apply_response(&mut self, found: &mut Findings, result: &Value) {
        let name = match found.version {
            SchemaVersion::V1 => "agentCapabilities",
            SchemaVersion::V2 => "capabilities",
        };
        self.agent = result.get(name).cloned().unwrap_or_default();
        let logins = list_items(result, "authMethods");
        let named = logins
            .filter_map(|login| id_field(login, "id").or_else(|| id_field(login, "methodId")));
        self.auth_methods = Some(named.map(str::to_owned).collect());
        if !is_supported(&self.client["auth"]["terminal"])
            && list_items(result, "authMethods").any(|login| login["type"] == "terminal")
        {
            let text =
                "offers a `terminal` auth method, but the client does not support `auth.terminal`";
            found.report(&LOGIN, Side::Agent, text);
        }
    }

    /// Forgets the auth methods if an error response may have listed different ones.
    pub(super) fn apply_error(&mut self, error: &Value) {
        if error["code"] == -32000 && !error["data"].is_null() {
            self.auth_methods = None;
        }
    }

    pub(super) fn check_call(
        &self,
        found: &mut Findings,
        direction: Direction,
        method: &str,
        params: &Value,
    ) {
        match direction {
            Direction::ToClient => self.check_agent_call(found, method, params),
            Direction::ToAgent => self.check_client_call(found, method, params),
        }
    }

    fn check_agent_call(&self, found: &mut Findings, method: &str, params: &Value) {
        // Elicitation has one capability for each mode.
        if method == "elicitation/create" {
            if let Some(mode @ ("form" | "url")) = text_field(params, "mode")
                && !is_supported(&self.client["elicitation"][mode])
            {
                let text = format!(
                    "calls `{method}`, but the client does not support `elicitation.{mode}`"
                );
                found.report(&ELICITATION, Side::Agent, text);
            }
            return;
        }
        if let Some(capability) = missing_capability(found.version, method, &self.client) {
            let rule = match method.split_once('/') {
                Some(("fs", _)) => &FS,
                Some(("terminal", _)) => &TERMINAL,
                // No rule is about other methods.
                _ => return,
            };
            let text = format!("calls `{method}`, but the client does not support `{capability}`");
            found.report(rule, Side::Agent, text);
        }
    }

    /// Checks the config options that the agent sends for a session against the client's capabilities.
    pub(super) fn check_options(&self, found: &mut Findings, options: &Value) {
        let offered = &self.client["session"]["configOptions"]["boolean"];
        if found.version == SchemaVersion::V1
            && !is_supported(offered)
            && list_items(options, "configOptions").any(|option| option["type"] == "boolean")
        {
            let text = "sends a boolean option, but the client does not support `session.configOptions.boolean`";
            found.report(&BOOLEAN, Side::Agent, text);
        }
    }

    fn check_client_call(&self, found: &mut Findings, method: &str, params: &Value) {
        if let Some(capability) = missing_capability(found.version, method, &self.agent) {
            let rule = match method.split_once('/') {
                Some(("session", _)) => &SESSION,
                None if method == "logout" => &LOGOUT,
                // No rule is about other methods.
                _ => return,
            };
            let text = format!("calls `{method}`, but the agent does not support `{capability}`");
            found.report(rule, Side::Client, text);
            return;
        }
        match method {
            "authenticate" | "auth/login" => self.check_login(found, params),
            // In version 2, an agent that supports logging in also supports logging out.
            "auth/logout" if self.auth_methods.as_ref().is_some_and(Vec::is_empty) => {
                let text = format!("calls `{method}`, but the agent offers no `authMethods`");
                found.report(&LOGOUT, Side::Client, text);
            }
            "session/prompt" => self.check_prompt(found, params),
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                self.check_setup(found, params);
            }
            _ => {}
        }
    }

    fn check_login(&self, found: &mut Findings, params: &Value) {
        if let (Some(logins), Some(chosen)) = (&self.auth_methods, id_field(params, "methodId"))
            && !logins.iter().any(|login| login == chosen)
        {
            let text = format!("authenticates with {chosen:?}, which the agent did not offer");
            found.report(&METHOD, Side::Client, text);
        }
    }

    fn check_prompt(&self, found: &mut Findings, params: &Value) {
        let offered = match found.version {
            SchemaVersion::V1 => &self.agent["promptCapabilities"],
            SchemaVersion::V2 => &self.agent["session"]["prompt"],
        };
        for block in list_items(params, "prompt") {
            let (kind, needed) = match text_field(block, "type") {
                Some("image") => ("image", "image"),
                Some("audio") => ("audio", "audio"),
                Some("resource") => ("resource", "embeddedContext"),
                _ => continue,
            };
            if !is_supported(&offered[needed]) {
                let text = format!(
                    "sends content of type `{kind}`, but the agent does not support `{needed}` in prompts"
                );
                found.report(&CONTENT, Side::Client, text);
                return;
            }
        }
    }

    fn check_setup(&self, found: &mut Findings, params: &Value) {
        let (offered, directories) = match found.version {
            SchemaVersion::V1 => {
                let mcp = ["mcpCapabilities", "mcp"].map(|name| &self.agent[name]);
                let session = &self.agent["sessionCapabilities"];
                (mcp.to_vec(), &session["additionalDirectories"])
            }
            SchemaVersion::V2 => {
                let session = &self.agent["session"];
                (vec![&session["mcp"]], &session["additionalDirectories"])
            }
        };
        for server in list_items(params, "mcpServers") {
            let transport = match (found.version, text_field(server, "type")) {
                (_, Some(transport @ ("http" | "sse"))) => transport,
                (SchemaVersion::V2, Some("stdio")) => "stdio",
                _ => continue,
            };
            if !offered.iter().any(|mcp| is_supported(&mcp[transport])) {
                let text = format!(
                    "passes an MCP server over {transport}, which the agent does not support"
                );
                found.report(&MCP, Side::Client, text);
                break;
            }
        }
        if list_items(params, "additionalDirectories").next().is_some()
            && !is_supported(directories)
        {
            let text = "passes additional directories, which the agent does not support";
            found.report(&DIRECTORIES, Side::Client, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    /// Asserts that `message` breaks `rule` only if the receiver lacks the capability.
    #[track_caller]
    fn check_gated_method(rule: &str, from_client: bool, client: &str, agent: &str, message: &str) {
        let mut talk = ExpectedConversation::with("{}", "{}");
        let mut offered = ExpectedConversation::with(client, agent);
        if from_client {
            talk.client_sends(&format!("{rule} client"), message);
            offered.client_sends_valid(message);
        } else {
            talk.agent_sends(&format!("{rule} agent"), message);
            offered.agent_sends_valid(message);
        }
    }

    #[test]
    fn agents_may_call_only_supported_client_methods() {
        for (rule, offer, message) in [
            (
                "fs-not-offered",
                r#"{"fs":{"readTextFile":true}}"#,
                r#"{"id":5,"method":"fs/read_text_file","params":{"path":"/a"}}"#,
            ),
            (
                "fs-not-offered",
                r#"{"fs":{"writeTextFile":true}}"#,
                r#"{"id":5,"method":"fs/write_text_file","params":{"path":"/a","content":""}}"#,
            ),
            (
                "terminal-not-offered",
                r#"{"terminal":true}"#,
                r#"{"id":5,"method":"terminal/create","params":{"command":"a"}}"#,
            ),
            (
                "elicitation-not-offered",
                r#"{"elicitation":{"url":{}}}"#,
                r#"{"id":5,"method":"elicitation/create","params":{"mode":"url","message":"a"}}"#,
            ),
        ] {
            check_gated_method(rule, false, offer, "{}", message);
        }
    }

    #[test]
    fn clients_may_call_only_supported_agent_methods() {
        let new = |more: &str| {
            format!(r#"{{"id":5,"method":"session/new","params":{{"cwd":"/",{more}}}}}"#)
        };
        let prompt = |kind: &str| {
            format!(
                r#"{{"id":5,"method":"session/prompt","params":{{"prompt":[{{"type":"{kind}"}}]}}}}"#
            )
        };
        let call = |method: &str| format!(r#"{{"id":5,"method":"{method}","params":{{}}}}"#);
        for (rule, offer, message) in [
            (
                "session-method-not-offered",
                r#"{"loadSession":true}"#,
                call("session/load"),
            ),
            (
                "session-method-not-offered",
                r#"{"sessionCapabilities":{"list":{}}}"#,
                call("session/list"),
            ),
            (
                "session-method-not-offered",
                r#"{"sessionCapabilities":{"resume":{}}}"#,
                call("session/resume"),
            ),
            (
                "session-method-not-offered",
                r#"{"sessionCapabilities":{"close":{}}}"#,
                call("session/close"),
            ),
            (
                "session-method-not-offered",
                r#"{"sessionCapabilities":{"delete":{}}}"#,
                call("session/delete"),
            ),
            (
                "session-method-not-offered",
                r#"{"sessionCapabilities":{"fork":{}}}"#,
                call("session/fork"),
            ),
            (
                "logout-not-offered",
                r#"{"auth":{"logout":{}}}"#,
                call("logout"),
            ),
            (
                "prompt-content-not-offered",
                r#"{"promptCapabilities":{"image":true}}"#,
                prompt("image"),
            ),
            (
                "prompt-content-not-offered",
                r#"{"promptCapabilities":{"audio":true}}"#,
                prompt("audio"),
            ),
            (
                "prompt-content-not-offered",
                r#"{"promptCapabilities":{"embeddedContext":true}}"#,
                prompt("resource"),
            ),
            (
                "mcp-transport-not-offered",
                r#"{"mcpCapabilities":{"http":true}}"#,
                new(r#""mcpServers":[{"type":"http"}]"#),
            ),
            (
                "mcp-transport-not-offered",
                r#"{"mcp":{"sse":true}}"#,
                new(r#""mcpServers":[{"type":"sse"}]"#),
            ),
            (
                "directories-not-offered",
                r#"{"sessionCapabilities":{"additionalDirectories":{}}}"#,
                new(r#""additionalDirectories":["/a"]"#),
            ),
        ] {
            check_gated_method(rule, true, "{}", offer, &message);
        }
    }

    #[test]
    fn options_and_logins_must_be_supported_by_the_client() {
        let options = r#"{"id":0,"result":{"sessionId":"s","configOptions":[{"id":"a","type":"boolean","currentValue":true}]}}"#;
        let new = r#"{"cwd":"/","mcpServers":[]}"#;
        let mut talk = ExpectedConversation::with("{}", "{}");
        talk.client_requests(0, "session/new", new);
        talk.agent_sends("boolean-option-not-offered agent", options);
        let mut talk =
            ExpectedConversation::with(r#"{"session":{"configOptions":{"boolean":{}}}}"#, "{}");
        talk.client_requests(0, "session/new", new);
        talk.agent_sends_valid(options);

        let answer = r#"{"id":0,"result":{"protocolVersion":1,"authMethods":[{"type":"terminal","id":"t","name":"T"}]}}"#;
        let mut talk = ExpectedConversation::new();
        talk.client_requests(0, "initialize", r#"{"protocolVersion":1}"#);
        talk.agent_sends("terminal-login-not-offered agent", answer);
        talk.client_sends(
            "auth-method-unknown client",
            r#"{"id":1,"method":"authenticate","params":{"methodId":"x"}}"#,
        );
        talk.client_sends_valid(r#"{"id":2,"method":"authenticate","params":{"methodId":"t"}}"#);
    }

    #[test]
    fn version_2_has_its_own_capabilities() {
        let mut talk = ExpectedConversation::v2();
        talk.client_sends(
            "session-method-not-offered client",
            r#"{"id":1,"method":"session/delete","params":{"sessionId":"a"}}"#,
        );
        talk.client_sends("mcp-transport-not-offered client",
            r#"{"id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[{"type":"stdio"}]}}"#);
        talk.client_sends(
            "logout-not-offered client",
            r#"{"id":3,"method":"auth/logout","params":{}}"#,
        );
        talk.client_sends_valid(r#"{"id":4,"method":"session/list","params":{}}"#);
    }
}
