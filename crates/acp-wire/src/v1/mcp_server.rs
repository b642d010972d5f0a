//! MCP servers that a client asks an agent to connect to: Session setup, "MCP Servers".

use super::EnvVariable;

tagged! {
    /// An MCP server.
    pub enum McpServer by "type" {
        /// Over streamable HTTP: needs `mcpCapabilities.http`.
        Http(McpServerHttp) = "http",
        /// Over SSE: needs `mcpCapabilities.sse`.
        Sse(McpServerSse) = "sse",
        ;
        /// A program on stdin and stdout. Every agent takes it.
        Stdio(McpServerStdio) without tag
    }
    fallback = stdio_with_type;
}

/// Version 2 and some clients write a type for stdio, too.
fn stdio_with_type(tag: &str, object: &crate::RawObject) -> Option<McpServer> {
    (tag == "stdio").then(|| object.read().ok().map(McpServer::Stdio))?
}

impl McpServer {
    /// The server's name.
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
        /// Its name.
        required name: String,
        /// Its value.
        required value: String,
    }
}

/// Without the value, which may be secret.
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
        /// The name that is shown to the user.
        required name: String,
        /// Where it is.
        required url: String,
        /// Headers to send with every request.
        required_list headers: HttpHeader,
    }
}

record! {
    /// An MCP server over SSE.
    pub struct McpServerSse {
        /// The name that is shown to the user.
        required name: String,
        /// Where it is.
        required url: String,
        /// Headers to send with every request.
        required_list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that is a program on stdin and stdout.
    pub struct McpServerStdio {
        /// The name that is shown to the user.
        required name: String,
        /// The program.
        required command: String,
        /// Its arguments.
        required_list args: String,
        /// Its environment.
        required_list env: EnvVariable,
    }
}
