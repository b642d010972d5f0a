//! Where sessions are kept, so that they outlive the process.
//!
//! A session is its [`Properties`] and a log of [`Entry`]s: what the client was shown, and what the model
//! was told, in the order in which it happened. [`SqliteStore`] keeps them in a directory, [`MemoryStore`]
//! for as long as it lives itself. Whoever outgrows one machine writes a [`SessionStore`] of their own.
//!
//! There are no locks. Each change names the [`Version`] of the session that it is made upon, and is refused
//! with [`StoreError::Conflict`] when there is a newer one, because another process has gone on with the
//! session. So nothing stays locked when a process is killed.

mod entry;
mod fold;
mod memory;
mod sqlite;

use std::pin::Pin;
use std::time::SystemTime;

use acp::v1::SessionId;
use serde::{Deserialize, Serialize};

use crate::private::PrivateError;

pub use crate::permission::Subject;
pub(crate) use entry::Content;
pub use entry::{Entry, EntryKind};
pub(crate) use fold::Folder;
pub use memory::MemoryStore;
pub use sqlite::{Opening, SqliteStore};

/// How many entries are in a page at most.
const PAGE_ENTRIES: usize = 256;

/// How many bytes the entries of a page have at most; one that has more is alone in its page.
const PAGE_BYTES: usize = 1024 * 1024;

/// What a store does, when it is done.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps sessions. What has returned without an error is kept, though the process be killed the moment after.
pub trait SessionStore: Send + Sync + 'static {
    /// Keeps a new session.
    ///
    /// # Errors
    /// There is one of this id, or it cannot be kept.
    fn create(&self, id: SessionId, properties: Properties) -> Stored<'_, Kept>;

    /// Keeps a new session that begins as a copy of another: with its log as it is at this moment, and with
    /// these properties. All of it or nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no session `from`, there is one with the new id, or it cannot be kept.
    fn fork(&self, from: SessionId, id: SessionId, properties: Properties) -> Stored<'_, Kept>;

    /// A session as it is now.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or it cannot be read.
    fn find(&self, id: SessionId) -> Stored<'_, Kept>;

    /// Adds entries at the end of a session's log, and replaces its properties if there are any, all of it or
    /// nothing. Gives the version that the session has then.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotFound`], or it cannot be kept. Nothing has changed then.
    fn append(
        &self,
        id: SessionId,
        expected: Version,
        entries: Vec<Entry>,
        properties: Option<Properties>,
    ) -> Stored<'_, Version>;

    /// Some of a session's entries, those with the lowest numbers from `from` on: as many as make a page.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotFound`], or they cannot be read.
    fn read(&self, id: SessionId, expected: Version, which: Which, from: u64) -> Stored<'_, Page>;

    /// Puts `entries` in the place of those with the numbers from `from` to before `to`; there must be no
    /// more of them than there are numbers. Gives the version that the session has then.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn fold(
        &self,
        id: SessionId,
        expected: Version,
        from: u64,
        to: u64,
        entries: Vec<Entry>,
    ) -> Stored<'_, Version>;

    /// A page of the sessions in which anything was said, the one that changed last first: those of this
    /// working directory if there is one, and those behind `cursor`, which the page before gave.
    ///
    /// # Errors
    /// [`StoreError::Cursor`], or they cannot be read.
    fn list(&self, cwd: Option<String>, cursor: Option<String>, most: usize) -> Stored<'_, Listed>;

    /// Deletes a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or it cannot be deleted.
    fn delete(&self, id: SessionId) -> Stored<'_, ()>;
}

/// Which state of a session is meant. Each change makes a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

/// What a session has beside its log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Properties {
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
    pub always: Vec<Always>,
    /// What its models have cost so far, in billionths of a US dollar.
    pub spent: u64,
    /// The id of the model that was chosen in it. Absent if none was: then it is the agent's.
    #[serde(default)]
    pub model: Option<String>,
    /// The id of the thought level that was chosen in it. Absent if none was.
    #[serde(default)]
    pub thought_level: Option<String>,
}

/// An answer with "always".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Always {
    /// What it is about.
    pub subject: Subject,
    /// Whether it was a yes.
    pub allowed: bool,
    /// The session's directories when it was given, the working directory first: it holds for no others. Older versions
    /// did not keep them, and what they kept holds nowhere.
    #[serde(default)]
    pub roots: Vec<String>,
}

impl Always {
    /// An answer that was given in a session with these directories.
    #[must_use]
    pub fn new(subject: Subject, allowed: bool, roots: Vec<String>) -> Self {
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
pub struct Kept {
    /// Its id.
    pub id: SessionId,
    /// What it has beside its log.
    pub properties: Properties,
    /// When it was opened first, to the millisecond.
    pub created: SystemTime,
    /// When something was said or done in it last, to the millisecond.
    pub updated: SystemTime,
    /// Its version.
    pub version: Version,
    /// The number that the next entry gets.
    pub next: u64,
    /// All entries with lower numbers have been folded.
    pub folded: u64,
}

/// Which entries are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which {
    /// All.
    All,
    /// What the client was shown.
    Shown,
    /// What the model was told, and how it was made shorter.
    Messages,
}

impl Which {
    fn has(self, kind: EntryKind) -> bool {
        match self {
            Self::All => true,
            Self::Shown => matches!(kind, EntryKind::ShownV1 | EntryKind::ShownV2),
            Self::Messages => matches!(kind, EntryKind::Message | EntryKind::Compaction),
        }
    }
}

/// Some entries of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Page {
    /// The entries with their numbers, in order.
    pub entries: Vec<(u64, Entry)>,
    /// From where to read on; absent on the last page.
    pub next: Option<u64>,
}

impl Page {
    /// A page of what comes first.
    fn of<E>(entries: impl IntoIterator<Item = Result<(u64, Entry), E>>) -> Result<Self, E> {
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
pub struct Listed {
    /// The sessions.
    pub sessions: Vec<Kept>,
    /// What the next page begins with; absent on the last.
    pub cursor: Option<String>,
}

/// Why a store did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has gone on with the session.
    #[error("another process has gone on with the session {0}; load it again")]
    Conflict(SessionId),
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// There is such a session already.
    #[error("there is a session {0} already")]
    Exists(SessionId),
    /// The cursor is none that this store gave.
    #[error("no page of the list of sessions begins with {0:?}")]
    Cursor(String),
    /// There is no room: the disk is full, or a limit is reached.
    #[error("there is no room for the session: {0}")]
    Full(String),
    /// Other processes have used the store without a pause for too long.
    #[error("the sessions are in use by another process: {0}")]
    Busy(String),
    /// The store was written by a newer version of this program.
    #[error(
        "{path} was written by a newer version of this program (format {theirs}; this one knows {ours})"
    )]
    Newer {
        /// The file.
        path: String,
        /// The format it has.
        theirs: i64,
        /// The latest format that is known.
        ours: i64,
    },
    /// Someone else could read or change what is kept there.
    #[error("{path} belongs to another user; sessions are kept only where they are private")]
    NotOurs {
        /// The directory, or a file in it.
        path: String,
    },
    /// What was kept cannot be understood.
    #[error("an entry of the session cannot be read: {0}")]
    Unreadable(String),
    /// Anything else; the text says what.
    #[error("{0}")]
    Failed(String),
}

impl From<PrivateError> for StoreError {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::NotOurs { path } => Self::NotOurs { path },
            PrivateError::Failed(why) => Self::Failed(why),
        }
    }
}
