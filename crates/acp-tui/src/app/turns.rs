//! Sessions and their turns: what becomes of them.

use acp::client::Session;
use acp::v1::StopReason;

use super::tab::{Ending, Phase};
use super::{App, Effect, TabKey};
use crate::agent::Trouble;
use crate::editor::Draft;
use crate::setup::Open;

impl App {
    pub(super) fn opened(&mut self, key: TabKey, result: Result<Session, Trouble>) -> Vec<Effect> {
        let Some(tab) = self.tab_by(key) else {
            // The tab was closed meanwhile.
            return result
                .ok()
                .map(|session| Effect::Close { session })
                .into_iter()
                .collect();
        };
        match result {
            Ok(session) => tab.opened(session),
            Err(Trouble::Login(what)) => {
                tab.phase = Phase::Login(what);
                Vec::new()
            }
            // Told by the end of the agent, with more about it.
            Err(Trouble::Gone { .. }) if matches!(tab.phase, Phase::Failed(_)) => Vec::new(),
            Err(trouble) => {
                tab.phase = Phase::Failed(trouble);
                Vec::new()
            }
        }
    }

    pub(super) fn turn_ended(
        &mut self,
        key: TabKey,
        result: Result<StopReason, Trouble>,
    ) -> Vec<Effect> {
        let shown = self.tabs.get(self.active).map(|tab| tab.key) == Some(key);
        let Some(tab) = self.tab_by(key) else {
            return Vec::new();
        };
        let cancelled = matches!(result, Ok(StopReason::Cancelled));
        tab.turn_ended(result);
        let mut effects = Vec::new();
        // Whoever cancels wants to say something else first.
        if !cancelled && !matches!(tab.ending, Some(Ending::Failed(_))) {
            effects.extend(tab.go_on());
        }
        if !shown {
            effects.push(Effect::Bell);
        }
        effects
    }

    /// Says what went wrong with something that was asked for beside the turns.
    pub(super) fn complain(&mut self, key: TabKey, trouble: &Trouble) {
        if let Trouble::Login(what) = trouble
            && let Some(tab) = self.tab_by(key)
        {
            tab.phase = Phase::Login(what.clone());
            return;
        }
        self.note(trouble.in_words());
    }

    /// What was written in the person's own editor.
    pub(super) fn written(&mut self, key: TabKey, text: String) -> Vec<Effect> {
        if let Some(tab) = self.tab_by(key) {
            tab.editor.set(Draft::from(text.as_str()));
        }
        Vec::new()
    }

    /// Opens the session of a tab again, from the beginning if it is lost for good.
    pub(super) fn try_again(&mut self, key: TabKey) -> Vec<Effect> {
        let Some(tab) = self.tab_by(key) else {
            return Vec::new();
        };
        let agent = tab.agent;
        let lost = matches!(tab.phase, Phase::Failed(Trouble::NoSession(_)));
        let mut effects = tab.begin_again();
        if lost {
            tab.open = Open::New;
        }
        if self.agent(agent).and_then(|agent| agent.link()).is_some() {
            effects.extend(self.open_tab(key));
        } else {
            effects.extend(self.restart(agent));
        }
        effects
    }
}
