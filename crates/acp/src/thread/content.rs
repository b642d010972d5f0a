//! Tool call content, in one form for both protocol versions.

use acp_wire::RawObject;
use acp_wire::v1::{self, ContentBlock, TerminalId};
use acp_wire::v2::{self, DiffChange, DiffFileType, DiffPatch};

use crate::update;

/// A part of a tool call's content: a content block, a diff or a terminal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
// Most items are content blocks. Boxing them would cost an allocation for nearly every one.
#[allow(clippy::large_enum_variant)]
pub enum ThreadToolCallContent {
    /// Text, an image or other content.
    Content(ContentBlock),
    /// Changes to one or more files.
    Diff(ThreadDiff),
    /// A terminal. Its output is in [`Thread::terminal`](super::Thread::terminal).
    Terminal(TerminalId),
    /// An unknown content type, as received.
    Unknown(RawObject),
}

/// Changes to one or more files. A version 1 agent sends one file's text before and after the change. A version 2 agent
/// sends a list of changed files, and possibly a patch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ThreadDiff {
    /// One entry for each changed file.
    pub changes: Vec<FileChange>,
    /// The patch, if the agent sends one.
    pub patch: Option<DiffPatch>,
}

impl ThreadDiff {
    /// Returns the file's path and texts, if the diff contains only one file and its texts are known.
    #[must_use]
    pub fn file_texts(&self) -> Option<(&str, &FileTexts)> {
        match &self.changes[..] {
            [change] => Some((&change.path, change.texts.as_ref()?)),
            _ => None,
        }
    }
}

/// A change to one file of a diff.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FileChange {
    /// The operation on the file.
    pub operation: FileOperation,
    /// The absolute path of the file, or empty for an unknown operation without a path.
    pub path: String,
    /// The previous path, if the file was moved or copied.
    pub old_path: Option<String>,
    /// The text of the file before and after the change, if a version 1 agent sent it.
    pub texts: Option<FileTexts>,
    /// The type of the file, if the agent reports it.
    pub file_type: Option<DiffFileType>,
}

/// An operation on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOperation {
    /// The file was added.
    Add,
    /// The file was deleted.
    Delete,
    /// The content of the file was changed.
    Modify,
    /// The file was moved, and its content may also have changed.
    Move,
    /// The file was copied.
    Copy,
    /// An operation that the specification does not define.
    Unknown(String),
}

impl FileOperation {
    /// Returns the operation's name in version 2 of the protocol.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Add => "add",
            Self::Delete => "delete",
            Self::Modify => "modify",
            Self::Move => "move",
            Self::Copy => "copy",
            Self::Unknown(name) => name,
        }
    }
}

/// A file's text before and after a change. This type will never gain fields, so it is not `non_exhaustive`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileTexts {
    /// The text before the change, or `None` for a new file.
    pub old: Option<String>,
    /// The text after the change.
    pub new: String,
}

impl From<update::ToolCallOutput> for ThreadToolCallContent {
    fn from(content: update::ToolCallOutput) -> Self {
        match content {
            update::ToolCallOutput::Content(content) => Self::Content(content.content),
            update::ToolCallOutput::TextDiff(diff) => Self::Diff(diff.into()),
            update::ToolCallOutput::Diff(diff) => Self::Diff(diff.into()),
            update::ToolCallOutput::Terminal(terminal) => Self::Terminal(terminal.terminal_id),
            update::ToolCallOutput::Unknown(object) => Self::Unknown(object),
        }
    }
}

impl From<v1::ToolCallContent> for ThreadToolCallContent {
    fn from(content: v1::ToolCallContent) -> Self {
        update::ToolCallOutput::from(content).into()
    }
}

impl From<v1::Diff> for ThreadDiff {
    fn from(diff: v1::Diff) -> Self {
        let operation = if diff.old_text.is_some() {
            FileOperation::Modify
        } else {
            FileOperation::Add
        };
        Self {
            changes: vec![FileChange {
                operation,
                path: diff.path,
                old_path: None,
                texts: Some(FileTexts {
                    old: diff.old_text,
                    new: diff.new_text,
                }),
                file_type: None,
            }],
            patch: None,
        }
    }
}

impl From<v2::ToolCallContent> for ThreadToolCallContent {
    fn from(content: v2::ToolCallContent) -> Self {
        update::ToolCallOutput::from(content).into()
    }
}

impl From<v2::Diff> for ThreadDiff {
    fn from(diff: v2::Diff) -> Self {
        Self {
            changes: diff.changes.into_iter().map(FileChange::from).collect(),
            patch: diff.patch,
        }
    }
}

impl From<DiffChange> for FileChange {
    fn from(change: DiffChange) -> Self {
        let one = |operation, change: v2::DiffPathChange| Self {
            operation,
            path: change.path,
            old_path: None,
            texts: None,
            file_type: change.file_type,
        };
        let pair = |operation, change: v2::DiffPathPairChange| Self {
            operation,
            path: change.path,
            old_path: Some(change.old_path),
            texts: None,
            file_type: change.file_type,
        };
        match change {
            DiffChange::Add(change) => one(FileOperation::Add, change),
            DiffChange::Delete(change) => one(FileOperation::Delete, change),
            DiffChange::Modify(change) => one(FileOperation::Modify, change),
            DiffChange::Move(change) => pair(FileOperation::Move, change),
            DiffChange::Copy(change) => pair(FileOperation::Copy, change),
            DiffChange::Unknown(object) => Self::from_unknown(&object),
            _ => Self::from_unknown(&RawObject::default()),
        }
    }
}

impl FileChange {
    fn from_unknown(object: &RawObject) -> Self {
        Self {
            operation: FileOperation::Unknown(object.field("operation").unwrap_or_default()),
            path: object.field("path").unwrap_or_default(),
            old_path: object.field("oldPath"),
            texts: None,
            file_type: object.field("fileType"),
        }
    }
}
