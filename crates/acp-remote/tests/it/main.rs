//! The remote transports, on real sockets.

mod back_pressure;
mod common;
mod cuts;
mod endings;
mod statuses;
mod turns;
