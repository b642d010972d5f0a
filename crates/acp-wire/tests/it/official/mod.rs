//! Comparison of every message with the official crate. Its schema accepts what we write, and each crate reads what the
//! other one writes, without any loss.
//!
//! The official crate is built with the unstable features that we support. `v1.rs` and `v2.rs` say what is left out of
//! the comparison, and why.

#[macro_use]
mod check;
mod envelope;
mod samples;
mod v1;
mod v2;
