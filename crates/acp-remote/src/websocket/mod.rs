//! WebSocket (RFC 6455): frames, and the loop that moves messages over one socket, for clients and servers.

mod decode;
mod encode;
mod handshake;
mod link;
mod mask;

pub(crate) use handshake::{accept_key, generate_key};
pub(crate) use link::{Link, LinkEnd, LinkOptions, LinkRole, SocketPipes, replace_line_feeds};
