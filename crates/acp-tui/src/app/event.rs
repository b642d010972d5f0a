//! Events: what the state reacts to.

use std::path::PathBuf;
use std::sync::Arc;

use acp::client::ClientSession;
use acp::v1::{ListSessionsResponse, SessionId, StopReason};
use acp_host::AgentProcess;
use crossterm::event::{KeyEvent, MouseEvent};

use crate::agent::{AgentFailure, RunningAgent};
use crate::images::DecodeResult;

/// The index of a configured agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey(pub(crate) usize);

/// The number of an agent's start. Events of an earlier start are ignored once it was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct AgentStart(pub(crate) u64);

/// The number of a tab; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TabKey(pub(crate) u64);

/// Something that happened.
#[derive(Debug)]
pub(crate) enum ChatEvent {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse was used.
    Mouse(MouseEvent),
    /// The terminal was resized.
    Resized,
    /// There is something new in a thread, a question queue or the notes.
    Woken,
    /// Time passed; sent only while something is animated.
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
    /// An agent ended, or could not be started.
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
    /// A session was opened, or could not be.
    SessionOpened {
        tab: TabKey,
        result: Result<ClientSession, AgentFailure>,
        /// The name that was given to the session earlier, if it is an existing one.
        name: Option<String>,
    },
    /// The tab's session was given a name, or could not be.
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
    /// A page of an agent's sessions has arrived.
    SessionsListed {
        agent: AgentKey,
        result: Result<ListSessionsResponse, AgentFailure>,
        /// The names that were given to sessions.
        names: Vec<(String, SessionId)>,
    },
    SessionDeleted {
        agent: AgentKey,
        id: SessionId,
        result: Result<(), AgentFailure>,
    },
    /// The URL of a question was opened in the browser, or could not be.
    AddressOpened {
        tab: TabKey,
        question: u64,
        result: Result<(), String>,
    },
    /// The user's own editor has closed, with this text.
    ExternallyEdited { tab: TabKey, text: String },
    /// The image on the clipboard was written to this file, or there is none.
    ImagePasted {
        tab: TabKey,
        result: Result<PathBuf, String>,
    },
    /// An image was decoded, or could not be.
    ImageDecoded(DecodeResult),
    /// A note to show beside the conversation.
    Note(String),
    /// The process was asked to terminate.
    Quit,
}
