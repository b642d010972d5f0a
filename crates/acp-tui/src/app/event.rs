//! What can happen.

use std::path::PathBuf;
use std::sync::Arc;

use acp::client::Session;
use acp::v1::{ListSessionsResponse, SessionId, StopReason};
use acp_host::AgentProcess;
use crossterm::event::{KeyEvent, MouseEvent};

use crate::agent::{Link, Trouble};
use crate::images::Done;

/// Which of the configured agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey(pub(crate) usize);

/// Which start of an agent: what an earlier one says after it was given up does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Stamp(pub(crate) u64);

/// Which tab; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TabKey(pub(crate) u64);

/// What can happen.
#[derive(Debug)]
pub(crate) enum Event {
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
    Spawned {
        agent: AgentKey,
        stamp: Stamp,
        process: Arc<AgentProcess>,
    },
    /// It has answered, and can be talked to.
    Connected {
        agent: AgentKey,
        stamp: Stamp,
        link: Link,
    },
    /// It does not run any more, or never did.
    Ended {
        agent: AgentKey,
        stamp: Stamp,
        trouble: Trouble,
    },
    LoggedIn {
        agent: AgentKey,
        result: Result<(), Trouble>,
    },
    LoggedOut {
        agent: AgentKey,
        result: Result<(), Trouble>,
    },
    /// A session is there, or not.
    Opened {
        tab: TabKey,
        result: Result<Session, Trouble>,
        /// The name that it has been given, if it is an old one.
        name: Option<String>,
    },
    /// A name was to be given to the tab's session.
    Named {
        tab: TabKey,
        name: String,
        result: Result<(), String>,
    },
    TurnEnded {
        tab: TabKey,
        result: Result<StopReason, Trouble>,
    },
    /// A prompt was not sent, for this reason.
    NotSent { tab: TabKey, why: String },
    OptionSet {
        tab: TabKey,
        result: Result<(), Trouble>,
    },
    /// A page of an agent's sessions.
    Sessions {
        agent: AgentKey,
        result: Result<ListSessionsResponse, Trouble>,
        /// The names that sessions have been given.
        names: Vec<(String, SessionId)>,
    },
    Deleted {
        agent: AgentKey,
        id: SessionId,
        result: Result<(), Trouble>,
    },
    /// The address of a question was opened where the person looks at addresses, or was not.
    AddressOpened {
        tab: TabKey,
        question: u64,
        result: Result<(), String>,
    },
    /// What was written in the person's own editor.
    Written { tab: TabKey, text: String },
    /// The image on the clipboard is in this file, or there is none.
    ImagePasted {
        tab: TabKey,
        result: Result<PathBuf, String>,
    },
    /// An image can be shown, or not.
    Decoded(Done),
    /// Something to be said beside the conversation.
    Said(String),
    /// The process is asked to end.
    Quit,
}
