//! Reads `config.toml` in the user's configuration directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use crate::agents::settings::AgentSettings;
use crate::bundled::BundledSettings;
use crate::chat::ChatSettings;
use crate::environment::EnvironmentSettings;
use crate::error::ConfigError;
use crate::mcp_servers::McpServerSettings;
use crate::paths;
use crate::source::{CONFIG_FILE, ConfigSource};

/// The user's configuration. Unknown keys are errors, so that typos don't go unnoticed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// `[environment]`: the environment variables for all agents.
    #[serde(default)]
    pub environment: EnvironmentSettings,
    /// `[agent]`: the settings of the bundled agent, along with their position in the file.
    pub agent: Option<Spanned<BundledSettings>>,
    /// `[[mcp_servers]]`: MCP servers for the bundled agent.
    #[serde(default)]
    pub mcp_servers: Vec<McpServerSettings>,
    /// `[agents.NAME]`: the settings of each agent, by name.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentSettings>,
    /// `[chat]`: the settings of the terminal client.
    #[serde(default)]
    pub chat: ChatSettings,
    /// The agent to use if the user does not name one.
    pub default_agent: Option<String>,
    #[serde(skip)]
    source: ConfigSource,
}

impl UserConfig {
    /// Returns the path of the user's configuration file, if there is a configuration directory.
    #[must_use]
    pub fn file() -> Option<PathBuf> {
        Some(paths::config_dir()?.join(CONFIG_FILE))
    }

    /// Formats the path of the configuration file for messages. If there is no configuration directory, returns only
    /// the file's name.
    #[must_use]
    pub fn display_path() -> String {
        Self::file().map_or_else(|| CONFIG_FILE.to_owned(), |file| paths::display_path(&file))
    }

    /// Reads the user's configuration. Returns the default configuration if the file does not exist.
    ///
    /// # Errors
    /// Fails if the file exists but cannot be read or is invalid.
    pub fn read() -> Result<Self, ConfigError> {
        let Some(file) = Self::file() else {
            return Ok(Self::default());
        };
        let wrong = |what: &str| Err(ConfigError::usage(format!("{}: {what}", file.display())));
        match std::fs::metadata(&file) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return wrong("not a regular file"),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return wrong(&e.to_string()),
        }
        let source = match File::open(&file) {
            Ok(opened) => ConfigSource::read(&file, opened)?,
            Err(e) => return wrong(&e.to_string()),
        };
        let config: Self = source.parse()?;
        Ok(Self { source, ..config })
    }

    /// Builds an error about a configuration value, giving its line number.
    ///
    /// Use this for values that only the code that uses them can validate.
    pub fn value_error<T>(&self, value: &Spanned<T>, what: impl std::fmt::Display) -> ConfigError {
        self.source.error_at(Some(value.span()), &what.to_string())
    }
}
