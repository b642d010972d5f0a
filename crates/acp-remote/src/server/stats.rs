//! What an endpoint has done.

/// Counts of an endpoint since it was created, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections that exist.
    pub open_connections: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Requests that were rejected because of the token, the host or the origin.
    pub refused: u64,
    /// Requests that were rejected because of a limit.
    pub limited: u64,
    /// Connections that were cut and resumed.
    pub resumed: u64,
    /// Connections that ended because their client did not come back in time.
    pub abandoned: u64,
    /// Bytes of messages from clients.
    pub received_bytes: u64,
    /// Bytes of messages to clients, without what was sent again.
    pub sent_bytes: u64,
}
