//! Finds the capabilities of an agent in its response to `initialize`.

use acp_rules::schema::SchemaVersion;
use serde_json::Value;

use super::verdict::{CheckStop, skip};

/// Returns the JSON pointer to a capability, such as `auth/status`, in an agent's response to `initialize`.
pub(super) fn capability_pointer(version: SchemaVersion, name: &str) -> String {
    match version {
        SchemaVersion::V1 => format!("/agentCapabilities/{name}"),
        SchemaVersion::V2 => format!("/capabilities/{name}"),
    }
}

/// Requires that the capability at `pointer` in the response to `initialize` is true or an object.
///
/// # Errors
/// The check is skipped if the agent does not support the capability.
pub(super) fn require_capability(response: &Value, pointer: &str) -> Result<(), CheckStop> {
    match response.pointer(pointer) {
        Some(Value::Bool(true) | Value::Object(_)) => Ok(()),
        _ => {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            skip(format!("the agent does not support `{name}`"))
        }
    }
}
