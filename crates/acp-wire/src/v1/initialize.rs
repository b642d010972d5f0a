//! Connection setup with `initialize`. See the specification's page "Initialization".

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    AgentAuthCapabilities, AuthCapabilities, AuthMethod, CompactionCapabilities,
    ElicitationCapabilities, NoticeCapabilities, PlanCapabilities, ProvidersCapabilities,
    SessionCapabilities, SubagentCapabilities,
};
use crate::Meta;
use crate::lenient::Lenient;

/// A protocol version, such as 1 or 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(transparent)]
pub struct ProtocolVersion(pub u16);

impl ProtocolVersion {
    /// Version 1, which is stable.
    pub const V1: Self = Self(1);
    /// Version 2, which is a draft.
    pub const V2: Self = Self(2);
}

impl std::fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    /// Reads a version number. Any other value, such as the dates used before version 1, becomes version 0, which no
    /// peer supports.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self(u16::lenient(d)?.unwrap_or(0)))
    }
}

record! {
    /// The `initialize` request, with the client's capabilities and the latest version that it supports.
    pub struct InitializeRequest {
        /// The latest version that the client supports.
        required protocol_version: ProtocolVersion,
        /// The client's capabilities.
        defaulted client_capabilities: ClientCapabilities,
        /// The client's name and version.
        optional client_info: Implementation,
    }
}

record! {
    /// The response to `initialize`, with the agent's capabilities and the version that it chose.
    pub struct InitializeResponse {
        /// The version that the connection uses from now on.
        required protocol_version: ProtocolVersion,
        /// The agent's capabilities.
        defaulted agent_capabilities: AgentCapabilities,
        /// The auth methods that the agent offers.
        written_list auth_methods: AuthMethod,
        /// The agent's name and version.
        optional agent_info: Implementation,
    }
}

record! {
    /// The name and version of a program.
    pub struct Implementation {
        /// The program's programmatic name, as opposed to its display name.
        required name: String,
        /// The program's version, in any format.
        tolerant version: String,
        /// The name to show to the user.
        optional title: String,
    }
}

impl Default for Implementation {
    /// Returns an empty name and version, for peers that send neither.
    fn default() -> Self {
        Self::new("", "")
    }
}

record! {
    /// The capabilities of a client. An absent capability is not supported.
    pub struct ClientCapabilities {
        /// The `fs/*` methods that the client supports.
        defaulted fs: FileSystemCapabilities,
        /// Whether the client supports all `terminal/*` methods.
        defaulted terminal: bool,
        /// The session features that the client supports.
        optional session: ClientSessionCapabilities,
        /// Support for multiple plans per session, each with its own id. Unstable.
        optional plan: PlanCapabilities,
        /// The kinds of authentication that the client supports.
        defaulted auth: AuthCapabilities,
        /// The elicitation modes that the client supports.
        optional elicitation: ElicitationCapabilities,
        /// Support for subagents. Unstable.
        optional subagents: SubagentCapabilities,
    }
}

record! {
    /// The `fs/*` methods that a client supports.
    pub struct FileSystemCapabilities {
        /// Whether `fs/read_text_file` is supported.
        defaulted read_text_file: bool,
        /// Whether `fs/write_text_file` is supported.
        defaulted write_text_file: bool,
    }
}

record! {
    /// The session features that a client supports.
    pub struct ClientSessionCapabilities {
        /// Support for config options of types other than `select`.
        optional config_options: SessionConfigOptionsCapabilities,
        /// Support for compactions. Unstable.
        optional compaction: CompactionCapabilities,
        /// Support for notices. Unstable.
        optional notices: NoticeCapabilities,
    }
}

record! {
    /// The types of config options that a client supports in addition to `select`.
    pub struct SessionConfigOptionsCapabilities {
        /// Support for options of type `boolean`.
        optional boolean: BooleanConfigOptionCapabilities,
    }
}

record! {
    /// An empty object that declares support for options of type `boolean`.
    pub struct BooleanConfigOptionCapabilities {}
}

record! {
    /// The capabilities of an agent. An absent capability is not supported.
    pub struct AgentCapabilities from RawAgentCapabilities {
        /// Whether `session/load` is supported.
        defaulted load_session: bool,
        /// The content types that the agent accepts in prompts in addition to text and resource links.
        defaulted prompt_capabilities: PromptCapabilities,
        /// The MCP transports that the agent supports in addition to stdio. Also accepted under the name `mcp`, which
        /// one page of the specification uses.
        defaulted mcp_capabilities: McpCapabilities,
        /// The optional `session/*` methods and parameters that the agent supports.
        defaulted session_capabilities: SessionCapabilities,
        /// Support for authentication requests other than `authenticate`.
        defaulted auth: AgentAuthCapabilities,
        /// Support for `providers/list`, `providers/set` and `providers/disable`. Unstable.
        optional providers: ProvidersCapabilities,
    }
}

/// [`AgentCapabilities`] as received, which may use either name for `mcp_capabilities`, or both. A serde alias would
/// reject an object with both names, which an agent may send to be compatible with every client.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAgentCapabilities {
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

impl From<RawAgentCapabilities> for AgentCapabilities {
    fn from(read: RawAgentCapabilities) -> Self {
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
    /// The content types that an agent accepts in prompts in addition to text and resource links.
    pub struct PromptCapabilities {
        /// Whether [`ContentBlock::Image`](super::ContentBlock::Image) is accepted.
        defaulted image: bool,
        /// Whether [`ContentBlock::Audio`](super::ContentBlock::Audio) is accepted.
        defaulted audio: bool,
        /// Whether [`ContentBlock::Resource`](super::ContentBlock::Resource) is accepted.
        defaulted embedded_context: bool,
    }
}

record! {
    /// The MCP transports that an agent supports, besides stdio.
    pub struct McpCapabilities {
        /// Whether streamable HTTP is supported.
        defaulted http: bool,
        /// Whether SSE is supported. MCP has deprecated it.
        defaulted sse: bool,
    }
}
