//! The client's table of subagents: `subagent_update`.
//!
//! A subagent that an open session announces is an open session, too. Its items are shown in its parent's thread, and
//! its requests are handled. The number of subagents is limited: further ones are shown, but not their updates.

use acp_wire::v1::SessionId;
use tokio_util::sync::CancellationToken;

use super::{ClientSessionEntry, ClientSessions, UNCLAIMED};
use crate::thread::Thread;
use crate::update::Update;

/// The maximum number of subagents per connection. Together, their threads may store as much as one session's thread.
const SUBAGENTS: usize = UNCLAIMED;

/// The maximum nesting depth of subagents.
const DEPTH: usize = 16;

impl ClientSessions {
    /// Applies an update to the thread of its session, and runs `f` on the session.
    pub(crate) fn receive_update<T>(
        &self,
        id: &SessionId,
        update: &Update,
        f: impl FnOnce(&mut ClientSessionEntry) -> T,
    ) -> Option<T> {
        let done = self.receive(id, |state| {
            state.thread.change(|thread| thread.apply(update));
            f(state)
        });
        if let Update::SubagentUpdate(update) = update {
            self.adopt(id, &update.session_id);
        }
        done
    }

    /// Opens the session of a subagent that another session has announced.
    fn adopt(&self, parent: &SessionId, child: &SessionId) {
        let ancestors = self.ancestors(parent);
        if ancestors.contains(child) || ancestors.len() >= DEPTH {
            tracing::warn!(%parent, %child, "ignoring a subagent that is its own ancestor or nested too deeply");
            return;
        }
        let mut state = {
            let sessions = self.lock();
            let Some(above) = sessions.entries.get(parent) else {
                return;
            };
            let is_open =
                |id| sessions.entries.contains_key(id) && !sessions.unopened.contains_key(id);
            if !is_open(parent) || is_open(child) || sessions.parents.len() >= SUBAGENTS {
                return;
            }
            let announced = |thread: &Thread| Some(thread.subagent(child)?.thread.clone());
            let Some(thread) = above.thread.read(announced) else {
                return;
            };
            thread.set_parent(&above.thread, parent, child);
            ClientSessionEntry {
                thread,
                is_replaying: above.is_replaying,
                ..ClientSessionEntry::default()
            }
        };
        // The client had not opened the session. It now gets the thread that its parent shows; its pending requests
        // stay pending.
        let before = {
            let mut sessions = self.lock();
            sessions.unopened.remove(child);
            sessions.parents.insert(child.clone(), parent.clone());
            sessions.entries.remove(child)
        };
        if let Some(before) = before {
            state.turn = before.turn;
            if let Some(client) = before.client_state {
                client.closed();
            }
        }
        self.add(child, state, None);
    }

    /// Returns a session's id, its parent's id and so on, up to the root session.
    fn ancestors(&self, id: &SessionId) -> Vec<SessionId> {
        let sessions = self.lock();
        let parent = |id: &SessionId| sessions.parents.get(id).cloned();
        std::iter::successors(Some(id.clone()), parent)
            .take(DEPTH + 1)
            .collect()
    }

    /// Returns the ids of a session's subagents, and of their subagents.
    pub(super) fn descendants(&self, id: &SessionId) -> Vec<SessionId> {
        let sessions = self.lock();
        let mut found = vec![id.clone()];
        let mut at = 0;
        while let Some(parent) = found.get(at).cloned() {
            let children = sessions
                .parents
                .iter()
                .filter(|(_, above)| **above == parent)
                .map(|(id, _)| id.clone());
            found.extend(children);
            at += 1;
        }
        found.split_off(1)
    }

    /// Removes the subagents of a session that was closed or is about to be replayed.
    pub(super) fn remove_subagents(&self, id: &SessionId) {
        for child in self.descendants(id) {
            self.remove_one(&child);
        }
    }

    /// Returns the root session, which the user has opened: this session, or the topmost parent of this subagent.
    pub(crate) fn root_session(&self, id: &SessionId) -> SessionId {
        self.ancestors(id).pop().unwrap_or_else(|| id.clone())
    }

    /// Returns a subagent's name. `None` if the session is not a subagent.
    pub(crate) fn subagent_name(&self, id: &SessionId) -> Option<String> {
        let parent = self.lock().parents.get(id).cloned()?;
        let name = |thread: &Thread| Some(thread.subagent(id)?.name().to_owned());
        let name = self.with_session(&parent, |state| state.thread.read(name))?;
        // The subagent's item may have been dropped.
        Some(name.unwrap_or_else(|| id.to_string()))
    }

    /// Returns the token of the turn that a subagent works for, which is the root session's turn. If no turn runs
    /// there, returns a new token. `None` if the session is not a subagent.
    pub(crate) fn turn_of(&self, id: &SessionId) -> Option<CancellationToken> {
        let opened = self.root_session(id);
        if opened == *id {
            return None;
        }
        let turn = |entry: &mut ClientSessionEntry| entry.is_working().then(|| entry.turn.clone());
        Some(
            self.with_session(&opened, turn)
                .flatten()
                .unwrap_or_default(),
        )
    }
}
