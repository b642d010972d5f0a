//! Connects to an MCP server, either by starting its process or over HTTP.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use acp::v1::{HttpHeader, McpServer, McpServerStdio};
use acp_host::{AgentCommand, AgentProcess};
use acp_mcp::BoundedTransport;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use rmcp::ServiceExt;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::process::{ChildStdin, ChildStdout};

use super::failure::ConnectFailure;
use super::handler::McpClientHandler;
use super::http::{self, WatchedClient};
use super::sse::SseTransport;
use crate::causes::error_chain;
use crate::text::{to_code_block, truncate_to_tail};

/// The maximum number of requests from a server that are in flight at once. Any additional request is rejected.
const MAX_REQUESTS: usize = 64;

/// The timeout for connecting to a server over HTTP.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of redirects to follow when connecting to a server over HTTP.
const MAX_REDIRECTS: usize = 5;

/// How long to wait for a process to exit after it has closed its output, so that its exit status can be reported.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The time limit for each step of a graceful shutdown of a server's process.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The maximum number of bytes to show from the end of a process's standard error.
const MAX_OUTPUT_BYTES: usize = 2 * 1024;

/// The server's process, if the agent runs it. Dropping this kills the process and everything it started.
#[derive(Default)]
pub(super) struct McpProcess(Option<AgentProcess>);

impl McpProcess {
    /// Shuts the process down. Its input has already been closed, which signals it to exit.
    pub(super) async fn shutdown(self) {
        if let Some(process) = self.0 {
            process.shutdown(SHUTDOWN_GRACE).await;
        }
    }

    /// Describes how the process exited, if it has, and includes its last output.
    pub(super) async fn describe_exit(&self) -> String {
        let Some(process) = &self.0 else {
            return String::new();
        };
        // Once the exit status is known, all output has been read.
        let exit = tokio::time::timeout(EXIT_TIMEOUT, process.wait())
            .await
            .ok();
        let printed = process.output_tail();
        let printed = truncate_to_tail(printed.trim(), MAX_OUTPUT_BYTES);
        let mut words = exit
            .map(|exit| format!(" Its process exited with {exit}."))
            .unwrap_or_default();
        if !printed.is_empty() {
            words.push_str(&format!(" Its output:\n\n{}", to_code_block(printed)));
        }
        words
    }
}

/// Connects to a server and performs the handshake. If this starts a process, stores it in `process` at once.
///
/// # Errors
/// The server cannot be used. The error is a text for the user that says why.
pub(super) async fn connect(
    definition: &McpServer,
    cwd: &str,
    handler: McpClientHandler,
    process: &mut McpProcess,
) -> Result<RunningService<RoleClient, McpClientHandler>, ConnectFailure> {
    let served = match definition {
        McpServer::Stdio(stdio) => {
            let transport =
                start_process(stdio, cwd, process).map_err(ConnectFailure::temporary)?;
            handler
                .serve(BoundedTransport::for_client(transport, MAX_REQUESTS))
                .await
        }
        McpServer::Http(at) => {
            let (client, url) =
                build_client(&at.url, &at.headers).map_err(ConnectFailure::permanent)?;
            let client = WatchedClient::new(client, handler.name(), handler.shared());
            let config = http::transport_config(url.as_str());
            let transport = StreamableHttpClientTransport::with_client(client, config);
            handler
                .serve(BoundedTransport::for_client(transport, MAX_REQUESTS))
                .await
        }
        McpServer::Sse(at) => {
            let (client, url) =
                build_client(&at.url, &at.headers).map_err(ConnectFailure::permanent)?;
            let transport = SseTransport::connect(client, url).await;
            let transport = transport.map_err(|e| ConnectFailure::from_sse_error(&e))?;
            handler
                .serve(BoundedTransport::for_client(transport, MAX_REQUESTS))
                .await
        }
        _ => {
            let why = "Unsupported transport.";
            return Err(ConnectFailure::permanent(why));
        }
    };
    served.map_err(|error| ConnectFailure::from_handshake_error(&error))
}

/// Starts a server's process. Returns a transport over its standard input and output.
fn start_process(
    definition: &McpServerStdio,
    cwd: &str,
    process: &mut McpProcess,
) -> Result<AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>, String> {
    let mut command = AgentCommand::new(&definition.command).args(&definition.args);
    for variable in &definition.env {
        command = command.env(&variable.name, &variable.value);
    }
    // A client in a container may name a directory that does not exist here.
    if Path::new(cwd).is_dir() {
        command = command.cwd(cwd);
    }
    let started =
        AgentProcess::spawn(&command).map_err(|e| format!("Cannot start its process: {e}."))?;
    let stdio = started.take_stdio();
    process.0 = Some(started);
    let (stdin, stdout) = stdio.ok_or("Cannot open its stdin and stdout.")?;
    Ok(AsyncRwTransport::new_client(stdout, stdin))
}

/// Creates an HTTP client that sends the server's headers only to the server's origin.
fn build_client(url: &str, headers: &[HttpHeader]) -> Result<(Client, Url), String> {
    let url = Url::parse(url).map_err(|e| format!("Invalid URL `{url}`: {e}."))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("Not an HTTP URL: `{url}`."));
    }
    let mut sent = HeaderMap::new();
    for header in headers {
        // Leave out the header's value, which may be a key.
        let wrong = || format!("Invalid value for header {:?}.", header.name);
        let name: HeaderName = header.name.parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(&header.value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        sent.append(name, value);
    }
    // Install the provider when a server first needs it, not when the agent starts.
    static TLS: Once = Once::new();
    TLS.call_once(|| {
        // This fails if a provider is installed already, which is fine too.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let origin = url.origin();
    let redirects = redirect::Policy::custom(move |attempt| {
        if attempt.url().origin() == origin && attempt.previous().len() < MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let mut builder = Client::builder()
        .default_headers(sent)
        .redirect(redirects)
        .connect_timeout(CONNECT_TIMEOUT);
    if is_loopback(&url) {
        // A proxy cannot reach servers on this machine.
        builder = builder.no_proxy();
    }
    let client = builder
        .build()
        .map_err(|e| format!("{}.", error_chain(&e)))?;
    Ok((client, url))
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Merges the two lists of servers, the client's first. A user's server is left out if the client has one with the same
/// name.
pub(crate) fn merge_servers(client: Vec<McpServer>, users: &[McpServer]) -> Vec<McpServer> {
    let named: HashSet<&str> = client.iter().filter_map(McpServer::name).collect();
    let more = users.iter().filter(|server| {
        let name = server.name();
        !name.is_some_and(|name| named.contains(name))
    });
    let more: Vec<McpServer> = more.cloned().collect();
    client.into_iter().chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_url_or_header_is_reported_without_its_value() {
        let header = HttpHeader::new("X-Key", "secret\n");
        let error = build_client("http://localhost/", &[header]).unwrap_err();
        assert!(
            error.contains("X-Key") && !error.contains("secret"),
            "{error}"
        );
        for wrong in ["", "localhost:80", "file:///etc/passwd"] {
            assert!(build_client(wrong, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loopback_addresses_are_recognized() {
        for (url, expected) in [
            ("http://localhost:1/a", true),
            ("http://127.0.0.3/", true),
            ("https://[::1]:3/", true),
            ("https://example.org/", false),
            ("http://localhost.example.org/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn client_servers_take_precedence() {
        let server = |name: &str, command: &str| {
            McpServer::Stdio(McpServerStdio::new(name, command, Vec::new(), Vec::new()))
        };
        let (mine, yours, more) = (server("a", "1"), server("a", "2"), server("b", "3"));
        let all = merge_servers(vec![mine.clone()], &[yours, more.clone()]);
        assert_eq!(all, [mine, more]);
    }
}
