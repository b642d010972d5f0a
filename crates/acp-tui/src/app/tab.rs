//! A tab: one session, with what is being written for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use acp::ThreadHandle;
use acp::client::Session;
use acp::v1::{AvailableCommand, PromptCapabilities, StopReason};

use super::{AgentKey, Effect, TabKey};
use crate::agent::{Answer, Asked, Desk, Trouble};
use crate::editor::{Draft, Editor, Files, History};
use crate::question::QuestionView;
use crate::setup::{Open, Wishes};
use crate::view::ThreadView;

/// How many prompts wait for their turn at most.
const QUEUED: usize = 32;

/// How far a session is.
pub(super) enum Phase {
    /// Its agent has not answered yet.
    Starting,
    /// It is being opened since then.
    Opening(Instant),
    /// It is there.
    Open,
    /// One must log in first; the agent's words.
    Login(String),
    /// It is not there, or not any more.
    Failed(Trouble),
}

/// A turn that runs.
pub(super) struct Turn {
    pub(super) since: Instant,
    /// The person has cancelled it.
    pub(super) cancelled: Option<Instant>,
    /// What it was begun with: given back if it could not begin.
    draft: Draft,
}

/// How the last turn ended, if that is worth saying.
pub(super) enum Ending {
    Stopped(StopReason),
    Failed(String),
}

/// A tab.
pub(super) struct Tab {
    pub(super) key: TabKey,
    pub(super) agent: AgentKey,
    /// How its session is come by, also when it is lost.
    pub(super) open: Open,
    pub(super) phase: Phase,
    /// What the session is to be brought into when it is there.
    pub(super) wishes: Wishes,
    pub(super) session: Option<Session>,
    /// What there is to see; it stays when the session is lost.
    pub(super) thread: ThreadHandle,
    pub(super) view: ThreadView,
    pub(super) editor: Editor,
    pub(super) queue: VecDeque<Draft>,
    pub(super) turn: Option<Turn>,
    pub(super) ending: Option<Ending>,
    /// The first of the questions that wait.
    pub(super) question: Option<QuestionView>,
    /// How many wait.
    pub(super) questions: usize,
    /// The person's own title.
    pub(super) title: Option<String>,
    /// The name that its session is to be given once it is there.
    pub(super) to_name: Option<String>,
    /// Something has ended or is asked that was not looked at yet.
    pub(super) unseen: bool,
    pub(super) plan_hidden: bool,
    /// The commands that the editor completes.
    commands: Vec<AvailableCommand>,
}

impl Tab {
    pub(super) fn new(
        key: TabKey,
        agent: AgentKey,
        open: Open,
        files: Files,
        history: History,
    ) -> Self {
        let mut editor = Editor::new(files, history);
        editor.set_placeholder("What is to be done?");
        Self {
            key,
            agent,
            open,
            phase: Phase::Starting,
            wishes: Wishes::default(),
            session: None,
            thread: ThreadHandle::new(),
            view: ThreadView::default(),
            editor,
            queue: VecDeque::new(),
            turn: None,
            ending: None,
            question: None,
            questions: 0,
            title: None,
            to_name: None,
            unseen: false,
            plan_hidden: false,
            commands: Vec::new(),
        }
    }

    /// What it is called.
    pub(super) fn name(&self) -> Option<String> {
        let given = || self.thread.read(|thread| thread.title().map(str::to_owned));
        self.title
            .clone()
            .or_else(given)
            .map(|title| acp_host::clean::line(&title))
    }

    /// Whether something on the screen moves by itself.
    pub(super) fn is_moving(&self) -> bool {
        match self.phase {
            Phase::Starting | Phase::Opening(_) => true,
            Phase::Open => self.question.is_none() && self.is_working(),
            Phase::Login(_) | Phase::Failed(_) => false,
        }
    }

    /// Whether a turn runs, or the agent says that it works.
    pub(super) fn is_working(&self) -> bool {
        self.turn.is_some()
            || matches!(self.phase, Phase::Open)
                && self.session.is_some()
                && self.thread.read(acp::Thread::is_running)
    }

    /// Whether the person has cancelled what it works on.
    pub(super) fn is_cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(|t| t.cancelled.is_some())
    }

    /// Takes what is asked now from the desk.
    pub(super) fn collect(&mut self, desk: &Desk, name: &str) {
        let id = self.session.as_ref().map(|session| session.id().clone());
        let mine = |asked: &Arc<Asked>| match &asked.session {
            Some(session) => id.as_ref() == Some(session),
            // What belongs to no session is asked in the tab that waits for it.
            None => !matches!(self.phase, Phase::Failed(_)),
        };
        let open: Vec<Arc<Asked>> = desk.open().into_iter().filter(mine).collect();
        let commands = self.thread.read(|thread| {
            let commands = thread.commands();
            (commands != self.commands).then(|| commands.to_vec())
        });
        if let Some(commands) = commands {
            self.editor.set_commands(&commands);
            self.commands = commands;
        }
        let before = self.questions;
        self.questions = open.len();
        if self.questions > before {
            self.unseen = true;
        }
        match open.into_iter().next() {
            None => self.question = None,
            Some(first) => {
                let known = self.question.as_ref().is_some_and(|q| q.id() == first.id);
                if !known {
                    self.question = Some(QuestionView::new(first, name, Instant::now()));
                }
            }
        }
    }

    /// Another item of the conversation is chosen: so many on, or back.
    pub(super) fn select(&mut self, by: isize) {
        let view = &mut self.view;
        self.thread.read(|thread| view.select(by, thread));
    }

    /// What the agent takes in prompts.
    pub(super) fn takes(&self) -> PromptCapabilities {
        let session = self.session.as_ref();
        session
            .map(|session| session.agent().capabilities().prompt_capabilities.clone())
            .unwrap_or_default()
    }

    /// Text as if it had been written and sent.
    pub(super) fn submit_text(&mut self, text: &str) -> Vec<Effect> {
        self.submit(Draft::from(text))
    }

    /// Says it, now or when it is its turn.
    pub(super) fn submit(&mut self, draft: Draft) -> Vec<Effect> {
        if draft.is_empty() {
            return Vec::new();
        }
        if self.queue.len() >= QUEUED {
            // Given back, for nothing that was written is lost.
            self.editor.set(draft);
            return vec![Effect::Bell];
        }
        self.queue.push_back(draft);
        self.view.go_to_end();
        self.go_on()
    }

    /// Says what waits, if it can be said now.
    pub(super) fn go_on(&mut self) -> Vec<Effect> {
        let ready = matches!(self.phase, Phase::Open) && self.turn.is_none();
        let Some(session) = self.session.clone().filter(|_| ready) else {
            return Vec::new();
        };
        // An agent of version 2 may work without a turn of ours, and says when it is idle.
        let Some(draft) = self.queue.pop_front() else {
            return Vec::new();
        };
        self.ending = None;
        self.turn = Some(Turn {
            since: Instant::now(),
            cancelled: None,
            draft: draft.clone(),
        });
        vec![Effect::Prompt {
            tab: self.key,
            session,
            draft,
        }]
    }

    /// The turn could not begin: nothing was sent, and nothing of what was written is lost.
    pub(super) fn not_sent(&mut self, why: &str) {
        if let Some(turn) = self.turn.take() {
            self.ending = Some(Ending::Failed(why.to_owned()));
            self.give_back(turn.draft);
        }
    }

    /// Puts what could not be said where it was written, unless something else is being written there.
    fn give_back(&mut self, draft: Draft) {
        if self.editor.is_empty() {
            self.editor.set(draft);
        } else {
            self.queue.push_front(draft);
        }
    }

    /// Takes the prompt that was queued last back into the editor.
    pub(super) fn take_back(&mut self) -> bool {
        if !self.editor.is_empty() {
            return false;
        }
        match self.queue.pop_back() {
            Some(draft) => {
                self.editor.set(draft);
                true
            }
            None => false,
        }
    }

    /// Cancels the turn, or what the agent does by itself.
    pub(super) fn cancel(&mut self, desk: &Desk) -> Vec<Effect> {
        let Some(session) = self.session.clone() else {
            return Vec::new();
        };
        if let Some(turn) = &mut self.turn {
            turn.cancelled.get_or_insert_with(Instant::now);
        }
        desk.drop_session(session.id());
        vec![Effect::Cancel { session }]
    }

    pub(super) fn turn_ended(&mut self, result: Result<StopReason, Trouble>) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        self.unseen = true;
        match result {
            Ok(StopReason::EndTurn) => {}
            Ok(reason) => self.ending = Some(Ending::Stopped(reason)),
            Err(Trouble::Login(what)) => {
                // It is said again once that is done; what is being written stays.
                self.queue.push_front(turn.draft);
                self.phase = Phase::Login(what);
            }
            // Told by the end of the agent.
            Err(Trouble::Gone(_)) => {}
            Err(trouble) => {
                self.ending = Some(Ending::Failed(trouble.in_words()));
            }
        }
    }

    pub(super) fn opened(&mut self, session: Session) -> Vec<Effect> {
        self.open = Open::Old(session.id().clone());
        self.thread = session.thread().clone();
        self.session = Some(session);
        self.editor.set_takes(self.takes());
        self.phase = Phase::Open;
        self.wishes = Wishes::default();
        let mut effects = vec![Effect::Watch {
            thread: self.thread.clone(),
            tab: self.key,
        }];
        effects.extend(self.go_on());
        effects
    }

    /// The agent is gone. What it has said stays.
    pub(super) fn agent_ended(&mut self, trouble: &Trouble) {
        self.session = None;
        self.question = None;
        self.questions = 0;
        self.unseen = true;
        if self.turn.take().is_some() {
            self.ending = None;
        }
        self.phase = Phase::Failed(trouble.clone());
    }

    /// Forgets what the session showed: it is about to be told again.
    pub(super) fn begin_again(&mut self) -> Vec<Effect> {
        self.session = None;
        self.turn = None;
        self.question = None;
        self.questions = 0;
        self.ending = None;
        vec![Effect::Unwatch { tab: self.key }]
    }

    /// Answers the question that is open.
    pub(super) fn answer(&mut self, desk: &Desk, name: &str, answer: Answer) {
        if let Some(question) = self.question.take() {
            desk.answer(question.id(), answer);
        }
        self.collect(desk, name);
    }
}
