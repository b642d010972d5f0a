//! What is to be done: each by a task that ends with an event.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acp::ThreadHandle;
use acp::client::{AgentConnection, Session};
use acp::v1::{
    AuthMethodId, AuthMethodTerminal, SessionConfigId, SessionConfigOptionValue, SessionId,
};
use acp_config::SessionNames;
use acp_host::AgentProcess;

use super::event::{AgentKey, Stamp, TabKey};
use crate::agent::{Desk, Link, Notes};
use crate::editor::Draft;
use crate::images::Task;
use crate::question::Address;
use crate::setup::{AgentSpec, Open, Wishes};

/// What is to be done.
pub(crate) enum Effect {
    /// Start an agent.
    Start {
        agent: AgentKey,
        stamp: Stamp,
        spec: Arc<AgentSpec>,
        desk: Arc<Desk>,
        notes: Arc<Notes>,
    },
    /// End it, with what it has begun.
    End {
        process: Arc<AgentProcess>,
        link: Option<Link>,
        grace: Duration,
    },
    /// Open a session.
    Open {
        tab: TabKey,
        link: Link,
        spec: Arc<AgentSpec>,
        how: Open,
        wishes: Wishes,
    },
    /// Run a turn.
    Prompt {
        tab: TabKey,
        session: Session,
        draft: Draft,
    },
    /// Cancel it.
    Cancel {
        session: Session,
    },
    /// Wake the chat whenever this thread changes, as long as `session` is there.
    Watch {
        thread: ThreadHandle,
        tab: TabKey,
    },
    /// Watch no more.
    Unwatch {
        tab: TabKey,
    },
    SetOption {
        tab: TabKey,
        session: Session,
        id: SessionConfigId,
        value: SessionConfigOptionValue,
    },
    Close {
        session: Session,
    },
    /// Give a session a name.
    Name {
        tab: TabKey,
        names: SessionNames,
        id: SessionId,
        name: String,
    },
    List {
        agent: AgentKey,
        connection: AgentConnection,
        names: Option<SessionNames>,
        cwd: PathBuf,
        cursor: Option<String>,
    },
    Delete {
        agent: AgentKey,
        connection: AgentConnection,
        id: SessionId,
    },
    LogIn {
        agent: AgentKey,
        connection: AgentConnection,
        method: AuthMethodId,
    },
    LogOut {
        agent: AgentKey,
        connection: AgentConnection,
    },
    /// Open an address where the person looks at addresses.
    OpenAddress {
        tab: TabKey,
        question: u64,
        address: Address,
    },
    /// Run the agent's program for logging in, which has the terminal for itself meanwhile.
    LogInInTerminal {
        agent: AgentKey,
        /// What is to end first.
        ends: Option<Link>,
        spec: Arc<AgentSpec>,
        method: AuthMethodTerminal,
    },
    /// Write in the person's own editor, which has the terminal for itself meanwhile.
    Write {
        tab: TabKey,
        text: String,
    },
    /// Take the image on the clipboard of the person's desktop.
    PasteImage {
        tab: TabKey,
    },
    /// Write the conversation into a file.
    Export {
        thread: ThreadHandle,
        file: PathBuf,
    },
    /// Decode an image.
    Decode(Task),
    /// Copy text to the clipboard of the person's terminal.
    Copy(String),
    /// Stop, until the shell has the process go on.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// Ring the terminal's bell: something waits for the person.
    Bell,
}
