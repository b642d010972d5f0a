//! Statistics of an endpoint.

/// Counts of connections, requests and bytes since an endpoint was created, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStats {
    /// The number of open connections.
    pub open_connections: u64,
    /// The number of connections that were accepted.
    pub connections: u64,
    /// The number of requests that were rejected because of their token, host or origin.
    pub refused: u64,
    /// The number of requests that were rejected because of a limit.
    pub limited: u64,
    /// The number of times a connection was resumed after being cut.
    pub resumed: u64,
    /// The number of connections that ended because the client did not reconnect in time.
    pub abandoned: u64,
    /// The total size of all messages from clients, in bytes.
    pub received_bytes: u64,
    /// The total size of all messages to clients, in bytes, not counting retransmissions.
    pub sent_bytes: u64,
}
