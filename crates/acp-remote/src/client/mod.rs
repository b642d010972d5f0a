//! Connects a client to an agent by URL.

mod connect;
mod dial;
mod error;
mod http;
mod options;
mod reconnect;
mod target;
mod tls;
mod websocket;

pub use connect::connect;
pub use error::ConnectError;
pub use options::{ConnectOptions, ConnectionStatus, HttpVersion, TokenStyle, Trust};
