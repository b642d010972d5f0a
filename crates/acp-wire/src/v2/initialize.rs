//! Connection setup with `initialize`. See the specification's page "Initialization".

use super::{
    AgentAuthCapabilities, AuthMethod, ClientAuthCapabilities, ElicitationCapabilities,
    Implementation, ProtocolVersion, ProvidersCapabilities, SessionCapabilities,
};

record! {
    /// The `initialize` request, with the client's capabilities and the latest version that it supports.
    pub struct InitializeRequest {
        /// The latest version that the client supports.
        required protocol_version: ProtocolVersion,
        /// The client's name and version.
        tolerant info: Implementation,
        /// The client's capabilities.
        defaulted capabilities: ClientCapabilities,
    }
}

record! {
    /// The response to `initialize`, with the agent's capabilities and the version that it chose.
    pub struct InitializeResponse {
        /// The version that the connection uses from now on.
        required protocol_version: ProtocolVersion,
        /// The agent's name and version.
        tolerant info: Implementation,
        /// The agent's capabilities.
        defaulted capabilities: AgentCapabilities,
        /// The auth methods that the agent offers. A non-empty list implies support for `auth/login` and `auth/logout`.
        list auth_methods: AuthMethod,
    }
}

record! {
    /// The capabilities of a client. An absent capability is not supported.
    pub struct ClientCapabilities {
        /// The kinds of authentication that the client supports.
        optional auth: ClientAuthCapabilities,
        /// The elicitation modes that the client supports.
        optional elicitation: ElicitationCapabilities,
    }
}

record! {
    /// The capabilities of an agent. An absent capability is not supported.
    pub struct AgentCapabilities {
        /// Support for sessions. If absent, the agent supports no `session/*` methods.
        optional session: SessionCapabilities,
        /// Support for optional authentication requests.
        optional auth: AgentAuthCapabilities,
        /// Support for `providers/list`, `providers/set` and `providers/disable`. Unstable.
        optional providers: ProvidersCapabilities,
    }
}

record! {
    /// The content types that an agent accepts in prompts in addition to text and resource links.
    pub struct PromptCapabilities {
        /// Support for [`ContentBlock::Image`](super::ContentBlock::Image).
        optional image: PromptImageCapabilities,
        /// Support for [`ContentBlock::Audio`](super::ContentBlock::Audio).
        optional audio: PromptAudioCapabilities,
        /// Support for [`ContentBlock::Resource`](super::ContentBlock::Resource).
        optional embedded_context: PromptEmbeddedContextCapabilities,
    }
}

record! {
    /// An empty object that declares support for images.
    pub struct PromptImageCapabilities {}
}
record! {
    /// An empty object that declares support for audio.
    pub struct PromptAudioCapabilities {}
}
record! {
    /// An empty object that declares support for embedded resources.
    pub struct PromptEmbeddedContextCapabilities {}
}

record! {
    /// The MCP transports that an agent supports.
    pub struct McpCapabilities {
        /// Support for servers that the agent starts and talks to on stdin and stdout.
        optional stdio: McpStdioCapabilities,
        /// Support for streamable HTTP.
        optional http: McpHttpCapabilities,
    }
}

record! {
    /// An empty object that declares support for servers on stdin and stdout.
    pub struct McpStdioCapabilities {}
}
record! {
    /// An empty object that declares support for streamable HTTP.
    pub struct McpHttpCapabilities {}
}
