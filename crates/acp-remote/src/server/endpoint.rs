//! Defines the endpoint, the service that responds to requests to `/acp`.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, COOKIE, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use http::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_service::Service;

use super::access::strip_token;
use super::body::ResponseBody;
use super::config::ServerConfig;
use super::handler::{ConnectionHandler, ConnectionInfo, TransportKind};
use super::http::{PERMIT_BYTES, delete_connection, get, handle_post};
use super::listener::PeerAddress;
use super::registry::{Registry, UNKNOWN_CONNECTION, increment};
use super::responses::text_response;
use super::stats::ServerStats;
use super::user::TokenUser;
use super::websocket::{is_upgrade, upgrade};
use crate::header;

/// An endpoint that serves agents over WebSocket and HTTP. Clones are cheap and refer to the same endpoint.
///
/// It is a service for tower and hyper. Pass it to [`serve`](super::serve), mount it in an axum router
/// (`Router::route_service`, or `router`), or call it from any hyper server that supports upgrades.
pub struct AgentEndpoint<H> {
    inner: Arc<EndpointInner<H>>,
}

struct EndpointInner<H> {
    config: ServerConfig,
    handler: Arc<H>,
    registry: Arc<Registry>,
    /// The memory still available for the bodies of POST requests, in units of [`PERMIT_BYTES`].
    bodies: Semaphore,
}

impl<H> Clone for AgentEndpoint<H> {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        Self { inner }
    }
}

impl<H> fmt::Debug for AgentEndpoint<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentEndpoint").finish_non_exhaustive()
    }
}

impl<H: ConnectionHandler> AgentEndpoint<H> {
    /// Creates an endpoint that passes each connection to `handler`.
    pub fn new(config: ServerConfig, handler: H) -> Self {
        let bodies = config
            .limits
            .bodies
            .max(config.limits.message)
            .div_ceil(PERMIT_BYTES)
            + 1;
        let inner = Arc::new(EndpointInner {
            bodies: Semaphore::new(bodies.min(Semaphore::MAX_PERMITS)),
            config,
            handler: Arc::new(handler),
            registry: Arc::new(Registry::new()),
        });
        Self { inner }
    }

    /// Returns the configuration of the endpoint.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    /// Returns information about each open connection.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        self.inner.registry.infos()
    }

    /// Returns counts of connections, requests and bytes since the endpoint was created.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.inner.registry.stats()
    }

    /// Shuts down the endpoint. Rejects new connections (503), ends the input of all transports, waits up to `patience`
    /// for the handlers to return, and then drops them. Clients get the close code 1001.
    pub async fn shut_down(&self, patience: Duration) {
        let registry = &self.inner.registry;
        registry.draining.cancel();
        registry.tasks.close();
        if timeout(patience, registry.tasks.wait()).await.is_err() {
            registry.killed.cancel();
            registry.tasks.wait().await;
        }
    }

    /// Checks the host, the origin and the token of a request, as the endpoint itself does. Returns who has sent it. Use
    /// this for other routes that need the same protection.
    ///
    /// # Errors
    /// The request is rejected, with this response.
    // A response is large, and passed on as it is.
    #[allow(clippy::result_large_err)]
    pub fn check_access<B>(
        &self,
        request: &Request<B>,
    ) -> Result<TokenUser, Response<ResponseBody>> {
        let checked = self.inner.config.check_access(request);
        if checked.is_err() {
            increment(&self.inner.registry.counters.refused);
        }
        checked
    }

    async fn respond<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: fmt::Display + Send,
    {
        let EndpointInner {
            config,
            handler,
            registry,
            bodies,
        } = &*self.inner;
        let user = match self.check_access(&request) {
            Ok(user) => user,
            Err(rejection) => return rejection,
        };
        if let Some(id) = request.headers().get(header::CONNECTION_ID)
            && !registry.may_use(id, &user)
        {
            return text_response(StatusCode::NOT_FOUND, UNKNOWN_CONNECTION);
        }
        let is_upgrade = is_upgrade(&request);
        let is_new = !request.headers().contains_key(header::CONNECTION_ID);
        if is_new && registry.draining.is_cancelled() {
            return text_response(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is shutting down",
            );
        }
        if is_upgrade {
            let info = connection_info(&request, TransportKind::WebSocket, user);
            return upgrade(config, registry, handler, info, request).await;
        }
        match *request.method() {
            Method::POST => {
                let info = connection_info(&request, TransportKind::Http, user);
                handle_post(config, registry, bodies, handler, info, request).await
            }
            Method::GET => get(config, registry, request.headers()),
            Method::DELETE => delete_connection(registry, request.headers()),
            _ => {
                let reason = "only POST, GET and DELETE are supported";
                let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, reason);
                let allowed = HeaderValue::from_static("POST, GET, DELETE");
                response.headers_mut().insert(ALLOW, allowed);
                response
            }
        }
    }
}

/// Describes the connection that a request is about to open.
fn connection_info<B>(
    request: &Request<B>,
    kind: TransportKind,
    user: TokenUser,
) -> ConnectionInfo {
    let mut headers = request.headers().clone();
    for secret in [
        AUTHORIZATION,
        COOKIE,
        header::SECRET_KEY,
        SEC_WEBSOCKET_PROTOCOL,
    ] {
        headers.remove(secret);
    }
    ConnectionInfo {
        id: uuid::Uuid::new_v4().to_string(),
        kind,
        version: request.version(),
        peer: request.extensions().get::<PeerAddress>().map(|peer| peer.0),
        uri: strip_token(request.uri()),
        headers,
        user,
    }
}

impl<H, B> Service<Request<B>> for AgentEndpoint<H>
where
    H: ConnectionHandler,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display + Send,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.respond(request).await) })
    }
}
