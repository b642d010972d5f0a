//! The endpoint: the service that answers requests to `/acp`.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tower_service::Service;

use super::body::ResponseBody;
use super::config::ServerConfig;
use super::handler::{ConnectionInfo, Handler};
use super::stats::ServerStats;

/// An endpoint that agents are served on. Clones are cheap and refer to the same endpoint.
///
/// It is a service of tower and hyper: pass it to [`serve`](super::serve), mount it in a router of axum
/// (`Router::route_service`, or [`router`](super::router)), or call it from any server of hyper. The server must not
/// stand between it and upgrades.
pub struct Endpoint<H> {
    inner: Arc<Inner<H>>,
}

struct Inner<H> {
    config: ServerConfig,
    handler: H,
}

impl<H> Clone for Endpoint<H> {
    fn clone(&self) -> Self {
        let inner = Arc::clone(&self.inner);
        Self { inner }
    }
}

impl<H> fmt::Debug for Endpoint<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl<H: Handler> Endpoint<H> {
    /// Creates an endpoint.
    pub fn new(config: ServerConfig, handler: H) -> Self {
        let inner = Arc::new(Inner { config, handler });
        Self { inner }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    /// Returns the connections that exist.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        Vec::new()
    }

    /// Returns counts since the endpoint was created.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        ServerStats::default()
    }

    /// Shuts the endpoint down: rejects new connections (503), ends the input of all transports, waits up to `patience`
    /// for the handlers to return, then drops them. Clients are told the reason with the close code 1001.
    pub async fn shut_down(&self, patience: Duration) {
        let _ = patience;
    }

    async fn answer<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: fmt::Display,
    {
        let _ = (request, &self.inner.handler);
        let mut response = Response::new(ResponseBody::from("not implemented\n".to_owned()));
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        response
    }
}

impl<H, B> Service<Request<B>> for Endpoint<H>
where
    H: Handler,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.answer(request).await) })
    }
}
