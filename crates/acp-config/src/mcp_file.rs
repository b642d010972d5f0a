//! Reads MCP servers from a JSON file in the protocol's format or the format of editor settings.

use std::collections::BTreeMap;
use std::path::Path;

use acp::v1::{EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerSse, McpServerStdio};
use serde::Deserialize;

use crate::error::ConfigError;

/// An MCP server in the format of editor settings.
#[derive(Deserialize)]
struct ServerSettings {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct EditorSettings {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, ServerSettings>,
}

/// Reads the MCP servers from a file.
///
/// # Errors
/// Fails if the file cannot be read or is invalid.
pub fn read_mcp_file(file: &Path) -> Result<Vec<McpServer>, ConfigError> {
    let wrong = |what: &str| ConfigError::usage(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| wrong(&e.to_string()))?;
    parse_servers(&text).map_err(|what| wrong(&what))
}

fn parse_servers(text: &str) -> Result<Vec<McpServer>, String> {
    if text.trim_start().starts_with('[') {
        let servers: Vec<McpServer> = serde_json::from_str(text).map_err(|e| describe_error(&e))?;
        let unknown = servers
            .iter()
            .any(|server| matches!(server, McpServer::Unknown(_)));
        return if unknown {
            Err("unknown server type".to_owned())
        } else {
            Ok(servers)
        };
    }
    let settings: EditorSettings = serde_json::from_str(text).map_err(|e| describe_error(&e))?;
    settings
        .servers
        .into_iter()
        .map(|(name, setting)| to_mcp_server(name, setting))
        .collect()
}

/// Describes a JSON error without showing the invalid value, which may be an API key or a token.
fn describe_error(error: &serde_json::Error) -> String {
    let what = error.to_string();
    match (what.split_once(": "), what.rsplit_once(", expected ")) {
        (Some((invalid, _)), Some((_, expected))) if invalid.starts_with("invalid ") => {
            format!("{invalid}, expected {expected}")
        }
        _ => what,
    }
}

fn to_mcp_server(name: String, setting: ServerSettings) -> Result<McpServer, String> {
    let headers = || -> Vec<HttpHeader> {
        setting
            .headers
            .iter()
            .map(|(name, value)| HttpHeader::new(name, value))
            .collect()
    };
    match (setting.kind.as_deref(), setting.command, setting.url) {
        (None | Some("stdio"), Some(command), None) => {
            let env: Vec<EnvVariable> = setting
                .env
                .iter()
                .map(|(name, value)| EnvVariable::new(name, value))
                .collect();
            Ok(McpServer::Stdio(McpServerStdio::new(
                name,
                command,
                setting.args,
                env,
            )))
        }
        (Some("sse"), None, Some(url)) => {
            Ok(McpServer::Sse(McpServerSse::new(name, url, headers())))
        }
        (None | Some("http" | "streamable-http"), None, Some(url)) => {
            Ok(McpServer::Http(McpServerHttp::new(name, url, headers())))
        }
        _ => Err(format!(
            "server {name:?}: either \"command\" or \"url\" is required"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_server_formats_are_parsed() {
        let editors = r#"{"mcpServers": {
            "files": {"command": "/bin/files", "args": ["--stdio"], "env": {"KEY": "1"}},
            "web": {"url": "https://mcp.example.org", "headers": {"Authorization": "x"}},
            "old": {"type": "sse", "url": "https://old.example.org"}
        }}"#;
        let protocol = r#"[
            {"name": "files", "command": "/bin/files", "args": ["--stdio"], "env": [{"name": "KEY", "value": "1"}]},
            {"type": "sse", "name": "old", "url": "https://old.example.org", "headers": []},
            {"type": "http", "name": "web", "url": "https://mcp.example.org", "headers": [{"name": "Authorization", "value": "x"}]}
        ]"#;
        assert_eq!(
            parse_servers(editors).unwrap(),
            parse_servers(protocol).unwrap()
        );
    }

    #[test]
    fn error_identifies_the_invalid_server() {
        let error = parse_servers(r#"{"mcpServers": {"x": {"args": []}}}"#).unwrap_err();
        assert!(error.contains("\"x\""), "{error}");
        assert!(parse_servers(r#"[{"type": "carrier-pigeon", "name": "x"}]"#).is_err());
        assert!(parse_servers("nonsense").is_err());
        let error =
            parse_servers(r#"{"mcpServers": {"x": {"command": "x", "env": {"PIN": 271828}}}}"#);
        let error = error.unwrap_err();
        assert!(
            error.contains("expected a string") && !error.contains("271828"),
            "{error}"
        );
    }
}
