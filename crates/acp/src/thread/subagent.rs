//! Applies subagent updates to a thread.

use acp_wire::v1::{SessionId, SubagentSessionCapabilities, SubagentUpdate};
use acp_wire::v2::StateUpdate;

use super::{ItemKind, Thread, ThreadHandle};
use crate::memory::weight;

/// The ratio of a thread's size limit to that of its subagents' threads.
const SUBAGENT_LIMIT_DIVISOR: usize = 64;

/// A subagent in a thread, with its own thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadSubagent {
    /// The id of the subagent's session.
    pub session_id: SessionId,
    /// A short description of the subagent's task, to show to the user.
    pub title: Option<String>,
    /// A detailed description of the subagent's task.
    pub description: Option<String>,
    /// The operations that a client may perform on the subagent. `None` means that none are allowed.
    pub capabilities: Option<SubagentSessionCapabilities>,
    /// The subagent's state, if the agent reports it.
    pub state: Option<StateUpdate>,
    /// The working directory, if it differs from the parent's.
    pub cwd: Option<String>,
    /// The additional roots, if they differ from the parent's.
    pub additional_directories: Option<Vec<String>>,
    /// The subagent's own thread. When it changes, the subagent's item in the parent's thread gets a new revision.
    pub thread: ThreadHandle,
}

impl ThreadSubagent {
    /// Returns the name to show to the user: the title, or else the session id.
    #[must_use]
    pub fn name(&self) -> &str {
        let title = self.title.as_deref().filter(|title| !title.is_empty());
        title.unwrap_or(self.session_id.as_str())
    }

    /// Returns `true` if the agent reports that the subagent is working or waiting for the user.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(
            self.state,
            Some(StateUpdate::Running(_) | StateUpdate::RequiresAction(_))
        )
    }

    pub(super) fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + size_of::<Thread>()
            + self.session_id.as_str().len()
            + text(&self.title)
            + text(&self.description)
            + text(&self.cwd)
            + weight(&self.capabilities)
            + weight(&self.state)
            + weight(&self.additional_directories)
    }

    fn apply(&mut self, update: &SubagentUpdate) {
        if let Some(title) = &update.title {
            self.title.clone_from(title);
        }
        if let Some(description) = &update.description {
            self.description.clone_from(description);
        }
        if let Some(capabilities) = &update.capabilities {
            self.capabilities.clone_from(capabilities);
        }
        if let Some(state) = &update.state {
            self.state.clone_from(state);
        }
        if let Some(cwd) = &update.cwd {
            self.cwd.clone_from(cwd);
        }
        if let Some(directories) = &update.additional_directories {
            self.additional_directories.clone_from(directories);
        }
    }
}

impl Thread {
    /// Returns the subagent with the given session id, unless its item was dropped.
    #[must_use]
    pub fn subagent(&self, id: &SessionId) -> Option<&ThreadSubagent> {
        self.subagents().find(|subagent| subagent.session_id == *id)
    }

    /// Returns the subagents of the session, in the order in which they were announced.
    pub fn subagents(&self) -> impl Iterator<Item = &ThreadSubagent> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Subagent(subagent) => Some(&**subagent),
            _ => None,
        })
    }

    pub(super) fn update_subagent(&mut self, update: &SubagentUpdate) {
        let at = self.find_subagent(&update.session_id).unwrap_or_else(|| {
            let thread = ThreadHandle::new();
            thread.change(|thread| thread.set_limit(self.limit() / SUBAGENT_LIMIT_DIVISOR));
            self.push(ItemKind::Subagent(Box::new(ThreadSubagent {
                session_id: update.session_id.clone(),
                title: None,
                description: None,
                capabilities: None,
                state: None,
                cwd: None,
                additional_directories: None,
                thread,
            })))
        });
        if let Some(item) = self.item_mut(at)
            && let ItemKind::Subagent(subagent) = &mut item.kind
        {
            subagent.apply(update);
            self.update_item_weight(at);
        }
    }

    /// Marks a subagent's item as changed when the subagent's thread has changed.
    pub(crate) fn touch_subagent(&mut self, id: &SessionId) {
        if let Some(at) = self.find_subagent(id) {
            self.revision += 1;
            self.item_mut(at);
        }
    }

    /// Finds a subagent's item number. There are few subagents, so a linear search from the end is fast enough.
    fn find_subagent(&self, id: &SessionId) -> Option<usize> {
        let is_it =
            |kind: &ItemKind| matches!(kind, ItemKind::Subagent(known) if known.session_id == *id);
        let at = self.items.iter().rposition(|item| is_it(&item.kind))?;
        Some(self.truncation.items + at)
    }
}
