//! The remote transports, on real sockets.

mod common;
mod cuts;
mod statuses;
mod turns;
