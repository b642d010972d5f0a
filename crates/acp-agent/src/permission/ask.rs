//! Permission for what changes something: the specification's page "Tool Calls", "Requesting
//! Permission".

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

/// What a person, or what they said before, decided.
pub(crate) enum AskOutcome {
    Allowed(Permit),
    /// And why, for people.
    Rejected(String),
}

/// Asks whether this may be done, unless it was answered with "always" before. Where a rule wants it asked each time,
/// "always" neither counts nor is offered. What is refused whatever is answered stays so.
pub(crate) async fn ask(
    workspace: &Workspace,
    deed: ToolAction,
    subject: &AlwaysSubject,
    question: PermissionQuestion,
    tool_call: ToolCallUpdate,
) -> acp::Result<AskOutcome> {
    let answered = ask_user(workspace, subject, question.asks_each_time, tool_call).await?;
    Ok(match (question.rejection, answered) {
        (Some(why), _) | (None, Err(why)) => AskOutcome::Rejected(why),
        (None, Ok(())) => AskOutcome::Allowed(Permit::new(Some(deed))),
    })
}

/// What the person says, or has said before; if it is no, that, for people.
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
    let shown = subject.shown();
    let mut options = vec![
        option("Allow", PermissionOptionKind::AllowOnce),
        option(
            format!("Always allow {shown} in this session"),
            PermissionOptionKind::AllowAlways,
        ),
        option("Reject", PermissionOptionKind::RejectOnce),
        option(
            format!("Always reject {shown} in this session"),
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
    let chosen = choice(turn, tool_call, options).await?;
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
        // Nor does an option that was not offered allow anything.
        _ => rejected("Permission denied by the user."),
    })
}

fn rejected(why: &str) -> Result<(), String> {
    Err(why.to_owned())
}

/// An option whose id is its kind: there are clients that take any other id for a no. Of two options of one kind the
/// second needs another id.
pub(crate) fn option(name: impl Into<String>, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption::new(kind.to_string(), name, kind)
}

/// The option that was chosen. `cancelled` is the answer of a client that cancels the turn (tool calls,
/// "Requesting Permission"), be its `session/cancel` here already or not.
pub(crate) async fn choice(
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
