//! Negotiates the version and the capabilities. See the specification's page "Initialization".

use std::sync::Arc;

use acp_wire::extensions::ClientExtensionRequest;
use acp_wire::v1::{
    self, AgentCapabilities, AuthMethod, ClientCapabilities, Implementation, InitializeRequest,
    InitializeResponse, ProtocolVersion, SessionSystemPromptCapabilities,
};
use acp_wire::{Meta, ReadError, Request, read_params, v2};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Agent;
use super::methods::Authentication;
use super::session::Session;
use super::side::AgentSide;
use crate::capabilities::{check_offered, implemented_capabilities, library_implementation};
use crate::dialect;
use crate::error::Error;
use crate::fork_point;
use crate::object::{to_object, to_raw_value};

/// The client's name, protocol version and capabilities, from the agent's point of view.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    version: ProtocolVersion,
    capabilities: ClientCapabilities,
    /// The client's capabilities as JSON, to check methods against the method table.
    capabilities_json: Value,
    info: Option<Implementation>,
}

impl Default for ClientInfo {
    /// Returns an unnamed version 1 client without capabilities.
    fn default() -> Self {
        Self::new(ProtocolVersion::V1, ClientCapabilities::new(), None)
    }
}

impl ClientInfo {
    fn new(
        version: ProtocolVersion,
        capabilities: ClientCapabilities,
        info: Option<Implementation>,
    ) -> Self {
        Self {
            version,
            capabilities_json: serde_json::to_value(&capabilities).unwrap_or_default(),
            capabilities,
            info,
        }
    }

    /// Checks that the client supports a method, given by its version 1 name.
    ///
    /// # Errors
    /// The client does not support the method: [`Error::Unsupported`].
    pub(crate) fn require(&self, method: &str) -> Result<(), Error> {
        check_offered(&self.capabilities_json, v1::method(method))
            .map_err(Session::client_capability_error)
    }

    /// Returns the negotiated protocol version.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }

    pub(crate) fn is_v2(&self) -> bool {
        self.version == ProtocolVersion::V2
    }

    /// Returns the client's capabilities, always in version 1 form.
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.capabilities
    }

    /// Returns the client's name and version, if it sent them.
    #[must_use]
    pub fn info(&self) -> Option<&Implementation> {
        self.info.as_ref()
    }

    /// Returns `true` if the client can show display terminals. In version 2, every client can. In version 1, a client
    /// declares its support in `_meta`.
    #[must_use]
    pub fn supports_display_terminals(&self) -> bool {
        let meta = self.capabilities.meta.as_ref();
        let terminal_output = meta.and_then(|meta| meta.get("terminal_output"));
        self.is_v2() || terminal_output == Some(&Value::Bool(true))
    }

    pub(crate) fn supports_plans(&self) -> bool {
        self.capabilities.plan.is_some()
    }

    pub(crate) fn supports_boolean_options(&self) -> bool {
        let options = self
            .capabilities
            .session
            .as_ref()
            .and_then(|s| s.config_options.as_ref());
        options.is_some_and(|options| options.boolean.is_some())
    }
}

/// The response to `initialize`, in the form of the negotiated version.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum VersionedInitializeResponse {
    V1(InitializeResponse),
    V2(v2::InitializeResponse),
}

/// Handles an `initialize` request: negotiates the requested version if the agent supports it, or else the agent's
/// latest version.
pub(crate) fn initialize<A: Agent>(
    side: &AgentSide<A>,
    latest: ProtocolVersion,
    params: Option<&RawValue>,
) -> Result<(Arc<ClientInfo>, VersionedInitializeResponse), ReadError> {
    let request: InitializeRequest = read_params(InitializeRequest::METHOD, params)?;
    let version = request
        .protocol_version
        .min(latest)
        .max(ProtocolVersion::V1);
    let agent = &*side.agent;
    let capabilities = agent_capabilities(side);
    if version == ProtocolVersion::V2 {
        let request: v2::InitializeRequest = read_params(InitializeRequest::METHOD, params)?;
        let client = ClientInfo::new(
            version,
            dialect::client_from_v2(request.capabilities),
            Some(request.info).filter(|info| !info.name.is_empty()),
        );
        let methods: Vec<v2::AuthMethod> = auth_methods(agent, &client)
            .into_iter()
            .filter_map(dialect::auth_method_to_v2)
            .collect();
        let mut answer = v2::InitializeResponse::new(
            version,
            agent.info().unwrap_or_else(library_implementation),
        )
        .capabilities(to_v2(&capabilities, agent.supports_mcp_stdio()))
        .auth_methods(methods);
        answer.meta = response_meta(side);
        return Ok((Arc::new(client), VersionedInitializeResponse::V2(answer)));
    }
    let client = ClientInfo::new(version, request.client_capabilities, request.client_info);
    let mut answer = InitializeResponse::new(version)
        .agent_capabilities(capabilities)
        .auth_methods(auth_methods(agent, &client));
    answer.agent_info = agent.info();
    answer.meta = response_meta(side);
    Ok((Arc::new(client), VersionedInitializeResponse::V1(answer)))
}

/// Returns `_meta` for the response, with the extensions that the agent supports.
fn response_meta<A: Agent>(side: &AgentSide<A>) -> Option<Meta> {
    let offered = ClientExtensionRequest::offered_by(side);
    let meta: Meta = implemented_capabilities(&offered);
    Some(meta).filter(|meta| !meta.is_empty())
}

/// Returns the agent's capabilities, including one for each optional method that it implements.
fn agent_capabilities<A: Agent>(side: &AgentSide<A>) -> AgentCapabilities {
    let agent = &*side.agent;
    let offered = v1::ClientRequest::offered_by(side);
    let mut capabilities: AgentCapabilities = implemented_capabilities(&offered);
    if agent.supports_additional_directories() {
        capabilities.session_capabilities.additional_directories = Some(Default::default());
    }
    capabilities.session_capabilities.system_prompt = supported_system_prompt(agent);
    if agent.fork_session().is_some() && agent.fork_at_message().is_some() {
        fork_point::declare(capabilities.meta.get_or_insert_default());
    }
    capabilities
        .prompt_capabilities(agent.prompt_capabilities())
        .mcp_capabilities(agent.mcp_capabilities())
}

/// Returns the agent's capabilities for system prompts, or `None` without the cargo feature `unstable`.
pub(super) fn supported_system_prompt<A: Agent>(
    agent: &A,
) -> Option<SessionSystemPromptCapabilities> {
    #[cfg(feature = "unstable")]
    return agent.system_prompt_capabilities();
    #[cfg(not(feature = "unstable"))]
    {
        let _ = agent;
        None
    }
}

fn to_v2(capabilities: &AgentCapabilities, mcp_stdio: bool) -> v2::AgentCapabilities {
    let capabilities = to_object(Some(&to_raw_value(capabilities)));
    let capabilities = dialect::agent_to_v2(&capabilities, mcp_stdio);
    capabilities.read().unwrap_or_default()
}

/// Returns the agent's auth methods that the client supports.
fn auth_methods<A: Agent>(agent: &A, client: &ClientInfo) -> Vec<AuthMethod> {
    let methods = agent.authentication().map(Authentication::methods);
    let terminal = client.capabilities.auth.terminal;
    methods
        .unwrap_or_default()
        .into_iter()
        .filter(|method| terminal || !matches!(method, AuthMethod::Terminal(_)))
        .collect()
}
