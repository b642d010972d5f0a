//! Manages the subagents in the session table. A parent session announces its subagents with `subagent_update`.
//!
//! A subagent that an open session announces is also an open session. Its items are shown in its parent's thread, and
//! its requests are handled. The number of subagents is limited. Subagents beyond the limit are shown, but their
//! updates are not.

use acp_wire::v1::SessionId;

use super::session_table::{MAX_UNOPENED_SESSIONS, SessionEntry, SessionTable};
use crate::thread::{Thread, ThreadHandle};

/// The maximum number of subagents on a connection. Together, their threads can be as large as the thread of one
/// session.
const MAX_SUBAGENTS: usize = MAX_UNOPENED_SESSIONS;

/// The maximum nesting depth of subagents.
const MAX_DEPTH: usize = 16;

/// An announced subagent, to be added to the table.
pub(crate) struct AdoptedSubagent<S> {
    /// The subagent's thread, as shown by its parent.
    pub(crate) thread: ThreadHandle,
    pub(crate) is_replaying: bool,
    /// The subagent's entry from before it was announced, if any.
    pub(crate) before: Option<SessionEntry<S>>,
}

impl<S> SessionTable<S> {
    /// Turns a session into a subagent of the session that announced it. Returns `None` if the session is already open
    /// or cannot be a subagent.
    pub(crate) fn adopt(
        &mut self,
        parent: &SessionId,
        child: &SessionId,
    ) -> Option<AdoptedSubagent<S>> {
        let ancestors: Vec<SessionId> = self.ancestors(parent).collect();
        if ancestors.contains(child) || ancestors.len() >= MAX_DEPTH {
            tracing::warn!(%parent, %child, "ignoring a subagent that is its own ancestor or is nested too deeply");
            return None;
        }
        if !self.is_open(parent) || self.is_open(child) || self.parents.len() >= MAX_SUBAGENTS {
            return None;
        }
        let above = self.entries.get(parent)?;
        let announced = |thread: &Thread| Some(thread.subagent(child)?.thread.clone());
        let thread = above.thread.read(announced)?;
        thread.set_parent(&above.thread, parent, child);
        let is_replaying = above.is_replaying;
        // From now on, the session has the thread that its parent shows.
        let before = self.remove_session_entry(child);
        self.parents.insert(child.clone(), parent.clone());
        Some(AdoptedSubagent {
            thread,
            is_replaying,
            before,
        })
    }

    /// Returns the ids of a session, its parent, and so on up to the root session.
    fn ancestors(&self, id: &SessionId) -> impl Iterator<Item = SessionId> {
        let parent = |id: &SessionId| self.parents.get(id).cloned();
        std::iter::successors(Some(id.clone()), parent).take(MAX_DEPTH + 1)
    }

    /// Returns the ids of a session's subagents, their subagents, and so on.
    pub(crate) fn descendants(&self, id: &SessionId) -> Vec<SessionId> {
        let mut found = vec![id.clone()];
        let mut at = 0;
        while let Some(parent) = found.get(at).cloned() {
            let children = self.parents.iter();
            let children = children.filter(|(_, above)| **above == parent);
            found.extend(children.map(|(id, _)| id.clone()));
            at += 1;
        }
        found.split_off(1)
    }

    /// Removes and returns the subagents of a session that was closed or is about to be replayed.
    pub(crate) fn remove_subagents(&mut self, id: &SessionId) -> Vec<SessionEntry<S>> {
        let children = self.descendants(id);
        let children = children
            .iter()
            .filter_map(|child| self.remove_session_entry(child));
        children.collect()
    }

    /// Returns the id of the root session, which the user has opened: the session itself, or the topmost parent of a
    /// subagent.
    pub(crate) fn root_session(&self, id: &SessionId) -> SessionId {
        self.ancestors(id).last().unwrap_or_else(|| id.clone())
    }

    /// Returns a subagent's name, or `None` if the session is not a subagent.
    pub(crate) fn subagent_name(&self, id: &SessionId) -> Option<String> {
        let parent = self.entries.get(self.parents.get(id)?)?;
        let name = |thread: &Thread| Some(thread.subagent(id)?.name().to_owned());
        let name = parent.thread.read(name);
        // The subagent's item may have been dropped from the thread.
        Some(name.unwrap_or_else(|| id.to_string()))
    }
}
