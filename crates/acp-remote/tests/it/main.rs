//! The remote transports, on real sockets.

mod common;
mod cuts;
mod turns;
