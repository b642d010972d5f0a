//! The state of a chat, and what changes it.
//!
//! [`App::update`] takes an [`Event`] and gives the [`Effect`]s that are to follow; [`App::draw`] shows the state. Neither
//! waits for anything.

mod actions;
mod agents;
mod draw;
mod effect;
mod event;
mod help;
mod input;
mod leaflet;
mod overlay;
mod palette;
mod plan;
mod prompt_line;
mod tab;
#[cfg(test)]
mod tests;
mod trouble;
mod turns;
mod when;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub(crate) use effect::Effect;
pub(crate) use event::{AgentKey, Event, Stamp, TabKey};

use crate::agent::Surroundings;
use crate::editor::{Files, History};
use crate::images::{Canvas, Store, Task};
use crate::look::Look;
use crate::setup::{AgentSpec, Setup};
use agents::{Agent, AgentState};
use overlay::Overlay;
use tab::Tab;

/// How long a note stays on the screen.
const NOTE: Duration = Duration::from_secs(6);

/// How many notes are shown at once.
const NOTES: usize = 3;

/// Where the keyboard goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// To the prompt that is being written, or to the question that is open.
    Writing,
    /// To the conversation.
    Thread,
}

/// Something said beside the conversation.
struct Note {
    text: String,
    until: Instant,
}

/// The state of a chat.
pub(crate) struct App {
    setup: Setup,
    around: Arc<Surroundings>,
    agents: Vec<Agent>,
    /// What `@` completes, and what was said before: the same in all tabs.
    files: Files,
    history: History,
    images: Store,
    tabs: Vec<Tab>,
    /// Which tab is shown.
    active: usize,
    next_tab: u64,
    focus: Focus,
    overlay: Option<Overlay>,
    notes: VecDeque<Note>,
    /// When a key was pressed that ends the chat if it is pressed again.
    quitting: Option<Instant>,
    /// When it was asked for to end an agent that works and to start it again.
    restarting: Option<Instant>,
    frame: usize,
    done: bool,
}

impl App {
    /// A chat that is about to begin. `wake` is told when there is something new to see.
    pub(crate) fn new(mut setup: Setup, wake: Arc<Notify>) -> (Self, Vec<Effect>) {
        let around = Arc::new(Surroundings {
            cwd: setup.cwd.clone(),
            permissions: setup.permissions.clone(),
            sandbox: setup.sandbox.clone(),
            environment: setup.environment.clone(),
            wake: Arc::clone(&wake),
        });
        let agents = std::mem::take(&mut setup.agents);
        let agents = agents
            .into_iter()
            .map(|spec| Agent::new(Arc::new(spec), &wake))
            .collect();
        let open = setup.open.clone();
        let woken = Arc::clone(&wake);
        let files = Files::new(setup.cwd.clone(), move || woken.notify_one());
        let history = setup.history.clone().map(History::open);
        let history = match history {
            Some(Ok(history)) => history,
            Some(Err(e)) => {
                tracing::warn!("the prompts of before cannot be read: {e}");
                History::default()
            }
            None => History::default(),
        };
        let mut app = Self {
            setup,
            around,
            agents,
            files,
            history,
            images: Store::default(),
            tabs: Vec::new(),
            active: 0,
            next_tab: 0,
            focus: Focus::Writing,
            overlay: None,
            notes: VecDeque::new(),
            quitting: None,
            restarting: None,
            frame: 0,
            done: false,
        };
        let mut effects = app.new_tab(AgentKey(0), open);
        let (name, wishes) = (app.setup.name.take(), std::mem::take(&mut app.setup.wishes));
        if let Some(tab) = app.tabs.first_mut() {
            // It is opened when the agent has answered, which is later.
            (tab.to_name, tab.wishes) = (name, wishes);
        }
        if let Some(prompt) = app.setup.prompt.take()
            && let Some(tab) = app.tabs.first_mut()
        {
            effects.extend(tab.submit_text(&prompt));
        }
        (app, effects)
    }

    /// Whether it is over.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Images are shown on this from now on; not at all if there is none.
    pub(crate) fn set_canvas(&mut self, canvas: Option<Canvas>) {
        self.images.set_canvas(canvas);
    }

    /// The images that were missed in the last drawing.
    pub(crate) fn images_wanted(&mut self) -> Vec<Task> {
        self.images.wanted()
    }

    pub(crate) fn images(&mut self) -> &mut Store {
        &mut self.images
    }

    pub(crate) fn around(&self) -> &Arc<Surroundings> {
        &self.around
    }

    /// Takes what has happened.
    pub(crate) fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => self.key(key),
            Event::Paste(text) => self.paste(&text),
            Event::Mouse(mouse) => self.mouse(mouse),
            // A terminal that has become as large as it was may have lost what was drawn all the same.
            Event::Resized => vec![Effect::Redraw],
            Event::Woken => Vec::new(),
            Event::Tick => {
                self.frame = self.frame.wrapping_add(1);
                Vec::new()
            }
            Event::Spawned {
                agent,
                stamp,
                process,
            } => self.spawned(agent, stamp, process),
            Event::Connected { agent, stamp, link } => self.connected(agent, stamp, link),
            Event::Ended {
                agent,
                stamp,
                trouble,
            } => self.ended(agent, stamp, trouble),
            Event::LoggedIn { agent, result } => self.logged_in(agent, result),
            Event::LoggedOut { agent, result } => self.logged_out(agent, result),
            Event::Opened { tab, result, name } => self.opened(tab, result, name),
            Event::Named { tab, name, result } => self.named(tab, &name, result),
            Event::TurnEnded { tab, result } => self.turn_ended(tab, result),
            Event::NotSent { tab, why } => {
                if let Some(tab) = self.tab_by(tab) {
                    tab.not_sent(&why);
                }
                Vec::new()
            }
            Event::OptionSet { tab, result } => {
                if let Err(trouble) = result {
                    self.complain(tab, &trouble);
                }
                Vec::new()
            }
            Event::Sessions {
                agent,
                result,
                names,
            } => self.sessions_listed(agent, result, &names),
            Event::Deleted { agent, id, result } => self.session_deleted(agent, &id, result),
            Event::Written { tab, text } => self.written(tab, text),
            Event::ImagePasted { tab, result } => self.image_pasted(tab, result),
            Event::Decoded(image) => {
                self.images.done(image);
                Vec::new()
            }
            Event::AddressOpened {
                tab,
                question,
                result,
            } => {
                let asked = self.tab_by(tab).and_then(|tab| tab.question.as_mut());
                if let Some(asked) = asked.filter(|asked| asked.id() == question) {
                    asked.opened(result);
                }
                Vec::new()
            }
            Event::Said(text) => {
                self.note(text);
                Vec::new()
            }
            Event::Quit => self.quit(),
        }
    }

    /// Whether something on the screen moves by itself.
    pub(crate) fn is_moving(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_some_and(Tab::is_moving) || !self.notes.is_empty()
    }

    /// Whether there is more to be shown of what is on the screen than could be laid out at once.
    pub(crate) fn is_unfinished(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_some_and(|tab| tab.view.is_unfinished())
    }

    /// The wake-ups were one: notes and questions are collected.
    pub(crate) fn collect(&mut self) {
        let mut said = Vec::new();
        for agent in &self.agents {
            said.extend(agent.notes.take());
        }
        for note in said {
            self.note(note);
        }
        for tab in &mut self.tabs {
            if let Some(agent) = self.agents.get(tab.agent.0) {
                tab.collect(&agent.desk, &agent.name());
            }
        }
        // What has happened in the tab that is shown is seen now.
        if let Some(tab) = self.tab() {
            tab.unseen = false;
        }
        if matches!(self.overlay, Some(Overlay::Options(_))) {
            let options = self.options();
            if let Some(overlay) = &mut self.overlay {
                overlay.options_changed(&options);
            }
        }
        let now = Instant::now();
        self.notes.retain(|note| note.until > now);
    }

    /// Says something beside the conversation.
    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.notes.retain(|note| note.text != text);
        if self.notes.len() == NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(Note {
            text,
            until: Instant::now() + NOTE,
        });
    }

    fn tab(&mut self) -> Option<&mut Tab> {
        self.tabs.get_mut(self.active)
    }

    fn tab_by(&mut self, key: TabKey) -> Option<&mut Tab> {
        self.tabs.iter_mut().find(|tab| tab.key == key)
    }

    fn agent(&self, key: AgentKey) -> Option<&Agent> {
        self.agents.get(key.0)
    }

    fn agent_mut(&mut self, key: AgentKey) -> Option<&mut Agent> {
        self.agents.get_mut(key.0)
    }

    fn spec(&self, key: AgentKey) -> Option<Arc<AgentSpec>> {
        self.agent(key).map(|agent| Arc::clone(&agent.spec))
    }

    /// Ends everything: nothing runs on that was begun here.
    fn quit(&mut self) -> Vec<Effect> {
        self.done = true;
        for agent in &self.agents {
            agent.desk.close();
        }
        Vec::new()
    }

    /// The title of the terminal's window.
    pub(crate) fn window_title(&self) -> String {
        let waits = self.tabs.iter().any(|tab| tab.questions > 0);
        let tab = self.tabs.get(self.active);
        let name = tab.and_then(Tab::name);
        let agent = tab.and_then(|tab| Some(self.agent(tab.agent)?.name()));
        let name = name.or(agent).unwrap_or_default();
        let mark = if waits { "? " } else { "" };
        format!("{mark}{name} – acp chat")
    }

    /// The programs that are to be ended.
    pub(crate) fn processes(&self) -> Vec<Arc<acp_host::AgentProcess>> {
        self.agents.iter().filter_map(Agent::process).collect()
    }

    /// The connections that are to be ended.
    pub(crate) fn links(&self) -> Vec<crate::agent::Link> {
        self.agents.iter().filter_map(Agent::link).collect()
    }

    fn look(&self) -> Look<'_> {
        Look {
            theme: &self.setup.theme,
            cwd: &self.setup.cwd,
            frame: self.frame,
            images: self.images.canvas(),
        }
    }
}
