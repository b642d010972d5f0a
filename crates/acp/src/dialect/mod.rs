//! Conversions between this library's own types and those of each protocol version.
//!
//! [`v1`] and [`v2`] convert updates. For requests that both versions have, the library uses the types of version 1:
//! see `docs/decisions/0007-both-versions.md`.

mod capabilities;
mod git_patch;
mod setup;
mod v1;
mod v2;

pub(crate) use capabilities::{agent_from_v2, agent_to_v2, client_from_v2, client_to_v2};
pub(crate) use git_patch::git_patch;
pub(crate) use setup::{
    OpenSessionRequest, auth_method_from_v2, auth_method_to_v2, mcp_server_to_v2,
};

use acp_wire::v1::SessionConfigOption;
use acp_wire::v2::SessionConfigOption as SessionConfigOptionV2;

/// Converts config options to version 2.
pub(crate) fn options_to_v2(options: Vec<SessionConfigOption>) -> Vec<SessionConfigOptionV2> {
    options.into_iter().map(Into::into).collect()
}

/// Converts config options from version 2.
pub(crate) fn options_from_v2(options: Vec<SessionConfigOptionV2>) -> Vec<SessionConfigOption> {
    options.into_iter().map(|option| option.0).collect()
}
