//! Steering: messages to an agent during its turn.
//!
//! Agents that support it get such a message at once. For others, it is queued as the next prompt.

use acp::v1::{PermissionOptionKind, SteeringOutcome};
use acp_host::terminal_text;

use super::overlay::{ChatOverlay, LinePurpose};
use super::prompt_line::PromptLine;
use super::tab::Tab;
use super::{App, ChatEffect, TabKey};
use crate::agent::{ChatAnswer, ChatQuestion};
use crate::editor::PromptDraft;

/// The maximum number of messages of a turn to show.
const MAX_SHOWN: usize = 8;

/// A message to the running turn.
#[derive(Debug)]
pub(super) struct SteeringMessage {
    /// The message, on one line.
    pub(super) text: String,
    pub(super) is_delivered: bool,
}

impl Tab {
    /// Returns whether Enter sends a message to the running turn, rather than queueing it.
    pub(super) fn can_steer(&self) -> bool {
        let turn = self.turn.as_ref();
        let is_running = turn.is_some_and(|turn| turn.cancelled_at.is_none() && turn.is_sent);
        is_running
            && self
                .session
                .as_ref()
                .is_some_and(|session| session.agent().supports_steering())
    }

    /// Sends a message to the running turn if the agent supports that, and otherwise sends or queues it as a prompt.
    pub(super) fn steer_or_submit(&mut self, draft: PromptDraft) -> Vec<ChatEffect> {
        if draft.is_empty() || !self.can_steer() {
            return self.submit(draft);
        }
        let Some(session) = self.session.clone() else {
            return self.submit(draft);
        };
        if self.steered.len() == MAX_SHOWN {
            self.steered.remove(0);
        }
        self.steered.push(SteeringMessage {
            text: terminal_text::clean_line(draft.display_text()),
            is_delivered: false,
        });
        self.view.fold(draft.folded_texts());
        self.view.go_to_end();
        vec![ChatEffect::Steer {
            tab: self.key,
            session,
            draft,
        }]
    }

    /// Handles the agent's answer to a message. A message that it did not take becomes the next prompt.
    pub(super) fn on_steered(
        &mut self,
        draft: PromptDraft,
        outcome: &Result<SteeringOutcome, String>,
    ) -> Vec<ChatEffect> {
        let text = terminal_text::clean_line(draft.display_text());
        let position = self
            .steered
            .iter()
            .position(|message| message.text == text && !message.is_delivered);
        match outcome {
            Ok(SteeringOutcome::Injected | SteeringOutcome::StartedNewTurn) => {
                if let Some(message) = position.and_then(|at| self.steered.get_mut(at)) {
                    message.is_delivered = true;
                }
                Vec::new()
            }
            _ => {
                if let Some(at) = position {
                    self.steered.remove(at);
                }
                self.submit(draft)
            }
        }
    }
}

impl App {
    pub(super) fn on_steered(
        &mut self,
        key: TabKey,
        draft: PromptDraft,
        outcome: Result<SteeringOutcome, String>,
    ) -> Vec<ChatEffect> {
        if let Err(reason) = &outcome {
            self.show_note(format!("not sent to the running turn: {reason}"));
        }
        match self.tab_mut(key) {
            Some(tab) => tab.on_steered(draft, &outcome),
            None => Vec::new(),
        }
    }

    /// Queues the prompt in the editor, even if the agent could be steered with it.
    pub(super) fn queue_prompt(&mut self) -> Vec<ChatEffect> {
        let is_empty = self
            .active_tab_mut()
            .is_none_or(|tab| tab.editor.is_empty());
        if is_empty {
            return Vec::new();
        }
        self.submit_prompt(Tab::submit)
    }

    /// Asks what the agent is to do instead of what it has requested.
    pub(super) fn ask_instead(&mut self, question: u64) {
        let line = PromptLine::new("Reject, and tell the agent what to do instead", "");
        self.overlay = Some(ChatOverlay::PromptLine(
            LinePurpose::Instead(question),
            line,
        ));
    }

    /// Rejects a permission request, and sends what the user wants instead.
    pub(super) fn reject_and_steer(&mut self, question: u64, text: &str) -> Vec<ChatEffect> {
        let draft = PromptDraft::from(text);
        let agent = self.tabs.get(self.active).map(|tab| tab.agent);
        let Some(agent) = agent.and_then(|agent| self.agent(agent)) else {
            return Vec::new();
        };
        let (questions, name) = (std::sync::Arc::clone(&agent.questions), agent.name());
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        let open = questions.open();
        let asked = open.iter().find(|open| open.id == question);
        let reject = asked.and_then(|asked| match &asked.question {
            ChatQuestion::Permission(request, _) => request
                .options
                .iter()
                .find(|option| option.kind == PermissionOptionKind::RejectOnce)
                .map(|option| option.option_id.clone()),
            ChatQuestion::Elicitation(_) => None,
        });
        let is_shown = tab
            .question
            .as_ref()
            .is_some_and(|view| view.id() == question);
        match reject.filter(|_| is_shown) {
            Some(reject) => tab.answer(&questions, &name, ChatAnswer::Permission(Some(reject))),
            // The agent has withdrawn it, or it was answered elsewhere.
            None => self.show_note("the request is no longer open"),
        }
        match self.active_tab_mut() {
            Some(tab) => tab.steer_or_submit(draft),
            None => Vec::new(),
        }
    }
}
