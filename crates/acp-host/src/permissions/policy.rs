//! Policies, which determine what an agent may do if no rule matches, and how its permission requests are answered
//! (specification: Tool Calls, "Requesting Permission").

use std::fmt;
use std::future::Future;
use std::str::FromStr;

use acp::client::PermissionRequest;
use acp_wire::v1::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome, ToolKind,
};

use super::AlwaysEffect;
use super::rules::RuleEffect;

/// A policy that determines which tool calls are allowed without asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// Asks the user about every tool call.
    #[default]
    Ask,
    /// Allows tool calls that only read: the kinds `read`, `search` and `think`. Rejects all others, including calls
    /// without a kind, and `fetch`, which could send data out.
    Reads,
    /// Allows all tool calls.
    All,
    /// Rejects all tool calls.
    None,
}

/// A policy's response to a permission request.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyDecision {
    /// The policy responds with this outcome.
    Answer(RequestPermissionOutcome),
    /// The user must choose. If there is no user to ask, the outcome is [`RequestPermissionOutcome::Cancelled`].
    AskUser,
}

impl Policy {
    /// All policies, from [`Ask`](Self::Ask) to [`None`](Self::None).
    pub const ALL: [Self; 4] = [Self::Ask, Self::Reads, Self::All, Self::None];

    /// Returns the policy's name as used in options: `ask`, `reads`, `all` or `none`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Reads => "reads",
            Self::All => "all",
            Self::None => "none",
        }
    }

    /// Decides on a tool call of this kind, as given in the request or in an earlier update of the tool call.
    ///
    /// An option is chosen only by its kind, never by its name. An option that applies once is preferred to one that
    /// applies always. If the policy allows the call but no option does, the user decides. If the policy rejects the
    /// call but no option does, the outcome is `cancelled`.
    #[must_use]
    pub fn decide(&self, kind: Option<&ToolKind>, options: &[PermissionOption]) -> PolicyDecision {
        match self.effect(kind) {
            RuleEffect::Ask => PolicyDecision::AskUser,
            RuleEffect::Allow => {
                select_answer(true, options).map_or(PolicyDecision::AskUser, PolicyDecision::Answer)
            }
            RuleEffect::Deny => PolicyDecision::Answer(
                select_answer(false, options).unwrap_or_else(RequestPermissionOutcome::cancelled),
            ),
        }
    }

    /// Returns the effect of the policy on a tool call of this kind.
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

/// Returns an answer that selects an option to allow or reject, preferably one that applies only once. Returns `None`
/// if there is no such option.
pub(crate) fn select_answer(
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

/// An error about an unknown policy name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy `{0}`; expected ask, reads, all or none")]
pub struct ParsePolicyError(String);

/// Asks the user for permission. Implemented by front ends.
pub trait Prompter {
    /// Shows the request and waits for the user to choose an option. Returns `None` if the user does not choose one.
    /// Dropping the future withdraws the question.
    fn ask(
        &self,
        request: &PermissionRequest,
    ) -> impl Future<Output = Option<PermissionOptionId>> + Send;

    /// Like [`ask`](Self::ask), but also receives the effect of an "always" answer. The host calls only this method.
    fn ask_with(
        &self,
        request: &PermissionRequest,
        _always: &AlwaysEffect,
    ) -> impl Future<Output = Option<PermissionOptionId>> + Send {
        self.ask(request)
    }

    /// Returns `true` if there is a user who can answer. If not, everything that needs the user's permission is
    /// rejected.
    fn can_ask(&self) -> bool {
        true
    }
}
