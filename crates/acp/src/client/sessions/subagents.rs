//! Subagents on the client's side: `subagent_update`.
//!
//! A session that an open session announces is open, too: what happens there is shown in its parent's thread, and
//! what is asked there is asked. There are so many of them at most; what an agent tells of further ones is shown, and
//! what happens there is not.

use acp_wire::v1::SessionId;
use tokio_util::sync::CancellationToken;

use super::{ClientSessionEntry, ClientSessions, UNCLAIMED};
use crate::thread::Thread;
use crate::update::Update;

/// How many subagents a connection may have. All their threads together keep as much as one session's.
const SUBAGENTS: usize = UNCLAIMED;

/// How deep subagents may have subagents.
const DEPTH: usize = 16;

impl ClientSessions {
    /// Folds an update into the thread of its session, and looks at that.
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

    /// A session has announced a subagent, which is open from here on.
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
        // No client had opened it. It now gets the thread that its parent shows; its pending requests stay pending.
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

    /// A session, its parent, and so on.
    fn ancestors(&self, id: &SessionId) -> Vec<SessionId> {
        let sessions = self.lock();
        let parent = |id: &SessionId| sessions.parents.get(id).cloned();
        std::iter::successors(Some(id.clone()), parent)
            .take(DEPTH + 1)
            .collect()
    }

    /// The subagents of a session, and theirs.
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

    /// The session is gone, or is going to be replayed: so are its subagents.
    pub(super) fn remove_subagents(&self, id: &SessionId) {
        for child in self.descendants(id) {
            self.remove_one(&child);
        }
    }

    /// Returns the session that the user has opened: this one, or the one that this subagent works for.
    pub(crate) fn root_session(&self, id: &SessionId) -> SessionId {
        self.ancestors(id).pop().unwrap_or_else(|| id.clone())
    }

    /// What a subagent is called; `None` for a session that is none.
    pub(crate) fn subagent_name(&self, id: &SessionId) -> Option<String> {
        let parent = self.lock().parents.get(id).cloned()?;
        let name = |thread: &Thread| Some(thread.subagent(id)?.name().to_owned());
        let name = self.with_session(&parent, |state| state.thread.read(name))?;
        // Its item may have been dropped.
        Some(name.unwrap_or_else(|| id.to_string()))
    }

    /// The turn that a subagent works for: that of the session which the user has opened; it may work while none runs
    /// there. `None` for a session that is no subagent.
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
