//! What is to be done: each by a task that ends with an event.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acp::ThreadHandle;
use acp::client::{AgentConnection, ClientSession};
use acp::v1::{
    AuthMethodId, AuthMethodTerminal, SessionConfigId, SessionConfigOptionValue, SessionId,
};
use acp_config::SessionNames;
use acp_host::AgentProcess;

use super::event::{AgentKey, AgentStart, TabKey};
use crate::agent::{ChatNotes, QuestionQueue, RunningAgent};
use crate::editor::PromptDraft;
use crate::images::DecodeTask;
use crate::question::WebAddress;
use crate::setup::{AgentSpec, InitialOptions, SessionSource};

/// What is to be done.
pub(crate) enum ChatEffect {
    /// Start an agent.
    StartAgent {
        agent: AgentKey,
        stamp: AgentStart,
        spec: Arc<AgentSpec>,
        desk: Arc<QuestionQueue>,
        notes: Arc<ChatNotes>,
    },
    /// End it, with what it has begun.
    StopAgent {
        process: Arc<AgentProcess>,
        link: Option<RunningAgent>,
        grace: Duration,
    },
    /// Open a session.
    OpenSession {
        tab: TabKey,
        link: RunningAgent,
        spec: Arc<AgentSpec>,
        how: SessionSource,
        wishes: InitialOptions,
    },
    /// Run a turn.
    SendPrompt {
        tab: TabKey,
        session: ClientSession,
        draft: PromptDraft,
    },
    /// Cancel it.
    CancelTurn {
        session: ClientSession,
    },
    /// Wake the chat whenever this thread changes, as long as `session` is there.
    WatchThread {
        thread: ThreadHandle,
        tab: TabKey,
    },
    /// Watch no more.
    UnwatchThread {
        tab: TabKey,
    },
    SetOption {
        tab: TabKey,
        session: ClientSession,
        id: SessionConfigId,
        value: SessionConfigOptionValue,
    },
    CloseSession {
        session: ClientSession,
    },
    /// Give a session a name.
    NameSession {
        tab: TabKey,
        names: SessionNames,
        id: SessionId,
        name: String,
    },
    ListSessions {
        agent: AgentKey,
        connection: AgentConnection,
        names: Option<SessionNames>,
        cwd: PathBuf,
        cursor: Option<String>,
    },
    DeleteSession {
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
        address: WebAddress,
    },
    /// Run the agent's program for logging in, which has the terminal for itself meanwhile.
    LogInInTerminal {
        agent: AgentKey,
        /// What is to end first.
        ends: Option<RunningAgent>,
        spec: Arc<AgentSpec>,
        method: AuthMethodTerminal,
    },
    /// Write in the person's own editor, which has the terminal for itself meanwhile.
    EditExternally {
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
    DecodeImage(DecodeTask),
    /// Copy text to the clipboard of the person's terminal.
    Copy(String),
    /// Stop, until the shell has the process go on.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// Ring the terminal's bell: something waits for the person.
    Bell,
}
