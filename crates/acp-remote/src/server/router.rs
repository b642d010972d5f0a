//! Provides the endpoint as an axum router.

use super::config::ServerConfig;
use super::endpoint::AgentEndpoint;
use super::handler::ConnectionHandler;

/// Creates a router that serves an endpoint at [`ServerConfig::path`]. To shut the endpoint down, or to read its
/// statistics, create the [`AgentEndpoint`] yourself and mount it with `Router::route_service`.
pub fn router(config: ServerConfig, handler: impl ConnectionHandler) -> axum::Router {
    let path = config.path.clone();
    axum::Router::new().route_service(&path, AgentEndpoint::new(config, handler))
}
