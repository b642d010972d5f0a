//! Manages the state of a chat, and updates it in response to events.
//!
//! [`App::update`] takes a [`ChatEvent`] and returns the [`ChatEffect`]s to perform; [`App::draw`] draws the state.
//! Neither blocks.

mod actions;
mod agents;
mod attention;
mod commands;
mod draw;
mod effect;
mod event;
mod failure;
mod help;
mod input;
mod leave_conversation;
mod overlay;
mod pager;
mod palette;
mod plan;
mod prompt_line;
mod rewind;
mod rewind_view;
mod search;
mod shell;
mod steering;
mod tab;
mod targets;
#[cfg(test)]
mod tests;
mod themes;
mod time;
mod turn_history;
mod turn_position;
mod turns;
mod usage;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub(crate) use effect::ChatEffect;
pub(crate) use event::{AgentKey, AgentStart, ChatEvent, TabKey};
pub(crate) use targets::find_targets;
pub(crate) use turn_history::TurnNumber;
pub(crate) use turn_position::PromptText;

use crate::agent::ChatEnvironment;
use crate::draw_context::DrawContext;
use crate::editor::{FileFinder, PromptHistory};
use crate::file_history::FileHistory;
use crate::images::{DecodeTask, ImageCanvas, ImageStore};
use crate::setup::{AgentSpec, ChatSetup, ResumableSession};
use agents::{AgentState, ChatAgent};
use attention::UserAttention;
use overlay::ChatOverlay;
use tab::Tab;

/// How long a note is shown.
const NOTE_DURATION: Duration = Duration::from_secs(6);

/// The time within which a request to quit must be repeated if it needs a confirmation.
const QUIT_CONFIRM_TIME: Duration = Duration::from_secs(2);

/// The maximum number of notes shown at once.
const MAX_NOTES: usize = 3;

/// The part of the screen that has the keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChatFocus {
    /// The prompt editor, or the open question.
    Input,
    /// The conversation.
    Thread,
}

/// A short note shown to the user beside the conversation.
struct StatusNote {
    text: String,
    expires_at: Instant,
}

/// The state of a chat: its agents, its tabs and the open overlay.
pub(crate) struct App {
    setup: ChatSetup,
    environment: Arc<ChatEnvironment>,
    agents: Vec<ChatAgent>,
    /// The file finder for `@` completion, shared by all tabs.
    files: FileFinder,
    /// The prompt history, shared by all tabs.
    history: PromptHistory,
    images: ImageStore,
    tabs: Vec<Tab>,
    /// The index of the active tab.
    active: usize,
    next_tab: u64,
    focus: ChatFocus,
    attention: UserAttention,
    overlay: Option<ChatOverlay>,
    notes: VecDeque<StatusNote>,
    /// The time at which the user asked to quit with the current key, if the request must be repeated.
    quit_requested_at: Option<Instant>,
    /// The number of commands that the user has run so far.
    shell_count: u64,
    /// The time at which the user asked to quit with the key before.
    last_quit_request: Option<Instant>,
    /// The time at which the user pressed Esc, if it was the last key and another Esc would do something.
    escape_pressed_at: Option<Instant>,
    /// Why files are not kept, if the user was told.
    told_not_kept: Option<String>,
    /// The time at which the user first asked to restart an agent that is working.
    restart_requested_at: Option<Instant>,
    frame: usize,
    should_quit: bool,
}

impl App {
    /// Creates the state of a new chat. `wake` is notified when there is something new to show.
    pub(crate) fn new(mut setup: ChatSetup, wake: Arc<Notify>) -> (Self, Vec<ChatEffect>) {
        setup.theme = setup.themes.for_background(setup.background).clone();
        let environment = Arc::new(ChatEnvironment {
            cwd: setup.cwd.clone(),
            additional_directories: setup.additional_directories.clone(),
            permissions: setup.permissions.clone(),
            sandbox: setup.sandbox.clone(),
            environment: setup.environment.clone(),
            files: FileHistory::new(setup.cwd.clone(), setup.rewind.clone()),
            wake: Arc::clone(&wake),
        });
        let agents = std::mem::take(&mut setup.agents);
        let agents = agents
            .into_iter()
            .map(|spec| ChatAgent::new(Arc::new(spec), &wake))
            .collect();
        let open = setup.session_source.clone();
        let woken = Arc::clone(&wake);
        let files = FileFinder::new(setup.cwd.clone(), move || woken.notify_one());
        let history = setup.history.clone().map(PromptHistory::open);
        let history = match history {
            Some(Ok(history)) => history,
            Some(Err(e)) => {
                tracing::warn!("cannot read the prompt history: {e}");
                PromptHistory::default()
            }
            None => PromptHistory::default(),
        };
        let mut app = Self {
            setup,
            environment,
            agents,
            files,
            history,
            images: ImageStore::default(),
            tabs: Vec::new(),
            active: 0,
            next_tab: 0,
            focus: ChatFocus::Input,
            attention: UserAttention::new(Instant::now()),
            overlay: None,
            notes: VecDeque::new(),
            quit_requested_at: None,
            shell_count: 0,
            last_quit_request: None,
            escape_pressed_at: None,
            told_not_kept: None,
            restart_requested_at: None,
            frame: 0,
            should_quit: false,
        };
        let mut effects = app.new_tab(AgentKey(0), open);
        if app.setup.rewind.is_some() {
            effects.push(ChatEffect::KeepFiles);
        }
        let (name, initial_options) = (app.setup.name.take(), app.setup.initial_options.clone());
        if let Some(tab) = app.tabs.first_mut() {
            // The session is opened later, once the agent has responded.
            (tab.pending_name, tab.initial_options) = (name, initial_options);
        }
        if let Some(prompt) = app.setup.prompt.take()
            && let Some(tab) = app.tabs.first_mut()
        {
            effects.extend(tab.submit_text(&prompt));
        }
        (app, effects)
    }

    /// Returns whether the chat has ended.
    pub(crate) fn should_quit(&self) -> bool {
        self.should_quit
    }

    /// Sets the canvas for images, or `None` to show no images.
    pub(crate) fn set_canvas(&mut self, canvas: Option<ImageCanvas>) {
        self.images.set_canvas(canvas);
    }

    /// Returns decode tasks for the images that were missing when the screen was last drawn.
    pub(crate) fn take_decode_tasks(&mut self) -> Vec<DecodeTask> {
        self.images.take_tasks()
    }

    pub(crate) fn images(&mut self) -> &mut ImageStore {
        &mut self.images
    }

    pub(crate) fn environment(&self) -> &Arc<ChatEnvironment> {
        &self.environment
    }

    /// Handles an event and returns the effects to perform.
    pub(crate) fn update(&mut self, event: ChatEvent) -> Vec<ChatEffect> {
        if event.is_input() {
            self.attention.on_input(Instant::now());
        }
        let effects = match event {
            ChatEvent::Key(key) => self.handle_key(key),
            ChatEvent::Paste(text) => self.handle_paste(&text),
            ChatEvent::Mouse(mouse) => self.handle_mouse(mouse),
            // Even if the terminal is back at its old size, it may have lost what was drawn before.
            ChatEvent::Resized => vec![ChatEffect::Redraw],
            ChatEvent::FocusChanged { is_focused } => {
                self.attention.on_focus_changed(is_focused);
                // The terminal's colors may have changed with those of the desktop.
                match is_focused && self.setup.themes.follows_terminal() {
                    true => vec![ChatEffect::AskBackground],
                    false => Vec::new(),
                }
            }
            ChatEvent::BackgroundReported(background) => {
                self.setup.background = background;
                Vec::new()
            }
            ChatEvent::Woken => Vec::new(),
            ChatEvent::Tick => {
                self.frame = self.frame.wrapping_add(1);
                Vec::new()
            }
            ChatEvent::AgentSpawned {
                agent,
                stamp,
                process,
            } => self.on_spawned(agent, stamp, process),
            ChatEvent::AgentConnected { agent, stamp, link } => {
                self.on_connected(agent, stamp, link)
            }
            ChatEvent::AgentEnded {
                agent,
                stamp,
                failure,
            } => self.on_ended(agent, stamp, failure),
            ChatEvent::LoggedIn { agent, result } => self.on_logged_in(agent, result),
            ChatEvent::LoggedOut { agent, result } => self.on_logged_out(agent, result),
            ChatEvent::SessionOpened {
                tab,
                since,
                result,
                name,
            } => self.on_session_opened(tab, since, result, name),
            ChatEvent::SessionNamed { tab, name, result } => {
                self.on_session_named(tab, &name, result)
            }
            ChatEvent::TurnEnded { tab, result } => self.on_turn_ended(tab, result),
            ChatEvent::SnapshotTaken { tab, turn, result } => {
                self.on_snapshot_taken(tab, turn, result);
                Vec::new()
            }
            ChatEvent::RestorePlanned {
                tab,
                target,
                result,
            } => {
                self.on_restore_planned(tab, target, result);
                Vec::new()
            }
            ChatEvent::FilesRestored {
                tab,
                target,
                scope,
                before,
                result,
            } => self.on_files_restored(tab, target, scope, before, result),
            ChatEvent::Steered {
                tab,
                draft,
                outcome,
            } => self.on_steered(tab, draft, outcome),
            ChatEvent::ShellEnded { tab, result } => {
                self.on_shell_ended(tab, result);
                Vec::new()
            }
            ChatEvent::PromptSent { tab, turn, text } => {
                if let Some(tab) = self.tab_mut(tab) {
                    tab.on_prompt_sent(turn, text);
                }
                Vec::new()
            }
            ChatEvent::PromptNotSent { tab, why } => {
                if let Some(tab) = self.tab_mut(tab) {
                    tab.restore_draft(&why);
                }
                Vec::new()
            }
            ChatEvent::KeptTurnsFound {
                tab,
                session,
                turns,
            } => self.on_kept_turns_found(tab, &session, turns),
            ChatEvent::OptionSet { tab, result } => {
                if let Err(failure) = result {
                    self.show_error(tab, &failure);
                }
                Vec::new()
            }
            ChatEvent::SessionsListed {
                agent,
                result,
                names,
            } => self.on_sessions_listed(agent, result, &names),
            ChatEvent::SessionDeleted { agent, id, result } => {
                self.on_session_deleted(agent, &id, result)
            }
            ChatEvent::ExternallyEdited { tab, text } => self.on_external_edit(tab, text),
            ChatEvent::ImagePasted { tab, result } => self.on_image_pasted(tab, result),
            ChatEvent::ImageDecoded(image) => {
                self.images.add_result(image);
                Vec::new()
            }
            ChatEvent::TargetsFound { tab, targets } => {
                self.on_targets_found(tab, targets);
                Vec::new()
            }
            ChatEvent::AddressOpened {
                tab,
                question,
                result,
            } => {
                let asked = self.tab_mut(tab).and_then(|tab| tab.question.as_mut());
                if let Some(asked) = asked.filter(|asked| asked.id() == question) {
                    asked.on_address_opened(result);
                }
                Vec::new()
            }
            ChatEvent::Note(text) => {
                self.show_note(text);
                Vec::new()
            }
            ChatEvent::Quit => self.quit(),
        };
        self.show_selected_theme();
        effects
    }

    /// Returns whether anything on the screen is animated.
    pub(crate) fn is_animated(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_some_and(Tab::is_animated) || !self.notes.is_empty()
    }

    /// Returns whether anything on the screen is still being laid out.
    pub(crate) fn is_unfinished(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_some_and(|tab| tab.view.is_unfinished())
    }

    /// Collects new notes and questions. One call may handle several wake-ups.
    pub(crate) fn collect_notes_and_questions(&mut self) -> Vec<ChatEffect> {
        let mut said = Vec::new();
        for agent in &self.agents {
            said.extend(agent.notes.take());
        }
        for note in said {
            self.show_note(note);
        }
        let mut asked = Vec::new();
        for tab in &mut self.tabs {
            if let Some(agent) = self.agents.get(tab.agent.0)
                && tab.update_question(&agent.questions, &agent.name())
            {
                asked.push(tab.key);
            }
        }
        let effects = asked
            .into_iter()
            .flat_map(|tab| self.call_user(tab, "has a question"))
            .collect();
        // The user now sees what happened in the active tab.
        if let Some(tab) = self.active_tab_mut() {
            tab.has_unseen = false;
        }
        if matches!(self.overlay, Some(ChatOverlay::Options(_))) {
            let options = self.config_options();
            if let Some(overlay) = &mut self.overlay {
                overlay.update_options(&options);
            }
        }
        let now = Instant::now();
        self.notes.retain(|note| note.expires_at > now);
        effects
    }

    /// Shows a note beside the conversation.
    fn show_note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.notes.retain(|note| note.text != text);
        if self.notes.len() == MAX_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(StatusNote {
            text,
            expires_at: Instant::now() + NOTE_DURATION,
        });
    }

    fn active_tab_mut(&mut self) -> Option<&mut Tab> {
        self.tabs.get_mut(self.active)
    }

    fn tab_mut(&mut self, key: TabKey) -> Option<&mut Tab> {
        self.tabs.iter_mut().find(|tab| tab.key == key)
    }

    fn agent(&self, key: AgentKey) -> Option<&ChatAgent> {
        self.agents.get(key.0)
    }

    fn agent_mut(&mut self, key: AgentKey) -> Option<&mut ChatAgent> {
        self.agents.get_mut(key.0)
    }

    fn spec(&self, key: AgentKey) -> Option<Arc<AgentSpec>> {
        self.agent(key).map(|agent| Arc::clone(&agent.spec))
    }

    /// Quits the chat and stops everything it started.
    fn quit(&mut self) -> Vec<ChatEffect> {
        self.should_quit = true;
        for agent in &self.agents {
            agent.questions.close();
        }
        Vec::new()
    }

    /// Quits the chat, unless an agent is working. Then the user must ask twice.
    fn request_quit(&mut self) -> Vec<ChatEffect> {
        let is_confirmed = self
            .last_quit_request
            .is_some_and(|asked| asked.elapsed() < QUIT_CONFIRM_TIME);
        let working: Vec<&Tab> = self.tabs.iter().filter(|tab| tab.is_working()).collect();
        if is_confirmed || working.is_empty() {
            return self.quit();
        }
        let goes_on = |tab: &&Tab| self.agent(tab.agent).is_some_and(ChatAgent::is_live);
        let note = match working.iter().all(goes_on) {
            true => "the agent is working and goes on without you; quit again to leave",
            false => "an agent is working; quit again to stop it",
        };
        self.quit_requested_at = Some(Instant::now());
        self.show_note(note);
        Vec::new()
    }

    /// Returns the sessions with a conversation that their agents have stored.
    pub(crate) fn resumable_sessions(&self) -> Vec<ResumableSession> {
        let sessions = self.tabs.iter().filter_map(|tab| {
            let session = tab.session.as_ref()?;
            let is_stored = !self.agent(tab.agent)?.cannot_load;
            let is_empty = tab.thread.read(|thread| thread.items().is_empty());
            (is_stored && !is_empty).then(|| ResumableSession {
                agent: tab.agent.0,
                id: session.id().clone(),
                is_first: tab.key == TabKey(0),
            })
        });
        sessions.collect()
    }

    /// Returns the title for the terminal's window.
    pub(crate) fn window_title(&self) -> String {
        let waits = self.tabs.iter().any(|tab| tab.question_count > 0);
        let tab = self.tabs.get(self.active);
        let name = tab.map(|tab| self.tab_title(tab)).unwrap_or_default();
        let mark = if waits { "? " } else { "" };
        format!("{mark}{name} – acp chat")
    }

    /// Returns the name of a tab, or else of its agent.
    fn tab_title(&self, tab: &Tab) -> String {
        let agent = || Some(self.agent(tab.agent)?.name());
        tab.name().or_else(agent).unwrap_or_default()
    }

    /// Returns the agents' processes that must be stopped when the chat ends.
    pub(crate) fn processes(&self) -> Vec<Arc<acp_host::AgentProcess>> {
        self.agents.iter().filter_map(ChatAgent::process).collect()
    }

    /// Returns the agents' connections that must be closed when the chat ends.
    pub(crate) fn running_agents(&self) -> Vec<crate::agent::RunningAgent> {
        self.agents
            .iter()
            .filter_map(ChatAgent::running_agent)
            .collect()
    }

    fn draw_context(&self) -> DrawContext<'_> {
        DrawContext {
            theme: &self.setup.theme,
            cwd: &self.setup.cwd,
            frame: self.frame,
            images: self.images.canvas(),
        }
    }
}
