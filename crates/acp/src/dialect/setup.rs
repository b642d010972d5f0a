//! Converts session setups, MCP servers and auth methods between protocol versions.

use std::collections::BTreeMap;

use acp_wire::v1;
use acp_wire::v2;

use crate::session_setup::SessionSetup;

/// A request type that opens a session, in either version.
pub(crate) trait OpenSessionRequest {
    /// Converts the request's params to a session setup.
    fn into_setup(self) -> SessionSetup;
}

/// Implements [`OpenSessionRequest`] for request types.
macro_rules! opens_session {
    ($($request:ty, $servers:expr;)+) => { $(
        impl OpenSessionRequest for $request {
            fn into_setup(self) -> SessionSetup {
                SessionSetup {
                    cwd: self.cwd,
                    additional_directories: self.additional_directories,
                    mcp_servers: $servers(self.mcp_servers),
                    system_prompt: self.system_prompt,
                    meta: self.meta,
                }
            }
        }
    )+ };
}

opens_session! {
    v1::NewSessionRequest, std::convert::identity;
    v1::LoadSessionRequest, std::convert::identity;
    v1::ResumeSessionRequest, std::convert::identity;
    v1::ForkSessionRequest, std::convert::identity;
    v2::NewSessionRequest, servers_from_v2;
    v2::ResumeSessionRequest, servers_from_v2;
    v2::ForkSessionRequest, servers_from_v2;
}

/// Converts MCP servers from version 2.
fn servers_from_v2(servers: Vec<v2::McpServer>) -> Vec<v1::McpServer> {
    servers.into_iter().filter_map(mcp_server_from_v2).collect()
}

/// Converts an MCP server to version 2. Returns `None` for SSE servers, which version 2 lacks.
pub(crate) fn mcp_server_to_v2(server: v1::McpServer) -> Option<v2::McpServer> {
    Some(match server {
        v1::McpServer::Http(server) => {
            let mut new = v2::McpServerHttp::new(server.name, server.url).headers(server.headers);
            new.meta = server.meta;
            v2::McpServer::Http(new)
        }
        v1::McpServer::Stdio(server) => {
            let mut new = v2::McpServerStdio::new(server.name, server.command)
                .args(server.args)
                .env(server.env);
            new.meta = server.meta;
            v2::McpServer::Stdio(new)
        }
        v1::McpServer::Unknown(object) => v2::McpServer::Unknown(object),
        _ => return None,
    })
}

/// Converts an MCP server from version 2. Returns `None` for unknown transports.
pub(crate) fn mcp_server_from_v2(server: v2::McpServer) -> Option<v1::McpServer> {
    Some(match server {
        v2::McpServer::Http(server) => {
            let mut new = v1::McpServerHttp::new(server.name, server.url, server.headers);
            new.meta = server.meta;
            v1::McpServer::Http(new)
        }
        v2::McpServer::Stdio(server) => {
            let mut new =
                v1::McpServerStdio::new(server.name, server.command, server.args, server.env);
            new.meta = server.meta;
            v1::McpServer::Stdio(new)
        }
        v2::McpServer::Unknown(object) => v1::McpServer::Unknown(object),
        _ => return None,
    })
}

/// Converts an auth method to version 2.
pub(crate) fn auth_method_to_v2(method: v1::AuthMethod) -> Option<v2::AuthMethod> {
    Some(match method {
        v1::AuthMethod::Terminal(method) => {
            let env: Vec<v1::EnvVariable> = method
                .env
                .into_iter()
                .map(|(name, value)| v1::EnvVariable::new(name, value))
                .collect();
            let mut new = v2::AuthMethodTerminal::new(method.id, method.name)
                .args(method.args)
                .env(env);
            (new.description, new.meta) = (method.description, method.meta);
            v2::AuthMethod::Terminal(new)
        }
        v1::AuthMethod::Agent(method) => {
            let mut new = v2::AuthMethodAgent::new(method.id, method.name);
            (new.description, new.meta) = (method.description, method.meta);
            v2::AuthMethod::Agent(new)
        }
        v1::AuthMethod::Unknown(object) => v2::AuthMethod::Unknown(object.rename("id", "methodId")),
        _ => return None,
    })
}

/// Converts an auth method from version 2.
pub(crate) fn auth_method_from_v2(method: v2::AuthMethod) -> Option<v1::AuthMethod> {
    Some(match method {
        v2::AuthMethod::Terminal(method) => {
            let env: BTreeMap<String, String> =
                method.env.into_iter().map(|v| (v.name, v.value)).collect();
            let mut new = v1::AuthMethodTerminal::new(method.method_id, method.name)
                .args(method.args)
                .env(env);
            (new.description, new.meta) = (method.description, method.meta);
            v1::AuthMethod::Terminal(new)
        }
        v2::AuthMethod::Agent(method) => {
            let mut new = v1::AuthMethodAgent::new(method.method_id, method.name);
            (new.description, new.meta) = (method.description, method.meta);
            v1::AuthMethod::Agent(new)
        }
        v2::AuthMethod::Unknown(object) => v1::AuthMethod::Unknown(object.rename("methodId", "id")),
        _ => return None,
    })
}
