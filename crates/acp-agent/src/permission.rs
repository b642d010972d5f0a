//! Permission for what changes something: the specification's page "Tool Calls", "Requesting
//! Permission".

use acp::agent::Turn;
use acp::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    ToolCallUpdate,
};
use serde::{Deserialize, Serialize};

use crate::session::SessionState;

/// What an answer with "always" is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Subject {
    /// Every use of a tool.
    Tool(String),
    /// This command line, exactly.
    Command(String),
}

impl Subject {
    /// What to call it behind "always".
    fn shown(&self) -> String {
        match self {
            Self::Tool(tool) if tool == "edit" => "edits".to_owned(),
            Self::Tool(tool) if tool == "write" => "writing files".to_owned(),
            Self::Tool(tool) => format!("`{tool}`"),
            Self::Command(command) => format!("`{}`", one_line(command)),
        }
    }
}

/// A text as one line that is not too long.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut line = text.lines().next().unwrap_or_default().trim_end();
    let mut cut = line.len() < text.trim_end().len();
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        (line, cut) = (line.get(..end).unwrap_or_default(), true);
    }
    if cut {
        format!("{line} …")
    } else {
        line.to_owned()
    }
}

/// What a person, or what they said before, decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    /// And why, for people.
    Rejected(&'static str),
}

const ALLOW_ONCE: &str = "allow-once";
const ALLOW_ALWAYS: &str = "allow-always";
const REJECT_ONCE: &str = "reject-once";
const REJECT_ALWAYS: &str = "reject-always";

/// Asks, unless it was answered with "always" before.
pub(crate) async fn ask(
    turn: &Turn,
    state: &SessionState,
    subject: &Subject,
    tool_call: ToolCallUpdate,
) -> acp::Result<Decision> {
    match state.always(subject) {
        Some(true) => return Ok(Decision::Allowed),
        Some(false) => {
            return Ok(Decision::Rejected(
                "Rejected: you said never to allow this in this session.",
            ));
        }
        None => {}
    }
    let shown = subject.shown();
    let option = |id: &str, name: String, kind| PermissionOption::new(id, name, kind);
    let options = vec![
        option(
            ALLOW_ONCE,
            "Allow".to_owned(),
            PermissionOptionKind::AllowOnce,
        ),
        option(
            ALLOW_ALWAYS,
            format!("Always allow {shown} in this session"),
            PermissionOptionKind::AllowAlways,
        ),
        option(
            REJECT_ONCE,
            "Reject".to_owned(),
            PermissionOptionKind::RejectOnce,
        ),
        option(
            REJECT_ALWAYS,
            format!("Always reject {shown} in this session"),
            PermissionOptionKind::RejectAlways,
        ),
    ];
    let chosen = choice(turn, tool_call, options).await?;
    Ok(match chosen.as_str() {
        ALLOW_ONCE => Decision::Allowed,
        ALLOW_ALWAYS => {
            state.remember(subject, true).await?;
            Decision::Allowed
        }
        REJECT_ALWAYS => {
            state.remember(subject, false).await?;
            Decision::Rejected("Rejected: permission was refused, for the rest of this session.")
        }
        // An answer that was not offered allows nothing.
        _ => Decision::Rejected("Rejected: permission was refused."),
    })
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
