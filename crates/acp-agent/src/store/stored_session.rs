//! What is kept of a session, and how it is read.

use std::time::SystemTime;

use acp::v1::{ContentBlock, SessionId, SystemPrompt, SystemPromptMode};
use serde::{Deserialize, Serialize};

use super::entry::{StoreEntry, StoreEntryKind};
use crate::permission::subject::AlwaysSubject;

/// How many entries are in a page at most.
const PAGE_ENTRIES: usize = 256;

/// How many bytes the entries of a page have at most; one that has more is alone in its page.
const PAGE_BYTES: usize = 1024 * 1024;

/// Which state of a session is meant. Each change makes a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionRevision(pub u64);

/// What a session has beside its log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionProperties {
    /// Its working directory, an absolute path.
    pub cwd: String,
    /// Its further roots, absolute paths.
    pub additional_directories: Vec<String>,
    /// What it is about, for people.
    pub title: Option<String>,
    /// The id of its mode.
    pub mode: String,
    /// How many tool calls there have been.
    pub calls: u64,
    /// What the person answered with "always".
    pub always: Vec<AlwaysAnswer>,
    /// What its models have cost so far, in billionths of a US dollar.
    pub spent: u64,
    /// The id of the model that was chosen in it. Absent if none was: then it is the agent's.
    #[serde(default)]
    pub model: Option<String>,
    /// The id of the thought level that was chosen in it. Absent if none was.
    #[serde(default)]
    pub thought_level: Option<String>,
    /// Whether it is hidden from lists.
    #[serde(default)]
    pub archived: bool,
    /// The client's own instructions for the model, as they were said last.
    #[serde(default)]
    pub client_prompt: Option<ClientPrompt>,
}

/// A client's own instructions for the model (`systemPrompt`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientPrompt {
    /// Whether they replace what the agent says by itself.
    pub replaces: bool,
    /// What they say.
    pub text: String,
}

impl ClientPrompt {
    /// These instructions, all blocks of text one after the other.
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

/// Which sessions are listed. Without more: those that are not archived, of every directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// Of this working directory alone.
    pub cwd: Option<String>,
    /// Those that are archived, or those that are not. `None` for both.
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

    /// Sets whether archived sessions are meant.
    #[must_use]
    pub fn archived(mut self, archived: Option<bool>) -> Self {
        self.archived = archived;
        self
    }
}

/// An answer with "always".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AlwaysAnswer {
    /// What it is about.
    pub subject: AlwaysSubject,
    /// Whether it was a yes.
    pub allowed: bool,
    /// The session's directories when it was given, the working directory first: it holds for no others. Older versions
    /// did not keep them, and what they kept holds nowhere.
    #[serde(default)]
    pub roots: Vec<String>,
}

impl AlwaysAnswer {
    /// An answer that was given in a session with these directories.
    #[must_use]
    pub fn new(subject: AlwaysSubject, allowed: bool, roots: Vec<String>) -> Self {
        Self {
            subject,
            allowed,
            roots,
        }
    }
}

/// A session that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// Its id.
    pub id: SessionId,
    /// What it has beside its log.
    pub properties: SessionProperties,
    /// When it was opened first, to the millisecond.
    pub created_at: SystemTime,
    /// When something was said or done in it last, to the millisecond.
    pub updated_at: SystemTime,
    /// Its version.
    pub version: SessionRevision,
    /// The number that the next entry gets.
    pub next_entry: u64,
    /// All entries with lower numbers have been folded.
    pub folded_until: u64,
}

/// Which entries are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryFilter {
    /// All.
    All,
    /// What the client was shown.
    Updates,
    /// What the model was told, and how it was made shorter.
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

/// Some entries of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EntryPage {
    /// The entries with their numbers, in order.
    pub entries: Vec<(u64, StoreEntry)>,
    /// From where to read on; absent on the last page.
    pub next: Option<u64>,
}

impl EntryPage {
    /// A page of what comes first.
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
    /// What the next page begins with; absent on the last.
    pub cursor: Option<String>,
}
