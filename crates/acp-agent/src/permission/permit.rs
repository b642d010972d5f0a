//! That something may be done.

use super::action::ToolAction;

/// That something may be done, and what. Whoever changes a file, runs a command or asks a server takes one, and none is
/// made but where mode and rules allow it or the person has said yes.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Permit {
    action: Option<ToolAction>,
}

impl Permit {
    /// For this; without a deed, for what nobody forbids.
    pub(super) fn new(deed: Option<ToolAction>) -> Self {
        Self { action: deed }
    }

    /// The file that may be changed, by its absolute path.
    pub(crate) fn file_to_change(&self) -> Option<&str> {
        match &self.action {
            Some(ToolAction::Change(path)) => Some(path),
            _ => None,
        }
    }

    /// The command line that may be run.
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
    fn a_permit_is_for_one_thing_and_no_other() {
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
