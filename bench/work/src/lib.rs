//! The work of the benchmark: what agents and clients are told to do, and how it is checked. `../README.md`
//! says what a peer is.

mod control;
mod task;

pub use control::{ClientCommand, ClientReport, gaps, nanoseconds};
pub use task::{BenchTask, BenchText, SessionProgress};
