//! Permits, which prove that an action was allowed.

use super::action::ToolAction;

/// A permit for one action. Functions that change a file, run a command or call a server require a permit. It is
/// created only after the mode and the rules, or the user, have allowed the action.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Permit {
    action: Option<ToolAction>,
}

impl Permit {
    /// Creates a permit for this action. `None` means that the call did not need permission.
    pub(super) fn new(tool_action: Option<ToolAction>) -> Self {
        Self {
            action: tool_action,
        }
    }

    /// Returns the absolute path of the file that may be changed.
    pub(crate) fn file_to_change(&self) -> Option<&str> {
        match &self.action {
            Some(ToolAction::Change(path)) => Some(path),
            _ => None,
        }
    }

    /// Returns the command line that may be run.
    pub(crate) fn command(&self) -> Option<&str> {
        match &self.action {
            Some(ToolAction::Run(line)) => Some(line),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permit_covers_only_its_own_action() {
        let change = Permit::new(Some(ToolAction::Change("/w/a".to_owned())));
        assert_eq!(change.file_to_change(), Some("/w/a"));
        assert_eq!(change.command(), None);
        let run = Permit::new(Some(ToolAction::Run("ls".to_owned())));
        assert_eq!(run.command(), Some("ls"));
        assert_eq!(run.file_to_change(), None);
        for other in [None, Some(ToolAction::Read("/w/a".to_owned()))] {
            let permit = Permit::new(other);
            assert_eq!((permit.file_to_change(), permit.command()), (None, None));
        }
    }
}
