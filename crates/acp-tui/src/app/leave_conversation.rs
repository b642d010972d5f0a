//! Leaves a tab's conversation for one that ends before a turn, and returns to it.
//!
//! If the agent can copy a session up to a message, the tab goes on in such a copy. Otherwise, it opens a new session,
//! which gets the earlier conversation together with the next prompt. The session that was left stays open until the undo
//! can no longer be redone.

use std::time::Instant;

use acp::ThreadHandle;
use acp::client::ClientSession;
use acp::v1::{SessionConfigKind, SessionConfigOption, SessionId};

use super::tab::{Tab, TabPhase};
use super::turn_history::LeftConversation;
use super::turn_position::TurnPosition;
use super::{AgentKey, App, ChatEffect, TabKey};
use crate::agent::AgentFailure;
use crate::setup::SessionSource;

/// A conversation that was left for one that is being opened.
#[derive(Debug)]
pub(super) struct LeavingConversation {
    session: SessionId,
    /// Where the conversation that is being opened ends in the one that was left.
    position: TurnPosition,
}

impl Tab {
    /// Returns how the conversation before a turn is opened: as a copy, if that is possible, or as a new session.
    pub(super) fn source_before(&self, position: &TurnPosition) -> SessionSource {
        let session = self.session.as_ref();
        let can_copy = session.is_some_and(|session| session.agent().supports_fork_at_message());
        match position.last_message().filter(|_| can_copy) {
            Some(last) => SessionSource::ForkAt {
                session: position.session.clone(),
                last,
            },
            None => SessionSource::New,
        }
    }

    /// Leaves the conversation for one that ends before the turn at `position`, which must be opened then. Returns `None`
    /// if no session is open.
    pub(super) fn leave_conversation(
        &mut self,
        position: &TurnPosition,
    ) -> Option<LeftConversation> {
        let source = self.source_before(position);
        let session = self.session.take()?;
        let leaving = LeavingConversation {
            session: session.id().clone(),
            position: position.clone(),
        };
        // The new session is to behave as this one did.
        let options = self
            .thread
            .read(|thread| chosen_options(thread.config_options()));
        let left = LeftConversation {
            session,
            thread: self.thread.clone(),
            source: self.session_source.clone(),
            transcript: self.transcript.take(),
        };
        self.begin_new_conversation();
        self.initial_options.config = options;
        match source {
            SessionSource::New => self.set_transcript(position.render_transcript()),
            copy => self.session_source = copy,
        }
        self.leaving = Some(leaving);
        Some(left)
    }

    /// Resets what belongs to the conversation. The new session must be opened then.
    pub(super) fn begin_new_conversation(&mut self) {
        self.session = None;
        self.session_source = SessionSource::New;
        self.thread = ThreadHandle::new();
        self.view = self.view.for_other_conversation();
        self.last_turn_end = None;
        self.phase = TabPhase::Opening(Instant::now());
        self.turn_search = None;
        self.leaving = None;
        self.set_transcript(None);
    }

    /// Goes back to a conversation that was left. Returns the session that was opened instead, if it is open.
    fn return_to_conversation(&mut self, left: LeftConversation) -> Option<ClientSession> {
        let id = left.session.id().clone();
        let opened = self.session.replace(left.session);
        self.thread = left.thread;
        self.session_source = left.source;
        self.view = self.view.for_other_conversation();
        self.last_turn_end = None;
        self.phase = TabPhase::Open;
        self.leaving = None;
        self.set_transcript(left.transcript);
        self.history.locate(&id, &self.thread);
        opened
    }
}

impl App {
    /// Goes back to a conversation that a tab has left. The session that was opened instead is discarded: nothing was said
    /// in it.
    pub(super) fn return_to_conversation(
        &mut self,
        key: TabKey,
        left: LeftConversation,
    ) -> Vec<ChatEffect> {
        let id = left.session.id().clone();
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        let (opened, agent) = (tab.return_to_conversation(left), tab.agent);
        let mut effects = vec![ChatEffect::WatchThread {
            thread: tab.thread.clone(),
            tab: key,
        }];
        if let Some(session) = opened {
            effects.extend(self.move_session_names(agent, session.id().clone(), id));
            effects.push(ChatEffect::DiscardSession { session });
        }
        effects
    }

    /// Completes what was begun when a tab left its conversation, now that the new session is open: it gets the names of the
    /// one that was left, and its turns are remembered.
    pub(super) fn finish_leaving(&mut self, key: TabKey) -> Vec<ChatEffect> {
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        let (Some(left), Some(session)) = (tab.leaving.take(), &tab.session) else {
            return Vec::new();
        };
        let (agent, opened) = (tab.agent, session.id().clone());
        let turns = tab.history.turns_to_keep(&tab.storage_key, &opened);
        let mut effects = Vec::new();
        if !turns.is_empty() {
            effects.push(ChatEffect::KeepTurns { turns });
        }
        effects.extend(self.move_session_names(agent, left.session, opened));
        effects
    }

    /// Gives a session's names to the session that the user goes on with instead.
    fn move_session_names(
        &self,
        agent: AgentKey,
        from: SessionId,
        to: SessionId,
    ) -> Option<ChatEffect> {
        let names = self.agent(agent)?.spec.names.clone()?;
        Some(ChatEffect::MoveSessionNames { names, from, to })
    }

    /// Opens a new session if the agent has not opened a copy of the one that was left. Returns `None` if that was not what
    /// it was asked to do, or if a new session could not be opened either.
    pub(super) fn open_new_instead_of_copy(
        &mut self,
        key: TabKey,
        failure: &AgentFailure,
    ) -> Option<Vec<ChatEffect>> {
        if matches!(
            failure,
            AgentFailure::Exited(_) | AgentFailure::LoginRequired(_)
        ) {
            return None;
        }
        let tab = self.tab_mut(key)?;
        if !matches!(tab.session_source, SessionSource::ForkAt { .. }) {
            return None;
        }
        let transcript = tab.leaving.as_ref()?.position.render_transcript();
        tab.session_source = SessionSource::New;
        tab.set_transcript(transcript);
        self.show_note("the agent did not copy the session, so a new one gets the conversation");
        self.show_note(format!("the agent's reason: {}", failure.to_text()));
        Some(self.open_tab(key))
    }
}

/// Returns the values of options that can be set in a new session.
fn chosen_options(options: &[SessionConfigOption]) -> Vec<(String, String)> {
    let values = options.iter().filter_map(|option| match &option.kind {
        SessionConfigKind::Select(select) => {
            Some((option.id.to_string(), select.current_value.to_string()))
        }
        _ => None,
    });
    values.collect()
}
