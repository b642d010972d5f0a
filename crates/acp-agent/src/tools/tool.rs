//! What all tools have in common.

use acp::v1::{Diff, ImageContent, ToolCallContent, ToolCallLocation, ToolKind};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::model::message::ToolStatus;
use crate::permission::rules::RuleFiles;
use crate::reported::{Reported, text};
use crate::workspace::Workspace;

/// What a tool call is, for people.
pub(crate) struct About {
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    pub(crate) content: Vec<ToolCallContent>,
}

impl About {
    pub(crate) fn new(
        title: impl Into<String>,
        kind: ToolKind,
        locations: Vec<ToolCallLocation>,
    ) -> Self {
        Self {
            title: title.into(),
            kind,
            locations,
            content: Vec::new(),
        }
    }
}

/// What came of a tool call.
pub(crate) struct Output {
    pub(crate) status: ToolStatus,
    /// For the model.
    pub(crate) text: String,
    /// For the client; `None` leaves what is shown.
    pub(crate) content: Option<Vec<ToolCallContent>>,
    /// Other places than were announced.
    pub(crate) locations: Option<Vec<ToolCallLocation>>,
    pub(crate) data: Value,
    /// For models that see.
    pub(crate) images: Vec<ImageContent>,
}

impl Output {
    pub(crate) fn done(
        text: impl Into<String>,
        content: Vec<ToolCallContent>,
        data: Value,
    ) -> Self {
        Self {
            status: ToolStatus::Done,
            text: text.into(),
            content: Some(content),
            locations: None,
            data,
            images: Vec::new(),
        }
    }

    pub(crate) fn rejected(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            status: ToolStatus::Rejected,
            content: Some(vec![text(why.as_str())]),
            text: why,
            locations: None,
            data: json!({ "rejected": true }),
            images: Vec::new(),
        }
    }
}

/// A tool call that is being carried out.
pub(crate) struct Doing<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) handle: &'a Reported,
    /// What the user's rules are, for tools that find out on the way what they would do.
    pub(crate) rules: &'a RuleFiles,
    /// The terminals that are shown. They stay, whatever becomes of the call.
    pub(crate) terminals: Vec<ToolCallContent>,
}

/// How a file would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// An absolute path.
    pub(crate) path: String,
    /// Absent if there is no file yet.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
    /// The first line that changes, counted from 1.
    pub(crate) line: Option<u32>,
}

impl Change {
    pub(crate) fn content(&self) -> ToolCallContent {
        let mut diff = Diff::new(&self.path, &self.new);
        diff.old_text.clone_from(&self.old);
        diff.into()
    }

    pub(crate) fn location(&self) -> ToolCallLocation {
        location(&self.path, self.line)
    }
}

/// Reads the arguments of a call.
///
/// # Errors
/// They are none that the tool takes.
pub(crate) fn read_arguments<T: DeserializeOwned>(
    tool: &str,
    arguments: &Value,
) -> Result<T, String> {
    // A tool without required arguments is called with none at all by some.
    let arguments = if arguments.is_null() {
        json!({})
    } else {
        arguments.clone()
    };
    serde_json::from_value(arguments)
        .map_err(|e| format!("`{tool}` cannot take these arguments: {e}"))
}

/// A place that an editor can show.
pub(crate) fn location(path: &str, line: Option<u32>) -> ToolCallLocation {
    let location = ToolCallLocation::new(path);
    match line {
        Some(line) => location.line(line),
        None => location,
    }
}
