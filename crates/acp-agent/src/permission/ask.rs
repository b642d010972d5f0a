//! Requests permission from the user. See "Requesting Permission" under "Tool Calls" in the specification.

use acp::agent::Turn;
use acp::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    ToolCallUpdate,
};

use super::action::ToolAction;
use super::permit::Permit;
use super::rules::PermissionQuestion;
use super::subject::AlwaysSubject;
use crate::workspace::Workspace;

/// The user's answer, either given now or remembered.
pub(crate) enum AskOutcome {
    Allowed(Permit),
    /// The action was rejected. Contains the reason to show to the user.
    Rejected(String),
}

/// Requests permission for an action, unless a remembered answer applies. If a rule requires asking each time, ignores
/// remembered answers and does not offer "always". If `question` has a `rejection`, the action is rejected whatever the
/// user answers.
pub(crate) async fn ask(
    workspace: &Workspace,
    tool_action: ToolAction,
    subject: &AlwaysSubject,
    question: PermissionQuestion,
    tool_call: ToolCallUpdate,
) -> acp::Result<AskOutcome> {
    let answered = ask_user(workspace, subject, question.asks_each_time, tool_call).await?;
    Ok(match (question.rejection, answered) {
        (Some(why), _) | (None, Err(why)) => AskOutcome::Rejected(why),
        (None, Ok(())) => AskOutcome::Allowed(Permit::new(Some(tool_action))),
    })
}

/// Returns the user's answer, whether given now or earlier. The inner `Err` is a rejection, with a message for the
/// user.
async fn ask_user(
    workspace: &Workspace,
    subject: &AlwaysSubject,
    each_time: bool,
    tool_call: ToolCallUpdate,
) -> acp::Result<Result<(), String>> {
    let Workspace { turn, memory } = workspace;
    match memory.always_answer(subject).filter(|_| !each_time) {
        Some(true) => return Ok(Ok(())),
        Some(false) => {
            return Ok(rejected(
                "Rejected: the user chose to always reject this in this session.",
            ));
        }
        None => {}
    }
    let description = subject.description();
    let mut options = vec![
        permission_option("Allow", PermissionOptionKind::AllowOnce),
        permission_option(
            format!("Always allow {description}"),
            PermissionOptionKind::AllowAlways,
        ),
        permission_option("Reject", PermissionOptionKind::RejectOnce),
        permission_option(
            format!("Always reject {description}"),
            PermissionOptionKind::RejectAlways,
        ),
    ];
    if each_time {
        options.retain(|option| {
            matches!(
                option.kind,
                PermissionOptionKind::AllowOnce | PermissionOptionKind::RejectOnce
            )
        });
    }
    let offered = options.clone();
    let chosen = request_choice(turn, tool_call, options).await?;
    let chosen = offered.iter().find(|option| option.option_id == chosen);
    Ok(match chosen.map(|option| &option.kind) {
        Some(PermissionOptionKind::AllowOnce) => Ok(()),
        Some(PermissionOptionKind::AllowAlways) => {
            memory.remember(subject, true).await?;
            Ok(())
        }
        Some(PermissionOptionKind::RejectAlways) => {
            memory.remember(subject, false).await?;
            rejected("Permission denied by the user for the rest of this session.")
        }
        // This includes an option that was not offered. It allows nothing.
        _ => rejected("Permission denied by the user."),
    })
}

fn rejected(why: &str) -> Result<(), String> {
    Err(why.to_owned())
}

/// Creates an option of a permission request. Its kind serves as its id, because some clients treat any other id as a
/// rejection. If two options have the same kind, give the second one a different id.
pub(crate) fn permission_option(
    name: impl Into<String>,
    kind: PermissionOptionKind,
) -> PermissionOption {
    PermissionOption::new(kind.to_string(), name, kind)
}

/// Requests permission and returns the option that the user chose. A client that cancels the turn responds with
/// `cancelled` ("Requesting Permission"), possibly before its `session/cancel` has arrived.
pub(crate) async fn request_choice(
    turn: &Turn,
    tool_call: ToolCallUpdate,
    options: Vec<PermissionOption>,
) -> acp::Result<PermissionOptionId> {
    match turn.request_permission(tool_call, options).await? {
        RequestPermissionOutcome::Selected(selected) if !turn.is_cancelled() => {
            Ok(selected.option_id)
        }
        _ => Err(acp::Error::Cancelled),
    }
}
