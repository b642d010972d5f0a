//! Defines the traits that every tool implements, and types used by several tools.

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
use crate::reported_call::{ReportedCall, text_content};
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// A future that resolves to a tool call's output.
pub(crate) type ToolFuture<'a, T = ToolOutput> = BoxFuture<'a, Result<T, ToolFailure>>;

/// One of the agent's own tools. Implementing types contain the arguments of a call.
pub(crate) trait Tool: ToolInvocation + DeserializeOwned + JsonSchema + 'static {
    /// The tool's name for the model.
    const NAME: &'static str;

    /// A description, for the model, of what the tool does and when to use it.
    const DESCRIPTION: &'static str;

    /// How a call is shown while the model is writing its arguments. `None` if the tool is not shown as a tool call.
    const DRAFT: Option<DraftSpec>;
}

/// Specifies how to show a tool's calls before their arguments are complete.
pub(crate) struct DraftSpec {
    pub(crate) kind: ToolKind,
    pub(crate) title: &'static str,
    /// The argument that contains the subject of the call. Once it is complete, the title is final.
    pub(crate) subject_field: &'static str,
    /// The other required arguments. All of them are strings.
    pub(crate) required_fields: &'static [&'static str],
}

/// A tool call with its arguments.
pub(crate) trait ToolInvocation: Debug + Send + Sync {
    /// Returns the tool's name for the model.
    fn tool(&self) -> &str;

    /// Returns the description of the call to show to the user.
    fn describe(&self, workspace: &Workspace) -> CallDescription;

    /// Returns the action that the mode and the rules must allow before the call runs. Returns `None` if the call is
    /// always allowed, or if the tool itself requests permission.
    fn action(&self, _: &Workspace) -> Option<ToolAction> {
        None
    }

    /// Returns the subject of a permission request, or `None` if the call changes nothing in the workspace.
    fn subject(&self) -> Option<AlwaysSubject> {
        None
    }

    /// Returns `true` if the call may change something. Such calls are not allowed in architect mode.
    fn may_change(&self) -> bool {
        self.subject().is_some()
    }

    /// Returns `true` if the tool requests permission itself. The call then starts without a permission request.
    fn requests_own_permission(&self) -> bool {
        false
    }

    /// Returns the subject of an "always" answer to a permission request. `special` is `true` if the action changes a
    /// file that is outside the session's directories or that other programs run or trust.
    fn permission_subject(&self, tool_action: &ToolAction, special: bool) -> AlwaysSubject {
        match tool_action {
            ToolAction::Change(path) if special => AlwaysSubject::File(path.clone()),
            _ => self
                .subject()
                .unwrap_or_else(|| AlwaysSubject::Tool(self.tool().to_owned())),
        }
    }

    /// Returns the change that the call would make to a file, so that the user can review it before deciding.
    fn preview<'a>(&'a self, _: &'a Workspace) -> ToolFuture<'a, Option<TextChange>> {
        Box::pin(async { Ok(None) })
    }

    /// Runs the call if the tool is not shown as a tool call. Otherwise returns `None`.
    fn run_unreported<'a>(&'a self, _: &'a Workspace) -> Option<ToolFuture<'a>> {
        None
    }

    /// Runs the call. The permit proves that the call was allowed.
    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, permit: Permit) -> ToolFuture<'a>;
}

/// A description of a tool call, to show to the user.
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

/// The output of a finished tool call.
pub(crate) struct ToolOutput {
    pub(crate) status: ToolStatus,
    /// The text of the output for the model.
    pub(crate) text: String,
    /// The content for the client, or `None` to keep the content that is already shown.
    pub(crate) content: Option<Vec<ToolCallContent>>,
    /// The locations, if they differ from those in the description.
    pub(crate) locations: Option<Vec<ToolCallLocation>>,
    pub(crate) data: Value,
    /// The output's images, for models that accept images.
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
            content: Some(vec![text_content(why.as_str())]),
            text: why,
            locations: None,
            data: json!({ "rejected": true }),
            images: Vec::new(),
        }
    }
}

/// A running tool call, together with its environment.
pub(crate) struct ToolExecution<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) handle: &'a ReportedCall,
    /// The user's rules, for tools whose action is known only once they are running.
    pub(crate) rules: &'a RuleFiles,
    /// The terminals that are shown in the call. They remain visible regardless of the result.
    pub(crate) terminals: Vec<ToolCallContent>,
    /// The change from [`ToolInvocation::preview`], which the user may have seen.
    pub(crate) preview: Option<TextChange>,
}

/// A change to the text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextChange {
    /// The absolute path of the file.
    pub(crate) path: String,
    /// The text before the change. `None` if the file does not exist yet.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
    /// The first line of the change, counted from 1.
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

/// Parses the arguments of a call.
///
/// # Errors
/// The tool does not accept these arguments.
pub(crate) fn parse_arguments<T: DeserializeOwned>(
    tool: &str,
    arguments: &Value,
) -> Result<T, String> {
    // Some models send no arguments to a tool that requires none.
    let arguments = if arguments.is_null() {
        json!({})
    } else {
        arguments.clone()
    };
    serde_json::from_value(arguments).map_err(|e| format!("Invalid arguments for `{tool}`: {e}"))
}

/// Creates a location that an editor can show.
pub(crate) fn location(path: &str, line: Option<u32>) -> ToolCallLocation {
    let location = ToolCallLocation::new(path);
    match line {
        Some(line) => location.line(line),
        None => location,
    }
}
