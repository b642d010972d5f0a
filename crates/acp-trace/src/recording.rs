//! What there is in a trace that has ended.

/// What there is in a trace that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// How many messages were recorded, of both sides.
    pub messages: u64,
    /// How many parts of them were replaced for being secret.
    pub redacted: u64,
    /// Whether the file could be written to its end.
    pub is_complete: bool,
}
