//! An MCP server that runs inside the client's process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp::v1::{EnvVariable, McpServer, McpServerStdio};
use acp_local::{Listener, ListenerEndpoint, LocalStream, LocalToken, accept_handshake};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, ServiceExt};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::bounded::{BoundedTransport, MAX_REQUESTS};
use crate::proxy::TOKEN_VARIABLE;
use crate::proxy_command::ProxyCommand;
use crate::tools::Tools;

/// The maximum number of connections to a tool server. Any more are closed.
const MAX_CONNECTIONS: usize = 64;

/// How long to wait before retrying if a connection cannot be accepted, for example because too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// An MCP server in this process, which agents reach through a proxy.
///
/// It listens on a socket that only this user can access, and serves only peers that know its token. It serves up to 64
/// connections at once, and up to 1,024 requests on each. `rmcp` skips messages larger than 16 MiB. Specification:
/// Session Setup, "MCP Servers"; Architecture, "MCP".
///
/// Dropping the value stops the server. The socket is removed at once, and the tokens of running calls are cancelled.
/// The calls then have two seconds to respond before the connections are closed.
#[derive(Debug)]
pub struct ToolServer {
    _stop: DropGuard,
    listener_endpoint: ListenerEndpoint,
    name: String,
    proxy: ProxyCommand,
    token: LocalToken,
    rejected_connections: Arc<AtomicU64>,
}

impl ToolServer {
    /// Creates a builder for a server called `name` whose tools are closures. Add tools with [`Tools::tool`], and start
    /// the server with [`Tools::start`].
    pub fn tools(name: impl Into<String>) -> Tools {
        Tools::new(name.into())
    }

    /// Starts a server called `name`. `handlers` creates a handler for each connection, which usually belongs to one
    /// session of an agent. Use this for other MCP features, such as resources, prompts or different tools for each
    /// agent. For a fixed set of tools, use [`tools`](Self::tools).
    ///
    /// Must be called within a Tokio runtime that has I/O and time enabled.
    ///
    /// # Errors
    /// Fails if the socket cannot be created or there is no runtime.
    pub fn start<H: ServerHandler>(
        name: impl Into<String>,
        handlers: impl Fn() -> H + Send + Sync + 'static,
        proxy: ProxyCommand,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let (listener, place) = Listener::bind()?;
        let token = LocalToken::random();
        let refused = Arc::new(AtomicU64::new(0));
        let stop = CancellationToken::new();
        let server = Arc::new(ServerContext {
            handlers,
            token: token.clone(),
            rejected_connections: Arc::clone(&refused),
            stop: stop.clone(),
        });
        runtime.spawn(server.accept(listener));
        Ok(Self {
            _stop: stop.drop_guard(),
            listener_endpoint: place,
            name: name.into(),
            proxy,
            token,
            rejected_connections: refused,
        })
    }

    /// Returns this server's definition, including its token. Return it from
    /// [`Client::mcp_servers`](acp::Client::mcp_servers).
    #[must_use]
    pub fn mcp_server(&self) -> McpServer {
        let mut args = self.proxy.args.clone();
        args.extend([
            "--connect".to_owned(),
            self.listener_endpoint.endpoint().to_string(),
        ]);
        let env = vec![EnvVariable::new(TOKEN_VARIABLE, self.token.reveal())];
        let stdio = McpServerStdio::new(&self.name, &self.proxy.program, args, env);
        McpServer::Stdio(stdio)
    }

    /// Returns how many connections were rejected because of a wrong token or because there were too many.
    #[must_use]
    pub fn rejected_connections(&self) -> u64 {
        self.rejected_connections.load(Ordering::Relaxed)
    }
}

/// State shared by all of a server's connections.
struct ServerContext<F> {
    handlers: F,
    token: LocalToken,
    rejected_connections: Arc<AtomicU64>,
    stop: CancellationToken,
}

impl<F, H> ServerContext<F>
where
    F: Fn() -> H + Send + Sync + 'static,
    H: ServerHandler,
{
    /// Accepts connections until the server is stopped.
    async fn accept(self: Arc<Self>, listener: Listener) {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        while let Some(accepted) = self.stop.run_until_cancelled(listener.accept()).await {
            match (accepted, Arc::clone(&room).try_acquire_owned()) {
                (Ok(stream), Ok(place)) => {
                    let server = Arc::clone(&self);
                    tokio::spawn(async move {
                        server.serve(stream).await;
                        drop(place);
                    });
                }
                (Ok(_), Err(_)) => self
                    .reject_connection(&format!("too many connections (limit: {MAX_CONNECTIONS})")),
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept a connection to the tool server");
                    self.stop
                        .run_until_cancelled(tokio::time::sleep(ACCEPT_RETRY_DELAY))
                        .await;
                }
            }
        }
    }

    /// Serves a connection until it ends or the server is stopped.
    async fn serve(&self, stream: LocalStream) {
        let admitted = tokio::select! {
            () = self.stop.cancelled() => return,
            admitted = accept_handshake(stream, &self.token) => admitted,
        };
        let authenticated = match admitted {
            Ok(authenticated) => authenticated,
            Err(stranger) => return self.reject_connection(&stranger),
        };
        let transport = AsyncRwTransport::new_server(authenticated.reader, authenticated.writer);
        let transport = BoundedTransport::for_server(transport, MAX_REQUESTS);
        let handler = (self.handlers)();
        match handler
            .serve_with_ct(transport, self.stop.child_token())
            .await
        {
            // It does not matter how the connection ended.
            Ok(running) => drop(running.waiting().await),
            Err(error) => {
                tracing::debug!(%error, "an agent connected but did not complete initialization")
            }
        }
    }

    /// Counts and logs a rejected connection.
    fn reject_connection(&self, reason: &dyn std::fmt::Display) {
        self.rejected_connections.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(%reason, "a connection to the tool server was rejected");
    }
}
