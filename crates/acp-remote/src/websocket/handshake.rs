//! The keys of the WebSocket handshake (RFC 6455, 4.2.2).

use tungstenite::handshake::{client::generate_key, derive_accept_key};

/// Computes the server's answer to a client's key.
pub(crate) fn accept_key(key: &[u8]) -> String {
    derive_accept_key(key)
}

/// Creates a random key for a client's handshake.
pub(crate) fn new_key() -> String {
    generate_key()
}
