//! Comparison of every message with the official crate: its schema accepts what we write, it can read that, and we can
//! read what it writes, without any loss.
//!
//! The official crate is built with the unstable features that we support. `v1.rs` and `v2.rs` say what is left out of
//! the comparison, and why.

#[macro_use]
mod check;
mod envelope;
mod samples;
mod v1;
mod v2;
