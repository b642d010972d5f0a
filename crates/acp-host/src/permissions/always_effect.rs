//! What an answer for always comes to.

use acp_wire::v1::ToolKind;

use super::{Action, DecisionSource, Permissions, RememberedSubject, remembered};

/// What an answer for always (the kinds `allow_always` and `reject_always`) comes to in this program. The agent gets
/// the answer as well, and may keep to it for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlwaysEffect {
    /// It is remembered for the project until the person revokes it: for tool calls of this kind, and each of these
    /// commands or files, exactly.
    Remembered {
        /// The kind.
        kind: ToolKind,
        /// What it is about; there is at least one.
        subjects: Vec<RememberedSubject>,
    },
    /// Nothing is remembered here. It is the agent's to remember, for as long as it does.
    LeftToAgent,
    /// Nothing is remembered here, because this has the person asked each time.
    AskEachTime(DecisionSource),
    /// What each option is called: the agent has not asked, and the options are this program's own.
    OwnOptions,
}

impl Permissions {
    /// What an answer for always to an agent's request about this comes to.
    pub(super) fn always(
        &self,
        action: &Action,
        each_time: Option<&DecisionSource>,
    ) -> AlwaysEffect {
        if let Some(by) = each_time {
            return AlwaysEffect::AskEachTime(by.clone());
        }
        let remembered = self.remembered.as_ref();
        match remembered.and_then(|_| remembered::subjects(action)) {
            Some(subjects) => AlwaysEffect::Remembered {
                kind: action.kind.clone(),
                subjects,
            },
            None => AlwaysEffect::LeftToAgent,
        }
    }
}
