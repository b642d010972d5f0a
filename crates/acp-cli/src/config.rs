//! The user's configuration, all of it understood: also what only the bundled agent knows the meaning of.

use acp_config::UserConfig;

use crate::exit::CommandExit;
use crate::models::BundledAgentConfig;

/// Reads the configuration. What is wrong with it is said to everyone, whichever agent they mean.
pub(crate) fn read() -> Result<UserConfig, CommandExit> {
    let config = UserConfig::read()?;
    BundledAgentConfig::of(&config)?;
    Ok(config)
}
