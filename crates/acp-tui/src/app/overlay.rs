//! Shows overlays: popups over the conversation, such as lists, single-line inputs and the help page.

use std::path::PathBuf;

use acp::v1::{
    AgentCapabilities, AuthMethod, ListSessionsResponse, SessionConfigId, SessionConfigKind,
    SessionConfigOption, SessionConfigOptionValue, SessionConfigSelectOption,
    SessionConfigSelectOptions, SessionId,
};
use acp_host::terminal_text;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::pager::Pager;
use super::prompt_line::PromptLine;
use super::rewind_view::{RewindOutcome, RewindScope, RewindTarget, RewindView};
use super::targets::{LinkOutcome, LinkView, OpenTarget};
use super::themes::ThemePicker;
use super::turn_history::TurnNumber;
use super::{AgentKey, App, ChatEffect};
use crate::agent::AgentFailure;
use crate::draw_context::DrawContext;
use crate::editor;
use crate::keys::{KeyAction, KeyBindings};
use crate::picker::{Picker, PickerItem, PickerOutcome, PickerPopup};
use crate::setup::SessionSource;
use crate::theme::{Theme, ThemePair};
use crate::web_address::WebAddress;

/// A popup over the conversation. It handles keys before the chat does.
#[allow(
    clippy::large_enum_variant,
    reason = "at most one overlay is open at a time"
)]
pub(super) enum ChatOverlay {
    Pager(Pager),
    Palette(Picker<KeyAction>),
    Agents(Picker<AgentKey>),
    AuthMethods(AgentKey, Picker<AuthMethod>),
    Options(Picker<SessionConfigOption>),
    Values(Picker<(SessionConfigId, SessionConfigOptionValue)>),
    Sessions(SessionPicker),
    Turns(Picker<TurnNumber>),
    Themes(ThemePicker),
    Targets(Picker<OpenTarget>),
    Link(Box<LinkView>),
    Rewind(Box<RewindView>),
    PromptLine(LinePurpose, PromptLine),
}

/// The purpose of a single-line input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinePurpose {
    Rename,
    Attach,
    Export,
    Search,
    /// What the agent is to do instead of what this question asks to allow.
    Instead(u64),
}

/// A list of an agent's sessions. The user can open, fork or delete one.
pub(super) struct SessionPicker {
    pub(super) agent: AgentKey,
    picker: Picker<SessionId>,
    /// The session to delete if Ctrl-D is pressed again.
    delete_requested: Option<SessionId>,
    items: Vec<PickerItem<SessionId>>,
    /// The id or name of the session to open as soon as it is found.
    wanted: Option<String>,
}

/// The maximum number of sessions listed.
const MAX_SESSIONS: usize = 2_000;

/// The key that, together with Ctrl, deletes the selected session.
const DELETE_KEY: char = 'd';
/// The key that, together with Ctrl, forks the selected session.
const FORK_KEY: char = 'f';

impl SessionPicker {
    /// Looks for a session by its id or name. Until it is found, the list is filtered by the text.
    pub(super) fn look_for(&mut self, id_or_name: &str) {
        self.wanted = Some(id_or_name.to_owned());
        self.picker.paste(id_or_name);
    }

    /// Returns the session that was looked for, once it is in the list.
    pub(super) fn take_found(&mut self, names: &[(String, SessionId)]) -> Option<SessionId> {
        let wanted = self.wanted.as_deref()?;
        let named = names.iter().find(|(name, _)| name == wanted);
        let id = named.map_or(wanted, |(_, id)| id.as_str());
        let mut items = self.items.iter();
        let found = items.find(|item| item.value.as_str() == id)?.value.clone();
        self.wanted = None;
        Some(found)
    }

    /// Adds a page of sessions and returns the cursor of the next page, if there is one.
    pub(super) fn add_page(
        &mut self,
        result: Result<ListSessionsResponse, AgentFailure>,
        names: &[(String, SessionId)],
    ) -> Option<String> {
        match result {
            Ok(page) => {
                for session in page.sessions {
                    let title = session.title.as_deref().map(terminal_text::clean_line);
                    let title = title.filter(|title| !title.trim().is_empty());
                    let id = session.session_id;
                    let named = names.iter().filter(|(_, session)| *session == id);
                    let named = named.map(|(name, _)| terminal_text::clean_line(name));
                    let called: Vec<String> = named.chain(title).collect();
                    let label = match called.is_empty() {
                        true => terminal_text::clean_line(id.as_str()),
                        false => called.join(" · "),
                    };
                    let when = session
                        .updated_at
                        .as_deref()
                        .map(super::time::format_time_ago);
                    let mut item = PickerItem::new(id, label);
                    item.detail = when.unwrap_or_default();
                    self.items.push(item);
                }
                self.items.truncate(MAX_SESSIONS);
                self.picker.set_items(self.items.clone());
                let more = page.next_cursor.filter(|_| self.items.len() < MAX_SESSIONS);
                self.picker.set_loading(more.is_some());
                more
            }
            Err(failure) => {
                self.picker.set_loading(false);
                self.picker.set_error(Some(failure.to_text()));
                None
            }
        }
    }

    /// Handles a key. Deleting a session requires pressing the key twice, because it cannot be undone.
    fn handle_key(&mut self, key: KeyEvent) -> PickerOutcome<SessionId> {
        // From here on, the user chooses.
        self.wanted = None;
        let outcome = self.picker.handle_key(key);
        let doomed = self.delete_requested.take();
        self.picker.set_error(None);
        if let PickerOutcome::Action(DELETE_KEY, id) = &outcome
            && doomed.as_ref() != Some(id)
        {
            let title = self.items.iter().find(|item| item.value == *id);
            let title = title.map(|item| item.label.as_str()).unwrap_or_default();
            let said = format!("Press Ctrl-D again to delete permanently: {title}");
            self.picker.set_error(Some(said));
            self.delete_requested = Some(id.clone());
            return PickerOutcome::Changed;
        }
        outcome
    }

    pub(super) fn remove(&mut self, id: &SessionId) {
        self.items.retain(|item| item.value != *id);
        self.picker.set_items(self.items.clone());
    }
}

impl ChatOverlay {
    pub(super) fn help(keys: &KeyBindings, theme: &Theme) -> Self {
        Self::Pager(super::help::help_pager(keys, theme))
    }

    pub(super) fn agents(agents: impl Iterator<Item = (AgentKey, String)>) -> Self {
        let items = agents
            .map(|(key, name)| PickerItem::new(key, name))
            .collect();
        Self::Agents(Picker::new("Select agent for new session", items))
    }

    pub(super) fn logins(agent: AgentKey, methods: Vec<AuthMethod>) -> Self {
        let item = |method: AuthMethod| {
            let (_, name) = method.id_and_name()?;
            let (about, how) = match &method {
                AuthMethod::Terminal(method) => (method.description.clone(), "in this terminal"),
                AuthMethod::Agent(method) => (method.description.clone(), ""),
                _ => (None, ""),
            };
            let about = about.unwrap_or_default();
            let detail = [&*about, how].into_iter().filter(|part| !part.is_empty());
            let detail = detail.collect::<Vec<_>>().join(", ");
            let mut item = PickerItem::new(method, name);
            item.detail = detail;
            Some(item)
        };
        let items = methods.into_iter().filter_map(item).collect();
        Self::AuthMethods(agent, Picker::new("Log in", items))
    }

    /// Builds a list of all config options and their current values.
    pub(super) fn options(options: &[SessionConfigOption]) -> Self {
        Self::Options(Picker::new("Options", Self::option_items(options)))
    }

    fn option_items(options: &[SessionConfigOption]) -> Vec<PickerItem<SessionConfigOption>> {
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
                let mut item = PickerItem::new(option.clone(), &*option.name);
                item.detail = now;
                item
            })
            .collect()
    }

    /// Updates the list after config options or their values have changed.
    pub(super) fn update_options(&mut self, options: &[SessionConfigOption]) {
        if let Self::Options(picker) = self {
            picker.set_items(Self::option_items(options));
        }
    }

    /// Builds a list of a config option's values, in the agent's order.
    pub(super) fn values(option: &SessionConfigOption) -> Self {
        let id = || option.id.clone();
        let items = match &option.kind {
            SessionConfigKind::Select(select) => grouped_values(&select.options)
                .map(|(group, value)| {
                    let detail = value.description.as_deref().unwrap_or_default();
                    let set = SessionConfigOptionValue::from(value.value.clone());
                    let mut item = PickerItem::new((id(), set), &*value.name);
                    item.detail = detail.to_owned();
                    item.is_current = value.value == select.current_value;
                    item.group = group.map(str::to_owned);
                    item
                })
                .collect(),
            SessionConfigKind::Boolean { current_value } => [("on", true), ("off", false)]
                .into_iter()
                .map(|(name, value)| {
                    let set = SessionConfigOptionValue::Boolean(value);
                    let mut item = PickerItem::new((id(), set), name);
                    item.is_current = *current_value == value;
                    item
                })
                .collect(),
            _ => Vec::new(),
        };
        Self::Values(Picker::new(terminal_text::clean_line(&option.name), items))
    }

    pub(super) fn sessions(agent: AgentKey, can: &AgentCapabilities) -> Self {
        let mut picker = Picker::new("Sessions", Vec::new());
        picker.set_loading(true);
        let can = &can.session_capabilities;
        if can.fork.is_some() {
            picker = picker.with_action(FORK_KEY, "fork");
        }
        if can.delete.is_some() {
            picker = picker.with_action(DELETE_KEY, "delete");
        }
        Self::Sessions(SessionPicker {
            agent,
            picker,
            delete_requested: None,
            items: Vec::new(),
            wanted: None,
        })
    }

    pub(super) fn rename(title: &str) -> Self {
        Self::PromptLine(LinePurpose::Rename, PromptLine::new("Session name", title))
    }

    pub(super) fn attach() -> Self {
        Self::PromptLine(LinePurpose::Attach, PromptLine::new("Attach file", ""))
    }

    pub(super) fn export(title: Option<&str>) -> Self {
        let file = super::time::export_file_name(title.unwrap_or("conversation"));
        Self::PromptLine(
            LinePurpose::Export,
            PromptLine::new("Save as Markdown to", &file),
        )
    }

    /// Returns the list of items, if the overlay is one.
    fn list(&mut self) -> Option<&mut dyn PickerPopup> {
        Some(match self {
            Self::Palette(picker) => picker,
            Self::Agents(picker) => picker,
            Self::AuthMethods(_, picker) => picker,
            Self::Options(picker) => picker,
            Self::Values(picker) => picker,
            Self::Sessions(sessions) => &mut sessions.picker,
            Self::Turns(picker) => picker,
            Self::Themes(picker) => picker,
            Self::Targets(picker) => picker,
            Self::Pager(_) | Self::Link(_) | Self::Rewind(_) | Self::PromptLine(..) => return None,
        })
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(list) = self.list() {
            list.paste(text);
        } else if let Self::PromptLine(_, line) = self {
            line.paste(text);
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        if let Some(list) = self.list() {
            return list.scroll(by);
        }
        match self {
            Self::Pager(leaflet) => leaflet.scroll(by),
            Self::Link(view) => view.scroll(by),
            Self::Rewind(view) => view.scroll(by),
            _ => {}
        }
    }

    /// Selects the item at this position. A click never chooses it: the user must see what they choose.
    pub(super) fn select_at(&mut self, at: Position) {
        if let Some(list) = self.list() {
            list.select_at(at);
        }
    }

    pub(super) fn draw(
        &mut self,
        area: Rect,
        buf: &mut Buffer,
        look: &DrawContext<'_>,
    ) -> Option<Position> {
        if let Some(list) = self.list() {
            return list.draw(area, buf, look);
        }
        match self {
            Self::Pager(leaflet) => leaflet.draw(area, buf, look),
            Self::Link(view) => view.draw(area, buf, look),
            Self::Rewind(view) => view.draw(area, buf, look),
            Self::PromptLine(_, line) => return line.draw(area, buf, look),
            _ => {}
        }
        None
    }
}

/// Returns the values of a config option, each with its group's heading.
fn grouped_values(
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

/// The effect of a key on an open overlay.
enum OverlayOutcome {
    KeepOpen,
    Close,
    KeyAction(KeyAction),
    Agent(AgentKey),
    Login(AgentKey, AuthMethod),
    Option(SessionConfigOption),
    Value(SessionConfigId, SessionConfigOptionValue),
    Session(AgentKey, SessionId),
    SessionAction(AgentKey, char, SessionId),
    Turn(TurnNumber),
    Themes(Option<Box<ThemePair>>),
    Target(OpenTarget),
    Link(WebAddress),
    Rewind(RewindScope),
    Line(LinePurpose, String),
}

fn picker_outcome<T>(
    outcome: PickerOutcome<T>,
    picked: impl FnOnce(T) -> OverlayOutcome,
) -> OverlayOutcome {
    match outcome {
        PickerOutcome::Picked(value) => picked(value),
        PickerOutcome::Closed => OverlayOutcome::Close,
        _ => OverlayOutcome::KeepOpen,
    }
}

impl App {
    pub(super) fn handle_overlay_key(&mut self, key: KeyEvent) -> Vec<ChatEffect> {
        let Some(overlay) = &mut self.overlay else {
            return Vec::new();
        };
        let done = match overlay {
            ChatOverlay::Pager(leaflet) => match leaflet.handle_key(key) {
                true => OverlayOutcome::KeepOpen,
                false => OverlayOutcome::Close,
            },
            ChatOverlay::Palette(picker) => {
                picker_outcome(picker.handle_key(key), OverlayOutcome::KeyAction)
            }
            ChatOverlay::Agents(picker) => {
                picker_outcome(picker.handle_key(key), OverlayOutcome::Agent)
            }
            ChatOverlay::AuthMethods(agent, picker) => {
                let agent = *agent;
                picker_outcome(picker.handle_key(key), |method| {
                    OverlayOutcome::Login(agent, method)
                })
            }
            ChatOverlay::Options(picker) => {
                picker_outcome(picker.handle_key(key), OverlayOutcome::Option)
            }
            ChatOverlay::Values(picker) => picker_outcome(picker.handle_key(key), |(id, v)| {
                OverlayOutcome::Value(id, v)
            }),
            ChatOverlay::Sessions(sessions) => {
                let agent = sessions.agent;
                match sessions.handle_key(key) {
                    PickerOutcome::Action(key, id) => OverlayOutcome::SessionAction(agent, key, id),
                    other => picker_outcome(other, |id| OverlayOutcome::Session(agent, id)),
                }
            }
            ChatOverlay::Turns(picker) => {
                picker_outcome(picker.handle_key(key), OverlayOutcome::Turn)
            }
            ChatOverlay::Themes(picker) => picker_outcome(picker.handle_key(key), |themes| {
                OverlayOutcome::Themes(themes.map(Box::new))
            }),
            ChatOverlay::Targets(picker) => {
                picker_outcome(picker.handle_key(key), OverlayOutcome::Target)
            }
            ChatOverlay::Link(view) => match view.handle_key(key) {
                LinkOutcome::KeepOpen => OverlayOutcome::KeepOpen,
                LinkOutcome::Close => OverlayOutcome::Close,
                LinkOutcome::Open(address) => OverlayOutcome::Link(address),
            },
            ChatOverlay::Rewind(view) => match view.handle_key(key) {
                RewindOutcome::KeepOpen => OverlayOutcome::KeepOpen,
                RewindOutcome::Close => OverlayOutcome::Close,
                RewindOutcome::Rewind(scope) => OverlayOutcome::Rewind(scope),
            },
            ChatOverlay::PromptLine(what, line) => match line.handle_key(key) {
                super::prompt_line::PromptLineOutcome::Submit(text) => {
                    OverlayOutcome::Line(*what, text)
                }
                super::prompt_line::PromptLineOutcome::Close => OverlayOutcome::Close,
                super::prompt_line::PromptLineOutcome::KeepOpen => OverlayOutcome::KeepOpen,
            },
        };
        let closed = match done {
            OverlayOutcome::KeepOpen | OverlayOutcome::SessionAction(..) => None,
            _ => self.overlay.take(),
        };
        match done {
            OverlayOutcome::KeepOpen | OverlayOutcome::Close => Vec::new(),
            OverlayOutcome::KeyAction(action) => self.perform_action(action),
            OverlayOutcome::Agent(agent) => self.new_tab(agent, SessionSource::New),
            OverlayOutcome::Login(agent, method) => self.log_in_with(agent, &method),
            OverlayOutcome::Option(option) => {
                self.overlay = Some(ChatOverlay::values(&option));
                Vec::new()
            }
            OverlayOutcome::Value(id, value) => self.set_option(id, value),
            OverlayOutcome::Session(agent, id) => self.open_session(agent, id),
            OverlayOutcome::SessionAction(agent, key, id) => {
                self.run_session_action(agent, key, id)
            }
            OverlayOutcome::Themes(themes) => {
                if let Some(themes) = themes {
                    self.use_themes(*themes);
                }
                Vec::new()
            }
            OverlayOutcome::Target(target) => self.open_target(target),
            OverlayOutcome::Link(address) => vec![ChatEffect::OpenLink(address)],
            OverlayOutcome::Turn(number) => self.start_rewind(RewindTarget::Turn(number)),
            OverlayOutcome::Rewind(scope) => match closed {
                Some(ChatOverlay::Rewind(view)) => self.rewind(*view, scope),
                _ => Vec::new(),
            },
            OverlayOutcome::Line(what, text) => self.submit_line(what, &text),
        }
    }

    /// Opens a listed session in a new tab, or switches to its tab if it is open already.
    pub(super) fn open_session(&mut self, agent: AgentKey, id: SessionId) -> Vec<ChatEffect> {
        let open = SessionSource::Existing(id);
        if let Some(at) = self.tabs.iter().position(|tab| tab.session_source == open) {
            self.show_tab(at);
            return Vec::new();
        }
        self.new_tab(agent, open)
    }

    fn run_session_action(&mut self, agent: AgentKey, key: char, id: SessionId) -> Vec<ChatEffect> {
        if key == FORK_KEY {
            self.overlay = None;
            return self.new_tab(agent, SessionSource::Fork(id));
        }
        if self
            .tabs
            .iter()
            .any(|tab| tab.session_source == SessionSource::Existing(id.clone()))
        {
            let why = "this session is open in a tab; close the tab first";
            if let Some(ChatOverlay::Sessions(sessions)) = &mut self.overlay {
                sessions.picker.set_error(Some(why.to_owned()));
            }
            return Vec::new();
        }
        let connection = self
            .agent(agent)
            .and_then(|agent| agent.connection().cloned());
        match connection {
            Some(connection) => vec![ChatEffect::DeleteSession {
                agent,
                connection,
                id,
            }],
            None => Vec::new(),
        }
    }

    pub(super) fn submit_line(&mut self, what: LinePurpose, text: &str) -> Vec<ChatEffect> {
        let cwd = self.setup.cwd.clone();
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        match what {
            LinePurpose::Rename => {
                let title = terminal_text::clean_line(text.trim());
                if title.is_empty() {
                    tab.title = None;
                    return Vec::new();
                }
                let key = tab.key;
                self.set_session_name(key, title).into_iter().collect()
            }
            LinePurpose::Attach => {
                let file = cwd.join(text.trim());
                if let Err(e) = std::fs::metadata(&file) {
                    self.show_note(format!("{}: {e}", terminal_text::clean_line(text.trim())));
                    return Vec::new();
                }
                if let editor::EditorOutcome::Note(why) = tab.editor.attach(&file) {
                    self.show_note(why);
                }
                Vec::new()
            }
            LinePurpose::Search => {
                self.search(text);
                Vec::new()
            }
            LinePurpose::Instead(question) => self.reject_and_steer(question, text),
            LinePurpose::Export => vec![ChatEffect::Export {
                thread: tab.thread.clone(),
                file: PathBuf::from(&cwd).join(text.trim()),
            }],
        }
    }
}
