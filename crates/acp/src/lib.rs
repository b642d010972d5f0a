//! The [Agent Client Protocol](https://agentclientprotocol.com) for agents and clients in Rust.
//!
//! - An **agent** implements [`Agent`] and is served with [`agent::serve_stdio`].
//! - A **client** implements [`Client`], connects with [`client::connect`], and renders the
//!   [`Thread`] of each session.
//! - Agents and clients work with every version of the protocol. The typed messages are in [`wire`].
//!
//! The library guarantees three things. Messages are handled in the order in which they arrive. The size of queues is
//! limited: when a peer stops reading, senders wait and memory does not grow. When a connection ends, every pending
//! request fails with a clear error, and no task is left running.
//!
//! The [`guide`] explains all of this, chapter by chapter: [agents](guide::agents),
//! [clients](guide::clients), [sessions](guide::sessions), [cancellation](guide::cancellation),
//! [ordering and back-pressure](guide::ordering), [errors](guide::errors), [testing](guide::testing),
//! [versions](guide::versions), [extensions](guide::extensions), and [whole programs](guide::examples).
//!
//! A connection is a handle and a [`Driver`], a future that you poll. The library spawns nothing on its own and needs
//! no particular runtime. [`Transport::from_futures`] accepts the streams of executors other than tokio.
//!
//! # Features
//!
//! - `stdio`, on by default: [`transport::stdio`] and [`agent::serve_stdio`]. Requires a tokio runtime.
//! - `process`, on by default: [`Transport::spawn`], which runs an agent as a child process that ends with its
//!   connection. Requires a tokio runtime.
//! - `unstable`, off by default: methods and updates that are not part of the protocol yet, such as `session/fork` and
//!   subagents. They follow the specification's drafts and can change in a minor release:
//!   `docs/decisions/0017-unstable-methods.md`.
//! - `unstable-v2`, off by default: the draft of version 2 ([`Options::draft_version_2`]). It can change in the same
//!   way.
//! - `bridge`, off by default: [`bridge`], which connects an agent that speaks one protocol version to a client that
//!   speaks the other. Enables `unstable-v2`. Requires a tokio runtime.
//! - `testing`, off by default: [`testing`], an in-memory connection and a scripted peer, for `dev-dependencies`.

// Lints see the code with all features enabled.
#![cfg_attr(
    not(all(feature = "unstable", feature = "unstable-v2")),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "without these features, some of the code is unused"
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
mod client_core;
mod connection;
mod dialect;
mod error;
mod extension;
mod fork_point;
pub mod guide;
mod lru_map;
mod memory;
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

/// Runs the examples in the READMEs of the repository and the package as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;
