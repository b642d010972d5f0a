//! The mark in the environment of all processes in a group. A process that leaves the group keeps the mark.

use std::ffi::{OsStr, OsString};

use uuid::Uuid;

/// The mark of a process group: an environment variable with a unique id.
///
/// A process that is started by a marked process of another group has both marks, so that ending the outer group ends
/// it too.
#[derive(Debug, Clone)]
pub(super) struct GroupMark {
    /// A unique id, in hexadecimal digits.
    id: String,
    /// The value of the environment variable in the group's processes.
    environment_value: OsString,
}

impl GroupMark {
    /// The name of the environment variable that marks a group's processes.
    pub(super) const MARK_VARIABLE: &str = "ACP_PROCESS";

    pub(super) fn new() -> Self {
        let own = Uuid::new_v4().simple().to_string();
        let value = match std::env::var_os(Self::MARK_VARIABLE) {
            Some(mut outer) if !outer.is_empty() => {
                outer.push(":");
                outer.push(&own);
                outer
            }
            _ => OsString::from(&own),
        };
        Self {
            id: own,
            environment_value: value,
        }
    }

    /// Returns the unique id of the group.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the value of the environment variable for the group's processes.
    pub(super) fn value(&self) -> &OsStr {
        &self.environment_value
    }
}
