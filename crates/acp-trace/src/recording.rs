//! A summary of a finished trace.

/// A summary of a finished trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// The number of recorded messages, of both sides.
    pub messages: u64,
    /// The number of secrets that were replaced in them.
    pub redacted: u64,
    /// Whether everything could be written.
    pub is_complete: bool,
}
