//! Compaction: the agent replaces older parts of the conversation with a summary. Unstable; the client must support
//! `session.compaction`.

use super::ContentBlock;

string_id! {
    /// The id of a compaction, unique in its session.
    pub struct CompactionId;
}

record! {
    /// A change of a compaction. Absent fields are unchanged.
    pub patch CompactionUpdate {
        /// The id of the compaction.
        required compaction_id: CompactionId,
        /// The status.
        required status: CompactionStatus,
        /// The whole summary.
        clearable_list summary: ContentBlock,
        /// The reason if the compaction failed.
        clearable error: String,
    }
}

record! {
    /// A chunk of the summary.
    pub struct CompactionSummaryChunk {
        /// The id of the compaction.
        required compaction_id: CompactionId,
        /// The content of the chunk.
        required content: ContentBlock,
    }
}

open_enum! {
    /// The status of a compaction.
    pub enum CompactionStatus {
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// Cancelled before it finished.
        Cancelled = "cancelled",
    }
}

record! {
    /// An empty object that marks a client that shows compactions.
    pub struct CompactionCapabilities {}
}
