//! Handles the events of sessions and their turns.

use std::path::PathBuf;
use std::time::Instant;

use acp::client::ClientSession;
use acp::v1::StopReason;

use super::tab::{LastTurnEnd, Tab, TabPhase};
use super::{App, ChatEffect, TabKey};
use crate::agent::AgentFailure;
use crate::editor::{EditorOutcome, PromptDraft};
use crate::setup::SessionSource;

impl App {
    pub(super) fn on_session_opened(
        &mut self,
        key: TabKey,
        since: Instant,
        result: Result<ClientSession, AgentFailure>,
        name: Option<String>,
    ) -> Vec<ChatEffect> {
        let is_opening = |tab: &&mut Tab| match tab.phase {
            TabPhase::Opening(current) => current == since,
            // Reported before, when the agent ended.
            TabPhase::Failed(_) => true,
            _ => false,
        };
        let Some(tab) = self.tab_mut(key).filter(is_opening) else {
            // The tab was closed in the meantime, or has gone back to another session.
            return result
                .ok()
                .map(|session| ChatEffect::CloseSession { session })
                .into_iter()
                .collect();
        };
        match result {
            Ok(session) => {
                if let Some(name) = name {
                    tab.title
                        .get_or_insert(acp_host::terminal_text::clean_line(&name));
                }
                let was_existing = matches!(tab.session_source, SessionSource::Existing(_));
                let mut effects = tab.on_opened(session);
                if was_existing {
                    effects.extend(tab.find_kept_turns());
                }
                let name = tab.pending_name.take();
                effects.extend(self.finish_leaving(key));
                if let Some(name) = name {
                    effects.extend(self.set_session_name(key, name));
                }
                effects
            }
            Err(AgentFailure::LoginRequired(what)) => {
                tab.phase = TabPhase::LoginRequired(what);
                Vec::new()
            }
            // This is reported in more detail when the end of the agent is handled.
            Err(AgentFailure::Exited(_)) if matches!(tab.phase, TabPhase::Failed(_)) => Vec::new(),
            Err(failure) => {
                if let Some(effects) = self.open_new_instead_of_copy(key, &failure) {
                    return effects;
                }
                if let Some(tab) = self.tab_mut(key) {
                    tab.phase = TabPhase::Failed(failure);
                }
                Vec::new()
            }
        }
    }

    /// Names the tab's session so that the user can reopen it by that name. The name is stored if the agent stores the
    /// session.
    pub(super) fn set_session_name(&mut self, key: TabKey, name: String) -> Option<ChatEffect> {
        let tab = self.tab_mut(key)?;
        let Some(session) = tab.session.clone() else {
            tab.pending_name = Some(name);
            return None;
        };
        tab.title = Some(name.clone());
        let agent = tab.agent;
        let agent = self.agent(agent)?;
        if agent.cannot_load {
            self.show_note("this agent does not store sessions; the name is shown only on the tab");
            return None;
        }
        Some(ChatEffect::NameSession {
            tab: key,
            names: agent.spec.names.clone()?,
            id: session.id().clone(),
            name,
        })
    }

    pub(super) fn on_session_named(
        &mut self,
        key: TabKey,
        name: &str,
        result: Result<(), String>,
    ) -> Vec<ChatEffect> {
        let said = match result {
            Ok(()) => format!("session named `{name}`; reopen it with `acp chat --session NAME`"),
            Err(why) => format!("`{name}` is shown only on the tab: {why}"),
        };
        if self.tab_mut(key).is_some() {
            self.show_note(said);
        }
        Vec::new()
    }

    pub(super) fn on_turn_ended(
        &mut self,
        key: TabKey,
        result: Result<StopReason, AgentFailure>,
    ) -> Vec<ChatEffect> {
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        let cancelled = matches!(result, Ok(StopReason::Cancelled));
        tab.on_turn_ended(result);
        let mut effects = Vec::new();
        // A user who cancels wants to send something else first.
        if !cancelled && !matches!(tab.last_turn_end, Some(LastTurnEnd::Failed(_))) {
            effects.extend(tab.send_queued());
        }
        // The next prompt keeps the agent busy.
        if effects.is_empty() && !cancelled {
            let body = match tab.last_turn_end {
                Some(LastTurnEnd::Failed(_)) => "has failed",
                _ => "has finished",
            };
            effects.extend(self.call_user(key, body));
        }
        effects
    }

    /// Shows the error of a failed operation other than a turn.
    pub(super) fn show_error(&mut self, key: TabKey, failure: &AgentFailure) {
        if let AgentFailure::LoginRequired(what) = failure
            && let Some(tab) = self.tab_mut(key)
        {
            tab.phase = TabPhase::LoginRequired(what.clone());
            return;
        }
        self.show_note(failure.to_text());
    }

    /// Attaches the clipboard's image to the prompt.
    pub(super) fn on_image_pasted(
        &mut self,
        key: TabKey,
        result: Result<PathBuf, String>,
    ) -> Vec<ChatEffect> {
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        let outcome = match result.map(|file| tab.editor.attach(&file)) {
            Ok(EditorOutcome::Note(why)) | Err(why) => why,
            Ok(_) => return Vec::new(),
        };
        self.show_note(outcome);
        Vec::new()
    }

    /// Puts the text from the user's own editor into the prompt.
    pub(super) fn on_external_edit(&mut self, key: TabKey, text: String) -> Vec<ChatEffect> {
        if let Some(tab) = self.tab_mut(key) {
            tab.editor.set(PromptDraft::from(text.as_str()));
        }
        Vec::new()
    }

    /// Reopens a tab's session, or opens a new session if the old one was lost.
    pub(super) fn reopen_session(&mut self, key: TabKey) -> Vec<ChatEffect> {
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        let agent = tab.agent;
        // Only the prompt was rejected, so it is sent again.
        if tab.session.is_some() && matches!(tab.phase, TabPhase::LoginRequired(_)) {
            return self.continue_after_login(key);
        }
        let lost = matches!(
            tab.phase,
            TabPhase::Failed(AgentFailure::SessionNotFound(_))
        );
        let mut effects = tab.reset();
        if lost {
            tab.session_source = SessionSource::New;
        }
        if self
            .agent(agent)
            .and_then(|agent| agent.running_agent())
            .is_some()
        {
            effects.extend(self.open_tab(key));
        } else {
            effects.extend(self.restart(agent));
        }
        effects
    }
}
