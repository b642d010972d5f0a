//! Implements the [Agent Client Protocol](https://agentclientprotocol.com) over the network, using WebSocket or
//! streamable HTTP, as a server and as a client.
//!
//! The [`server`] passes an [`acp::Transport`] for each connection to a handler. The handler serves an agent on the
//! transport, or passes its bytes to a process:
//!
//! ```no_run
//! # async fn example(agent: impl acp::Agent + Clone) -> std::io::Result<()> {
//! use acp_remote::Token;
//! use acp_remote::server::{ConnectionInfo, AgentEndpoint, ServeOptions, ServerConfig, serve};
//!
//! let token = Token::random();
//! let endpoint = AgentEndpoint::new(
//!     ServerConfig::new().token(token),
//!     move |_info: ConnectionInfo, transport| {
//!         let agent = agent.clone();
//!         async move {
//!             let _ = acp::agent::serve(transport, agent).await;
//!         }
//!     },
//! );
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! serve(listener, endpoint, ServeOptions::new()).await
//! # }
//! ```
//!
//! The [`client`] connects to a URL, and returns an [`acp::Transport`]:
//!
//! ```no_run
//! # use acp::testing::NoopClient;
//! # async fn example(token: acp_remote::Token) -> Result<(), Box<dyn std::error::Error>> {
//! use acp_remote::client::{ConnectOptions, connect};
//!
//! let options = ConnectOptions::new().token(token);
//! let transport = connect("ws://127.0.0.1:8080/acp", options).await?;
//! let (handshake, driver) = acp::client::connect(transport, NoopClient);
//! # let _ = (handshake, driver);
//! # Ok(())
//! # }
//! ```
//!
//! Server and client give the same guarantees as a pipe. Messages arrive in order. The size of buffers is limited, and
//! a peer that does not read makes the other side wait. Between a client and a server of this crate, a connection that
//! is cut is restored without loss. `docs/decisions/0019-remote-transports.md` explains how this works, and what was
//! decided where the draft is silent.
//!
//! This crate requires a tokio runtime with I/O and time enabled.
//!
//! # Features
//!
//! - `axum`, off by default: `server::router`, the endpoint as an axum router.
//! - `self-signed`, off by default: `server::TlsIdentity::self_signed`, which creates a certificate.

pub mod client;
mod closing;
mod header;
mod message;
mod pipe;
pub mod server;
mod socket;
mod sse;
mod token;
mod websocket;

pub use closing::CloseStatus;
pub use token::{InvalidToken, Token};
