//! Converts between this library's own types and those of each protocol version.
//!
//! [`v1`] and [`v2`] convert updates. For requests that both versions have, the library uses the types of version 1:
//! see `docs/decisions/0007-both-versions.md`.

mod capabilities;
mod git_patch;
mod setup;
mod v1;
mod v2;

pub(crate) use capabilities::{agent_from_v2, agent_to_v2, client_from_v2, client_to_v2};
pub(crate) use git_patch::format_git_patch;
pub(crate) use setup::{
    OpenSessionRequest, auth_method_from_v2, auth_method_to_v2, mcp_server_to_v2,
};

use acp_wire::v1::{ProtocolVersion, SessionConfigOption, SessionId, SessionNotification};
use acp_wire::v2::{SessionConfigOption as SessionConfigOptionV2, UpdateSessionNotification};
use acp_wire::{Notification, ReadError, read_params};
use serde_json::value::RawValue;

use crate::update::Update;

/// Reads the params of `session/update`, the only agent notification that differs between the versions.
pub(crate) fn read_update(
    version: ProtocolVersion,
    params: Option<&RawValue>,
) -> Result<(SessionId, Update), ReadError> {
    let method = SessionNotification::METHOD;
    Ok(if version == ProtocolVersion::V2 {
        let update: UpdateSessionNotification = read_params(method, params)?;
        (update.session_id, update.update.into())
    } else {
        let update: SessionNotification = read_params(method, params)?;
        (update.session_id, update.update.into())
    })
}

/// Converts config options to version 2.
pub(crate) fn options_to_v2(options: Vec<SessionConfigOption>) -> Vec<SessionConfigOptionV2> {
    options.into_iter().map(Into::into).collect()
}

/// Converts config options from version 2.
pub(crate) fn options_from_v2(options: Vec<SessionConfigOptionV2>) -> Vec<SessionConfigOption> {
    options.into_iter().map(|option| option.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp_wire::{MethodKind, Sender};

    #[test]
    fn only_update_notifications_differ_between_versions() {
        let of_agents = acp_wire::v2::METHODS
            .iter()
            .filter(|method| method.sender == Sender::Agent)
            .filter(|method| method.kind == MethodKind::Notification);
        for method in of_agents.filter(|method| method.name != SessionNotification::METHOD) {
            let in_v1 = acp_wire::v1::method(method.name).map(|method| method.params);
            assert_eq!(in_v1, Some(method.params), "{}", method.name);
        }
    }
}
