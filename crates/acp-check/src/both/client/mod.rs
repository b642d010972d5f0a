//! Client checks that are the same in both protocol versions. There is one file for each part of the schema.

mod auth_status;
mod providers;
mod session_archive;
mod session_status;
mod steps;
mod system_prompt;

use acp_rules::schema::SchemaVersion;

use crate::check::Check;

/// Returns the checks for clients that speak this version, part by part.
pub(crate) fn checks(version: SchemaVersion) -> Vec<Check> {
    match version {
        SchemaVersion::V1 => [
            session_archive::V1,
            session_status::V1,
            auth_status::V1,
            providers::V1,
            system_prompt::V1,
        ]
        .concat(),
        SchemaVersion::V2 => [
            session_archive::V2,
            session_status::V2,
            auth_status::V2,
            providers::V2,
            system_prompt::V2,
        ]
        .concat(),
    }
}
