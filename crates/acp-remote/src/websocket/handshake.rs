//! Generates the keys of the WebSocket handshake, and computes the responses to them (RFC 6455, 4.2.2).

use tungstenite::handshake::{client, derive_accept_key};

/// Computes the accept key with which the server responds to a client's key.
pub(crate) fn accept_key(key: &[u8]) -> String {
    derive_accept_key(key)
}

/// Creates a random key for a client's handshake.
pub(crate) fn generate_key() -> String {
    client::generate_key()
}
