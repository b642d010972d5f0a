//! Defines effects, which are work requested by the chat's state. A task performs each effect and reports the result as
//! an event.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use acp::ThreadHandle;
use acp::client::{AgentConnection, ClientSession};
use acp::v1::{
    AuthMethodId, AuthMethodTerminal, SessionConfigId, SessionConfigOptionValue, SessionId,
};
use acp_config::SessionNames;
use acp_host::AgentProcess;
use acp_rewind::{KeptTurn, RestorePlan, Snapshot};
use jiff::Timestamp;

use super::event::{AgentKey, AgentStart, TabKey};
use super::rewind_view::{RewindScope, RewindTarget};
use super::turn_history::TurnNumber;
use crate::agent::{ChatNotes, QuestionQueue, RunningAgent};
use crate::editor::PromptDraft;
use crate::images::DecodeTask;
use crate::notification::DesktopNotification;
use crate::setup::{AgentSpec, InitialOptions, SessionSource};
use crate::shell::ShellTask;
use crate::user_editor::FilePlace;
use crate::web_address::WebAddress;

/// Work that the chat's state requests but does not do itself.
pub(crate) enum ChatEffect {
    /// Start an agent.
    StartAgent {
        agent: AgentKey,
        stamp: AgentStart,
        spec: Arc<AgentSpec>,
        questions: Arc<QuestionQueue>,
        notes: Arc<ChatNotes>,
    },
    /// Stop an agent and the processes it started.
    StopAgent {
        process: Arc<AgentProcess>,
        link: Option<RunningAgent>,
        grace: Duration,
    },
    /// Open a session.
    OpenSession {
        tab: TabKey,
        /// The current time, which distinguishes this attempt to open the tab's session from others.
        since: Instant,
        link: RunningAgent,
        spec: Arc<AgentSpec>,
        how: SessionSource,
        initial_options: InitialOptions,
    },
    /// Send a prompt and wait for its turn to end.
    SendPrompt {
        tab: TabKey,
        session: ClientSession,
        turn: TurnNumber,
        /// The agent's [`AgentSpec::storage_key`].
        agent: String,
        started_at: Timestamp,
        draft: PromptDraft,
        /// The earlier conversation, as Markdown, which is sent before the prompt.
        transcript: Option<Arc<str>>,
        /// Set if the user cancels the turn before the prompt is sent.
        cancelled: Arc<AtomicBool>,
    },
    /// Send a message to the running turn.
    Steer {
        tab: TabKey,
        session: ClientSession,
        draft: PromptDraft,
    },
    /// Run a command of the user.
    RunShell {
        tab: TabKey,
        task: ShellTask,
    },
    /// Take the first snapshot of the project's files.
    KeepFiles,
    /// Find the turns of earlier chats in a session.
    FindKeptTurns {
        tab: TabKey,
        /// The agent's [`AgentSpec::storage_key`].
        agent: String,
        session: SessionId,
    },
    /// Remember turns for the next time that their session is opened.
    KeepTurns {
        turns: Vec<KeptTurn>,
    },
    /// Find out what going back to a snapshot of the files would change.
    PlanRestore {
        tab: TabKey,
        target: RewindTarget,
        to: Snapshot,
    },
    /// Go back to a snapshot of the files.
    RestoreFiles {
        tab: TabKey,
        target: RewindTarget,
        scope: RewindScope,
        plan: RestorePlan,
    },
    /// Cancel a turn.
    CancelTurn {
        session: ClientSession,
    },
    /// Wake the chat whenever this thread changes, while `session` is open.
    WatchThread {
        thread: ThreadHandle,
        tab: TabKey,
    },
    /// Stop watching a thread.
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
    /// Close a session in which nothing was said, and delete it.
    DiscardSession {
        session: ClientSession,
    },
    /// Name a session.
    NameSession {
        tab: TabKey,
        names: SessionNames,
        id: SessionId,
        name: String,
    },
    /// Give the names of a session to another one.
    MoveSessionNames {
        names: SessionNames,
        from: SessionId,
        to: SessionId,
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
    /// Look for the files and links of a conversation.
    FindTargets {
        tab: TabKey,
        thread: ThreadHandle,
        /// The number of the selected item.
        selected: Option<usize>,
    },
    /// Open a file in the user's own editor, which takes over the terminal until it exits.
    OpenFile(FilePlace),
    /// Open a link of the conversation in the user's browser.
    OpenLink(WebAddress),
    /// Run the agent's login program, which takes over the terminal until it exits.
    LogInInTerminal {
        agent: AgentKey,
        /// The agent to stop before starting the program, if any.
        ends: Option<RunningAgent>,
        spec: Arc<AgentSpec>,
        method: AuthMethodTerminal,
    },
    /// Edit the prompt in the user's own editor, which takes over the terminal until it exits.
    EditExternally {
        tab: TabKey,
        text: String,
    },
    /// Read an image from the system clipboard.
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
    /// Copy text to the clipboard through the terminal.
    Copy(String),
    /// Suspend the process until the shell resumes it.
    Suspend,
    /// Ask the terminal for its background.
    AskBackground,
    /// Redraw the whole screen.
    Redraw,
    /// Ring the terminal's bell, because a key has no effect.
    Bell,
    /// Call the user back to the terminal.
    Notify(DesktopNotification),
}
