//! A session that is not there, or not yet: why that is so, and the keys that help.

use std::time::{Duration, Instant};

use acp::jsonrpc::Error as Rpc;
use acp_host::terminal_text;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Style;
use ratatui::text::Line;

use super::agents::{AgentState, ChatAgent};
use super::tab::{Tab, TabPhase};
use super::{App, ChatEffect};
use crate::agent::{AgentExit, AgentFailure, Remedy, tail};
use crate::keys::KeyAction;
use crate::setup::SessionSource;
use crate::text::wrap::wrap;

/// How long an agent may be silent before that is told.
const SLOW: Duration = Duration::from_secs(3);

/// How soon the key must be pressed again that ends an agent that works.
const AGAIN: Duration = Duration::from_secs(4);

/// How many lines are shown in all, and how many of them of what a silent agent has printed.
const LINES: usize = 12;
const PRINTED: usize = 4;

/// What is told, wrapped.
struct WrappedFailure {
    lines: Vec<Line<'static>>,
    width: u16,
}

impl WrappedFailure {
    fn push_text(&mut self, text: String, style: Style) {
        self.lines.extend(indented(text, style, self.width));
    }

    /// The end of what the agent has printed.
    fn push_output(&mut self, tail: &str, most: usize, style: Style) {
        let lines: Vec<&str> = tail.lines().collect();
        let from = lines.len().saturating_sub(most);
        for line in lines.get(from..).unwrap_or_default() {
            self.push_text(format!("  {}", terminal_text::clean_line(line)), style);
        }
    }
}

/// A text as lines that begin two columns in.
pub(super) fn indented(text: String, style: Style, width: u16) -> Vec<Line<'static>> {
    let mut lines = wrap(&Line::styled(text, style), width.saturating_sub(2));
    for line in &mut lines {
        line.spans.insert(0, "  ".into());
    }
    lines
}

impl App {
    /// Why the session is not there, and what can be done.
    pub(super) fn failure_lines(&self, tab: &Tab, width: u16) -> Vec<Line<'static>> {
        let theme = &self.setup.theme;
        let Some(agent) = self.agent(tab.agent) else {
            return Vec::new();
        };
        let name = terminal_text::clean_line(&agent.spec.name);
        let mut told = WrappedFailure {
            lines: Vec::new(),
            width,
        };
        match &tab.phase {
            TabPhase::Starting | TabPhase::Opening(_) => {
                let slow = self.starting_since().is_some_and(|t| t.elapsed() > SLOW);
                if slow && let Some(process) = agent.process() {
                    told.push_output(&tail(&process), PRINTED, theme.dim);
                    told.push_text(self.silent_agent_text(tab, &name), theme.warn);
                }
            }
            TabPhase::LoginRequired(what) => self.push_login_required(tab, agent, what, &mut told),
            TabPhase::Failed(trouble) => {
                match trouble {
                    AgentFailure::Exited(gone) => {
                        told.push_text(
                            format!("{name} {}", terminal_text::clean_line(&gone.description)),
                            theme.bad,
                        );
                        told.push_output(&gone.output_tail, LINES - 5, theme.dim);
                        self.push_remedy(agent, gone, &mut told);
                    }
                    other => {
                        let what = other.to_text();
                        told.push_text(format!("no session: {what}"), theme.bad);
                        let hint = agent.spec.hint.of(&what, false);
                        told.lines.extend(self.hint_lines(hint, width));
                    }
                }
                told.push_text(self.retry_text(tab, agent, trouble), theme.accent);
            }
            TabPhase::Open => {}
        }
        told.lines.truncate(LINES);
        told.lines
    }

    /// The agent has not answered for some time.
    fn silent_agent_text(&self, tab: &Tab, name: &str) -> String {
        let (again, quit) = (
            self.keys_of(KeyAction::Restart),
            self.keys_of(KeyAction::Quit),
        );
        let keys = format!("{again}: start it again   {quit}: end");
        match tab.phase {
            TabPhase::Starting => format!(
                "{name} has not answered yet. Is it an agent that speaks ACP on its stdin and stdout?   {keys}"
            ),
            _ => format!("{name} has not opened the session yet.   {keys}"),
        }
    }

    fn push_login_required(
        &self,
        tab: &Tab,
        agent: &ChatAgent,
        what: &str,
        told: &mut WrappedFailure,
    ) {
        let theme = &self.setup.theme;
        let (name, what) = (
            terminal_text::clean_line(&agent.spec.name),
            terminal_text::clean_line(what),
        );
        let again = self.key_label(tab, "r", KeyAction::Restart);
        let methods = agent.connection().map(|agent| agent.auth_methods().len());
        let hint = agent.spec.hint.of(&what, true);
        if methods == Some(0) {
            told.push_text(format!("{name} says: {what}"), theme.warn);
            told.lines.extend(self.hint_lines(hint, told.width));
            let elsewhere = "It names no way to log in from here: if that is what it wants, log in with its own program.";
            told.push_text(elsewhere.to_owned(), theme.dim);
            told.push_text(format!("{again}: try again"), theme.accent);
        } else {
            // Agents that have nothing to add say it in the words of the specification.
            let known = Rpc::auth_required().message;
            let more = match what.trim() {
                "" => String::new(),
                what if what.eq_ignore_ascii_case(&known) => String::new(),
                what => format!(": {what}"),
            };
            told.push_text(format!("{name} wants you to log in{more}"), theme.warn);
            told.lines.extend(self.hint_lines(hint, told.width));
            let login = self.key_label(tab, "l", KeyAction::Login);
            told.push_text(
                format!("{login}: log in   {again}: try again"),
                theme.accent,
            );
        }
    }

    fn hint_lines(&self, hint: Option<String>, width: u16) -> Vec<Line<'static>> {
        let warn = self.setup.theme.warn;
        hint.map(|hint| indented(hint, warn, width))
            .unwrap_or_default()
    }

    /// What may help with an agent that does not start.
    fn push_remedy(&self, agent: &ChatAgent, gone: &AgentExit, told: &mut WrappedFailure) {
        let theme = &self.setup.theme;
        match (gone.remedy, &agent.spec.install) {
            (Remedy::Install, Some(install)) => {
                told.push_text(format!("to install it: {install}"), theme.warn);
            }
            (Remedy::Version2, _) => {
                let draft = "v: speak version 2 with it, a draft that may still change";
                told.push_text(draft.to_owned(), theme.accent);
            }
            _ => {}
        }
        let said = format!("{} {}", gone.description, gone.output_tail);
        let hint = agent.spec.hint.of(&said, false);
        told.lines.extend(self.hint_lines(hint, told.width));
    }

    /// The keys for beginning again.
    fn retry_text(&self, tab: &Tab, agent: &ChatAgent, trouble: &AgentFailure) -> String {
        let again = self.key_label(tab, "r", KeyAction::Restart);
        let lost = matches!(trouble, AgentFailure::SessionNotFound(_));
        match &tab.session_source {
            SessionSource::New => format!("{again}: start again"),
            SessionSource::Existing(_) if lost => format!("{again}: a new session"),
            SessionSource::Existing(_) if agent.cannot_load => format!(
                "{again}: start again in a new session, for this agent cannot load this one; {}: save it first",
                self.keys_of(KeyAction::Palette)
            ),
            SessionSource::Existing(_) | SessionSource::Fork(_) => {
                format!("{again}: start again and load the session   n: a new session")
            }
        }
    }

    /// The short key, or that of the action while something is written, which the short one would be added to.
    fn key_label(&self, tab: &Tab, short: &str, action: KeyAction) -> String {
        match tab.editor.is_empty() {
            true => short.to_owned(),
            false => self.keys_of(action),
        }
    }

    /// Keys for a tab whose session is not there.
    pub(super) fn failure_key(&mut self, key: KeyEvent) -> Option<Vec<ChatEffect>> {
        let tab = self.tabs.get(self.active)?;
        let (tab_key, agent) = (tab.key, tab.agent);
        if !tab.editor.is_empty() || !key.modifiers.is_empty() {
            return None;
        }
        let KeyCode::Char(letter) = key.code else {
            return None;
        };
        match (&tab.phase, letter) {
            // What it knows of logins it may have read when it began.
            (TabPhase::LoginRequired(_), 'r') if tab.session.is_none() => Some(self.restart(agent)),
            (TabPhase::Failed(_) | TabPhase::LoginRequired(_), 'r') => {
                Some(self.try_again(tab_key))
            }
            (TabPhase::Failed(_), 'n') => {
                let tab = self.active_tab_mut()?;
                tab.session_source = SessionSource::New;
                Some(self.try_again(tab_key))
            }
            (TabPhase::Failed(AgentFailure::Exited(gone)), 'v')
                if gone.remedy == Remedy::Version2 =>
            {
                self.agent_mut(agent)?.speak_version_2();
                Some(self.try_again(tab_key))
            }
            (TabPhase::LoginRequired(_), 'l') => Some(self.log_in(agent)),
            _ => None,
        }
    }

    /// Begins again what the tab shows: its session, where that is not there, or else its agent.
    pub(super) fn start_again(&mut self) -> Vec<ChatEffect> {
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        let (key, agent) = (tab.key, tab.agent);
        let there = self
            .agent(agent)
            .is_some_and(|agent| matches!(agent.state, AgentState::Running(_)));
        if there && matches!(tab.phase, TabPhase::Failed(_) | TabPhase::LoginRequired(_)) {
            return self.try_again(key);
        }
        // What works is not ended by one key.
        let works = |tab: &Tab| tab.agent == agent && tab.is_working() && !tab.is_cancelled();
        let asked = self.restart_requested_at.take();
        if self.tabs.iter().any(works) && asked.is_none_or(|asked| asked.elapsed() > AGAIN) {
            self.restart_requested_at = Some(Instant::now());
            let key = self.keys_of(KeyAction::Restart);
            self.show_note(format!(
                "the agent works: {key} again ends it and starts it again"
            ));
            return Vec::new();
        }
        self.restart(agent)
    }
}
