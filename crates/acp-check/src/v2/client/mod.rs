//! Checks for the version 2 requirements for clients. There is one file for each page of the specification.

mod agent_plan;
mod authentication;
mod cancellation;
mod content;
mod elicitation;
mod extensibility;
mod initialization;
mod overview;
mod permissions;
mod prompt_lifecycle;
mod session_config_options;
mod session_setup;
mod tool_calls;

use crate::check::Check;

/// Returns all checks for clients, page by page.
pub(crate) fn checks() -> Vec<Check> {
    [
        overview::CHECKS,
        initialization::CHECKS,
        authentication::CHECKS,
        session_setup::CHECKS,
        session_config_options::CHECKS,
        prompt_lifecycle::CHECKS,
        cancellation::CHECKS,
        content::CHECKS,
        tool_calls::CHECKS,
        permissions::CHECKS,
        agent_plan::CHECKS,
        elicitation::CHECKS,
        extensibility::CHECKS,
    ]
    .concat()
}
