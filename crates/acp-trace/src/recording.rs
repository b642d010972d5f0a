//! Defines the summary of a finished recording.

/// The summary of a finished recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// The number of messages recorded, from both sides.
    pub messages: u64,
    /// The number of secrets that were redacted.
    pub redacted: u64,
    /// Whether everything was written to the file.
    pub is_complete: bool,
}
