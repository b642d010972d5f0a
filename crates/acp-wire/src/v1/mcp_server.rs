//! MCP servers that an agent is to connect to: the specification's page "Session Setup", "MCP Servers".

use super::EnvVariable;

tagged! {
    /// An MCP server.
    pub enum McpServer by "type" {
        /// A server over streamable HTTP. The agent must support `mcpCapabilities.http`.
        Http(McpServerHttp) = "http",
        /// A server over SSE. The agent must support `mcpCapabilities.sse`.
        Sse(McpServerSse) = "sse",
        ;
        /// A program on stdin and stdout. Every agent supports it.
        Stdio(McpServerStdio) without tag
    }
    fallback = stdio_with_type;
}

/// Reads the type `stdio`, which version 2 and some clients write.
fn stdio_with_type(tag: &str, object: &crate::RawObject) -> Option<McpServer> {
    (tag == "stdio").then(|| object.read().ok().map(McpServer::Stdio))?
}

impl McpServer {
    /// Returns the server's name.
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
        /// The name.
        required name: String,
        /// The value.
        required value: String,
    }
}

/// Omits the value, which may be secret.
impl std::fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpHeader")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

record! {
    /// An MCP server over streamable HTTP.
    pub struct McpServerHttp {
        /// The name to show to the user.
        required name: String,
        /// The URL.
        required url: String,
        /// The headers to send with every request.
        required_list headers: HttpHeader,
    }
}

record! {
    /// An MCP server over SSE.
    pub struct McpServerSse {
        /// The name to show to the user.
        required name: String,
        /// The URL.
        required url: String,
        /// The headers to send with every request.
        required_list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that is a program on stdin and stdout.
    pub struct McpServerStdio {
        /// The name to show to the user.
        required name: String,
        /// The program.
        required command: String,
        /// The arguments.
        required_list args: String,
        /// The environment variables.
        required_list env: EnvVariable,
    }
}
