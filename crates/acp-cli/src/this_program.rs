//! The path of this program, for commands that start it again in another role.

use std::path::PathBuf;

use crate::exit::CommandExit;

/// Returns the path of this program.
pub(crate) fn this_program() -> Result<PathBuf, CommandExit> {
    std::env::current_exe().map_err(|e| {
        CommandExit::agent_failed(format!("cannot find the path of this program: {e}"))
    })
}
