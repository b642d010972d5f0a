//! MCP servers for the agent to connect to. See "MCP Servers" on the specification's page "Session Setup".

use super::EnvVariable;

tagged! {
    /// An MCP server for the agent to connect to, with one variant for each transport.
    pub enum McpServer by "type" {
        /// A server reached over streamable HTTP. The agent must support `mcpCapabilities.http`.
        Http(McpServerHttp) = "http",
        /// A server reached over SSE, which MCP has deprecated. The agent must support `mcpCapabilities.sse`.
        Sse(McpServerSse) = "sse",
        ;
        /// A program that the agent starts and talks to on stdin and stdout. Every agent supports this transport.
        Stdio(McpServerStdio) without tag
    }
    fallback = read_stdio_with_type;
}

/// Reads a stdio server that has an explicit `"type": "stdio"`, as in version 2 and from some clients.
fn read_stdio_with_type(tag: &str, object: &crate::RawObject) -> Option<McpServer> {
    (tag == "stdio").then(|| object.read().ok().map(McpServer::Stdio))?
}

impl McpServer {
    /// Returns the server's name, or `None` for an unknown transport.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Http(s) => Some(&s.name),
            Self::Sse(s) => Some(&s.name),
            Self::Stdio(s) => Some(&s.name),
            Self::Unknown(_) => None,
        }
    }
}

record! {
    /// An HTTP header.
    pub secret HttpHeader {
        /// The header's name, such as `Authorization`.
        required name: String,
        /// The header's value, which may be secret.
        required value: String,
    }
}

/// Formats the header without its value, which may be secret.
impl std::fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpHeader")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

record! {
    /// An MCP server that the agent reaches over streamable HTTP.
    pub struct McpServerHttp {
        /// The name to show to the user.
        required name: String,
        /// The URL of the server.
        required url: String,
        /// The headers to send with every request.
        required_list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that the agent reaches over SSE.
    pub struct McpServerSse {
        /// The name to show to the user.
        required name: String,
        /// The URL of the server.
        required url: String,
        /// The headers to send with every request.
        required_list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that the agent starts and talks to on stdin and stdout.
    pub struct McpServerStdio {
        /// The name to show to the user.
        required name: String,
        /// The program to start.
        required command: String,
        /// The arguments to pass to the program.
        required_list args: String,
        /// The environment variables to set for the server.
        required_list env: EnvVariable,
    }
}
