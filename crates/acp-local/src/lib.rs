//! Private connections between two programs run by the same user on the same machine.
//!
//! One program [listens](Listener) where no other user has access. It passes the [`Endpoint`] and a [`LocalToken`] to
//! the other program privately, for example in an environment variable. The other program
//! [connects](Endpoint::connect). Before anything else is sent, each side proves that it knows the token, with
//! [`accept_handshake`] and [`send_handshake`]. Agents reach a client's tools this way (`acp-mcp`), and a client under
//! test reaches its check (`acp-check`).
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
//! // The other program needs these two strings.
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
