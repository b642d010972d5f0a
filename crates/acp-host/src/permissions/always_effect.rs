//! Determines the effect of "always" answers.

use acp_wire::v1::{PermissionOption, ToolKind};

use super::{Action, DecisionSource, Permissions, RememberedSubject, remembered};

/// The effect of an "always" answer (the kinds `allow_always` and `reject_always`) in the client. The agent also
/// receives the answer, and may remember it itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlwaysEffect {
    /// The answer is remembered for the project until the user revokes it. It covers tool calls of this kind whose
    /// command or file is exactly one of these.
    Remembered {
        /// The kind of tool call that the answer covers.
        kind: ToolKind,
        /// The commands or files that the answer covers. The list is never empty.
        subjects: Vec<RememberedSubject>,
        /// The pattern that the client's own option covers, such as `cargo test *`, if there is such an option.
        prefix: Option<String>,
    },
    /// The client does not remember the answer. The agent may remember it for as long as it likes.
    LeftToAgent,
    /// The client does not remember the answer, because this rule requires asking each time.
    AskEachTime(DecisionSource),
    /// The client provides its own options, because the agent did not ask. The name of each option describes its
    /// effect.
    OwnOptions,
}

/// The id of the client's own option to allow all commands of a pattern, such as `cargo test *`. The option is added to
/// those of the agent, which never receives it.
pub(super) const PREFIX_OPTION: &str = "acp/allow-prefix";

impl AlwaysEffect {
    /// Returns the pattern of commands that this option covers, if it is the client's own option for that.
    #[must_use]
    pub fn option_prefix(&self, option: &PermissionOption) -> Option<&str> {
        match self {
            Self::Remembered { prefix, .. } if option.option_id.as_str() == PREFIX_OPTION => {
                prefix.as_deref()
            }
            _ => None,
        }
    }
}

impl Permissions {
    /// Returns the effect of an "always" answer to a permission request about this action.
    pub(super) fn always_effect(
        &self,
        action: &Action,
        each_time: Option<&DecisionSource>,
    ) -> AlwaysEffect {
        if let Some(by) = each_time {
            return AlwaysEffect::AskEachTime(by.clone());
        }
        let remembered = self.remembered.as_ref();
        match remembered.and_then(|_| remembered::remembered_subjects(action)) {
            Some(subjects) => AlwaysEffect::Remembered {
                kind: action.kind.clone(),
                subjects,
                prefix: None,
            },
            None => AlwaysEffect::LeftToAgent,
        }
    }
}
