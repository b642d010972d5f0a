//! The keys of the handshake (RFC 6455, 4.2.2).

use tungstenite::handshake::{client, derive_accept_key};

/// Returns the answer to a client's key.
pub(crate) fn accept_key(key: &[u8]) -> String {
    derive_accept_key(key)
}

/// Returns a random key for a client.
pub(crate) fn generate_key() -> String {
    client::generate_key()
}
