//! What was decided about each action of an agent, for programs that report it.

use std::fmt;

use super::DecisionSource;

/// The decision on an action that the agent asked for, or that it tried to perform through the client.
///
/// Reads through the client that nothing forbids are not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActionDecision {
    /// A description of the action for the user. It may quote the agent.
    pub action: String,
    /// Who denied the action, or `None` if it was allowed.
    pub denied_by: Option<Denier>,
}

/// Who denied an action.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denier {
    /// A rule, a remembered answer or the policy.
    Source(DecisionSource),
    /// The user.
    User,
    /// Nobody: there was no user to ask.
    NoUserToAsk,
    /// The request itself: it was malformed, or had no option that allows the action.
    Request,
}

impl fmt::Display for Denier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(by) => write!(f, "{by}"),
            Self::User => f.write_str("the user"),
            Self::NoUserToAsk => f.write_str("there was no user to ask"),
            Self::Request => f.write_str("the request could not be allowed"),
        }
    }
}
