//! What the agent and the client have in common: the request of an extension that asks for nothing.

use agent_client_protocol::{JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};

/// The request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_bench/empty", response = EmptyResponse)]
pub struct EmptyRequest {}

/// Its answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcResponse)]
pub struct EmptyResponse {}
