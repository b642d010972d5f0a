//! Checks for servers and clients of the remote transport.
//!
//! The checks are about the transport, not about the protocol that it carries: that is the same as over stdio, and is
//! checked there.

pub(crate) mod client;
pub(crate) mod client_harness;
pub(crate) mod client_target;
pub(crate) mod detect;
pub(crate) mod http;
pub(crate) mod run;
pub(crate) mod scripted_server;
pub(crate) mod server;
pub(crate) mod server_harness;
pub(crate) mod server_sessions;
pub(crate) mod server_target;
pub(crate) mod sse;
pub(crate) mod websocket;
pub(crate) mod websocket_peer;
