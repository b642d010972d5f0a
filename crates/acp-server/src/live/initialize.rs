//! What a live agent tells its clients and its agent about itself.

use acp::jsonrpc;
use serde_json::{Map, Value, json};

use super::agent::{LiveAgent, LiveAgentState, SentRequest, agent_ended_error};
use super::message::to_raw;
use super::session::ClientRequestId;

/// The version of the protocol that live agents speak.
const PROTOCOL_VERSION: u64 = 1;

/// The capabilities of an agent that cannot be shared by several clients: members of objects in `agentCapabilities`.
const REMOVED_CAPABILITIES: [(&str, &str); 2] = [
    // A fork's history is not in the log of any session.
    ("sessionCapabilities", "fork"),
    // These MCP servers belong to one client.
    ("mcpCapabilities", "acp"),
];

/// The capabilities that this server offers, whatever its agent supports.
const ADDED_SESSION_CAPABILITIES: [&str; 3] = ["list", "resume", "close"];

impl LiveAgent {
    /// Sends `initialize` to the agent. Neither files nor terminals are offered: no client may be connected.
    pub(super) fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": { "elicitation": { "form": {}, "url": {} } },
            "clientInfo": { "name": "acp-serve", "title": "acp serve", "version": env!("CARGO_PKG_VERSION") },
        });
        self.send_request(
            "initialize",
            Some(&to_raw(&params)),
            SentRequest::Initialize,
        );
    }

    /// Handles the agent's response to `initialize`. Returns an error if the agent cannot be used.
    pub(super) fn initialized(
        &mut self,
        result: Result<&str, jsonrpc::Error>,
    ) -> Result<(), String> {
        let checked = check_agent(result);
        let state = match &checked {
            Ok(result) => LiveAgentState::Ready(result.clone()),
            Err(error) => LiveAgentState::Ended(error.message.clone()),
        };
        if let LiveAgentState::Starting(waiting) = std::mem::replace(&mut self.state, state) {
            for request in waiting {
                self.answer_initialize(&request);
            }
        }
        checked.map(drop).map_err(|error| error.message)
    }

    /// Answers a client's `initialize`, or lets it wait for the agent's response.
    pub(super) fn answer_initialize(&mut self, request: &ClientRequestId) {
        let result = match &mut self.state {
            LiveAgentState::Starting(waiting) => {
                waiting.push(request.clone());
                return;
            }
            LiveAgentState::Ready(result) => Ok(to_raw(&result_for_client(result))),
            LiveAgentState::Ended(reason) => Err(agent_ended_error(reason.clone())),
        };
        self.respond(request, &result);
    }

    /// Returns `true` if the agent declares a capability. The path is relative to `agentCapabilities`.
    pub(super) fn agent_supports(&self, path: &[&str]) -> bool {
        let LiveAgentState::Ready(result) = &self.state else {
            return false;
        };
        let mut value = &result["agentCapabilities"];
        for member in path {
            value = &value[member];
        }
        !matches!(value, Value::Null | Value::Bool(false))
    }
}

fn check_agent(result: Result<&str, jsonrpc::Error>) -> Result<Value, jsonrpc::Error> {
    let result: Value = serde_json::from_str(result?)
        .map_err(|e| jsonrpc::Error::internal(format!("invalid response to initialize: {e}")))?;
    match &result["protocolVersion"] {
        version if *version == PROTOCOL_VERSION => Ok(result),
        version => Err(jsonrpc::Error::internal(format!(
            "the agent speaks version {version} of the protocol; only agents that speak version {PROTOCOL_VERSION} can be shared"
        ))),
    }
}

/// Returns the result of `initialize` for a client: the agent's, with the capabilities of a live agent.
fn result_for_client(result: &Value) -> Value {
    let mut result = result.as_object().cloned().unwrap_or_default();
    let mut capabilities = take_object(&mut result, "agentCapabilities");
    let loads = capabilities.insert("loadSession".to_owned(), true.into());
    for (object, capability) in REMOVED_CAPABILITIES {
        if let Some(Value::Object(object)) = capabilities.get_mut(object) {
            object.remove(capability);
        }
    }
    let mut sessions = take_object(&mut capabilities, "sessionCapabilities");
    let resumes = sessions
        .get("resume")
        .is_some_and(|resume| !resume.is_null());
    // Whether the agent can open its sessions again after it has ended.
    let is_stored = resumes || loads == Some(true.into());
    for capability in ADDED_SESSION_CAPABILITIES {
        if sessions.get(capability).is_none_or(Value::is_null) {
            sessions.insert(capability.to_owned(), json!({}));
        }
    }
    capabilities.insert("sessionCapabilities".to_owned(), sessions.into());
    let mut meta = take_object(&mut capabilities, "_meta");
    meta.insert(
        "live".to_owned(),
        json!({ "isStored": is_stored, "linePositions": true }),
    );
    capabilities.insert("_meta".to_owned(), meta.into());
    result.insert("agentCapabilities".to_owned(), capabilities.into());
    result.into()
}

/// Removes a member that is an object. Returns an empty object if there is none.
fn take_object(object: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match object.remove(name) {
        Some(Value::Object(member)) => member,
        _ => Map::new(),
    }
}
