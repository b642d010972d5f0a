//! The tests of this crate in one program, with one module per subject.

// Clippy recognizes only test functions as tests.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[cfg(unix)]
mod bridge;
mod common;
#[cfg(unix)]
mod conformance;
#[cfg(unix)]
mod mcp_everything;
#[cfg(unix)]
mod official_rust;
#[cfg(unix)]
mod official_rust_v2;
#[cfg(unix)]
mod official_typescript;
#[cfg(unix)]
mod remote;
