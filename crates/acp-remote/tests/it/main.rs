//! The remote transports, on real sockets.

mod back_pressure;
mod common;
mod cuts;
mod embedding;
mod endings;
mod hostile;
mod statuses;
mod turns;
