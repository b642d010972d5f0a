//! Windows over the conversation: lists to choose from, a line to fill in, help.

use std::path::PathBuf;

use acp::v1::{
    AgentCapabilities, AuthMethod, ListSessionsResponse, SessionConfigId, SessionConfigKind,
    SessionConfigOption, SessionConfigOptionValue, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionId,
};
use acp_host::clean;
use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::leaflet::Leaflet;
use super::prompt_line::PromptLine;
use super::{AgentKey, App, Effect};
use crate::agent::Trouble;
use crate::editor;
use crate::keys::{Action, Keys};
use crate::look::Look;
use crate::picker::{Item, Outcome, Picker};
use crate::setup::Open;
use crate::theme::Theme;

/// A window over the conversation.
#[allow(clippy::large_enum_variant, reason = "there is one at most")]
pub(super) enum Overlay {
    Leaflet(Leaflet),
    Palette(Picker<Action>),
    Agents(Picker<AgentKey>),
    Logins(AgentKey, Picker<AuthMethod>),
    Options(Picker<SessionConfigOption>),
    Values(Picker<(SessionConfigId, SessionConfigOptionValue)>),
    Sessions(Sessions),
    Line(For, PromptLine),
}

/// What a line is filled in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Rename,
    Attach,
    Export,
}

/// The sessions of an agent.
pub(super) struct Sessions {
    pub(super) agent: AgentKey,
    picker: Picker<SessionId>,
    /// The one that is deleted if that is asked for once more.
    doomed: Option<SessionId>,
    known: Vec<Item<SessionId>>,
}

/// How many sessions are listed at most.
const SESSIONS: usize = 2_000;

/// The letters that, with Ctrl, delete and fork the session that is selected.
const DELETE: char = 'd';
const FORK: char = 'f';

impl Sessions {
    /// Takes a page; gives where the next one begins, if there is one.
    pub(super) fn listed(
        &mut self,
        result: Result<ListSessionsResponse, Trouble>,
        names: &[(String, SessionId)],
    ) -> Option<String> {
        match result {
            Ok(page) => {
                for session in page.sessions {
                    let title = session.title.as_deref().map(clean::line);
                    let title = title.filter(|title| !title.trim().is_empty());
                    let id = session.session_id;
                    let named = names.iter().filter(|(_, session)| *session == id);
                    let named = named.map(|(name, _)| clean::line(name));
                    let called: Vec<String> = named.chain(title).collect();
                    let label = match called.is_empty() {
                        true => clean::line(id.as_str()),
                        false => called.join(" · "),
                    };
                    let when = session.updated_at.as_deref().map(super::when::ago);
                    let mut item = Item::new(id, label);
                    item.detail = when.unwrap_or_default();
                    self.known.push(item);
                }
                self.known.truncate(SESSIONS);
                self.picker.set_items(self.known.clone());
                let more = page.next_cursor.filter(|_| self.known.len() < SESSIONS);
                self.picker.set_loading(more.is_some());
                more
            }
            Err(trouble) => {
                self.picker.set_loading(false);
                self.picker.set_error(Some(trouble.in_words()));
                None
            }
        }
    }

    /// A key for the list. Deleting is asked for twice, since nothing brings a session back.
    fn key(&mut self, key: KeyEvent) -> Outcome<SessionId> {
        let outcome = self.picker.key(key);
        let doomed = self.doomed.take();
        self.picker.set_error(None);
        if let Outcome::Action(DELETE, id) = &outcome
            && doomed.as_ref() != Some(id)
        {
            let title = self.known.iter().find(|item| item.value == *id);
            let title = title.map(|item| item.label.as_str()).unwrap_or_default();
            let said = format!("Ctrl-D again deletes for good: {title}");
            self.picker.set_error(Some(said));
            self.doomed = Some(id.clone());
            return Outcome::Changed;
        }
        outcome
    }

    pub(super) fn deleted(&mut self, id: &SessionId) {
        self.known.retain(|item| item.value != *id);
        self.picker.set_items(self.known.clone());
    }
}

impl Overlay {
    pub(super) fn help(keys: &Keys, theme: &Theme) -> Self {
        Self::Leaflet(super::help::leaflet(keys, theme))
    }

    pub(super) fn agents(agents: impl Iterator<Item = (AgentKey, String)>) -> Self {
        let items = agents.map(|(key, name)| Item::new(key, name)).collect();
        Self::Agents(Picker::new("A session with", items))
    }

    pub(super) fn logins(agent: AgentKey, methods: Vec<AuthMethod>) -> Self {
        let item = |method: AuthMethod| {
            let (_, name) = method.id_and_name()?;
            let (about, how) = match &method {
                AuthMethod::Terminal(method) => (method.description.clone(), "in the terminal"),
                AuthMethod::Agent(method) => (method.description.clone(), ""),
                _ => (None, ""),
            };
            let about = about.unwrap_or_default();
            let detail = [&*about, how].into_iter().filter(|part| !part.is_empty());
            let detail = detail.collect::<Vec<_>>().join(", ");
            let mut item = Item::new(method, name);
            item.detail = detail;
            Some(item)
        };
        let items = methods.into_iter().filter_map(item).collect();
        Self::Logins(agent, Picker::new("Log in", items))
    }

    /// All options, each with what it is set to.
    pub(super) fn options(options: &[SessionConfigOption]) -> Self {
        Self::Options(Picker::new("Options", Self::options_as_set(options)))
    }

    fn options_as_set(options: &[SessionConfigOption]) -> Vec<Item<SessionConfigOption>> {
        options
            .iter()
            .map(|option| {
                let now = match &option.kind {
                    SessionConfigKind::Select(select) => select
                        .options
                        .iter()
                        .find(|o| o.value == select.current_value)
                        .map_or_else(|| select.current_value.to_string(), |o| o.name.clone()),
                    SessionConfigKind::Boolean {
                        current_value: true,
                    } => "on".to_owned(),
                    SessionConfigKind::Boolean { .. } => "off".to_owned(),
                    _ => String::new(),
                };
                let mut item = Item::new(option.clone(), &*option.name);
                item.detail = now;
                item
            })
            .collect()
    }

    /// The options are others now, or set to something else.
    pub(super) fn options_changed(&mut self, options: &[SessionConfigOption]) {
        if let Self::Options(picker) = self {
            picker.set_items(Self::options_as_set(options));
        }
    }

    /// The values of an option, in the agent's order.
    pub(super) fn values(option: &SessionConfigOption) -> Self {
        let id = || option.id.clone();
        let items = match &option.kind {
            SessionConfigKind::Select(select) => grouped(&select.options)
                .map(|(group, value)| {
                    let detail = value.description.as_deref().unwrap_or_default();
                    let set = SessionConfigOptionValue::from(value.value.clone());
                    let mut item = Item::new((id(), set), &*value.name);
                    item.detail = detail.to_owned();
                    item.current = value.value == select.current_value;
                    item.group = group.map(str::to_owned);
                    item
                })
                .collect(),
            SessionConfigKind::Boolean { current_value } => [("on", true), ("off", false)]
                .into_iter()
                .map(|(name, value)| {
                    let set = SessionConfigOptionValue::Boolean(value);
                    let mut item = Item::new((id(), set), name);
                    item.current = *current_value == value;
                    item
                })
                .collect(),
            _ => Vec::new(),
        };
        Self::Values(Picker::new(clean::line(&option.name), items))
    }

    pub(super) fn sessions(agent: AgentKey, can: &AgentCapabilities) -> Self {
        let mut picker = Picker::new("Sessions", Vec::new());
        picker.set_loading(true);
        let can = &can.session_capabilities;
        if can.fork.is_some() {
            picker = picker.action(FORK, "fork");
        }
        if can.delete.is_some() {
            picker = picker.action(DELETE, "delete");
        }
        Self::Sessions(Sessions {
            agent,
            picker,
            doomed: None,
            known: Vec::new(),
        })
    }

    pub(super) fn rename(title: &str) -> Self {
        Self::Line(For::Rename, PromptLine::new("Name of the session", title))
    }

    pub(super) fn attach() -> Self {
        Self::Line(For::Attach, PromptLine::new("File to attach", ""))
    }

    pub(super) fn export(title: Option<&str>) -> Self {
        let file = super::when::file_name(title.unwrap_or("conversation"));
        Self::Line(For::Export, PromptLine::new("Save as Markdown in", &file))
    }

    pub(super) fn paste(&mut self, text: &str) {
        match self {
            Self::Line(_, line) => line.paste(text),
            Self::Palette(picker) => drop(picker.paste(text)),
            Self::Agents(picker) => drop(picker.paste(text)),
            Self::Logins(_, picker) => drop(picker.paste(text)),
            Self::Options(picker) => drop(picker.paste(text)),
            Self::Values(picker) => drop(picker.paste(text)),
            Self::Sessions(sessions) => drop(sessions.picker.paste(text)),
            Self::Leaflet(_) => {}
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        match self {
            Self::Leaflet(leaflet) => leaflet.scroll(by),
            Self::Palette(picker) => drop(picker.scroll(by)),
            Self::Agents(picker) => drop(picker.scroll(by)),
            Self::Logins(_, picker) => drop(picker.scroll(by)),
            Self::Options(picker) => drop(picker.scroll(by)),
            Self::Values(picker) => drop(picker.scroll(by)),
            Self::Sessions(sessions) => drop(sessions.picker.scroll(by)),
            Self::Line(..) => {}
        }
    }

    pub(super) fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        look: &Look<'_>,
    ) -> Option<Position> {
        match self {
            Self::Leaflet(leaflet) => {
                leaflet.draw(area, buf, look);
                None
            }
            Self::Palette(picker) => picker.draw(area, buf, look),
            Self::Agents(picker) => picker.draw(area, buf, look),
            Self::Logins(_, picker) => picker.draw(area, buf, look),
            Self::Options(picker) => picker.draw(area, buf, look),
            Self::Values(picker) => picker.draw(area, buf, look),
            Self::Sessions(sessions) => sessions.picker.draw(area, buf, look),
            Self::Line(_, line) => line.draw(area, buf, look),
        }
    }
}

/// The values, each with the heading it stands under.
fn grouped(
    options: &SessionConfigSelectOptions,
) -> Box<dyn Iterator<Item = (Option<&str>, &SessionConfigSelectOption)> + '_> {
    match options {
        SessionConfigSelectOptions::Grouped(groups) => Box::new(groups.iter().flat_map(|group| {
            let name = group.name.as_str();
            group.options.iter().map(move |value| (Some(name), value))
        })),
        other => Box::new(other.iter().map(|value| (None, value))),
    }
}

/// What a key has made of an overlay.
enum Done {
    Stays,
    Closes,
    Palette(Action),
    Agent(AgentKey),
    Login(AgentKey, AuthMethod),
    Option(SessionConfigOption),
    Value(SessionConfigId, SessionConfigOptionValue),
    Session(AgentKey, SessionId),
    SessionAction(AgentKey, char, SessionId),
    Line(For, String),
}

fn done<T>(outcome: Outcome<T>, picked: impl FnOnce(T) -> Done) -> Done {
    match outcome {
        Outcome::Picked(value) => picked(value),
        Outcome::Closed => Done::Closes,
        _ => Done::Stays,
    }
}

impl App {
    pub(super) fn overlay_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        self.with_overlay(|overlay| match overlay {
            Overlay::Leaflet(leaflet) => match leaflet.key(key) {
                true => Done::Stays,
                false => Done::Closes,
            },
            Overlay::Palette(picker) => done(picker.key(key), Done::Palette),
            Overlay::Agents(picker) => done(picker.key(key), Done::Agent),
            Overlay::Logins(agent, picker) => {
                let agent = *agent;
                done(picker.key(key), |method| Done::Login(agent, method))
            }
            Overlay::Options(picker) => done(picker.key(key), Done::Option),
            Overlay::Values(picker) => done(picker.key(key), |(id, v)| Done::Value(id, v)),
            Overlay::Sessions(sessions) => {
                let agent = sessions.agent;
                match sessions.key(key) {
                    Outcome::Action(key, id) => Done::SessionAction(agent, key, id),
                    other => done(other, |id| Done::Session(agent, id)),
                }
            }
            Overlay::Line(what, line) => match line.key(key) {
                super::prompt_line::Outcome::Done(text) => Done::Line(*what, text),
                super::prompt_line::Outcome::Closed => Done::Closes,
                super::prompt_line::Outcome::Stays => Done::Stays,
            },
        })
    }

    /// What is clicked on is chosen.
    pub(super) fn click(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let at = Position::new(mouse.column, mouse.row);
        self.with_overlay(|overlay| match overlay {
            Overlay::Leaflet(_) | Overlay::Line(..) => Done::Stays,
            Overlay::Palette(picker) => done(picker.click(at), Done::Palette),
            Overlay::Agents(picker) => done(picker.click(at), Done::Agent),
            Overlay::Logins(agent, picker) => {
                let agent = *agent;
                done(picker.click(at), |method| Done::Login(agent, method))
            }
            Overlay::Options(picker) => done(picker.click(at), Done::Option),
            Overlay::Values(picker) => done(picker.click(at), |(id, v)| Done::Value(id, v)),
            Overlay::Sessions(sessions) => {
                let agent = sessions.agent;
                done(sessions.picker.click(at), |id| Done::Session(agent, id))
            }
        })
    }

    /// Lets the overlay have something, and does what comes of it.
    fn with_overlay(&mut self, have: impl FnOnce(&mut Overlay) -> Done) -> Vec<Effect> {
        let Some(overlay) = &mut self.overlay else {
            return Vec::new();
        };
        let done = have(overlay);
        if !matches!(done, Done::Stays | Done::SessionAction(..)) {
            self.overlay = None;
        }
        match done {
            Done::Stays | Done::Closes => Vec::new(),
            Done::Palette(action) => self.act(action),
            Done::Agent(agent) => self.new_tab(agent, Open::New),
            Done::Login(agent, method) => self.log_in_by(agent, &method),
            Done::Option(option) => {
                self.overlay = Some(Overlay::values(&option));
                Vec::new()
            }
            Done::Value(id, value) => self.set_option(id, value),
            Done::Session(agent, id) => self.open_session(agent, id),
            Done::SessionAction(agent, key, id) => self.session_action(agent, key, id),
            Done::Line(what, text) => self.line(what, &text),
        }
    }

    /// Shows a session of the list's: in the tab that has it, in this one if it is empty, else in a new one.
    fn open_session(&mut self, agent: AgentKey, id: SessionId) -> Vec<Effect> {
        let open = Open::Old(id);
        if let Some(at) = self.tabs.iter().position(|tab| tab.open == open) {
            self.show(at);
            return Vec::new();
        }
        self.new_tab(agent, open)
    }

    fn session_action(&mut self, agent: AgentKey, key: char, id: SessionId) -> Vec<Effect> {
        if key == FORK {
            self.overlay = None;
            return self.new_tab(agent, Open::Fork(id));
        }
        if self
            .tabs
            .iter()
            .any(|tab| tab.open == Open::Old(id.clone()))
        {
            let why = "this session is open in a tab: close that first";
            if let Some(Overlay::Sessions(sessions)) = &mut self.overlay {
                sessions.picker.set_error(Some(why.to_owned()));
            }
            return Vec::new();
        }
        let connection = self
            .agent(agent)
            .and_then(|agent| agent.connection().cloned());
        match connection {
            Some(connection) => vec![Effect::Delete {
                agent,
                connection,
                id,
            }],
            None => Vec::new(),
        }
    }

    fn line(&mut self, what: For, text: &str) -> Vec<Effect> {
        let cwd = self.setup.cwd.clone();
        let Some(tab) = self.tab() else {
            return Vec::new();
        };
        match what {
            For::Rename => {
                let title = clean::line(text.trim());
                if title.is_empty() {
                    tab.title = None;
                    return Vec::new();
                }
                let key = tab.key;
                self.give_name(key, title).into_iter().collect()
            }
            For::Attach => {
                let file = cwd.join(text.trim());
                if let Err(e) = std::fs::metadata(&file) {
                    self.note(format!("{}: {e}", clean::line(text.trim())));
                    return Vec::new();
                }
                if let editor::Outcome::Told(why) = tab.editor.attach(&file) {
                    self.note(why);
                }
                Vec::new()
            }
            For::Export => vec![Effect::Export {
                thread: tab.thread.clone(),
                file: PathBuf::from(&cwd).join(text.trim()),
            }],
        }
    }
}
