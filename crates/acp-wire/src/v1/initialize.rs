//! Initialization: the specification's page of that name.

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    AgentAuthCapabilities, AuthCapabilities, AuthMethod, CompactionCapabilities,
    ElicitationCapabilities, NoticeCapabilities, PlanCapabilities, ProvidersCapabilities,
    SessionCapabilities, SubagentCapabilities,
};
use crate::Meta;
use crate::lenient::Lenient;

/// A major version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(transparent)]
pub struct ProtocolVersion(pub u16);

impl ProtocolVersion {
    /// Version 1.
    pub const V1: Self = Self(1);
    /// Version 2, a draft.
    pub const V2: Self = Self(2);
}

impl std::fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    /// Anything that is not a version reads as version 0, which nobody speaks: before version 1 the
    /// field was a date.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self(u16::lenient(d)?.unwrap_or(0)))
    }
}

record! {
    /// `initialize`: the client's part of the negotiation.
    pub struct InitializeRequest {
        /// The latest version the client speaks.
        required protocol_version: ProtocolVersion,
        /// What the client can do.
        defaulted client_capabilities: ClientCapabilities,
        /// Who the client is.
        optional client_info: Implementation,
    }
}

record! {
    /// The answer to `initialize`: the agent's part of the negotiation.
    pub struct InitializeResponse {
        /// The version this connection speaks from here on.
        required protocol_version: ProtocolVersion,
        /// What the agent can do.
        defaulted agent_capabilities: AgentCapabilities,
        /// How one can authenticate.
        written_list auth_methods: AuthMethod,
        /// Who the agent is.
        optional agent_info: Implementation,
    }
}

record! {
    /// The name and version of a program.
    pub struct Implementation {
        /// A name for programs.
        required name: String,
        /// Its version.
        tolerant version: String,
        /// The name that is shown to the user.
        optional title: String,
    }
}

impl Default for Implementation {
    /// Nobody: what does not say who it is.
    fn default() -> Self {
        Self::new("", "")
    }
}

record! {
    /// What a client can do. What is absent it cannot.
    pub struct ClientCapabilities {
        /// Which `fs/*` methods there are.
        defaulted fs: FileSystemCapabilities,
        /// Whether all `terminal/*` methods are there.
        defaulted terminal: bool,
        /// What it understands of sessions.
        optional session: ClientSessionCapabilities,
        /// Several plans by id. Unstable.
        optional plan: PlanCapabilities,
        /// What it can do for authentication.
        defaulted auth: AuthCapabilities,
        /// Which kinds of `elicitation/create` it can show.
        optional elicitation: ElicitationCapabilities,
        /// That it shows subagents. Unstable.
        optional subagents: SubagentCapabilities,
    }
}

record! {
    /// Which `fs/*` methods a client has.
    pub struct FileSystemCapabilities {
        /// `fs/read_text_file`.
        defaulted read_text_file: bool,
        /// `fs/write_text_file`.
        defaulted write_text_file: bool,
    }
}

record! {
    /// What a client understands of sessions.
    pub struct ClientSessionCapabilities {
        /// What it understands of config options beyond `select`.
        optional config_options: SessionConfigOptionsCapabilities,
        /// Compactions of the conversation. Unstable.
        optional compaction: CompactionCapabilities,
        /// Notices. Unstable.
        optional notices: NoticeCapabilities,
    }
}

record! {
    /// What a client understands of config options.
    pub struct SessionConfigOptionsCapabilities {
        /// Options of type `boolean`.
        optional boolean: BooleanConfigOptionCapabilities,
    }
}

record! {
    /// Present when the client understands options of type `boolean`.
    pub struct BooleanConfigOptionCapabilities {}
}

record! {
    /// What an agent can do. What is absent it cannot.
    pub struct AgentCapabilities from ReadAgentCapabilities {
        /// `session/load`.
        defaulted load_session: bool,
        /// Which content it takes in prompts, beside text and resource links.
        defaulted prompt_capabilities: PromptCapabilities,
        /// Which MCP servers it connects to, beside those on stdio.
        /// Read from `mcp` as well, as one page of the specification writes it.
        defaulted mcp_capabilities: McpCapabilities,
        /// Which further `session/*` methods there are.
        defaulted session_capabilities: SessionCapabilities,
        /// What it can do for authentication.
        defaulted auth: AgentAuthCapabilities,
        /// `providers/list`, `providers/set` and `providers/disable`. Unstable.
        optional providers: ProvidersCapabilities,
    }
}

/// An alias would refuse capabilities that have both names, which is what an agent writes that
/// wants to be understood by everyone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadAgentCapabilities {
    #[serde(default, deserialize_with = "crate::lenient::defaulted")]
    load_session: bool,
    #[serde(default, deserialize_with = "crate::lenient::defaulted")]
    prompt_capabilities: PromptCapabilities,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    mcp_capabilities: Option<McpCapabilities>,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    mcp: Option<McpCapabilities>,
    #[serde(default, deserialize_with = "crate::lenient::defaulted")]
    session_capabilities: SessionCapabilities,
    #[serde(default, deserialize_with = "crate::lenient::defaulted")]
    auth: AgentAuthCapabilities,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    providers: Option<ProvidersCapabilities>,
    #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
    meta: Option<Meta>,
}

impl From<ReadAgentCapabilities> for AgentCapabilities {
    fn from(read: ReadAgentCapabilities) -> Self {
        Self {
            load_session: read.load_session,
            prompt_capabilities: read.prompt_capabilities,
            mcp_capabilities: read.mcp_capabilities.or(read.mcp).unwrap_or_default(),
            session_capabilities: read.session_capabilities,
            auth: read.auth,
            providers: read.providers,
            meta: read.meta,
        }
    }
}

record! {
    /// Which content an agent takes in prompts, beside text and resource links.
    pub struct PromptCapabilities {
        /// [`ContentBlock::Image`](super::ContentBlock::Image).
        defaulted image: bool,
        /// [`ContentBlock::Audio`](super::ContentBlock::Audio).
        defaulted audio: bool,
        /// [`ContentBlock::Resource`](super::ContentBlock::Resource).
        defaulted embedded_context: bool,
    }
}

record! {
    /// Which MCP servers an agent connects to, beside those on stdio.
    pub struct McpCapabilities {
        /// Over streamable HTTP.
        defaulted http: bool,
        /// Over SSE, which MCP has deprecated.
        defaulted sse: bool,
    }
}
