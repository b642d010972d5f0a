//! Compaction: the agent replaces older parts of the conversation with a summary. Unstable: requires the client's
//! capability `session.compaction`.

use super::ContentBlock;

string_id! {
    /// The id of a compaction, unique in its session.
    pub struct CompactionId;
}

record! {
    /// A change to a compaction. Absent fields are unchanged.
    pub patch CompactionUpdate {
        /// The compaction that is new or has changed.
        required compaction_id: CompactionId,
        /// Whether the compaction is in progress, or how it ended.
        required status: CompactionStatus,
        /// The complete summary, which replaces the previous one.
        clearable_list summary: ContentBlock,
        /// The reason why the compaction failed.
        clearable error: String,
    }
}

record! {
    /// An update with a chunk of a compaction's summary.
    pub struct CompactionSummaryChunk {
        /// The compaction to whose summary the chunk is appended.
        required compaction_id: CompactionId,
        /// The text or other content to append.
        required content: ContentBlock,
    }
}

open_enum! {
    /// Whether a compaction is in progress, or how it ended.
    pub enum CompactionStatus {
        /// The agent is working on the summary.
        InProgress = "in_progress",
        /// The summary is complete.
        Completed = "completed",
        /// The compaction failed.
        Failed = "failed",
        /// The compaction was cancelled.
        Cancelled = "cancelled",
    }
}

record! {
    /// An empty object that marks support for updates about compactions.
    pub struct CompactionCapabilities {}
}
