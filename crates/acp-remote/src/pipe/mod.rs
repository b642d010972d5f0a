//! The two directions of a connection, between the transport above and the network below.

mod incoming;
mod lines;
mod log;
mod outgoing;
mod transport;

pub(crate) use incoming::Incoming;
pub(crate) use lines::LineFilter;
pub(crate) use log::{Log, OutOfWindow, Retention};
pub(crate) use outgoing::Outgoing;
pub(crate) use transport::{Gone, Sink, transport};
