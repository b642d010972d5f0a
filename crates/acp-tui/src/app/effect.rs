//! Effects: what the state asks to be done. Each is done by a task that ends with an event.

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

/// Something to be done outside the state.
pub(crate) enum ChatEffect {
    /// Start an agent.
    StartAgent {
        agent: AgentKey,
        stamp: AgentStart,
        spec: Arc<AgentSpec>,
        desk: Arc<QuestionQueue>,
        notes: Arc<ChatNotes>,
    },
    /// Stop an agent, and the processes it started.
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
    /// Send a prompt and run its turn.
    SendPrompt {
        tab: TabKey,
        session: ClientSession,
        draft: PromptDraft,
    },
    /// Cancel the turn.
    CancelTurn {
        session: ClientSession,
    },
    /// Wake the chat whenever this thread changes, as long as `session` is open.
    WatchThread {
        thread: ThreadHandle,
        tab: TabKey,
    },
    /// Stop watching the thread.
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
    /// Open a URL in the user's browser.
    OpenAddress {
        tab: TabKey,
        question: u64,
        address: WebAddress,
    },
    /// Run the agent's login program. The program has the terminal to itself while it runs.
    LogInInTerminal {
        agent: AgentKey,
        /// The agent to stop first.
        ends: Option<RunningAgent>,
        spec: Arc<AgentSpec>,
        method: AuthMethodTerminal,
    },
    /// Edit the text in the user's own editor. The editor has the terminal to itself while it runs.
    EditExternally {
        tab: TabKey,
        text: String,
    },
    /// Read the image on the desktop's clipboard.
    PasteImage {
        tab: TabKey,
    },
    /// Write the conversation to a file.
    Export {
        thread: ThreadHandle,
        file: PathBuf,
    },
    /// Decode an image.
    DecodeImage(DecodeTask),
    /// Copy text to the terminal's clipboard.
    Copy(String),
    /// Suspend the process until the shell continues it.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Ring the terminal's bell, because something waits for the user.
    Bell,
}
