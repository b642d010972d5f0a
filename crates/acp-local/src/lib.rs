//! How two programs of one user on one machine find each other, and nobody else gets between them.
//!
//! One [listens](Listener) where no other user gets at, and tells the other the [`Endpoint`] and a [`LocalToken`] by a way
//! of its own. The other [connects](Endpoint::connect); then each proves that it knows the token, by [`accept_handshake`] and
//! [`send_handshake`], before anything else is said. It is how agents reach the tools of a client (`acp-mcp`), and how a
//! client that is checked reaches its check (`acp-check`).
//!
//! ```
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use acp_local::{Listener, LocalToken, accept_handshake, send_handshake};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (listener, address) = Listener::bind()?;
//! let token = LocalToken::random();
//!
//! // What the other program gets.
//! let (endpoint, secret) = (address.endpoint().to_string(), token.reveal());
//! let other = tokio::spawn(async move {
//!     let (endpoint, token) = (endpoint.parse::<acp_local::Endpoint>()?, secret.parse()?);
//!     let mut connection = send_handshake(endpoint.connect().await?, &token).await?;
//!     connection.writer.write_all(b"hello").await?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let mut connection = accept_handshake(listener.accept().await?, &token).await?;
//! let mut text = String::new();
//! connection.reader.read_to_string(&mut text).await?;
//! assert_eq!(text, "hello");
//! # other.await?.map_err(|e| e.to_string())?;
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod handshake;
mod listener;
mod token;

pub use endpoint::{Endpoint, LocalReader, LocalStream, LocalWriter, ParseEndpointError};
pub use handshake::{AuthenticatedConnection, HandshakeError, accept_handshake, send_handshake};
pub use listener::{Listener, ListenerEndpoint};
pub use token::{LocalToken, ParseTokenError};
