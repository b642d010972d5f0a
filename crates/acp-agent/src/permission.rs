//! Permission for what changes something: the specification's page "Tool Calls", "Requesting
//! Permission".

use acp::agent::Turn;
use acp::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    ToolCallUpdate,
};
use serde::{Deserialize, Serialize};

use crate::text::one_line;
use crate::workspace::Workspace;

/// What an answer with "always" is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Subject {
    /// Every use of a tool. Of those that change files, it is every file under the session's directories but
    /// those that other programs obey.
    Tool(String),
    /// This command line, exactly.
    Command(String),
    /// Changes of this file, by its absolute path.
    File(String),
    /// What is fetched from the host of this name, or with this address.
    Host(String),
    /// What is fetched from here, which is no public address: scheme, host, port, and the addresses.
    Inside(String),
}

impl Subject {
    /// What to call it behind "always".
    fn shown(&self) -> String {
        match self {
            Self::Tool(tool) if tool == "edit" => "edits of the project's files".to_owned(),
            Self::Tool(tool) if tool == "write" => "writing the project's files".to_owned(),
            Self::Tool(tool) => format!("`{tool}`"),
            Self::Command(command) => {
                let shown = one_line(command);
                match command.lines().count() {
                    _ if shown == *command => format!("exactly `{command}`"),
                    0 | 1 => "exactly this command".to_owned(),
                    lines => format!("exactly this command of {lines} lines"),
                }
            }
            Self::File(path) => format!("changes of `{path}`"),
            Self::Host(host) => format!("fetching from `{host}`"),
            Self::Inside(origin) => format!("fetching from {origin}"),
        }
    }
}

/// What a person, or what they said before, decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    /// And why, for people.
    Rejected(String),
}

impl Decision {
    fn rejected(why: &str) -> Self {
        Self::Rejected(why.to_owned())
    }
}

/// Asks, unless it was answered with "always" before. `each_time`: a rule wants it asked, so that "always"
/// neither counts nor is offered.
pub(crate) async fn ask(
    workspace: &Workspace,
    subject: &Subject,
    each_time: bool,
    tool_call: ToolCallUpdate,
) -> acp::Result<Decision> {
    let Workspace { turn, state } = workspace;
    match state.always(subject).filter(|_| !each_time) {
        Some(true) => return Ok(Decision::Allowed),
        Some(false) => {
            return Ok(Decision::rejected(
                "Rejected: the person said never to allow this in this session.",
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
        Some(PermissionOptionKind::AllowOnce) => Decision::Allowed,
        Some(PermissionOptionKind::AllowAlways) => {
            state.remember(subject, true).await?;
            Decision::Allowed
        }
        Some(PermissionOptionKind::RejectAlways) => {
            state.remember(subject, false).await?;
            Decision::rejected("Rejected: permission was refused, for the rest of this session.")
        }
        // Nor does an option that was not offered allow anything.
        _ => Decision::rejected("Rejected: permission was refused."),
    })
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
