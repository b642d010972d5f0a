//! A test server with its own socket.

use std::net::SocketAddr;

use acp_remote::Token;
use acp_remote::server::{
    AgentEndpoint, ConnectionInfo, ServeOptions, ServerConfig, TlsIdentity, serve,
};
use tokio::net::TcpListener;

use super::TestAgent;

/// Returns the token that all tests use.
pub(crate) fn test_token() -> Token {
    Token::new("a-token-for-tests").unwrap()
}

/// A server that runs until it is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) agent: TestAgent,
    /// The fingerprint of the certificate, if there is one.
    pub(crate) fingerprint: Option<String>,
    pub(crate) endpoint: Box<dyn ServedEndpoint>,
    shutdown: tokio_util::sync::CancellationToken,
}

/// An endpoint with any type of handler.
pub(crate) trait ServedEndpoint: Send + Sync {
    fn stats(&self) -> acp_remote::server::ServerStats;
    fn shut_down(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<H: acp_remote::server::ConnectionHandler> ServedEndpoint for AgentEndpoint<H> {
    fn stats(&self) -> acp_remote::server::ServerStats {
        AgentEndpoint::stats(self)
    }

    fn shut_down(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(AgentEndpoint::shut_down(
            self,
            std::time::Duration::from_secs(10),
        ))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl TestServer {
    /// Starts a server with a token.
    pub(crate) async fn start() -> Self {
        Self::start_with(ServerConfig::new().token(test_token()), ServeOptions::new()).await
    }

    /// Starts a server with TLS.
    pub(crate) async fn start_tls() -> Self {
        let (identity, ..) = TlsIdentity::self_signed(&["localhost".to_owned()]).unwrap();
        let fingerprint = identity.fingerprint_text();
        let options = ServeOptions::new().tls(identity.server_config().unwrap());
        let mut server = Self::start_with(ServerConfig::new().token(test_token()), options).await;
        server.fingerprint = Some(fingerprint);
        server
    }

    pub(crate) async fn start_with(config: ServerConfig, options: ServeOptions) -> Self {
        let agent = TestAgent::default();
        let served = agent.clone();
        let handler = move |_: ConnectionInfo, transport: acp::Transport| {
            let agent = served.clone();
            async move {
                // The client learns of failures by other means.
                let _ = acp::agent::serve(transport, agent).await;
            }
        };
        Self::start_with_handler(config, options, agent, handler).await
    }

    pub(crate) async fn start_with_handler(
        config: ServerConfig,
        options: ServeOptions,
        agent: TestAgent,
        handler: impl acp_remote::server::ConnectionHandler,
    ) -> Self {
        let endpoint = AgentEndpoint::new(config, handler);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = options.shutdown.clone();
        tokio::spawn(serve(listener, endpoint.clone(), options));
        Self {
            address,
            agent,
            fingerprint: None,
            endpoint: Box::new(endpoint),
            shutdown,
        }
    }

    /// Returns the URL of the endpoint.
    pub(crate) fn url(&self, scheme: &str) -> String {
        server_url(scheme, self.address)
    }
}

pub(crate) fn server_url(scheme: &str, address: SocketAddr) -> String {
    format!("{scheme}://localhost:{}/acp", address.port())
}
