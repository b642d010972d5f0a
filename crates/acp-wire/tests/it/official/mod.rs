//! Every message against the official crate of the protocol's types: what we write is valid by their
//! schema and they read it, what they write we read, and nothing is lost on either way.
//!
//! The official crate has its unstable features on for what we have, too. What is left out of the
//! comparison is said in `v1.rs` and `v2.rs`, with the reason.

#[macro_use]
mod check;
mod envelope;
mod samples;
mod v1;
mod v2;
