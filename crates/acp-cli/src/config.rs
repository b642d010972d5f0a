//! The user's configuration, all of it understood: also what only the bundled agent knows the meaning of.

use acp_config::Config;

use crate::exit::Exit;
use crate::models::Models;

/// Reads the configuration. What is wrong with it is said to everyone, whichever agent they mean.
pub(crate) fn read() -> Result<Config, Exit> {
    let config = Config::read()?;
    Models::of(&config)?;
    Ok(config)
}
