//! MCP servers for the agent to connect to. See "MCP Servers" on the specification's page "Session Setup".

use super::{EnvVariable, HttpHeader};

tagged! {
    /// An MCP server for the agent to connect to, with one variant for each transport.
    pub enum McpServer by "type" {
        /// A server reached over streamable HTTP. The agent must support `session.mcp.http`.
        Http(McpServerHttp) = "http",
        /// A program that the agent starts and talks to on stdin and stdout. The agent must support
        /// `session.mcp.stdio`.
        Stdio(McpServerStdio) = "stdio",
    }
    untagged = Stdio;
}

record! {
    /// An MCP server that the agent reaches over streamable HTTP.
    pub struct McpServerHttp {
        /// The name to show to the user.
        required name: String,
        /// The URL of the server.
        required url: String,
        /// The headers to send with every request.
        list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that the agent starts and talks to on stdin and stdout.
    pub struct McpServerStdio {
        /// The name to show to the user.
        required name: String,
        /// The absolute path of the program to start.
        required command: String,
        /// The arguments to pass to the program.
        list args: String,
        /// The environment variables to set for the server.
        list env: EnvVariable,
    }
}
