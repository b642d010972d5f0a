//! Implements the server side, which serves agents at an endpoint.
//!
//! [`AgentEndpoint`] is the service, and [`serve`] accepts sockets for it. With the cargo feature `axum`, `router`
//! mounts it in a router. To serve several agents, create an endpoint for each and mount them on different paths.

mod access;
mod body;
pub(crate) mod config;
mod endpoint;
mod handler;
mod http;
mod listener;
mod registry;
mod responses;
#[cfg(feature = "axum")]
mod router;
mod stats;
mod tls;
mod user;
mod websocket;

pub use body::ResponseBody;
pub use config::{AllowedHosts, AllowedOrigins, ServerConfig, ServerLimits};
pub use endpoint::AgentEndpoint;
pub use handler::{ConnectionHandler, ConnectionInfo, TransportKind};
pub use listener::{PeerAddress, ServeOptions, serve, serve_stream};
#[cfg(feature = "axum")]
pub use router::router;
pub use rustls::ServerConfig as TlsConfig;
pub use stats::ServerStats;
pub use tls::{TlsError, TlsIdentity};
pub use user::{TokenUser, UserTokens};
