//! Defines stored sessions, and pages of their entries.

use std::time::SystemTime;

use acp::v1::{ContentBlock, SessionId, SystemPrompt, SystemPromptMode};
use serde::{Deserialize, Serialize};

use super::entry::{StoreEntry, StoreEntryKind};
use crate::permission::subject::AlwaysSubject;

/// The maximum number of entries on a page.
pub(super) const MAX_PAGE_ENTRIES: usize = 256;

/// The maximum total size of the entries on a page, in bytes. A larger entry gets its own page.
pub(super) const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// The revision of a stored session. Every change creates a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionRevision(pub u64);

/// Where the history of a fork ends, in the history of the session that it copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEnd {
    /// The revision of the copied session that `next_entry` belongs to.
    pub revision: SessionRevision,
    /// The number of the first entry that is not copied.
    pub next_entry: u64,
}

impl HistoryEnd {
    /// Creates the end of a history before an entry, in a revision of a session.
    #[must_use]
    pub fn new(revision: SessionRevision, next_entry: u64) -> Self {
        Self {
            revision,
            next_entry,
        }
    }
}

/// Everything that is stored about a session except its history.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionProperties {
    /// The working directory of the session, as an absolute path.
    pub cwd: String,
    /// The additional roots, as absolute paths.
    pub additional_directories: Vec<String>,
    /// The title of the session, as shown to the user.
    pub title: Option<String>,
    /// The id of the session's mode.
    pub mode: String,
    /// The number of tool calls in the session so far.
    pub calls: u64,
    /// The user's "always" answers, which are remembered for the session.
    pub always: Vec<AlwaysAnswer>,
    /// The cost of the session so far, in billionths of a US dollar.
    pub spent: u64,
    /// The id of the model chosen in the session. `None` means the agent's default.
    #[serde(default)]
    pub model: Option<String>,
    /// The id of the thought level chosen in the session, if any.
    #[serde(default)]
    pub thought_level: Option<String>,
    /// Whether the session is archived, which hides it from lists.
    #[serde(default)]
    pub archived: bool,
    /// The client's latest instructions for the model.
    #[serde(default)]
    pub client_prompt: Option<ClientInstructions>,
}

/// A client's own instructions for the model (`systemPrompt`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientInstructions {
    /// Whether the instructions replace those of the agent.
    pub replaces: bool,
    /// The text of the instructions for the model.
    pub text: String,
}

impl ClientInstructions {
    /// Creates the instructions from a system prompt by joining its text blocks.
    #[must_use]
    pub fn from_system_prompt(prompt: &SystemPrompt) -> Self {
        let texts: Vec<&str> = prompt
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect();
        Self {
            replaces: prompt.mode == SystemPromptMode::Override,
            text: texts.join("\n\n"),
        }
    }
}

/// A filter for a list of sessions. By default, it selects all sessions that are not archived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// The working directory that a session must have.
    pub cwd: Option<String>,
    /// Whether to list only archived sessions (`true`) or only other sessions (`false`). `None` lists all of them.
    pub archived: Option<bool>,
}

impl Default for SessionFilter {
    fn default() -> Self {
        Self {
            cwd: None,
            archived: Some(false),
        }
    }
}

impl SessionFilter {
    /// Selects only sessions with this working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: Option<String>) -> Self {
        self.cwd = cwd;
        self
    }

    /// Selects only archived sessions (`true`), only other sessions (`false`) or all of them (`None`).
    #[must_use]
    pub fn archived(mut self, archived: Option<bool>) -> Self {
        self.archived = archived;
        self
    }
}

/// An "always" answer that is remembered for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AlwaysAnswer {
    /// The subject that the answer applies to.
    pub subject: AlwaysSubject,
    /// Whether the user allowed the subject.
    pub allowed: bool,
    /// The session's directories when the user gave the answer, starting with the working directory. The answer applies
    /// only in these directories. Older versions did not store them, so their answers never apply.
    #[serde(default)]
    pub roots: Vec<String>,
}

impl AlwaysAnswer {
    /// Creates an answer that was given in a session with these directories.
    #[must_use]
    pub fn new(subject: AlwaysSubject, allowed: bool, roots: Vec<String>) -> Self {
        Self {
            subject,
            allowed,
            roots,
        }
    }
}

/// A stored session, without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// The id of the session.
    pub id: SessionId,
    /// The properties of the session, such as its title and mode.
    pub properties: SessionProperties,
    /// When the session was created, with millisecond precision.
    pub created_at: SystemTime,
    /// When an entry was last added, with millisecond precision.
    pub updated_at: SystemTime,
    /// The current revision of the session.
    pub revision: SessionRevision,
    /// The number that the next entry will have.
    pub next_entry: u64,
    /// The number of the first entry that has not been folded yet.
    pub folded_until: u64,
}

/// A filter for reading the entries of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryFilter {
    /// All entries of the history.
    All,
    /// Only the updates that were sent to the client.
    Updates,
    /// The messages of the conversation with the model, and its compactions.
    Messages,
}

impl EntryFilter {
    pub(super) fn includes(self, kind: StoreEntryKind) -> bool {
        match self {
            Self::All => true,
            Self::Updates => matches!(kind, StoreEntryKind::UpdateV1 | StoreEntryKind::UpdateV2),
            Self::Messages => matches!(kind, StoreEntryKind::Message | StoreEntryKind::Compaction),
        }
    }
}

/// A page of a session's entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EntryPage {
    /// The entries with their numbers, in ascending order.
    pub entries: Vec<(u64, StoreEntry)>,
    /// The number of the next page's first entry. `None` on the last page.
    pub next: Option<u64>,
}

impl EntryPage {
    /// Creates a page from as many entries as fit.
    pub(super) fn from_entries<E>(
        entries: impl IntoIterator<Item = Result<(u64, StoreEntry), E>>,
    ) -> Result<Self, E> {
        let mut page = Self::default();
        let mut bytes = 0;
        for entry in entries {
            let (number, entry) = entry?;
            bytes += entry.body.len();
            let full = page.entries.len() == MAX_PAGE_ENTRIES || bytes > MAX_PAGE_BYTES;
            if full && !page.entries.is_empty() {
                page.next = Some(number);
                break;
            }
            page.entries.push((number, entry));
        }
        Ok(page)
    }
}

/// A page of a list of stored sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions on the page.
    pub sessions: Vec<StoredSession>,
    /// The cursor for the next page. `None` on the last page.
    pub cursor: Option<String>,
}
