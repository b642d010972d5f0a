//! Implements WebSocket (RFC 6455) for clients and servers: frames, and the loop that moves messages over one socket.

mod decode;
mod encode;
mod handshake;
mod link;
mod mask;

pub(crate) use handshake::{accept_key, generate_key};
pub(crate) use link::{Link, LinkEnd, LinkOptions, LinkRole, SocketPipes, replace_line_feeds};
