//! The [Agent Client Protocol](https://agentclientprotocol.com) for Rust: both sides of it.
//!
//! - An **agent** implements [`Agent`] and is served with [`agent::serve_stdio`].
//! - A **client** implements [`Client`], connects with [`client::connect`], and renders the
//!   [`Thread`] of each session.
//! - Both are about the same on every version of the protocol; the typed messages are in [`wire`].
//!
//! The engine between them promises three things. What arrives in order is seen in order. What is
//! queued is bounded in bytes: a peer that stops reading makes a sender wait, it does not make
//! memory grow. When a connection ends, every request that waits fails with one clear error, and no
//! task stays behind.
//!
//! The [`guide`] explains all of it, chapter by chapter: [agents](guide::agents),
//! [clients](guide::clients), [sessions](guide::sessions), [cancellation](guide::cancellation),
//! [ordering and back-pressure](guide::ordering), [errors](guide::errors), [testing](guide::testing),
//! [versions](guide::versions), [extensions](guide::extensions), and [whole programs](guide::examples).
//!
//! A connection is a handle and a [`Driver`], a future that someone has to poll. Nothing is spawned unasked, and no
//! runtime of a kind is needed; [`Transport::from_futures`] takes the streams of other executors than tokio.
//!
//! # Features
//!
//! - `stdio`, on by default: [`transport::stdio`] and [`agent::serve_stdio`], within a tokio runtime.
//! - `process`, on by default: [`Transport::spawn`], an agent as a child process that ends with its connection, within a
//!   tokio runtime.
//! - `unstable`, off by default: methods and updates that are not part of the protocol yet, such as `session/fork` and
//!   subagents. They change with what upstream does, also in a minor release: decision 17.
//! - `unstable-v2`, off by default: the draft of version 2 ([`Options::draft_version_2`]), under the same condition.
//! - `bridge`, off by default: [`bridge`], an agent of one version of the protocol behind a client of the other, within a
//!   tokio runtime. With it comes `unstable-v2`.
//! - `testing`, off by default: [`testing`], a connection in memory and a scripted peer, for
//!   `dev-dependencies`.

// The lints see everything with all features.
#![cfg_attr(
    not(all(feature = "unstable", feature = "unstable-v2")),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "what is behind the features is compiled, and then not reached"
    )
)]

#[macro_use]
mod object;

#[cfg(feature = "__internals")]
#[doc(hidden)]
#[path = "internals.rs"]
pub mod __internals;
pub mod agent;
#[cfg(feature = "bridge")]
pub mod bridge;
mod capabilities;
pub mod client;
mod connection;
mod dialect;
mod error;
mod extension;
pub mod guide;
mod lru_map;
mod options;
mod pending_request;
mod session_setup;
#[cfg(any(feature = "testing", doc))]
pub mod testing;
pub mod thread;
pub mod transport;
pub mod update;
mod utf8;

pub use acp_wire as wire;
#[cfg(feature = "unstable-v2")]
pub use acp_wire::v2;
pub use acp_wire::{jsonrpc, v1};
pub use agent::Agent;
pub use client::Client;
pub use connection::{Connection, Driver, Limits, Noise};
pub use error::{CloseReason, Error, Result};
pub use options::Options;
pub use thread::{Thread, ThreadHandle};
pub use transport::Transport;
pub use update::Update;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
