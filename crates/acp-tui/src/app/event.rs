//! Defines the events that change the chat's state.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use acp::client::ClientSession;
use acp::v1::{ListSessionsResponse, SessionId, SteeringOutcome, StopReason};
use acp_config::Background;
use acp_host::AgentProcess;
use acp_rewind::{KeptTurn, SkippedPath, Snapshot};
use crossterm::event::{KeyEvent, MouseEvent};

use super::rewind_view::{RewindScope, RewindTarget};
use super::targets::FoundTargets;
use super::turn_history::TurnNumber;
use super::turn_position::PromptText;
use crate::agent::{AgentFailure, RunningAgent};
use crate::editor::PromptDraft;
use crate::file_history::{RestoreFailure, RestorePreview};
use crate::images::DecodeResult;
use crate::shell::ShellOutput;

/// The index of a configured agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey(pub(crate) usize);

/// A number that identifies one start of an agent. Events from earlier starts are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct AgentStart(pub(crate) u64);

/// The unique id of a tab. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TabKey(pub(crate) u64);

/// An event that the chat's state handles.
#[derive(Debug)]
pub(crate) enum ChatEvent {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse was moved, clicked or scrolled.
    Mouse(MouseEvent),
    /// The terminal's window gained or lost the keyboard focus.
    FocusChanged { is_focused: bool },
    /// The terminal has reported its background.
    BackgroundReported(Background),
    /// The terminal was resized.
    Resized,
    /// A thread, a question queue or the notes changed.
    Woken,
    /// An animation step is due. Sent only while something is animated.
    Tick,
    /// An agent's program was started.
    AgentSpawned {
        agent: AgentKey,
        stamp: AgentStart,
        process: Arc<AgentProcess>,
    },
    /// An agent has responded, and the connection is open.
    AgentConnected {
        agent: AgentKey,
        stamp: AgentStart,
        link: RunningAgent,
    },
    /// An agent ended or could not be started.
    AgentEnded {
        agent: AgentKey,
        stamp: AgentStart,
        failure: AgentFailure,
    },
    LoggedIn {
        agent: AgentKey,
        result: Result<(), AgentFailure>,
    },
    LoggedOut {
        agent: AgentKey,
        result: Result<(), AgentFailure>,
    },
    /// The turns of earlier chats in a session were found.
    KeptTurnsFound {
        tab: TabKey,
        session: SessionId,
        turns: Vec<KeptTurn>,
    },
    /// A session was opened, or opening it failed.
    SessionOpened {
        tab: TabKey,
        /// When opening the session began. The tab may have turned to another session since.
        since: Instant,
        result: Result<ClientSession, AgentFailure>,
        /// The stored name of the session, if it already existed and has one.
        name: Option<String>,
    },
    /// The tab's session was named, or naming it failed.
    SessionNamed {
        tab: TabKey,
        name: String,
        result: Result<(), String>,
    },
    TurnEnded {
        tab: TabKey,
        result: Result<StopReason, AgentFailure>,
    },
    /// A snapshot of the files before a turn was taken, or could not be.
    SnapshotTaken {
        tab: TabKey,
        turn: TurnNumber,
        result: Result<Snapshot, String>,
    },
    /// It is known what going back to a snapshot would change.
    RestorePlanned {
        tab: TabKey,
        target: RewindTarget,
        result: Result<Box<RestorePreview>, String>,
    },
    /// The files were restored, or not.
    FilesRestored {
        tab: TabKey,
        target: RewindTarget,
        scope: RewindScope,
        /// The files before they were restored.
        before: Snapshot,
        result: Result<Vec<SkippedPath>, RestoreFailure>,
    },
    /// A command of the user has exited, or could not be started.
    ShellEnded {
        tab: TabKey,
        result: Result<ShellOutput, String>,
    },
    /// The prompt of a turn is about to be sent.
    PromptSent {
        tab: TabKey,
        turn: TurnNumber,
        /// The prompt, without what goes with it.
        text: PromptText,
    },
    /// The agent has answered a message to its running turn, or the message could not be sent.
    Steered {
        tab: TabKey,
        draft: PromptDraft,
        outcome: Result<SteeringOutcome, String>,
    },
    /// A prompt could not be sent.
    PromptNotSent { tab: TabKey, why: String },
    OptionSet {
        tab: TabKey,
        result: Result<(), AgentFailure>,
    },
    /// A page of an agent's session list arrived.
    SessionsListed {
        agent: AgentKey,
        result: Result<ListSessionsResponse, AgentFailure>,
        /// The stored names of sessions, with the session ids.
        names: Vec<(String, SessionId)>,
    },
    SessionDeleted {
        agent: AgentKey,
        id: SessionId,
        result: Result<(), AgentFailure>,
    },
    /// The files and links of a conversation were found.
    TargetsFound { tab: TabKey, targets: FoundTargets },
    /// A question's URL was opened in the browser, or opening it failed.
    AddressOpened {
        tab: TabKey,
        question: u64,
        result: Result<(), String>,
    },
    /// The user's own editor exited. Contains the edited text.
    ExternallyEdited { tab: TabKey, text: String },
    /// The image on the clipboard was written to a file, or reading it failed.
    ImagePasted {
        tab: TabKey,
        result: Result<PathBuf, String>,
    },
    /// An image was decoded, or decoding it failed.
    ImageDecoded(DecodeResult),
    /// A note to show beside the conversation.
    Note(String),
    /// The process was asked to terminate.
    Quit,
}

impl ChatEvent {
    /// Returns whether the user did something at the terminal.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::Key(_) | Self::Paste(_) | Self::Mouse(_))
    }
}
