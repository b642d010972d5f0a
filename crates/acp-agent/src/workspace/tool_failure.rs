//! Defines the ways in which a tool call can fail.

use acp::jsonrpc;

/// A failed tool call.
#[derive(Debug)]
pub(crate) enum ToolFailure {
    /// The tool call failed with this message. The turn continues.
    Failed(String),
    /// The file does not exist.
    NotFound(String),
    /// The turn must end: it was cancelled, the connection is closed, or an update cannot be stored.
    Stop(acp::Error),
}

impl ToolFailure {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

impl From<acp::Error> for ToolFailure {
    fn from(error: acp::Error) -> Self {
        match &error {
            acp::Error::Cancelled | acp::Error::Closed(_) | acp::Error::RecordFailed { .. } => {
                Self::Stop(error)
            }
            acp::Error::Rpc(e) if is_missing(e) => Self::NotFound(e.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Returns `true` if the error means that a file does not exist. Clients use different error codes for this.
fn is_missing(error: &jsonrpc::Error) -> bool {
    if error.code == jsonrpc::Error::RESOURCE_NOT_FOUND {
        return true;
    }
    if !matches!(
        error.code,
        jsonrpc::Error::INVALID_PARAMS | jsonrpc::Error::INTERNAL_ERROR
    ) {
        return false;
    }
    let data = error
        .data
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let error_text = format!("{} {data}", error.message).to_lowercase();
    ["not found", "no such file", "enoent", "does not exist"]
        .iter()
        .any(|words| error_text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_errors_of_clients_are_recognized() {
        let error = |code, message: &str| jsonrpc::Error::new(code, message);
        let enoent = error(-32603, "Internal error").data("ENOENT: no such file or directory");
        for missing in [
            error(-32002, "?"),
            error(-32602, "File does not exist"),
            error(-32603, "Not found"),
            enoent,
        ] {
            assert!(is_missing(&missing), "{missing}");
        }
        for other in [
            error(-32601, "Method not found: fs/read"),
            error(-32603, "EACCES"),
        ] {
            assert!(!is_missing(&other), "{other}");
        }
    }
}
