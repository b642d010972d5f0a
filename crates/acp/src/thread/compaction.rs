//! Applies compaction updates to a thread.

use acp_wire::v2::{
    CompactionId, CompactionStatus, CompactionSummaryChunk, CompactionUpdate, ContentBlock,
};

use super::{ItemKind, Thread};
use crate::memory::weight;

/// A compaction as shown to the user, with its status and summary.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadCompaction {
    /// The id of the compaction, unique in its session.
    pub id: CompactionId,
    /// The status of the compaction.
    pub status: CompactionStatus,
    /// The summary, if the agent shows it.
    pub summary: Vec<ContentBlock>,
    /// The reason why the compaction failed, if it did.
    pub error: Option<String>,
}

impl Thread {
    pub(super) fn apply_compaction(&mut self, update: &CompactionUpdate) {
        let at = self.find_or_add_compaction(&update.compaction_id);
        let Some(compaction) = self.compaction_mut(at) else {
            return;
        };
        compaction.status = update.status.clone();
        if let Some(summary) = &update.summary {
            compaction.summary = summary.clone().unwrap_or_default();
        }
        if let Some(error) = &update.error {
            compaction.error.clone_from(error);
        }
        if update.summary.is_some() || update.error.is_some() {
            self.update_item_weight(at);
        }
    }

    pub(super) fn apply_compaction_chunk(&mut self, chunk: &CompactionSummaryChunk) {
        let at = self.find_or_add_compaction(&chunk.compaction_id);
        if let Some(compaction) = self.compaction_mut(at) {
            compaction.summary.push(chunk.content.clone());
            self.grow_item(at, weight(&chunk.content));
        }
    }

    fn compaction_mut(&mut self, at: usize) -> Option<&mut ThreadCompaction> {
        match &mut self.item_mut(at)?.kind {
            ItemKind::Compaction(compaction) => Some(compaction),
            _ => None,
        }
    }

    /// Returns a compaction's item number, adding the item if it is new. There are few compactions, so a linear search
    /// from the end is fast enough.
    fn find_or_add_compaction(&mut self, id: &CompactionId) -> usize {
        let is_it = |kind: &ItemKind| matches!(kind, ItemKind::Compaction(c) if c.id == *id);
        match self.items.iter().rposition(|item| is_it(&item.kind)) {
            Some(at) => self.truncation.items + at,
            None => self.push(ItemKind::Compaction(ThreadCompaction {
                id: id.clone(),
                status: CompactionStatus::InProgress,
                summary: Vec::new(),
                error: None,
            })),
        }
    }
}
