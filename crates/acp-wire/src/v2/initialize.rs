//! Initialization: the specification's page of that name.

use super::{
    AgentAuthCapabilities, AuthMethod, ClientAuthCapabilities, ElicitationCapabilities,
    Implementation, ProtocolVersion, ProvidersCapabilities, SessionCapabilities,
};

record! {
    /// `initialize`: the client's part of the negotiation.
    pub struct InitializeRequest {
        /// The latest version the client speaks.
        required protocol_version: ProtocolVersion,
        /// Who the client is.
        tolerant info: Implementation,
        /// What the client can do.
        defaulted capabilities: ClientCapabilities,
    }
}

record! {
    /// The answer to `initialize`: the agent's part of the negotiation.
    pub struct InitializeResponse {
        /// The version this connection speaks from here on.
        required protocol_version: ProtocolVersion,
        /// Who the agent is.
        tolerant info: Implementation,
        /// What the agent can do.
        defaulted capabilities: AgentCapabilities,
        /// How one can authenticate. Any of them means that there are `auth/login` and `auth/logout`.
        list auth_methods: AuthMethod,
    }
}

record! {
    /// What a client can do. What is absent it cannot.
    pub struct ClientCapabilities {
        /// Which ways to authenticate it takes part in.
        optional auth: ClientAuthCapabilities,
        /// Which kinds of `elicitation/create` it can show.
        optional elicitation: ElicitationCapabilities,
    }
}

record! {
    /// What an agent can do. What is absent it cannot.
    pub struct AgentCapabilities {
        /// Sessions: without it there is no `session/*` at all.
        optional session: SessionCapabilities,
        /// Extensions of authentication.
        optional auth: AgentAuthCapabilities,
        /// `providers/list`, `providers/set` and `providers/disable`. Unstable.
        optional providers: ProvidersCapabilities,
    }
}

record! {
    /// Which content an agent takes in prompts, beside text and resource links.
    pub struct PromptCapabilities {
        /// [`ContentBlock::Image`](super::ContentBlock::Image).
        optional image: PromptImageCapabilities,
        /// [`ContentBlock::Audio`](super::ContentBlock::Audio).
        optional audio: PromptAudioCapabilities,
        /// [`ContentBlock::Resource`](super::ContentBlock::Resource).
        optional embedded_context: PromptEmbeddedContextCapabilities,
    }
}

record! {
    /// Present when the agent takes images.
    pub struct PromptImageCapabilities {}
}
record! {
    /// Present when the agent takes audio.
    pub struct PromptAudioCapabilities {}
}
record! {
    /// Present when the agent takes embedded resources.
    pub struct PromptEmbeddedContextCapabilities {}
}

record! {
    /// Which MCP servers an agent connects to.
    pub struct McpCapabilities {
        /// Programs on stdin and stdout.
        optional stdio: McpStdioCapabilities,
        /// Over streamable HTTP.
        optional http: McpHttpCapabilities,
    }
}

record! {
    /// Present when the agent connects to programs on stdin and stdout.
    pub struct McpStdioCapabilities {}
}
record! {
    /// Present when the agent connects over streamable HTTP.
    pub struct McpHttpCapabilities {}
}
