//! Checks for the version 2 requirements for agents. Each page of the specification has one file, or several if it is
//! long.

mod agent_plan;
mod authentication;
mod cancellation;
mod content;
mod diffs;
mod elicitation;
mod extensibility;
mod initialization;
mod overview;
mod permissions;
mod prompt_lifecycle;
mod replay;
mod session_config_options;
mod session_list;
pub(crate) mod session_setup;
mod tool_calls;
mod values;

use crate::check::Check;

/// Returns all checks for agents, page by page.
pub(crate) fn checks() -> Vec<Check> {
    [
        overview::CHECKS,
        initialization::CHECKS,
        authentication::CHECKS,
        session_setup::CHECKS,
        replay::CHECKS,
        session_list::CHECKS,
        session_config_options::CHECKS,
        prompt_lifecycle::CHECKS,
        cancellation::CHECKS,
        content::CHECKS,
        tool_calls::CHECKS,
        diffs::CHECKS,
        permissions::CHECKS,
        agent_plan::CHECKS,
        elicitation::CHECKS,
        extensibility::CHECKS,
    ]
    .concat()
}
