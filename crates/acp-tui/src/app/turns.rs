//! Sessions and their turns: what becomes of them.

use std::path::PathBuf;

use acp::client::Session;
use acp::v1::StopReason;

use super::tab::{Ending, Phase};
use super::{App, Effect, TabKey};
use crate::agent::Trouble;
use crate::editor::{Draft, Outcome};
use crate::setup::Open;

impl App {
    pub(super) fn opened(
        &mut self,
        key: TabKey,
        result: Result<Session, Trouble>,
        name: Option<String>,
    ) -> Vec<Effect> {
        let Some(tab) = self.tab_by(key) else {
            // The tab was closed meanwhile.
            return result
                .ok()
                .map(|session| Effect::Close { session })
                .into_iter()
                .collect();
        };
        match result {
            Ok(session) => {
                if let Some(name) = name {
                    tab.title.get_or_insert(acp_host::clean::line(&name));
                }
                let mut effects = tab.opened(session);
                if let Some(name) = tab.to_name.take() {
                    effects.extend(self.give_name(key, name));
                }
                effects
            }
            Err(Trouble::Login(what)) => {
                tab.phase = Phase::Login(what);
                Vec::new()
            }
            // Told by the end of the agent, with more about it.
            Err(Trouble::Gone(_)) if matches!(tab.phase, Phase::Failed(_)) => Vec::new(),
            Err(trouble) => {
                tab.phase = Phase::Failed(trouble);
                Vec::new()
            }
        }
    }

    /// Gives the tab's session a name, by which it is found again; kept where the agent keeps the session.
    pub(super) fn give_name(&mut self, key: TabKey, name: String) -> Option<Effect> {
        let tab = self.tab_by(key)?;
        let Some(session) = tab.session.clone() else {
            tab.to_name = Some(name);
            return None;
        };
        tab.title = Some(name.clone());
        let agent = tab.agent;
        let agent = self.agent(agent)?;
        if agent.cannot_load {
            self.note("the agent does not keep its sessions: the name is only on the tab");
            return None;
        }
        Some(Effect::Name {
            tab: key,
            names: agent.spec.names.clone()?,
            id: session.id().clone(),
            name,
        })
    }

    pub(super) fn named(
        &mut self,
        key: TabKey,
        name: &str,
        result: Result<(), String>,
    ) -> Vec<Effect> {
        let said = match result {
            Ok(()) => format!("named `{name}`: acp chat --session finds it by that"),
            Err(why) => format!("`{name}` is only on the tab: {why}"),
        };
        if self.tab_by(key).is_some() {
            self.note(said);
        }
        Vec::new()
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

    /// The image that was on the clipboard goes with what is being written.
    pub(super) fn image_pasted(
        &mut self,
        key: TabKey,
        result: Result<PathBuf, String>,
    ) -> Vec<Effect> {
        let Some(tab) = self.tab_by(key) else {
            return Vec::new();
        };
        let told = match result.map(|file| tab.editor.attach(&file)) {
            Ok(Outcome::Told(why)) | Err(why) => why,
            Ok(_) => return Vec::new(),
        };
        self.note(told);
        Vec::new()
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
        // Only what was said was refused, and is said again.
        if tab.session.is_some() && matches!(tab.phase, Phase::Login(_)) {
            return self.go_on_after_login(key);
        }
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
