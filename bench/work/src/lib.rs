//! The benchmark's tasks for agents and clients, and how their results are checked. `../README.md` describes a peer.

mod control;
mod task;

pub use control::{ClientCommand, ClientReport, gaps, nanoseconds};
pub use task::{BenchTask, BenchText, SessionProgress};
