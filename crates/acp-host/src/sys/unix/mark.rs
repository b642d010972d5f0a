//! The mark in the environment of all processes in a group. Processes keep it when they leave the group.

use std::ffi::{OsStr, OsString};

use uuid::Uuid;

/// A process group's mark: an environment variable that contains a unique id.
///
/// A process that is started by a marked process of another group has both marks, so that ending the outer group ends
/// it too.
#[derive(Debug, Clone)]
pub(super) struct GroupMark {
    /// A unique id, in hexadecimal digits.
    id: String,
    /// The value of the environment variable in processes of the group.
    environment_value: OsString,
}

impl GroupMark {
    /// The environment variable that marks the processes of a group.
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

    /// Returns the value of the environment variable in processes of the group.
    pub(super) fn value(&self) -> &OsStr {
        &self.environment_value
    }
}
