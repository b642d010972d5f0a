//! A session that is not there, or not yet: why that is so, and the keys that help.

use std::time::{Duration, Instant};

use acp::jsonrpc::Error as Rpc;
use acp_host::clean;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::style::Style;
use ratatui::text::Line;

use super::agents::{Agent, AgentState};
use super::tab::{Phase, Tab};
use super::{App, Effect};
use crate::agent::{Cure, Gone, Trouble, tail};
use crate::keys::Action;
use crate::setup::Open;
use crate::text::wrap::wrap;

/// How long an agent may be silent before that is told.
const SLOW: Duration = Duration::from_secs(3);

/// How soon the key must be pressed again that ends an agent that works.
const AGAIN: Duration = Duration::from_secs(4);

/// How many lines are shown in all, and how many of them of what a silent agent has printed.
const LINES: usize = 12;
const PRINTED: usize = 4;

/// What is told, wrapped.
struct Told {
    lines: Vec<Line<'static>>,
    width: u16,
}

impl Told {
    fn say(&mut self, text: String, style: Style) {
        self.lines.extend(indented(text, style, self.width));
    }

    /// The end of what the agent has printed.
    fn printed(&mut self, tail: &str, most: usize, style: Style) {
        let lines: Vec<&str> = tail.lines().collect();
        let from = lines.len().saturating_sub(most);
        for line in lines.get(from..).unwrap_or_default() {
            self.say(format!("  {}", clean::line(line)), style);
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
    pub(super) fn trouble(&self, tab: &Tab, width: u16) -> Vec<Line<'static>> {
        let theme = &self.setup.theme;
        let Some(agent) = self.agent(tab.agent) else {
            return Vec::new();
        };
        let name = clean::line(&agent.spec.name);
        let mut told = Told {
            lines: Vec::new(),
            width,
        };
        match &tab.phase {
            Phase::Starting | Phase::Opening(_) => {
                let slow = self.starting_since().is_some_and(|t| t.elapsed() > SLOW);
                if slow && let Some(process) = agent.process() {
                    told.printed(&tail(&process), PRINTED, theme.dim);
                    told.say(self.silent(tab, &name), theme.warn);
                }
            }
            Phase::Login(what) => self.login_wanted(tab, agent, what, &mut told),
            Phase::Failed(trouble) => {
                match trouble {
                    Trouble::Gone(gone) => {
                        told.say(format!("{name} {}", clean::line(&gone.what)), theme.bad);
                        told.printed(&gone.tail, LINES - 5, theme.dim);
                        self.cure(agent, gone, &mut told);
                    }
                    other => {
                        let what = other.in_words();
                        told.say(format!("no session: {what}"), theme.bad);
                        let hint = agent.spec.hint.of(&what, false);
                        told.lines.extend(self.hint(hint, width));
                    }
                }
                told.say(self.again(tab, agent, trouble), theme.accent);
            }
            Phase::Open => {}
        }
        told.lines.truncate(LINES);
        told.lines
    }

    /// The agent has not answered for some time.
    fn silent(&self, tab: &Tab, name: &str) -> String {
        let (again, quit) = (self.keys_of(Action::Restart), self.keys_of(Action::Quit));
        let keys = format!("{again}: start it again   {quit}: end");
        match tab.phase {
            Phase::Starting => format!(
                "{name} has not answered yet. Is it an agent that speaks ACP on its stdin and stdout?   {keys}"
            ),
            _ => format!("{name} has not opened the session yet.   {keys}"),
        }
    }

    fn login_wanted(&self, tab: &Tab, agent: &Agent, what: &str, told: &mut Told) {
        let theme = &self.setup.theme;
        let (name, what) = (clean::line(&agent.spec.name), clean::line(what));
        let again = self.key_or(tab, "r", Action::Restart);
        let methods = agent.connection().map(|agent| agent.auth_methods().len());
        let hint = agent.spec.hint.of(&what, true);
        if methods == Some(0) {
            told.say(format!("{name} says: {what}"), theme.warn);
            told.lines.extend(self.hint(hint, told.width));
            let elsewhere = "It names no way to log in from here: if that is what it wants, log in with its own program.";
            told.say(elsewhere.to_owned(), theme.dim);
            told.say(format!("{again}: try again"), theme.accent);
        } else {
            // Agents that have nothing to add say it in the words of the specification.
            let known = Rpc::auth_required().message;
            let more = match what.trim() {
                "" => String::new(),
                what if what.eq_ignore_ascii_case(&known) => String::new(),
                what => format!(": {what}"),
            };
            told.say(format!("{name} wants you to log in{more}"), theme.warn);
            told.lines.extend(self.hint(hint, told.width));
            let login = self.key_or(tab, "l", Action::Login);
            told.say(
                format!("{login}: log in   {again}: try again"),
                theme.accent,
            );
        }
    }

    fn hint(&self, hint: Option<String>, width: u16) -> Vec<Line<'static>> {
        let warn = self.setup.theme.warn;
        hint.map(|hint| indented(hint, warn, width))
            .unwrap_or_default()
    }

    /// What may help with an agent that does not start.
    fn cure(&self, agent: &Agent, gone: &Gone, told: &mut Told) {
        let theme = &self.setup.theme;
        match (gone.cure, &agent.spec.install) {
            (Cure::Install, Some(install)) => {
                told.say(format!("to install it: {install}"), theme.warn);
            }
            (Cure::Version2, _) => {
                let draft = "v: speak version 2 with it, a draft that may still change";
                told.say(draft.to_owned(), theme.accent);
            }
            _ => {}
        }
        let said = format!("{} {}", gone.what, gone.tail);
        let hint = agent.spec.hint.of(&said, false);
        told.lines.extend(self.hint(hint, told.width));
    }

    /// The keys for beginning again.
    fn again(&self, tab: &Tab, agent: &Agent, trouble: &Trouble) -> String {
        let again = self.key_or(tab, "r", Action::Restart);
        let lost = matches!(trouble, Trouble::NoSession(_));
        match &tab.open {
            Open::New => format!("{again}: start again"),
            Open::Old(_) if lost => format!("{again}: a new session"),
            Open::Old(_) if agent.cannot_load => format!(
                "{again}: start again in a new session, for this agent cannot load this one; {}: save it first",
                self.keys_of(Action::Palette)
            ),
            Open::Old(_) | Open::Fork(_) => {
                format!("{again}: start again and load the session   n: a new session")
            }
        }
    }

    /// The short key, or that of the action while something is written, which the short one would be added to.
    fn key_or(&self, tab: &Tab, short: &str, action: Action) -> String {
        match tab.editor.is_empty() {
            true => short.to_owned(),
            false => self.keys_of(action),
        }
    }

    /// Keys for a tab whose session is not there.
    pub(super) fn trouble_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
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
            (Phase::Login(_), 'r') if tab.session.is_none() => Some(self.restart(agent)),
            (Phase::Failed(_) | Phase::Login(_), 'r') => Some(self.try_again(tab_key)),
            (Phase::Failed(_), 'n') => {
                let tab = self.tab()?;
                tab.open = Open::New;
                Some(self.try_again(tab_key))
            }
            (Phase::Failed(Trouble::Gone(gone)), 'v') if gone.cure == Cure::Version2 => {
                self.agent_mut(agent)?.speak_version_2();
                Some(self.try_again(tab_key))
            }
            (Phase::Login(_), 'l') => Some(self.log_in(agent)),
            _ => None,
        }
    }

    /// Begins again what the tab shows: its session, where that is not there, or else its agent.
    pub(super) fn start_again(&mut self) -> Vec<Effect> {
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        let (key, agent) = (tab.key, tab.agent);
        let there = self
            .agent(agent)
            .is_some_and(|agent| matches!(agent.state, AgentState::Running(_)));
        if there && matches!(tab.phase, Phase::Failed(_) | Phase::Login(_)) {
            return self.try_again(key);
        }
        // What works is not ended by one key.
        let works = |tab: &Tab| tab.agent == agent && tab.is_working() && !tab.is_cancelled();
        let asked = self.restarting.take();
        if self.tabs.iter().any(works) && asked.is_none_or(|asked| asked.elapsed() > AGAIN) {
            self.restarting = Some(Instant::now());
            let key = self.keys_of(Action::Restart);
            self.note(format!(
                "the agent works: {key} again ends it and starts it again"
            ));
            return Vec::new();
        }
        self.restart(agent)
    }
}
