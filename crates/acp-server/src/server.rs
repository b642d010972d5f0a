//! Defines the routes of a server: agents, health and metrics.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp::Transport;
use acp_remote::CloseStatus;
use acp_remote::server::{
    AgentEndpoint, ConnectionHandler, ConnectionInfo, ServeOptions, ServerConfig, TokenUser,
};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::join_all;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::live::{LiveProcess, take_over_sessions};
use crate::metrics::{AgentCounters, AgentMetrics, metrics_text};
use crate::node::{NodeOptions, StoreNode};
use crate::page::{PageState, page_router};
use crate::served_agent::{AgentRunner, ServedAgent};
use crate::store::{LiveStore, LiveStoreError};
use crate::usage::ServerUsage;
use crate::users::Scope;

/// The header with which a request refers to an existing connection.
const CONNECTION_ID: &str = "acp-connection-id";

/// The content type of metrics in Prometheus's text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long clients may take to read the remaining messages when the server shuts down.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that offers one or more agents.
///
/// | path | |
/// |---|---|
/// | `/acp/NAME` | an agent |
/// | `/acp` | the agent, if there is only one |
/// | `/` | a page that shows live sessions in a browser, if there are live agents |
/// | `/health` | 200 `ok`, or 503 while the server shuts down; needs no token |
/// | `/ready` | as `/health`, and 503 while the store of live sessions cannot be reached; needs no token |
/// | `/metrics` | counters, for Prometheus; needs the token, if there is one |
#[derive(Clone)]
pub struct AgentServer {
    inner: Arc<Inner>,
}

struct Inner {
    agents: Vec<Endpoint>,
    options: ServeOptions,
    draining: CancellationToken,
    /// The connections of all agents.
    connections: TaskTracker,
    usage: ServerUsage,
    /// The page, if the agents are live.
    page: Option<Arc<PageState>>,
}

/// An agent's name, counters and endpoint.
struct Endpoint {
    name: String,
    runner: Arc<AgentRunner>,
    counters: Arc<AgentCounters>,
    endpoint: AgentEndpoint<AgentHandler>,
}

/// The handler of an agent's connections.
struct AgentHandler(Arc<AgentRunner>);

impl ConnectionHandler for AgentHandler {
    async fn handle(&self, info: ConnectionInfo, transport: Transport) -> CloseStatus {
        let runner = Arc::clone(&self.0);
        let span = tracing::info_span!("connection", id = info.id, agent = runner.agent.name);
        let peer = info.peer.map(|peer| peer.to_string());
        span.in_scope(|| {
            let user = info.user.name().map(|name| &**name);
            tracing::info!(transport = ?info.kind, http = ?info.version, peer, user, "connection opened");
        });
        runner.handle(span, info.user, transport).await
    }
}

/// Options for shutting down a server.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DrainOptions {
    /// How long requests that are in flight may take to finish.
    pub timeout: Duration,
}

impl DrainOptions {
    /// Creates options with a timeout.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { timeout }
    }
}

impl fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.inner.agents.iter().map(|agent| &agent.name);
        f.debug_list().entries(names).finish()
    }
}

impl AgentServer {
    /// Creates a server. The configuration applies to each agent, but its `path` is ignored.
    pub fn new(config: ServerConfig, agents: impl IntoIterator<Item = ServedAgent>) -> Self {
        Self::with_page_scheme(config, agents, false)
    }

    /// Creates a server that is reached over TLS, whoever provides it.
    pub fn new_secure(config: ServerConfig, agents: impl IntoIterator<Item = ServedAgent>) -> Self {
        Self::with_page_scheme(config, agents, true)
    }

    fn with_page_scheme(
        config: ServerConfig,
        agents: impl IntoIterator<Item = ServedAgent>,
        is_secure: bool,
    ) -> Self {
        let draining = CancellationToken::new();
        let connections = TaskTracker::new();
        let usage = ServerUsage::default();
        let endpoint = |agent: ServedAgent| {
            let name = agent.name.clone();
            let counters = Arc::<AgentCounters>::default();
            let runner = Arc::new(AgentRunner {
                agent,
                live: LiveProcess::default(),
                counters: Arc::clone(&counters),
                max_message: config.limits.message,
                max_connections: config.limits.connections,
                draining: draining.clone(),
                connections: connections.clone(),
                usage: usage.clone(),
                node: OnceLock::new(),
            });
            Endpoint {
                name,
                runner: Arc::clone(&runner),
                counters,
                endpoint: AgentEndpoint::new(config.clone(), AgentHandler(runner)),
            }
        };
        let agents: Vec<Endpoint> = agents.into_iter().map(endpoint).collect();
        let live = agents.iter().filter(|agent| agent.runner.agent.is_live());
        let live: Vec<Arc<AgentRunner>> = live.map(|agent| Arc::clone(&agent.runner)).collect();
        let page = (!live.is_empty()).then(|| Arc::new(PageState::new(&config, is_secure, live)));
        let inner = Inner {
            agents,
            page,
            options: ServeOptions::new(),
            draining: draining.clone(),
            connections: connections.clone(),
            usage: usage.clone(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Stores the sessions of live agents, so that they survive this server, and other servers can continue with them.
    /// Must be called once, before the server has clients. The returned future keeps the server's lease, and takes over
    /// sessions of servers that have stopped. It completes when the server has been [drained](Self::drain).
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn join_store(
        &self,
        store: Arc<dyn LiveStore>,
        options: NodeOptions,
    ) -> Result<impl Future<Output = ()> + Send + 'static, LiveStoreError> {
        let node = Arc::new(StoreNode::join(store, options).await?);
        let mut takers = Vec::new();
        for agent in &self.inner.agents {
            if agent.runner.agent.is_live() {
                // A second call has no effect.
                let _ = agent.runner.node.set(Arc::clone(&node));
                takers.push(take_over_sessions(Arc::clone(&agent.runner)));
            }
        }
        let ended = self.inner.options.shutdown.clone();
        Ok(async move {
            let ((), _) = tokio::join!(node.keep_lease(&ended), join_all(takers));
            node.leave().await;
        })
    }

    /// Returns the paths of the agents, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        match self.inner.agents.as_slice() {
            [_] => vec!["/acp".to_owned()],
            agents => agents
                .iter()
                .map(|agent| format!("/acp/{}", agent.name))
                .collect(),
        }
    }

    /// Returns the path with which a browser can sign in to the page, once, within ten minutes. Returns `None` if there
    /// is no page, and `/` if nobody has to sign in.
    #[must_use]
    pub fn page_path(&self) -> Option<String> {
        let page = self.inner.page.as_ref()?;
        Some(match page.sign_in.new_code() {
            Some(code) => format!("/sign-in?code={code}"),
            None => "/".to_owned(),
        })
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        let stats = self.inner.agents.iter().map(|agent| agent.endpoint.stats());
        stats.map(|stats| stats.open_connections).sum()
    }

    /// Returns the routes, to mount them in another server.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for agent in &self.inner.agents {
            let path = format!("/acp/{}", agent.name);
            router = router.route_service(&path, agent.endpoint.clone());
        }
        if let [agent] = self.inner.agents.as_slice() {
            router = router.route_service("/acp", agent.endpoint.clone());
        }
        let this = self.clone();
        let agents = router.route_layer(middleware::from_fn(move |request, next| {
            let this = this.clone();
            async move { this.reject_new_connections(request, next).await }
        }));
        let (health, ready, metrics) = (self.clone(), self.clone(), self.clone());
        let agents = match &self.inner.page {
            Some(page) => agents.merge(page_router(Arc::clone(page))),
            None => agents,
        };
        agents
            .route("/health", get(async move || health.health()))
            .route("/ready", get(async move || ready.ready()))
            .route(
                "/metrics",
                get(async move |request: Request| metrics.metrics(&request)),
            )
            .fallback(async || {
                (
                    StatusCode::NOT_FOUND,
                    "not found; agents are served at /acp\n",
                )
            })
    }

    /// Serves the agents on a listener, with TLS if it is configured. Returns when [`drain`](Self::drain) has
    /// completed.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Option<Arc<acp_remote::server::TlsConfig>>,
    ) -> io::Result<()> {
        let options = self.inner.options.clone().tls(tls);
        acp_remote::server::serve(listener, self.router(), options).await
    }

    /// Serves an agent on a Unix-domain socket, as lines of text. Only processes of the same user can connect. Returns
    /// when [`drain`](Self::drain) has completed, or immediately if there is no agent with this name.
    #[cfg(unix)]
    pub async fn serve_unix(&self, agent: &str, listener: &tokio::net::UnixListener) {
        let found = self.inner.agents.iter().find(|found| found.name == agent);
        if let Some(agent) = found {
            let ended = &self.inner.options.shutdown;
            crate::unix_socket::serve_unix(listener, &agent.runner, ended).await;
        }
    }

    /// Returns `true` if a client is connected or an agent is running.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.inner.usage.is_used()
    }

    /// Waits until no client is connected and no agent is running.
    pub async fn wait_until_unused(&self) {
        self.inner.usage.wait_until_unused().await;
    }

    /// Waits until a client is connected or an agent is running.
    pub async fn wait_until_used(&self) {
        self.inner.usage.wait_until_used().await;
    }

    /// Shuts the server down. Rejects new connections, and closes each existing one when it has no request in flight,
    /// or at the latest after the timeout. Each agent ends with its connection.
    pub async fn drain(&self, options: DrainOptions) {
        self.inner.draining.cancel();
        self.inner.connections.close();
        let _ = timeout(options.timeout, self.inner.connections.wait()).await;
        let agents = self.inner.agents.iter();
        join_all(agents.map(|agent| agent.endpoint.shut_down(CLOSE_TIMEOUT))).await;
        self.inner.options.shutdown.cancel();
    }

    /// Rejects requests that would open a connection while the server is shutting down.
    async fn reject_new_connections(&self, request: Request, next: Next) -> Response {
        if self.inner.draining.is_cancelled() && !request.headers().contains_key(CONNECTION_ID) {
            let reason = "the server is shutting down\n";
            return (StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
        }
        next.run(request).await
    }

    fn health(&self) -> Response {
        match self.inner.draining.is_cancelled() {
            true => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response(),
            false => "ok\n".into_response(),
        }
    }

    /// Tells whether the server can take clients.
    fn ready(&self) -> Response {
        let mut agents = self.inner.agents.iter();
        let has_lease = agents.all(|agent| {
            let node = agent.runner.node();
            node.is_none_or(|node| node.lease().is_some())
        });
        match has_lease {
            true => self.health(),
            false => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the store cannot be reached\n",
            )
                .into_response(),
        }
    }

    fn metrics(&self, request: &Request) -> Response {
        let agents = &self.inner.agents;
        // The access is the same for all agents.
        if let Some(agent) = agents.first() {
            let user = match agent.endpoint.check_access(request) {
                Ok(user) => user,
                Err(rejection) => return rejection.map(axum::body::Body::new),
            };
            let named = |name| agent.runner.agent.users.as_ref()?.named(name);
            if let TokenUser::Named(name) = user
                && !named(&name).is_some_and(|user| user.can(Scope::Administer))
            {
                let reason = "permission denied: metrics need the scope `administer`\n";
                return (StatusCode::FORBIDDEN, reason).into_response();
            }
        }
        let figures: Vec<AgentMetrics<'_>> = agents
            .iter()
            .map(|agent| AgentMetrics {
                name: &agent.name,
                counters: &agent.counters,
                stats: agent.endpoint.stats(),
            })
            .collect();
        ([(CONTENT_TYPE, METRICS_TYPE)], metrics_text(&figures)).into_response()
    }
}
