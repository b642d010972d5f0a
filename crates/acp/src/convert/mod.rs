//! From the words of one version to those of the other, for the two sides.
//!
//! Above the wire the words are those of version 1, where both versions have words for a thing; see
//! `docs/decisions/0007-both-versions.md`.

mod capabilities;
mod git_patch;
mod setup;
mod tool_call;
mod update;

pub(crate) use capabilities::{agent_from_v2, agent_to_v2, client_from_v2, client_to_v2};
pub(crate) use git_patch::git_patch;
pub(crate) use setup::{OpensSession, auth_method_from_v2, auth_method_to_v2, mcp_server_to_v2};
pub(crate) use tool_call::{tool_call_to_v2, tool_call_update_to_v2};
pub(crate) use update::update_to_v2;

use acp_wire::v1::SessionConfigOption;
use acp_wire::v2;

/// Config options of version 2.
pub(crate) fn options_to_v2(options: Vec<SessionConfigOption>) -> Vec<v2::SessionConfigOption> {
    options.into_iter().map(Into::into).collect()
}

/// Config options of version 1.
pub(crate) fn options_from_v2(options: Vec<v2::SessionConfigOption>) -> Vec<SessionConfigOption> {
    options.into_iter().map(|option| option.0).collect()
}
