//! Compaction: the agent shortens the conversation for the model. Unstable: for clients that have
//! `session.compaction`.

use super::ContentBlock;

string_id! {
    /// Names a compaction within its session.
    pub struct CompactionId;
}

record! {
    /// How far a compaction is. What is absent stays as it is.
    pub patch CompactionUpdate {
        /// Its id.
        required compaction_id: CompactionId,
        /// The status.
        required status: CompactionStatus,
        /// What is left of the conversation, all of it.
        clearable_list summary: ContentBlock,
        /// Why it failed.
        clearable error: String,
    }
}

record! {
    /// A piece of what is left of the conversation.
    pub struct CompactionSummaryChunk {
        /// The compaction.
        required compaction_id: CompactionId,
        /// The content of the chunk.
        required content: ContentBlock,
    }
}

open_enum! {
    /// How far a compaction is.
    pub enum CompactionStatus {
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// Cancelled before its end.
        Cancelled = "cancelled",
    }
}

record! {
    /// Present when the client shows compactions.
    pub struct CompactionCapabilities {}
}
