//! Builds the failure panel, which a tab shows while its session is not open. It gives the reason, and lists the keys
//! that the user can press.

use std::time::{Duration, Instant};

use acp::jsonrpc::Error as Rpc;
use acp_host::terminal_text;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Style;
use ratatui::text::Line;

use super::agents::{AgentState, ChatAgent};
use super::tab::{Tab, TabPhase};
use super::{App, ChatEffect};
use crate::agent::{AgentExit, AgentFailure, Remedy, output_tail};
use crate::keys::KeyAction;
use crate::setup::SessionSource;
use crate::text::wrap::wrap_line;

/// How long an agent may take to respond before the panel mentions the delay.
const SLOW_RESPONSE_DELAY: Duration = Duration::from_secs(3);

/// The time within which the restart key must be pressed again to stop a working agent.
const RESTART_CONFIRM_TIME: Duration = Duration::from_secs(4);

/// The maximum height of the panel, in lines.
const MAX_PANEL_LINES: usize = 12;
/// The maximum number of output lines to show for an agent that has not responded.
const MAX_OUTPUT_LINES: usize = 4;

/// The key that opens a new session instead of one that cannot be opened. Like the keys of [`KeyAction::Restart`] and
/// [`KeyAction::Login`], it is none that begins a prompt: the user may not have noticed the failure yet.
const NEW_SESSION_KEY: (KeyCode, &str) = (KeyCode::F(7), "F7");

/// The key that allows the draft of protocol version 2.
const VERSION_2_KEY: (KeyCode, &str) = (KeyCode::F(8), "F8");

/// The wrapped lines of the failure panel.
struct FailurePanel {
    lines: Vec<Line<'static>>,
    width: u16,
}

impl FailurePanel {
    fn push_text(&mut self, text: String, style: Style) {
        self.lines.extend(wrap_indented(text, style, self.width));
    }

    /// Adds the last `most` lines of the agent's output.
    fn push_output(&mut self, tail: &str, most: usize, style: Style) {
        let lines: Vec<&str> = tail.lines().collect();
        let from = lines.len().saturating_sub(most);
        for line in lines.get(from..).unwrap_or_default() {
            self.push_text(format!("  {}", terminal_text::clean_line(line)), style);
        }
    }
}

/// Wraps text into lines indented by two columns.
pub(super) fn wrap_indented(text: String, style: Style, width: u16) -> Vec<Line<'static>> {
    let mut lines = wrap_line(&Line::styled(text, style), width.saturating_sub(2));
    for line in &mut lines {
        line.spans.insert(0, "  ".into());
    }
    lines
}

impl App {
    /// Builds the failure panel: why the session is not open, and what the user can do.
    pub(super) fn failure_lines(&self, tab: &Tab, width: u16) -> Vec<Line<'static>> {
        let theme = &self.setup.theme;
        let Some(agent) = self.agent(tab.agent) else {
            return Vec::new();
        };
        let name = terminal_text::clean_line(&agent.spec.name);
        let mut panel = FailurePanel {
            lines: Vec::new(),
            width,
        };
        match &tab.phase {
            TabPhase::Starting | TabPhase::Opening(_) => {
                let slow = self
                    .started_waiting_at()
                    .is_some_and(|t| t.elapsed() > SLOW_RESPONSE_DELAY);
                if slow && let Some(process) = agent.process() {
                    panel.push_output(&output_tail(&process), MAX_OUTPUT_LINES, theme.dim);
                    panel.push_text(self.silent_agent_text(tab, &name), theme.warn);
                }
            }
            TabPhase::LoginRequired(what) => self.push_login_required(agent, what, &mut panel),
            TabPhase::Failed(failure) => {
                match failure {
                    AgentFailure::Exited(gone) => {
                        panel.push_text(
                            format!("{name} {}", terminal_text::clean_line(&gone.description)),
                            theme.bad,
                        );
                        panel.push_output(&gone.output_tail, MAX_PANEL_LINES - 5, theme.dim);
                        self.push_remedy(agent, gone, &mut panel);
                    }
                    other => {
                        let what = other.to_text();
                        panel.push_text(format!("cannot open the session: {what}"), theme.bad);
                        let hint = agent.spec.hint.hint_for(&what, false);
                        panel.lines.extend(self.hint_lines(hint, width));
                    }
                }
                let keys = wrap_indented(self.retry_text(tab, agent, failure), theme.accent, width);
                panel
                    .lines
                    .truncate(MAX_PANEL_LINES.saturating_sub(keys.len()));
                panel.lines.extend(keys);
            }
            TabPhase::Open => {}
        }
        panel.lines.truncate(MAX_PANEL_LINES);
        panel.lines
    }

    /// Describes an agent that has not responded for a while.
    fn silent_agent_text(&self, tab: &Tab, name: &str) -> String {
        let (again, quit) = (
            self.key_name(KeyAction::Restart),
            self.key_name(KeyAction::Quit),
        );
        let keys = format!("{again}: restart agent   {quit}: quit");
        match tab.phase {
            TabPhase::Starting => format!(
                "{name} has not responded yet. Does it speak ACP on stdin and stdout?   {keys}"
            ),
            _ => format!("{name} is still opening the session.   {keys}"),
        }
    }

    fn push_login_required(&self, agent: &ChatAgent, what: &str, panel: &mut FailurePanel) {
        let theme = &self.setup.theme;
        let (name, what) = (
            terminal_text::clean_line(&agent.spec.name),
            terminal_text::clean_line(what),
        );
        let again = self.key_name(KeyAction::Restart);
        let methods = agent.connection().map(|agent| agent.auth_methods().len());
        let hint = agent.spec.hint.hint_for(&what, true);
        if methods == Some(0) {
            panel.push_text(format!("{name} says: {what}"), theme.warn);
            panel.lines.extend(self.hint_lines(hint, panel.width));
            let elsewhere = "The agent offers no way to log in from here. If it requires a login, log in with its own program.";
            panel.push_text(elsewhere.to_owned(), theme.dim);
            panel.push_text(format!("{again}: try again"), theme.accent);
        } else {
            // Agents with nothing to add send the specification's own message.
            let known = Rpc::auth_required().message;
            let more = match what.trim() {
                "" => String::new(),
                what if what.eq_ignore_ascii_case(&known) => String::new(),
                what => format!(": {what}"),
            };
            panel.push_text(format!("{name} requires you to log in{more}"), theme.warn);
            panel.lines.extend(self.hint_lines(hint, panel.width));
            let login = self.key_name(KeyAction::Login);
            panel.push_text(
                format!("{login}: log in   {again}: try again"),
                theme.accent,
            );
        }
    }

    fn hint_lines(&self, hint: Option<String>, width: u16) -> Vec<Line<'static>> {
        let warn = self.setup.theme.warn;
        hint.map(|hint| wrap_indented(hint, warn, width))
            .unwrap_or_default()
    }

    /// Adds advice on how to get the agent to start.
    fn push_remedy(&self, agent: &ChatAgent, gone: &AgentExit, panel: &mut FailurePanel) {
        let theme = &self.setup.theme;
        match (gone.remedy, &agent.spec.install) {
            (Remedy::Install, Some(install)) => {
                panel.push_text(format!("install it with: {install}"), theme.warn);
            }
            (Remedy::Version2, _) => {
                let draft = format!("{}: use protocol version 2 (draft)", VERSION_2_KEY.1);
                panel.push_text(draft, theme.accent);
            }
            _ => {}
        }
        let said = format!("{} {}", gone.description, gone.output_tail);
        let hint = agent.spec.hint.hint_for(&said, false);
        panel.lines.extend(self.hint_lines(hint, panel.width));
    }

    /// Describes the keys that try again.
    fn retry_text(&self, tab: &Tab, agent: &ChatAgent, failure: &AgentFailure) -> String {
        let again = self.key_name(KeyAction::Restart);
        let lost = matches!(failure, AgentFailure::SessionNotFound(_));
        match &tab.session_source {
            SessionSource::New => format!("{again}: retry"),
            SessionSource::Existing(_) if lost => format!("{again}: new session"),
            SessionSource::Existing(_) if agent.cannot_load => format!(
                "{again}: restart in a new session (this agent cannot load sessions); {}: save this one first",
                self.key_name(KeyAction::Palette)
            ),
            SessionSource::Existing(_) | SessionSource::Fork(_) | SessionSource::ForkAt { .. } => {
                format!(
                    "{again}: restart and load the session   {}: new session",
                    NEW_SESSION_KEY.1
                )
            }
        }
    }

    /// Handles a key that the failure panel offers, beside those of actions.
    pub(super) fn handle_failure_key(&mut self, key: KeyEvent) -> Option<Vec<ChatEffect>> {
        let tab = self.tabs.get(self.active)?;
        let (tab_key, agent_key) = (tab.key, tab.agent);
        if !key.modifiers.is_empty() {
            return None;
        }
        let offers_version_2 = matches!(
            &tab.phase,
            TabPhase::Failed(AgentFailure::Exited(gone)) if gone.remedy == Remedy::Version2
        );
        if key.code == VERSION_2_KEY.0 && offers_version_2 {
            self.agent_mut(agent_key)?.allow_version_2();
            return Some(self.reopen_session(tab_key));
        }
        if key.code == NEW_SESSION_KEY.0 && offers_new_session(tab, self.agent(agent_key)?) {
            self.active_tab_mut()?.session_source = SessionSource::New;
            return Some(self.reopen_session(tab_key));
        }
        None
    }

    /// Reopens the tab's session if only the session failed. Otherwise, restarts the agent.
    pub(super) fn retry_or_restart(&mut self) -> Vec<ChatEffect> {
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        let (key, agent) = (tab.key, tab.agent);
        let there = self
            .agent(agent)
            .is_some_and(|agent| matches!(agent.state, AgentState::Running(_)));
        let can_reopen = match tab.phase {
            TabPhase::Failed(_) => true,
            // The agent may read its credentials only when it starts.
            TabPhase::LoginRequired(_) => tab.session.is_some(),
            _ => false,
        };
        if there && can_reopen {
            return self.reopen_session(key);
        }
        // Stopping an agent that is working requires the key twice.
        let works = |tab: &Tab| tab.agent == agent && tab.is_working() && !tab.is_cancelled();
        let asked = self.restart_requested_at.take();
        if self.tabs.iter().any(works)
            && asked.is_none_or(|asked| asked.elapsed() > RESTART_CONFIRM_TIME)
        {
            self.restart_requested_at = Some(Instant::now());
            let key = self.key_name(KeyAction::Restart);
            self.show_note(format!(
                "the agent is working; press {key} again to restart it"
            ));
            return Vec::new();
        }
        self.restart(agent)
    }
}

/// Returns whether the failure panel offers a new session beside another attempt.
fn offers_new_session(tab: &Tab, agent: &ChatAgent) -> bool {
    let TabPhase::Failed(failure) = &tab.phase else {
        return false;
    };
    match &tab.session_source {
        SessionSource::New => false,
        // Another attempt opens a new session anyway.
        SessionSource::Existing(_) => {
            !agent.cannot_load && !matches!(failure, AgentFailure::SessionNotFound(_))
        }
        SessionSource::Fork(_) | SessionSource::ForkAt { .. } => true,
    }
}
