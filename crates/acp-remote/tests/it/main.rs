//! The remote transports, on real sockets.

mod common;
mod turns;
