//! Implements the two directions of a connection, between the library and the network.

mod incoming;
mod lines;
mod log;
mod outgoing;
mod transport;

pub(crate) use incoming::IncomingPipe;
pub(crate) use lines::LineFilter;
pub(crate) use log::{OutOfWindow, Retention, SentLog};
pub(crate) use outgoing::OutgoingPipe;
pub(crate) use transport::{DroppedHalves, MessageSink, pipe_transport};
