//! MCP servers that a client asks an agent to connect to: Session setup, "MCP Servers".

use super::{EnvVariable, HttpHeader};

tagged! {
    /// An MCP server.
    pub enum McpServer by "type" {
        /// Over streamable HTTP: needs `session.mcp.http`.
        Http(McpServerHttp) = "http",
        /// A program on stdin and stdout: needs `session.mcp.stdio`.
        Stdio(McpServerStdio) = "stdio",
    }
    untagged = Stdio;
}

record! {
    /// An MCP server over streamable HTTP.
    pub struct McpServerHttp {
        /// The name that is shown to the user.
        required name: String,
        /// Where it is.
        required url: String,
        /// Headers to send with every request.
        list headers: HttpHeader,
    }
}

record! {
    /// An MCP server that is a program on stdin and stdout.
    pub struct McpServerStdio {
        /// The name that is shown to the user.
        required name: String,
        /// The program, an absolute path.
        required command: String,
        /// Its arguments.
        list args: String,
        /// Its environment.
        list env: EnvVariable,
    }
}
