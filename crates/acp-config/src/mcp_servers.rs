//! Configured MCP servers: `[[mcp_servers]]` for the bundled agent, and the servers listed for other agents.

use std::collections::BTreeMap;
use std::fmt;

use acp::v1::{EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio};
use acp_host::process_secrets;
use serde::Deserialize;

use crate::quote::quote;

/// The settings of an MCP server: either a program (`command`) or a server at a URL (`url`).
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServerSettings {
    /// The server's name, which becomes part of the names of its tools.
    name: String,
    /// The program to start.
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    /// Environment variables to set for the server, in addition to those that the platform needs.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The names of environment variables to pass on from this process, so that the file need not contain any keys.
    #[serde(default)]
    pass: Vec<String>,
    url: Option<String>,
    /// The transport to use for `url`.
    transport: Option<McpTransport>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Omits the values of environment variables and headers, which may be secret.
impl fmt::Debug for McpServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerSettings")
            .field("name", &self.name)
            .field("command", &self.command)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum McpTransport {
    /// Streamable HTTP, for current servers.
    Http,
    /// HTTP with server-sent events, for older servers.
    Sse,
}

impl McpServerSettings {
    /// Formats all settings on one line, so that the user can decide whether to allow the server.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut words = vec![format!("{}:", self.name)];
        words.extend(self.url.clone());
        words.extend(self.command.as_deref().map(quote));
        words.extend(self.args.iter().map(|arg| quote(arg)));
        let pair = |(name, value): (&String, &String)| format!("{name}={}", quote(value));
        let mut more = |what: &str, list: Vec<String>| {
            if !list.is_empty() {
                words.push(format!("({what} {})", list.join(" ")));
            }
        };
        more("with", self.env.iter().map(pair).collect());
        more("gets", self.pass.clone());
        more("sends", self.headers.iter().map(pair).collect());
        words.join(" ")
    }

    /// Converts the settings to the protocol's type. `variable` looks up a variable of this process.
    ///
    /// # Errors
    /// Fails if the settings are invalid.
    fn into_mcp_server(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<McpServer, String> {
        let name = self.name;
        let wrong = |what: &str| Err(format!("MCP server {name:?} {what}"));
        if name.trim().is_empty() {
            return Err("an MCP server has no `name`".to_owned());
        }
        match (self.command, self.url) {
            (Some(command), None) => {
                if self.transport.is_some() || !self.headers.is_empty() {
                    return wrong(
                        "has `command`, which cannot be combined with `transport` or `headers`",
                    );
                }
                let given = self.env.into_iter();
                let mut env: Vec<EnvVariable> = given
                    .map(|(name, value)| EnvVariable::new(name, value))
                    .collect();
                // A variable that is not set in this process is omitted.
                env.extend(
                    self.pass.iter().filter_map(|name| {
                        variable(name).map(|value| EnvVariable::new(name, value))
                    }),
                );
                Ok(McpServer::Stdio(McpServerStdio::new(
                    name, command, self.args, env,
                )))
            }
            (None, Some(url)) => {
                if !(self.args.is_empty() && self.env.is_empty() && self.pass.is_empty()) {
                    return wrong(
                        "has `url`, which cannot be combined with `args`, `env` or `pass`",
                    );
                }
                let given = self.headers.into_iter();
                let headers: Vec<HttpHeader> = given
                    .map(|(name, value)| HttpHeader::new(name, value))
                    .collect();
                Ok(match self.transport.unwrap_or(McpTransport::Http) {
                    McpTransport::Http => McpServer::Http(McpServerHttp::new(name, url, headers)),
                    McpTransport::Sse => McpServer::Sse(McpServerSse::new(name, url, headers)),
                })
            }
            _ => wrong("requires either `command` or `url`"),
        }
    }
}

/// Converts the settings of all servers to the protocol's type.
///
/// # Errors
/// Fails if the settings of a server are invalid.
pub fn mcp_definitions(servers: Vec<McpServerSettings>) -> Result<Vec<McpServer>, String> {
    let mut all: Vec<McpServer> = Vec::with_capacity(servers.len());
    for server in servers {
        let definition = server.into_mcp_server(|name| {
            process_secrets::variable(name).and_then(|value| value.into_string().ok())
        })?;
        if all.iter().any(|other| other.name() == definition.name()) {
            let name = definition.name().unwrap_or_default();
            return Err(format!("duplicate MCP server {name:?}"));
        }
        all.push(definition);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_server(text: &str) -> Result<McpServer, String> {
        let server: McpServerSettings = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        server.into_mcp_server(|name| (name == "TOKEN").then(|| "secret".to_owned()))
    }

    #[test]
    fn stdio_server_gets_configured_and_inherited_variables() {
        let text = "name = 'a'\ncommand = 'npx'\nargs = ['-y', 'b']\nenv = { A = '1' }\npass = ['TOKEN', 'NONE']";
        let env = vec![
            EnvVariable::new("A", "1"),
            EnvVariable::new("TOKEN", "secret"),
        ];
        let args = vec!["-y".to_owned(), "b".to_owned()];
        let expected = McpServer::Stdio(McpServerStdio::new("a", "npx", args, env));
        assert_eq!(parse_server(text), Ok(expected));
    }

    #[test]
    fn url_defaults_to_streamable_http() {
        let key = || vec![HttpHeader::new("Authorization", "Bearer x")];
        let text =
            "name = 'a'\nurl = 'https://a.test/mcp'\nheaders = { Authorization = 'Bearer x' }";
        let expected = McpServer::Http(McpServerHttp::new("a", "https://a.test/mcp", key()));
        assert_eq!(parse_server(text), Ok(expected));
        let text = "name = 'a'\nurl = 'https://a.test/sse'\ntransport = 'sse'";
        let expected = McpServer::Sse(McpServerSse::new("a", "https://a.test/sse", vec![]));
        assert_eq!(parse_server(text), Ok(expected));
    }

    #[test]
    fn invalid_server_is_explained() {
        for (text, said) in [
            ("name = 'a'", "requires either"),
            (
                "name = 'a'\ncommand = 'b'\nurl = 'http://c'",
                "requires either",
            ),
            ("name = ''\ncommand = 'b'", "has no `name`"),
            (
                "name = 'a'\ncommand = 'b'\nheaders = { A = 'b' }",
                "cannot be combined with `transport` or `headers`",
            ),
            (
                "name = 'a'\nurl = 'http://c'\nargs = ['b']",
                "cannot be combined with `args`",
            ),
            (
                "name = 'a'\nurl = 'http://c'\ntransport = 'smoke'",
                "unknown variant",
            ),
            ("name = 'a'\ncommnad = 'b'", "unknown field"),
        ] {
            let error = parse_server(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
