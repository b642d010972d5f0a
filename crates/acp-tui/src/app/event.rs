//! What can happen.

use std::path::PathBuf;
use std::sync::Arc;

use acp::client::ClientSession;
use acp::v1::{ListSessionsResponse, SessionId, StopReason};
use acp_host::AgentProcess;
use crossterm::event::{KeyEvent, MouseEvent};

use crate::agent::{AgentFailure, RunningAgent};
use crate::images::DecodeResult;

/// Which of the configured agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey(pub(crate) usize);

/// Which start of an agent: what an earlier one says after it was given up does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct AgentStart(pub(crate) u64);

/// Which tab; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TabKey(pub(crate) u64);

/// What can happen.
#[derive(Debug)]
pub(crate) enum ChatEvent {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse was used.
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resized,
    /// A thread, a question or a note is new.
    Woken,
    /// Time passes; only while something moves.
    Tick,
    /// An agent's program runs.
    AgentSpawned {
        agent: AgentKey,
        stamp: AgentStart,
        process: Arc<AgentProcess>,
    },
    /// It has answered, and can be talked to.
    AgentConnected {
        agent: AgentKey,
        stamp: AgentStart,
        link: RunningAgent,
    },
    /// It does not run any more, or never did.
    AgentEnded {
        agent: AgentKey,
        stamp: AgentStart,
        trouble: AgentFailure,
    },
    LoggedIn {
        agent: AgentKey,
        result: Result<(), AgentFailure>,
    },
    LoggedOut {
        agent: AgentKey,
        result: Result<(), AgentFailure>,
    },
    /// A session is there, or not.
    SessionOpened {
        tab: TabKey,
        result: Result<ClientSession, AgentFailure>,
        /// The name that it has been given, if it is an old one.
        name: Option<String>,
    },
    /// A name was to be given to the tab's session.
    SessionNamed {
        tab: TabKey,
        name: String,
        result: Result<(), String>,
    },
    TurnEnded {
        tab: TabKey,
        result: Result<StopReason, AgentFailure>,
    },
    /// A prompt was not sent, for this reason.
    PromptNotSent { tab: TabKey, why: String },
    OptionSet {
        tab: TabKey,
        result: Result<(), AgentFailure>,
    },
    /// A page of an agent's sessions.
    SessionsListed {
        agent: AgentKey,
        result: Result<ListSessionsResponse, AgentFailure>,
        /// The names that sessions have been given.
        names: Vec<(String, SessionId)>,
    },
    SessionDeleted {
        agent: AgentKey,
        id: SessionId,
        result: Result<(), AgentFailure>,
    },
    /// The address of a question was opened where the person looks at addresses, or was not.
    AddressOpened {
        tab: TabKey,
        question: u64,
        result: Result<(), String>,
    },
    /// What was written in the person's own editor.
    ExternallyEdited { tab: TabKey, text: String },
    /// The image on the clipboard is in this file, or there is none.
    ImagePasted {
        tab: TabKey,
        result: Result<PathBuf, String>,
    },
    /// An image can be shown, or not.
    ImageDecoded(DecodeResult),
    /// Something to be said beside the conversation.
    Note(String),
    /// The process is asked to end.
    Quit,
}
