//! Compares how this crate and the official one read and write every message. The official schema must accept what we
//! write, and each crate must read what the other writes without loss.
//!
//! The official crate is built with the unstable features that we support. `v1.rs` and `v2.rs` say what is left out of
//! the comparison, and why.

#[macro_use]
mod check;
mod envelope;
mod samples;
mod v1;
mod v2;
