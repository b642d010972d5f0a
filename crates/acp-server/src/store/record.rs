//! What a store of live sessions contains.

use std::fmt;
use std::sync::Arc;

use super::error::LiveStoreError;

/// The number of ended prompts that are kept of a session.
pub(crate) const MAX_ENDED_PROMPTS: usize = 64;

/// Identifies a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LiveSessionKey {
    /// The name of the agent.
    pub agent: String,
    /// The id that the agent has given to the session.
    pub session: String,
}

/// Identifies a server. It is random, so a server that starts again is another node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeId(pub String);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A server that uses the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its id.
    pub id: NodeId,
    /// The URL at which the other servers reach it. `None` if they cannot.
    pub address: Option<String>,
}

/// Belongs to one owner of a session. Each new owner gets a higher one, and the store rejects changes with a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FencingToken(pub i64);

/// What a session is, beside its log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionHead {
    /// The working directory.
    pub cwd: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The name of the user who has created the session, if they have a token of their own.
    pub creator: Option<String>,
    /// The agent's modes, models and options, as a JSON object.
    pub setup: String,
}

/// A line of a session's log: a message, as JSON text without a line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedLine {
    /// Its number. Numbers increase, but can have gaps.
    pub number: u64,
    /// The number after the last line that is merged into this one: `number + 1`, if none is.
    pub until: u64,
    /// The message.
    pub line: Arc<str>,
}

/// Whether a prompt waits, runs, or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptState {
    /// It waits in the queue.
    Queued,
    /// Its turn is running.
    Running,
    /// Its turn has ended, or it was taken back.
    Ended,
}

impl PromptState {
    /// Returns the number that stands for the state in a database.
    pub(super) fn code(self) -> i16 {
        match self {
            Self::Queued => 0,
            Self::Running => 1,
            Self::Ended => 2,
        }
    }

    /// Returns the state that a number stands for.
    pub(super) fn from_code(code: i16) -> Self {
        match code {
            0 => Self::Queued,
            1 => Self::Running,
            _ => Self::Ended,
        }
    }
}

/// A prompt of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRecord {
    /// Its number within the session.
    pub number: u64,
    /// Identifies the prompt when a client sends it again. It is unique within the session.
    pub key: String,
    /// The name of the client that has sent it.
    pub sender: Option<String>,
    /// The params of the request, as a JSON object. Empty once the prompt has ended.
    pub params: String,
    /// Its state.
    pub state: PromptState,
    /// Its place in the queue. Only the order matters.
    pub position: u64,
    /// The response of the agent, as JSON text: `{"result": …}` or `{"error": …}`. Only if the prompt has ended.
    pub response: Option<String>,
}

/// A session, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLiveSession {
    /// The session.
    pub key: LiveSessionKey,
    /// The token of its latest owner.
    pub token: FencingToken,
    /// Its working directory, title and setup.
    pub head: SessionHead,
    /// The number of the next line of its log.
    pub next_line: u64,
    /// The number of its next prompt.
    pub next_prompt: u64,
    /// Its prompts: those that have not ended, by position, and the last ones that have.
    pub prompts: Vec<PromptRecord>,
}

/// What has changed in a session. All of it is written, or nothing.
#[derive(Debug, Clone)]
pub struct LiveSessionChange {
    /// The session.
    pub key: LiveSessionKey,
    /// The token of the owner, which makes the change.
    pub token: FencingToken,
    /// Whether the session is new. Its token is then 1.
    pub is_new: bool,
    /// Its working directory, title and setup, if they have changed.
    pub head: Option<SessionHead>,
    /// The number of the next line of its log.
    pub next_line: u64,
    /// The number of its next prompt.
    pub next_prompt: u64,
    /// Ranges of lines that are replaced by `lines`: the first number, and the number after the last one.
    pub replaced: Vec<(u64, u64)>,
    /// Lines to add.
    pub lines: Vec<LoggedLine>,
    /// Prompts to add, or to replace by number.
    pub prompts: Vec<PromptRecord>,
}

/// A part of a session's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The lines, in order.
    pub lines: Vec<LoggedLine>,
    /// The number to continue with, if there are more lines.
    pub next: Option<u64>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSessionSummary {
    /// The session.
    pub key: LiveSessionKey,
    /// The working directory.
    pub cwd: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// When it last changed, in milliseconds since 1970.
    pub updated_at: i64,
}

/// Which sessions to list. By default, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveSessionFilter {
    /// Only those with this working directory.
    pub cwd: Option<String>,
    /// Only those that this user has created.
    pub creator: Option<String>,
}

/// A part of the list of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveSessionPage {
    /// The sessions. Those that changed last come first.
    pub sessions: Vec<LiveSessionSummary>,
    /// Where to continue, if there are more sessions.
    pub next: Option<String>,
}

/// What a store contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSummary {
    /// The version of its tables.
    pub version: u32,
    /// The servers whose lease is valid.
    pub nodes: Vec<NodeInfo>,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of sessions that have an owner whose lease is valid.
    pub owned: u64,
    /// The number of prompts that wait or run.
    pub prompts: u64,
    /// The number of lines in all logs.
    pub lines: u64,
}

/// Returns the cursor after a session in a list.
pub(super) fn list_cursor(updated_at: i64, number: i64) -> String {
    format!("{updated_at:x}.{number:x}")
}

/// Reads a cursor.
pub(super) fn parse_list_cursor(cursor: &str) -> Result<(i64, i64), LiveStoreError> {
    let parsed = cursor.split_once('.').and_then(|(updated_at, number)| {
        let updated_at = i64::from_str_radix(updated_at, 16).ok()?;
        Some((updated_at, i64::from_str_radix(number, 16).ok()?))
    });
    parsed.ok_or(LiveStoreError::InvalidCursor)
}
