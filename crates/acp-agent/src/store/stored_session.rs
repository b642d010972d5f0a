//! A stored session, and pages of its entries.

use std::time::SystemTime;

use acp::v1::{ContentBlock, SessionId, SystemPrompt, SystemPromptMode};
use serde::{Deserialize, Serialize};

use super::entry::{StoreEntry, StoreEntryKind};
use crate::permission::subject::AlwaysSubject;

/// The maximum number of entries on a page.
const PAGE_ENTRIES: usize = 256;

/// The maximum number of bytes of the entries on a page. A larger entry is alone on its page.
const PAGE_BYTES: usize = 1024 * 1024;

/// The revision of a session. Each change creates a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionRevision(pub u64);

/// The properties of a session: all of it except its history.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionProperties {
    /// The working directory, an absolute path.
    pub cwd: String,
    /// The further roots, absolute paths.
    pub additional_directories: Vec<String>,
    /// The title, for the user.
    pub title: Option<String>,
    /// The id of the mode.
    pub mode: String,
    /// The number of tool calls so far.
    pub calls: u64,
    /// The user's "always" answers.
    pub always: Vec<AlwaysAnswer>,
    /// The cost of its models so far, in billionths of a US dollar.
    pub spent: u64,
    /// The id of the model chosen in the session. `None` means the agent's default.
    #[serde(default)]
    pub model: Option<String>,
    /// The id of the thought level chosen in the session, if any.
    #[serde(default)]
    pub thought_level: Option<String>,
    /// Whether the session is hidden from lists.
    #[serde(default)]
    pub archived: bool,
    /// The client's latest instructions for the model.
    #[serde(default)]
    pub client_prompt: Option<ClientPrompt>,
}

/// A client's own instructions for the model (`systemPrompt`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientPrompt {
    /// Whether they replace the agent's own instructions.
    pub replaces: bool,
    /// The text of the instructions.
    pub text: String,
}

impl ClientPrompt {
    /// Joins the text blocks of a system prompt.
    #[must_use]
    pub fn of(prompt: &SystemPrompt) -> Self {
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

/// Which sessions to list. The default is the sessions of every directory that are not archived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// Only sessions with this working directory.
    pub cwd: Option<String>,
    /// Only archived sessions (`true`) or only others (`false`). `None` for both.
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
    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: Option<String>) -> Self {
        self.cwd = cwd;
        self
    }

    /// Sets whether to list archived sessions, others, or both (`None`).
    #[must_use]
    pub fn archived(mut self, archived: Option<bool>) -> Self {
        self.archived = archived;
        self
    }
}

/// A remembered "always" answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AlwaysAnswer {
    /// What the answer is about.
    pub subject: AlwaysSubject,
    /// Whether the user allowed it.
    pub allowed: bool,
    /// The session's directories when the answer was given, the working directory first. The answer holds for no other
    /// directories. Older versions did not store them, so their answers never hold.
    #[serde(default)]
    pub roots: Vec<String>,
}

impl AlwaysAnswer {
    /// Creates an answer given in a session with these directories.
    #[must_use]
    pub fn new(subject: AlwaysSubject, allowed: bool, roots: Vec<String>) -> Self {
        Self {
            subject,
            allowed,
            roots,
        }
    }
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// The id.
    pub id: SessionId,
    /// The properties: all of it except its history.
    pub properties: SessionProperties,
    /// When it was created, to the millisecond.
    pub created_at: SystemTime,
    /// When an entry was last added, to the millisecond.
    pub updated_at: SystemTime,
    /// The current revision.
    pub version: SessionRevision,
    /// The number of the next entry.
    pub next_entry: u64,
    /// The entries with lower numbers have been folded.
    pub folded_until: u64,
}

/// Which entries to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryFilter {
    /// All entries.
    All,
    /// The updates of the session.
    Updates,
    /// The messages of the conversation with the model, and its compactions.
    Messages,
}

impl EntryFilter {
    pub(super) fn has(self, kind: StoreEntryKind) -> bool {
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
    /// The entries with their numbers, in order.
    pub entries: Vec<(u64, StoreEntry)>,
    /// The number that the next page starts at. `None` on the last page.
    pub next: Option<u64>,
}

impl EntryPage {
    /// Takes as many entries as fit on one page.
    pub(super) fn of<E>(
        entries: impl IntoIterator<Item = Result<(u64, StoreEntry), E>>,
    ) -> Result<Self, E> {
        let mut page = Self::default();
        let mut bytes = 0;
        for entry in entries {
            let (number, entry) = entry?;
            bytes += entry.body.len();
            let full = page.entries.len() == PAGE_ENTRIES || bytes > PAGE_BYTES;
            if full && !page.entries.is_empty() {
                page.next = Some(number);
                break;
            }
            page.entries.push((number, entry));
        }
        Ok(page)
    }
}

/// A page of a list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<StoredSession>,
    /// The cursor of the next page. `None` on the last page.
    pub cursor: Option<String>,
}
