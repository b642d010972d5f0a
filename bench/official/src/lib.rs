//! The benchmark's agent and client on the official Rust SDK, for any transport, and the empty request of an extension.

mod agent;
mod client;

use agent_client_protocol::{JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};

pub use agent::agent;
pub use client::{OfficialBenchError, run_client};

/// An empty request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_bench/empty", response = EmptyResponse)]
pub struct EmptyRequest {}

/// The response to an [`EmptyRequest`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
pub struct EmptyResponse {}
