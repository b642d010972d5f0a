//! The user's configuration, fully validated, including settings that only the bundled agent uses.

use acp_config::UserConfig;

use crate::exit::CommandExit;
use crate::models::BundledAgentConfig;

/// Reads the configuration. Any mistake in it is an error, even in the settings of an agent that isn't being used.
pub(crate) fn read_user_config() -> Result<UserConfig, CommandExit> {
    let config = UserConfig::read()?;
    BundledAgentConfig::from_config(&config)?;
    Ok(config)
}
