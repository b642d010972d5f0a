//! Manages a tab, which contains a session and the prompt that the user is writing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use acp::ThreadHandle;
use acp::client::ClientSession;
use acp::v1::{
    AvailableCommand, Notice, NoticeSeverity, PromptCapabilities, SessionUpdate, StopReason,
};

use super::leave_conversation::LeavingConversation;
use super::rewind::TurnSearch;
use super::shell::RunningShell;
use super::steering::SteeringMessage;
use super::turn_history::{TurnHistory, TurnNumber};
use super::turn_position::{PromptText, TurnPosition};
use super::usage::{SessionUsage, UsageBefore};
use super::{AgentKey, ChatEffect, TabKey, commands};
use crate::agent::{AgentFailure, ChatAnswer, OpenQuestion, QuestionQueue};
use crate::editor::{FileFinder, PromptDraft, PromptEditor, PromptHistory};
use crate::question::QuestionView;
use crate::setup::{InitialOptions, SessionSource};
use crate::view::ThreadView;

/// The maximum number of queued prompts per tab.
const MAX_QUEUED_PROMPTS: usize = 32;

/// What the editor shows while the prompt is empty.
const PLACEHOLDER: &str = "Type a prompt";

/// The state of a tab's session.
pub(super) enum TabPhase {
    /// The agent has not responded yet.
    Starting,
    /// The session is being opened, and has been since this time.
    Opening(Instant),
    /// The session is open.
    Open,
    /// The agent requires a login. Contains the message from the agent.
    LoginRequired(String),
    /// The session could not be opened or was lost.
    Failed(AgentFailure),
}

/// A turn that is running in a tab.
pub(super) struct TabTurn {
    pub(super) started_at: Instant,
    /// The time at which the user cancelled the turn, if the user did.
    pub(super) cancelled_at: Option<Instant>,
    /// The usage of the session before the turn.
    usage_before: UsageBefore,
    /// The turn's prompt. It returns to the editor if it cannot be sent.
    draft: PromptDraft,
    transcript: Option<Arc<str>>,
    /// Whether the prompt is being sent, so that the agent can be steered.
    pub(super) is_sent: bool,
    /// Set when the user cancels the turn, which may be before the prompt is sent.
    cancelled: Arc<AtomicBool>,
}

/// How the last turn ended, if the user needs to know.
pub(super) enum LastTurnEnd {
    Stopped(StopReason),
    Failed(String),
}

/// A tab of the chat, with its session and prompt.
pub(super) struct Tab {
    pub(super) key: TabKey,
    pub(super) agent: AgentKey,
    /// What identifies the agent in what the chat stores.
    pub(super) storage_key: String,
    /// The source of the session, also used to reopen a lost session.
    pub(super) session_source: SessionSource,
    pub(super) phase: TabPhase,
    /// The mode and config options to set once the session is open.
    pub(super) initial_options: InitialOptions,
    /// A prompt with an unknown command, which is sent if the user submits it again.
    pub(super) unknown_command: Option<String>,
    pub(super) session: Option<ClientSession>,
    /// The session's thread. It is kept when the session is lost.
    pub(super) thread: ThreadHandle,
    pub(super) view: ThreadView,
    pub(super) editor: PromptEditor,
    pub(super) queue: VecDeque<PromptDraft>,
    /// The messages that were sent to the last turn while it was running.
    pub(super) steered: Vec<SteeringMessage>,
    pub(super) turn: Option<TabTurn>,
    pub(super) last_turn_end: Option<LastTurnEnd>,
    pub(super) history: TurnHistory,
    /// The search for turns of earlier chats, if it is not finished.
    pub(super) turn_search: Option<TurnSearch>,
    /// The conversation that was left for one that is being opened.
    pub(super) leaving: Option<LeavingConversation>,
    /// The command that the user has started with `!` and that is running.
    pub(super) shell: Option<RunningShell>,
    /// What the turns of the tab have taken.
    pub(super) usage: SessionUsage,
    /// The text of the last search in the conversation.
    pub(super) search: Option<String>,
    /// The earlier conversation as Markdown, which goes with the next prompt because the session is new.
    pub(super) transcript: Option<Arc<str>>,
    /// The view of the first open question, or `None` if there is no question.
    pub(super) question: Option<QuestionView>,
    /// The number of questions that await an answer.
    pub(super) question_count: usize,
    /// The title that the user gave the tab.
    pub(super) title: Option<String>,
    /// The name to give the session once it is open.
    pub(super) pending_name: Option<String>,
    /// Whether the tab has a new question or a finished turn that the user has not seen.
    pub(super) has_unseen: bool,
    pub(super) plan_hidden: bool,
    /// The agent's slash commands.
    pub(super) commands: Vec<AvailableCommand>,
}

impl Tab {
    pub(super) fn new(
        key: TabKey,
        agent: AgentKey,
        storage_key: String,
        open: SessionSource,
        files: FileFinder,
        history: PromptHistory,
    ) -> Self {
        let mut editor = PromptEditor::new(files, history);
        editor.set_placeholder(PLACEHOLDER);
        editor.set_commands(&commands::all_commands(&[]));
        Self {
            key,
            agent,
            storage_key,
            session_source: open,
            phase: TabPhase::Starting,
            initial_options: InitialOptions::default(),
            unknown_command: None,
            session: None,
            thread: ThreadHandle::new(),
            view: ThreadView::default(),
            editor,
            queue: VecDeque::new(),
            steered: Vec::new(),
            turn: None,
            last_turn_end: None,
            history: TurnHistory::default(),
            turn_search: None,
            leaving: None,
            shell: None,
            usage: SessionUsage::default(),
            search: None,
            transcript: None,
            question: None,
            question_count: 0,
            title: None,
            pending_name: None,
            has_unseen: false,
            plan_hidden: false,
            commands: Vec::new(),
        }
    }

    /// Returns the tab's name: the title given by the user, or otherwise the session's title.
    pub(super) fn name(&self) -> Option<String> {
        let given = || self.thread.read(|thread| thread.title().map(str::to_owned));
        self.title
            .clone()
            .or_else(given)
            .map(|title| acp_host::terminal_text::clean_line(&title))
    }

    /// Returns whether something in the tab is animated.
    pub(super) fn is_animated(&self) -> bool {
        match self.phase {
            TabPhase::Starting | TabPhase::Opening(_) => true,
            TabPhase::Open => {
                self.question.is_none() && (self.is_working() || self.shell.is_some())
            }
            TabPhase::LoginRequired(_) | TabPhase::Failed(_) => false,
        }
    }

    /// Returns whether a turn is running, or the agent reports that it is working.
    pub(super) fn is_working(&self) -> bool {
        self.turn.is_some()
            || matches!(self.phase, TabPhase::Open)
                && self.session.is_some()
                && self.thread.read(acp::Thread::is_running)
    }

    /// Returns whether the user has cancelled the agent's current work.
    pub(super) fn is_cancelled(&self) -> bool {
        self.turn.as_ref().is_some_and(|t| t.cancelled_at.is_some())
    }

    /// Updates the question shown in the tab from the queue.
    pub(super) fn update_question(&mut self, questions: &QuestionQueue, name: &str) -> bool {
        let id = self.session.as_ref().map(|session| session.id().clone());
        let mine = |asked: &Arc<OpenQuestion>| match &asked.session {
            Some(session) => id.as_ref() == Some(session),
            // A question without a session is shown in a tab that waits for the agent.
            None => !matches!(self.phase, TabPhase::Failed(_)),
        };
        let open: Vec<Arc<OpenQuestion>> = questions.open().into_iter().filter(mine).collect();
        let commands = self.thread.read(|thread| {
            let commands = thread.commands();
            (commands != self.commands).then(|| commands.to_vec())
        });
        if let Some(commands) = commands {
            self.editor.set_commands(&commands::all_commands(&commands));
            self.commands = commands;
        }
        let before = self.question_count;
        self.question_count = open.len();
        let is_asked = self.question_count > before;
        if is_asked {
            self.has_unseen = true;
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
        is_asked
    }

    /// Moves the selection in the conversation by this number of items.
    pub(super) fn select(&mut self, by: isize) {
        let view = &mut self.view;
        self.thread.read(|thread| view.select(by, thread));
    }

    /// Returns the types of content that the agent accepts in prompts.
    pub(super) fn prompt_capabilities(&self) -> PromptCapabilities {
        let session = self.session.as_ref();
        session
            .map(|session| session.agent().capabilities().prompt_capabilities.clone())
            .unwrap_or_default()
    }

    /// Submits text as if the user had typed it.
    pub(super) fn submit_text(&mut self, text: &str) -> Vec<ChatEffect> {
        self.submit(PromptDraft::from(text))
    }

    /// Sends a prompt, or queues it if a turn is running.
    pub(super) fn submit(&mut self, draft: PromptDraft) -> Vec<ChatEffect> {
        if draft.is_empty() {
            return Vec::new();
        }
        if self.queue.len() >= MAX_QUEUED_PROMPTS {
            // The prompt is returned to the editor, so that nothing the user wrote is lost.
            self.editor.set(draft);
            return vec![ChatEffect::Bell];
        }
        self.queue.push_back(draft);
        self.view.go_to_end();
        self.send_queued()
    }

    /// Sends the next queued prompt, if possible.
    pub(super) fn send_queued(&mut self) -> Vec<ChatEffect> {
        let ready = matches!(self.phase, TabPhase::Open) && self.turn.is_none();
        let Some(session) = self.session.clone().filter(|_| ready) else {
            return Vec::new();
        };
        // An agent of version 2 can work without a turn that the chat started, and reports when it is idle.
        let Some(draft) = self.queue.pop_front() else {
            return Vec::new();
        };
        self.last_turn_end = None;
        self.steered.clear();
        let transcript = self.transcript.take();
        let position = TurnPosition {
            session: session.id().clone(),
            thread: self.thread.clone(),
            item_count: self.thread.read(item_count),
            transcript: transcript.clone(),
        };
        self.view.fold(draft.folded_texts());
        let (turn, started_at, left) = self.history.start(draft.clone(), position);
        self.editor.set_placeholder(PLACEHOLDER);
        let cancelled = Arc::default();
        self.turn = Some(TabTurn {
            started_at: Instant::now(),
            cancelled_at: None,
            usage_before: self.thread.read(UsageBefore::new),
            draft: draft.clone(),
            transcript: transcript.clone(),
            is_sent: false,
            cancelled: Arc::clone(&cancelled),
        });
        let left = left.into_iter();
        let mut effects: Vec<_> = left
            .map(|session| ChatEffect::CloseSession { session })
            .collect();
        effects.push(ChatEffect::SendPrompt {
            tab: self.key,
            session,
            turn,
            agent: self.storage_key.clone(),
            started_at,
            draft,
            transcript,
            cancelled,
        });
        effects
    }

    /// Records that the turn's prompt is being sent.
    pub(super) fn on_prompt_sent(&mut self, turn: TurnNumber, text: PromptText) {
        self.history.set_text(turn, text);
        if let Some(turn) = &mut self.turn {
            turn.is_sent = true;
        }
    }

    /// Sets the earlier conversation, which goes with the next prompt.
    pub(super) fn set_transcript(&mut self, transcript: Option<Arc<str>>) {
        match &transcript {
            Some(transcript) => self.editor.set_placeholder(&format!(
                "Type a prompt; the conversation so far goes with it ({} KB)",
                transcript.len().div_ceil(1000)
            )),
            None => self.editor.set_placeholder(PLACEHOLDER),
        }
        self.transcript = transcript;
    }

    /// Returns a prompt that could not be sent to the editor.
    pub(super) fn restore_draft(&mut self, why: &str) {
        if let Some(turn) = self.turn.take() {
            self.last_turn_end = Some(match turn.cancelled_at {
                Some(_) => LastTurnEnd::Stopped(StopReason::Cancelled),
                None => LastTurnEnd::Failed(why.to_owned()),
            });
            self.history.drop_last();
            self.set_transcript(turn.transcript);
            self.return_draft(turn.draft);
        }
    }

    /// Returns an unsent prompt to the editor or, if the user is writing another prompt, to the front of the queue.
    fn return_draft(&mut self, draft: PromptDraft) {
        if self.editor.is_empty() {
            self.editor.set(draft);
        } else {
            self.queue.push_front(draft);
        }
    }

    /// Moves the last queued prompt back into the editor.
    pub(super) fn unqueue_last(&mut self) -> bool {
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

    /// Cancels the turn, or any work that the agent does outside a turn.
    pub(super) fn cancel(&mut self, questions: &QuestionQueue) -> Vec<ChatEffect> {
        let Some(session) = self.session.clone() else {
            return Vec::new();
        };
        if let Some(turn) = &mut self.turn {
            turn.cancelled_at.get_or_insert_with(Instant::now);
            turn.cancelled.store(true, Ordering::Relaxed);
        }
        questions.drop_session(session.id());
        vec![ChatEffect::CancelTurn { session }]
    }

    pub(super) fn on_turn_ended(&mut self, result: Result<StopReason, AgentFailure>) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        self.has_unseen = true;
        // After a login, the prompt is sent again.
        if !matches!(result, Err(AgentFailure::LoginRequired(_))) {
            self.thread.read(|thread| {
                let prompt = turn.draft.display_text();
                let time = turn.started_at.elapsed();
                self.usage.add(prompt, time, &turn.usage_before, thread);
            });
        }
        match result {
            Ok(StopReason::EndTurn) => {}
            Ok(reason) => self.last_turn_end = Some(LastTurnEnd::Stopped(reason)),
            Err(AgentFailure::LoginRequired(what)) => {
                // The prompt is sent again after the login. The text in the editor stays.
                self.queue.push_front(turn.draft);
                self.history.drop_last();
                self.set_transcript(turn.transcript);
                self.phase = TabPhase::LoginRequired(what);
            }
            // This is reported when the end of the agent is handled.
            Err(AgentFailure::Exited(_)) => {}
            Err(failure) => {
                self.last_turn_end = Some(LastTurnEnd::Failed(failure.to_text()));
                self.show_failure(&failure);
            }
        }
    }

    /// Shows why a turn failed in the conversation, where all of it can be read. The status line has room for its
    /// beginning.
    fn show_failure(&mut self, failure: &AgentFailure) {
        let mut notice = Notice::new(NoticeSeverity::Error, "The turn has failed:");
        notice.description = Some(failure.to_full_text());
        let update = SessionUpdate::Notice(Box::new(notice));
        self.thread.change(|thread| thread.apply(&update.into()));
    }

    pub(super) fn on_opened(&mut self, session: ClientSession) -> Vec<ChatEffect> {
        self.session_source = SessionSource::Existing(session.id().clone());
        self.thread = session.thread().clone();
        self.history.locate(session.id(), &self.thread);
        self.session = Some(session);
        self.editor
            .set_prompt_capabilities(self.prompt_capabilities());
        self.phase = TabPhase::Open;
        self.initial_options = InitialOptions::default();
        let mut effects = vec![ChatEffect::WatchThread {
            thread: self.thread.clone(),
            tab: self.key,
        }];
        effects.extend(self.send_queued());
        effects
    }

    /// Handles the end of the agent. The conversation stays visible.
    pub(super) fn on_agent_ended(&mut self, failure: &AgentFailure) {
        self.session = None;
        self.question = None;
        self.question_count = 0;
        self.has_unseen = true;
        if self.turn.take().is_some() {
            self.last_turn_end = None;
        }
        self.history.forget_conversations();
        self.phase = TabPhase::Failed(failure.clone());
    }

    /// Clears the thread before a replay.
    pub(super) fn reset(&mut self) -> Vec<ChatEffect> {
        self.session = None;
        self.turn = None;
        self.turn_search = None;
        self.question = None;
        self.question_count = 0;
        self.last_turn_end = None;
        self.history.forget_conversations();
        vec![ChatEffect::UnwatchThread { tab: self.key }]
    }

    /// Answers the open question, and shows the next one.
    pub(super) fn answer(&mut self, questions: &QuestionQueue, name: &str, answer: ChatAnswer) {
        if let Some(question) = self.question.take() {
            questions.answer(question.id(), answer);
        }
        self.update_question(questions, name);
    }
}

/// Returns the number of items in a conversation, including those that are no longer in memory.
fn item_count(thread: &acp::Thread) -> usize {
    thread.truncation().items + thread.items().len()
}
