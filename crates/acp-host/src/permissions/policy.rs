//! Policies: one word for what an agent may do. Answers to permission requests: the specification's page "Tool Calls", "Requesting Permission".

use std::fmt;
use std::future::Future;
use std::str::FromStr;

use acp::client::PermissionRequest;
use acp_wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome, ToolKind,
};

use super::AlwaysEffect;
use super::rules::RuleEffect;

/// Which tool calls are allowed without asking a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// None, and none is rejected: a person decides each.
    #[default]
    Ask,
    /// Those that only look: of the kinds `read`, `search` and `think`. All others are rejected, those
    /// without a kind too, and `fetch`, which can carry out what was read.
    Reads,
    /// All.
    All,
    /// None: all are rejected.
    None,
}

/// What a policy says to a permission request.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyDecision {
    /// This.
    Answer(RequestPermissionOutcome),
    /// Nothing: a person must choose. Where there is none, it is [`RequestPermissionOutcome::Cancelled`].
    AskUser,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Reads, Self::All, Self::None];

    /// Its name: `ask`, `reads`, `all` or `none`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Reads => "reads",
            Self::All => "all",
            Self::None => "none",
        }
    }

    /// Decides about a tool call of this kind, as the request or an earlier report of the tool call
    /// has it.
    ///
    /// An option is chosen by its kind alone, never by what it is called, and the one that binds least
    /// first: "once" before "always". Allowing where no option says yes is left to a person. Rejecting
    /// where no option says no is the outcome `cancelled`.
    #[must_use]
    pub fn decide(&self, kind: Option<&ToolKind>, options: &[PermissionOption]) -> PolicyDecision {
        match self.effect(kind) {
            RuleEffect::Ask => PolicyDecision::AskUser,
            RuleEffect::Allow => {
                answer(true, options).map_or(PolicyDecision::AskUser, PolicyDecision::Answer)
            }
            RuleEffect::Deny => PolicyDecision::Answer(
                answer(false, options).unwrap_or_else(RequestPermissionOutcome::cancelled),
            ),
        }
    }

    /// What it says to a tool call of this kind.
    pub(crate) fn effect(self, kind: Option<&ToolKind>) -> RuleEffect {
        let looks = matches!(
            kind,
            Some(ToolKind::Read | ToolKind::Search | ToolKind::Think)
        );
        match self {
            Self::Ask => RuleEffect::Ask,
            Self::Reads if looks => RuleEffect::Allow,
            Self::All => RuleEffect::Allow,
            Self::Reads | Self::None => RuleEffect::Deny,
        }
    }
}

/// The option that says yes or no and binds least, if there is one.
pub(crate) fn answer(
    allow: bool,
    options: &[PermissionOption],
) -> Option<RequestPermissionOutcome> {
    let wanted = if allow {
        [
            PermissionOptionKind::AllowOnce,
            PermissionOptionKind::AllowAlways,
        ]
    } else {
        [
            PermissionOptionKind::RejectOnce,
            PermissionOptionKind::RejectAlways,
        ]
    };
    let chosen = wanted
        .iter()
        .find_map(|kind| options.iter().find(|option| option.kind == *kind))?;
    Some(RequestPermissionOutcome::selected(&chosen.option_id))
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let policy = Self::ALL.into_iter().find(|policy| policy.as_str() == name);
        policy.ok_or_else(|| ParsePolicyError(name.to_owned()))
    }
}

/// The name of no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy `{0}`; expected ask, reads, all or none")]
pub struct ParsePolicyError(String);

/// Has a person choose.
pub trait Prompter {
    /// Shows the request and waits for the choice: one of its options, or `None` if the person makes
    /// none. Dropping the future withdraws the question.
    fn ask(
        &self,
        request: &PermissionRequest,
    ) -> impl Future<Output = Option<PermissionOptionId>> + Send;

    /// The same, for those who also say what an answer for always comes to. This is what is called.
    fn ask_with(
        &self,
        request: &PermissionRequest,
        _always: &AlwaysEffect,
    ) -> impl Future<Output = Option<PermissionOptionId>> + Send {
        self.ask(request)
    }

    /// Whether there is anyone to ask now. Where there is nobody, what would be asked is rejected.
    fn can_ask(&self) -> bool {
        true
    }
}
