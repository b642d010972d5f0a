//! The empty request of an extension, which the agent and the client share.

use agent_client_protocol::{JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};

/// An empty request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_bench/empty", response = EmptyResponse)]
pub struct EmptyRequest {}

/// The response to an [`EmptyRequest`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
pub struct EmptyResponse {}
