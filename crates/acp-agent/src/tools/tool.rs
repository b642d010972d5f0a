//! What every tool is, and what all of them have in common.

use std::fmt::Debug;

use acp::v1::{Diff, ImageContent, ToolCallContent, ToolCallLocation, ToolKind};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::model::message::ToolStatus;
use crate::permission::action::ToolAction;
use crate::permission::permit::Permit;
use crate::permission::rules::RuleFiles;
use crate::permission::subject::AlwaysSubject;
use crate::reported_call::{ReportedCall, text};
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// What comes of a tool call, when it is done.
pub(crate) type ToolFuture<'a, T = ToolOutput> = BoxFuture<'a, Result<T, ToolFailure>>;

/// A tool of the agent's own. Its type is that of its arguments.
pub(crate) trait Tool: ToolInvocation + DeserializeOwned + JsonSchema + 'static {
    /// What the model calls it.
    const NAME: &'static str;

    /// What it does and when to use it, for the model.
    const DESCRIPTION: &'static str;

    /// What is shown of a call while its arguments are written; `None` for what is not shown as a tool call.
    const DRAFT: Option<DraftSpec>;
}

/// What there is to show of a tool's call before its arguments are whole.
pub(crate) struct DraftSpec {
    pub(crate) kind: ToolKind,
    pub(crate) title: &'static str,
    /// The argument that says what the call is about: with it the title is the one the call keeps.
    pub(crate) subject_field: &'static str,
    /// What it cannot do without beside that one, all of them texts.
    pub(crate) required_fields: &'static [&'static str],
}

/// A tool call with its arguments.
pub(crate) trait ToolInvocation: Debug + Send + Sync {
    /// The tool's name, as the model calls it.
    fn tool(&self) -> &str;

    /// What it is, for people.
    fn describe(&self, workspace: &Workspace) -> CallDescription;

    /// What it is about to do, for mode and rules to decide about; `None` for what nobody forbids, and for what
    /// asks by itself.
    fn action(&self, _: &Workspace) -> Option<ToolAction> {
        None
    }

    /// What permission is needed for; `None` for what changes nothing here.
    fn subject(&self) -> Option<AlwaysSubject> {
        None
    }

    /// Whether it may change something: then it is not done in architect mode.
    fn may_change(&self) -> bool {
        self.subject().is_some()
    }

    /// Whether it asks by itself for what it does, and begins when that is answered.
    fn asks_for_itself(&self) -> bool {
        false
    }

    /// What a person is asked about, and an answer with "always" is about. `special`: the file is none of those
    /// that are changed all the time.
    fn permission_subject(&self, deed: &ToolAction, special: bool) -> AlwaysSubject {
        match deed {
            ToolAction::Change(path) if special => AlwaysSubject::File(path.clone()),
            _ => self
                .subject()
                .unwrap_or_else(|| AlwaysSubject::Tool(self.tool().to_owned())),
        }
    }

    /// The change it would make to a file, for the person to see before they decide.
    fn preview<'a>(&'a self, _: &'a Workspace) -> ToolFuture<'a, Option<TextChange>> {
        Box::pin(async { Ok(None) })
    }

    /// Carries it out at once, if it is none that is shown as a tool call.
    fn run_hidden<'a>(&'a self, _: &'a Workspace) -> Option<ToolFuture<'a>> {
        None
    }

    /// Carries it out, as it is permitted.
    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, permit: Permit) -> ToolFuture<'a>;
}

/// What a tool call is, for people.
pub(crate) struct CallDescription {
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    pub(crate) content: Vec<ToolCallContent>,
}

impl CallDescription {
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
pub(crate) struct ToolOutput {
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

impl ToolOutput {
    pub(crate) fn completed(
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
pub(crate) struct ToolExecution<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) handle: &'a ReportedCall,
    /// What the user's rules are, for tools that find out on the way what they would do.
    pub(crate) rules: &'a RuleFiles,
    /// The terminals that are shown. They stay, whatever becomes of the call.
    pub(crate) terminals: Vec<ToolCallContent>,
    /// What [`ToolInvocation::preview`] gave, which the person may have seen.
    pub(crate) preview: Option<TextChange>,
}

/// How a file would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextChange {
    /// An absolute path.
    pub(crate) path: String,
    /// Absent if there is no file yet.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
    /// The first line that changes, counted from 1.
    pub(crate) line: Option<u32>,
}

impl TextChange {
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
