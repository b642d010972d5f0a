//! Complete programs from the `examples` directory of this crate. Each one also runs as a test. Run an example with
//! `cargo run -p acp-sdk --example NAME`.
//!
//! # `agent.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/agent.rs")]
//! ```
//!
//! # `client.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/client.rs")]
//! ```
//!
//! # `both_versions.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/both_versions.rs")]
//! ```
//!
//! # `permission.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/permission.rs")]
//! ```
//!
//! # `files_and_terminals.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/files_and_terminals.rs")]
//! ```
//!
//! # `extension.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/extension.rs")]
//! ```
//!
//! # `elicitation.rs`
//!
//! ```no_run
#![doc = include_str!("../../examples/elicitation.rs")]
//! ```
