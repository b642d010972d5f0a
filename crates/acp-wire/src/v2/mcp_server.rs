//! MCP servers that an agent is to connect to: the specification's page "Session Setup", "MCP Servers".

use super::{EnvVariable, HttpHeader};

tagged! {
    /// An MCP server.
    pub enum McpServer by "type" {
        /// A server over streamable HTTP. The agent must support `session.mcp.http`.
        Http(McpServerHttp) = "http",
        /// A program on stdin and stdout. The agent must support `session.mcp.stdio`.
        Stdio(McpServerStdio) = "stdio",
    }
    untagged = Stdio;
}

record! {
    /// An MCP server over streamable HTTP.
    pub struct McpServerHttp {
        /// The name to show to the user.
        required name: String,
        /// The URL.
        required url: String,
        /// The headers to send with every request.
        list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that is a program on stdin and stdout.
    pub struct McpServerStdio {
        /// The name to show to the user.
        required name: String,
        /// The program, as an absolute path.
        required command: String,
        /// The arguments.
        list args: String,
        /// The environment variables.
        list env: EnvVariable,
    }
}
