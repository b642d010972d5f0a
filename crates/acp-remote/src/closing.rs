//! The status that a side sends when it closes a connection.

use std::fmt;

/// The status that a side sends when it closes a connection: a WebSocket close code (RFC 6455, 7.4) and a
/// human-readable reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseStatus {
    /// The WebSocket close code.
    pub code: u16,
    /// The reason, which may be empty. At most 123 bytes are sent.
    pub reason: String,
}

impl CloseStatus {
    /// The close code used when a connection is no longer needed.
    pub const NORMAL: u16 = 1000;
    /// The close code used by a side that is going away, such as a server that is shutting down.
    pub const GOING_AWAY: u16 = 1001;
    /// The close code used when the peer violates the transport's protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// The close code used when the client may not do something.
    pub const POLICY_VIOLATION: u16 = 1008;
    /// The close code used when a message is too large.
    pub const TOO_LARGE: u16 = 1009;
    /// The close code used by a server when its agent has failed.
    pub const FAILED: u16 = 1011;
    /// The server cannot serve the client now, but may be able to soon.
    pub const TRY_AGAIN_LATER: u16 = 1013;

    /// Creates a status from a close code and a reason.
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { code, reason }
    }

    /// Creates the status for a connection that is no longer needed.
    #[must_use]
    pub fn normal() -> Self {
        Self::new(Self::NORMAL, "")
    }

    /// Creates the status for a server whose agent has failed. The reason is sent to the client.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::new(Self::FAILED, reason)
    }

    /// Returns `true` if the connection was closed properly, because the peer no longer needs it or is going away.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        // 1005 stands for a close frame without a code.
        matches!(self.code, Self::NORMAL | Self::GOING_AWAY | 1005)
    }
}

impl fmt::Display for CloseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.reason {
            "" => write!(f, "close code {}", self.code),
            reason => write!(f, "{} (close code {})", reason.escape_debug(), self.code),
        }
    }
}

impl From<()> for CloseStatus {
    fn from((): ()) -> Self {
        Self::normal()
    }
}
