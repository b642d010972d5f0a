//! Performs [`KeyAction`]s, whether triggered by a key or from the command palette.

use std::time::Instant;

use acp::v1::{SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory};
use acp_host::terminal_text;
use ratatui::text::Line;

use super::overlay::{ChatOverlay, LinePurpose};
use super::pager::Pager;
use super::tab::TabPhase;
use super::{AgentKey, App, ChatEffect, ChatFocus};
use crate::keys::KeyAction;
use crate::setup::SessionSource;

impl KeyAction {
    /// Returns `true` for actions whose keys work even while a question is open.
    pub(super) fn works_during_questions(self) -> bool {
        use KeyAction::{
            AgentOutput, Agents, Help, NewTab, NextTab, Palette, PreviousTab, Quit, Redraw,
            Sessions, Suspend, ToEnd, ToTop,
        };
        matches!(
            self,
            Agents
                | Help
                | NewTab
                | NextTab
                | Palette
                | PreviousTab
                | Quit
                | AgentOutput
                | Redraw
                | Sessions
                | Suspend
                | ToEnd
                | ToTop
        )
    }
}

impl App {
    /// Performs an action and returns the effects that it requires.
    pub(super) fn perform_action(&mut self, action: KeyAction) -> Vec<ChatEffect> {
        let Some(tab) = self.tabs.get_mut(self.active) else {
            return Vec::new();
        };
        match action {
            KeyAction::Palette => self.overlay = Some(self.command_palette()),
            KeyAction::Help => {
                self.overlay = Some(ChatOverlay::help(&self.setup.keys, &self.setup.theme))
            }
            KeyAction::Cancel => return self.cancel(),
            KeyAction::FocusThread => match self.focus {
                ChatFocus::Input => {
                    tab.select(0);
                    self.focus = ChatFocus::Thread;
                }
                ChatFocus::Thread => self.leave_thread(),
            },
            KeyAction::ScrollUp => tab.view.scroll_up(tab.view.page_height()),
            KeyAction::ScrollDown => tab.view.scroll_down(tab.view.page_height()),
            KeyAction::ToTop => tab.view.go_to_beginning(),
            KeyAction::ToEnd => tab.view.go_to_end(),
            KeyAction::NewTab => {
                let agent = tab.agent;
                return self.new_tab(agent, SessionSource::New);
            }
            KeyAction::NextTab => self.show_tab((self.active + 1) % self.tabs.len()),
            KeyAction::PreviousTab => {
                self.show_tab((self.active + self.tabs.len() - 1) % self.tabs.len());
            }
            KeyAction::CloseTab => return self.close_tab(),
            KeyAction::Sessions => return self.list_sessions(),
            KeyAction::Clear => return self.clear_session(),
            KeyAction::Queue => return self.queue_prompt(),
            KeyAction::Undo => return self.undo(),
            KeyAction::Redo => return self.redo(),
            KeyAction::Rewind => self.show_turns(),
            KeyAction::Usage => self.show_usage(),
            KeyAction::Fork => return self.fork_session(),
            KeyAction::Rename => {
                let title = tab.name().unwrap_or_default();
                self.overlay = Some(ChatOverlay::rename(&title));
            }
            KeyAction::Agents => self.overlay = Some(self.agents_overlay()),
            KeyAction::NextMode => return self.set_next_mode(),
            KeyAction::Modes => self.choose_value(&SessionConfigOptionCategory::Mode),
            KeyAction::Models => self.choose_value(&SessionConfigOptionCategory::Model),
            KeyAction::Options => self.choose_option(),
            KeyAction::Theme => self.choose_theme(),
            KeyAction::Open => return self.list_targets(),
            KeyAction::ExpandAll => tab.view.toggle_all(),
            KeyAction::DiffLayout => tab.view.toggle_layout(),
            KeyAction::Plan => tab.plan_hidden = !tab.plan_hidden,
            KeyAction::Editor => {
                return vec![ChatEffect::EditExternally {
                    tab: tab.key,
                    text: tab.editor.text(),
                }];
            }
            KeyAction::PasteImage => {
                if !tab.prompt_capabilities().image && tab.session.is_some() {
                    self.show_note("this agent does not accept images");
                    return Vec::new();
                }
                return vec![ChatEffect::PasteImage { tab: tab.key }];
            }
            KeyAction::Attach => self.overlay = Some(ChatOverlay::attach()),
            KeyAction::Export => self.overlay = Some(ChatOverlay::export(tab.name().as_deref())),
            KeyAction::Login => {
                let agent = tab.agent;
                return self.log_in(agent);
            }
            KeyAction::Logout => {
                let agent = tab.agent;
                return self.log_out(agent);
            }
            KeyAction::Restart => return self.retry_or_restart(),
            KeyAction::AgentOutput => self.show_agent_output(),
            KeyAction::Suspend => return vec![ChatEffect::Suspend],
            KeyAction::Redraw => return vec![ChatEffect::Redraw, ChatEffect::AskBackground],
            KeyAction::Quit => return self.request_quit(),
        }
        Vec::new()
    }

    /// Performs the action of a command with an argument.
    ///
    /// # Errors
    /// The argument does not fit. Contains what to tell the user.
    pub(super) fn perform_with_argument(
        &mut self,
        action: KeyAction,
        argument: &str,
    ) -> Result<Vec<ChatEffect>, String> {
        Ok(match action {
            KeyAction::Rename => self.submit_line(LinePurpose::Rename, argument),
            KeyAction::Attach => self.submit_line(LinePurpose::Attach, argument),
            KeyAction::Export => self.submit_line(LinePurpose::Export, argument),
            KeyAction::Models => {
                return self.set_value(&SessionConfigOptionCategory::Model, argument);
            }
            KeyAction::Modes => {
                return self.set_value(&SessionConfigOptionCategory::Mode, argument);
            }
            KeyAction::Theme => {
                self.use_theme(argument)?;
                Vec::new()
            }
            KeyAction::Sessions => {
                let effects = self.list_sessions();
                if let Some(ChatOverlay::Sessions(sessions)) = &mut self.overlay {
                    sessions.look_for(argument);
                }
                effects
            }
            other => self.perform_action(other),
        })
    }

    /// Sets the config option in this category to a value, given by its id or its name.
    fn set_value(
        &mut self,
        category: &SessionConfigOptionCategory,
        wanted: &str,
    ) -> Result<Vec<ChatEffect>, String> {
        let options = self.config_options();
        let option = options
            .iter()
            .find(|option| option.category.as_ref() == Some(category));
        let Some((option, SessionConfigKind::Select(select))) =
            option.map(|option| (option, &option.kind))
        else {
            return Err(format!("this agent has no {category} option"));
        };
        let find = |is_it: &dyn Fn(&str) -> bool| {
            let mut values = select.options.iter();
            values.find(|value| is_it(value.value.as_ref()) || is_it(&value.name))
        };
        let value = find(&|text| text == wanted)
            .or_else(|| find(&|text| text.to_lowercase() == wanted.to_lowercase()));
        match value {
            Some(value) => Ok(self.set_option(option.id.clone(), value.value.clone().into())),
            None => {
                let known: Vec<String> = select
                    .options
                    .iter()
                    .map(|value| value.value.to_string())
                    .collect();
                Err(format!(
                    "no {category} `{wanted}`; use one of {}",
                    known.join(", ")
                ))
            }
        }
    }

    /// Logs out of an agent, if it is connected.
    fn log_out(&self, agent: AgentKey) -> Vec<ChatEffect> {
        let connection = self
            .agent(agent)
            .and_then(|agent| agent.connection().cloned());
        match connection {
            Some(connection) => vec![ChatEffect::LogOut { agent, connection }],
            None => Vec::new(),
        }
    }

    /// Shows tab number `n`.
    pub(super) fn show_tab(&mut self, n: usize) {
        if n < self.tabs.len() {
            self.leave_thread();
            self.active = n;
            if let Some(question) = self.active_tab_mut().and_then(|tab| tab.question.as_mut()) {
                question.on_shown(Instant::now());
            }
        }
    }

    /// Closes the active tab. Closing the last tab quits the chat.
    fn close_tab(&mut self) -> Vec<ChatEffect> {
        if self.tabs.len() == 1 {
            return self.request_quit();
        }
        let mut tab = self.tabs.remove(self.active);
        self.active = self.active.min(self.tabs.len() - 1);
        self.focus = ChatFocus::Input;
        let mut effects = vec![ChatEffect::UnwatchThread { tab: tab.key }];
        let left = tab.history.forget_undone().into_iter();
        effects.extend(left.map(|session| ChatEffect::CloseSession { session }));
        if let Some(session) = tab.session {
            if tab.turn.is_some() {
                effects.push(ChatEffect::CancelTurn {
                    session: session.clone(),
                });
            }
            effects.push(ChatEffect::CloseSession { session });
        }
        effects
    }

    /// Lists the agent's sessions in this directory.
    fn list_sessions(&mut self) -> Vec<ChatEffect> {
        let Some(key) = self.tabs.get(self.active).map(|tab| tab.agent) else {
            return Vec::new();
        };
        let Some(connection) = self
            .agent(key)
            .and_then(|agent| agent.connection().cloned())
        else {
            self.show_note("the agent is not running");
            return Vec::new();
        };
        let can = &connection.capabilities().session_capabilities;
        if can.list.is_none() {
            self.show_note("this agent cannot list sessions");
            return Vec::new();
        }
        self.overlay = Some(ChatOverlay::sessions(key, connection.capabilities()));
        let names = self.spec(key).and_then(|spec| spec.names.clone());
        vec![ChatEffect::ListSessions {
            agent: key,
            connection,
            names,
            cwd: self.setup.cwd.clone(),
            cursor: None,
        }]
    }

    /// Shows the agent's stderr, and the noise from its stdout.
    fn show_agent_output(&mut self) {
        let tab = self.tabs.get(self.active);
        let agent = tab.and_then(|tab| self.agent(tab.agent));
        let printed = agent.and_then(|agent| agent.last_process.as_ref());
        let printed = printed.map(|process| process.output_tail());
        let printed = printed.filter(|printed| !printed.trim().is_empty());
        let Some(printed) = printed else {
            self.show_note("the agent has no log output");
            return;
        };
        let lines = printed.lines();
        let lines =
            lines.map(|line| Line::styled(terminal_text::clean_line(line), self.setup.theme.text));
        let leaflet = Pager::new("Agent log", lines.collect());
        self.overlay = Some(ChatOverlay::Pager(leaflet.scrolled_to_end()));
    }

    fn fork_session(&mut self) -> Vec<ChatEffect> {
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        let (agent, session) = (tab.agent, tab.session.clone());
        let Some(session) = session else {
            self.show_note("no session to fork");
            return Vec::new();
        };
        if session
            .agent()
            .capabilities()
            .session_capabilities
            .fork
            .is_none()
        {
            self.show_note("this agent cannot fork sessions");
            return Vec::new();
        }
        self.new_tab(agent, SessionSource::Fork(session.id().clone()))
    }

    fn agents_overlay(&self) -> ChatOverlay {
        let agents = self.agents.iter().enumerate();
        ChatOverlay::agents(agents.map(|(n, agent)| (AgentKey(n), agent.spec.name.clone())))
    }

    /// Returns the config options of the active tab's session.
    pub(super) fn config_options(&self) -> Vec<SessionConfigOption> {
        let tab = self.tabs.get(self.active);
        tab.map(|tab| tab.thread.read(|thread| thread.config_options().to_vec()))
            .unwrap_or_default()
    }

    /// Switches to the next mode in the list, wrapping around after the last one.
    fn set_next_mode(&mut self) -> Vec<ChatEffect> {
        let options = self.config_options();
        let mode = options
            .iter()
            .find(|o| o.category == Some(SessionConfigOptionCategory::Mode));
        let Some((option, SessionConfigKind::Select(select))) = mode.map(|o| (o, &o.kind)) else {
            self.show_note("this agent has no modes");
            return Vec::new();
        };
        let values: Vec<_> = select.options.iter().map(|o| o.value.clone()).collect();
        let at = values.iter().position(|v| *v == select.current_value);
        let next = at.map_or(0, |at| (at + 1) % values.len().max(1));
        match values.into_iter().nth(next) {
            Some(value) => self.set_option(option.id.clone(), value.into()),
            None => Vec::new(),
        }
    }

    /// Opens a list of values for the config option in this category.
    fn choose_value(&mut self, category: &SessionConfigOptionCategory) {
        let options = self.config_options();
        let option = options
            .iter()
            .find(|o| o.category.as_ref() == Some(category));
        match option {
            Some(option) => self.overlay = Some(ChatOverlay::values(option)),
            None => self.show_note(format!("this agent has no {category} option")),
        }
    }

    /// Opens a list of all config options.
    fn choose_option(&mut self) {
        let options = self.config_options();
        if options.is_empty() {
            self.show_note("this session has no options");
        } else {
            self.overlay = Some(ChatOverlay::options(&options));
        }
    }

    pub(super) fn set_option(
        &mut self,
        id: acp::v1::SessionConfigId,
        value: acp::v1::SessionConfigOptionValue,
    ) -> Vec<ChatEffect> {
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        let key = tab.key;
        match tab.session.clone() {
            Some(session) => vec![ChatEffect::SetOption {
                tab: key,
                session,
                id,
                value,
            }],
            None => {
                self.show_note("the session is not open");
                Vec::new()
            }
        }
    }

    /// Returns the time at which the active tab's agent was started, or `None` if the agent has already responded.
    pub(super) fn started_waiting_at(&self) -> Option<Instant> {
        let tab = self.tabs.get(self.active)?;
        match (&tab.phase, &self.agent(tab.agent)?.state) {
            (TabPhase::Starting, super::AgentState::Starting { since, .. }) => Some(*since),
            (TabPhase::Opening(since), _) => Some(*since),
            _ => None,
        }
    }
}
