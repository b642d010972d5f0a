//! `.acp/config.toml`: the agents of a project.
//!
//! The file comes with a cloned project. It is used only if the user has allowed exactly its contents, whose hash is
//! stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use acp_host::{Project, StateFile, literal};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::installed::InstalledAgent;
use super::settings::{self, AgentSettings, check_name};
use super::well_known::find_well_known;
use crate::error::ConfigError;
use crate::paths;
use crate::quote::quote;
use crate::source::{CONFIG_FILE, ConfigSource};

/// The maximum size, in bytes, of the file that lists the allowed projects.
const MAX_FILE_SIZE: u64 = 4 * 1024 * 1024;

/// The maximum number of allowed configuration files. Adding another removes the oldest one.
const MAX_ALLOWED_FILES: usize = 10_000;

/// The contents of a project's configuration file, which can only define agents.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectConfig {
    #[serde(default)]
    agents: BTreeMap<String, AgentSettings>,
    default_agent: Option<String>,
}

/// The agents that a project defines.
#[derive(Debug)]
pub struct ProjectAgents {
    /// The file that defines the agents.
    pub file: PathBuf,
    /// The directory that contains `.acp`. Paths in the file are relative to it.
    pub directory: PathBuf,
    /// The project's agents, by name.
    pub agents: BTreeMap<String, AgentSettings>,
    /// The agent to use if the user does not name one.
    pub default_agent: Option<String>,
    /// The SHA-256 hash of the file's text, in hexadecimal.
    digest: String,
}

impl ProjectAgents {
    /// Reads the agents of the project that contains `cwd`. Returns `None` if the project has no configuration file.
    ///
    /// # Errors
    /// Fails if the file is invalid, cannot be read, or is outside the project.
    pub fn load(cwd: &Path) -> Result<Option<Self>, ConfigError> {
        let project = Project::find(cwd)
            .map_err(|e| ConfigError::usage(format!("the directory {}: {e}", cwd.display())))?;
        let found = project
            .open_nearest(CONFIG_FILE)
            .map_err(|e| ConfigError::usage(e.to_string()))?;
        let Some(found) = found else {
            return Ok(None);
        };
        let source = ConfigSource::read(&found.path, found.file)?;
        let written: ProjectConfig = source.parse()?;
        let wrong = |what: String| ConfigError::usage(format!("{}: {what}", found.path.display()));
        let mut agents = written.agents;
        for (name, settings) in &mut agents {
            check_name(name).map_err(wrong)?;
            let wrong = |what: String| wrong(format!("[agents.{name}]: {what}"));
            if let Some(url) = check_remote(settings, &found.directory).map_err(wrong)? {
                settings.url = Some(url);
                continue;
            }
            let Some(command) = &mut settings.command else {
                return Err(wrong("`command` or `url` is missing".to_owned()));
            };
            if let Some(program) = command.first_mut() {
                *program =
                    settings::resolve_program(program, Some(&found.directory)).map_err(wrong)?;
            }
        }
        let digest = Sha256::digest(source.text().as_bytes());
        Ok(Some(Self {
            file: found.path,
            directory: found.directory,
            agents,
            default_agent: written.default_agent,
            digest: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        }))
    }

    /// Returns `true` if the user has allowed the file with exactly its current contents.
    ///
    /// # Errors
    /// Fails if the list of allowed projects cannot be read.
    pub fn is_allowed(&self) -> Result<bool, ConfigError> {
        let Some(store) = allowed_files_store() else {
            return Ok(false);
        };
        let allowed: AllowedFiles = store.read()?.unwrap_or_default();
        let file = self.file.to_string_lossy();
        let is_this = |one: &AllowedFile| one.file == file && one.digest == self.digest;
        Ok(allowed.files.iter().any(is_this))
    }

    /// Records that the user allows the file with its current contents.
    ///
    /// # Errors
    /// Fails if the list of allowed projects cannot be read or written.
    pub fn allow(&self) -> Result<(), ConfigError> {
        let Some(store) = allowed_files_store() else {
            return Err(ConfigError::usage(
                "cannot allow the project's agents: no state directory",
            ));
        };
        let file = self.file.to_string_lossy().into_owned();
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let change = |allowed: Option<AllowedFiles>| {
            let mut allowed = allowed.unwrap_or_default();
            allowed.files.retain(|one| one.file != file);
            let digest = self.digest.clone();
            allowed.files.push(AllowedFile { file, digest, at });
            let beyond = allowed.files.len().saturating_sub(MAX_ALLOWED_FILES);
            allowed.files.drain(..beyond);
            Ok::<_, ConfigError>((allowed, ()))
        };
        store.update(change)
    }

    /// Revokes the user's approval of the file. Returns `true` if the file was previously allowed.
    ///
    /// # Errors
    /// Fails if the list of allowed projects cannot be read or written.
    pub fn revoke(&self) -> Result<bool, ConfigError> {
        let Some(store) = allowed_files_store() else {
            return Ok(false);
        };
        let file = self.file.to_string_lossy();
        let change = |allowed: Option<AllowedFiles>| {
            let mut allowed = allowed.unwrap_or_default();
            let before = allowed.files.len();
            allowed.files.retain(|one| one.file != file);
            let revoked = allowed.files.len() < before;
            Ok::<_, ConfigError>((allowed, revoked))
        };
        store.update(change)
    }

    /// Describes the agent that takes precedence over a project agent with the same name. Returns `None` if there is no
    /// such agent.
    #[must_use]
    pub fn shadowing_agent(
        name: &str,
        users: &BTreeMap<String, AgentSettings>,
        installed: &[InstalledAgent],
    ) -> Option<&'static str> {
        if users.contains_key(name) {
            Some("your agent of the same name")
        } else if installed.iter().any(|agent| agent.id == name) {
            Some("the installed agent of the same name")
        } else if find_well_known(name).is_some() {
            Some("the well-known agent of the same name")
        } else {
            None
        }
    }

    /// Returns the question that asks the user to allow the project's agents.
    #[must_use]
    pub fn confirmation_question(&self) -> String {
        format!(
            "This project defines agents in {}:\n{}They run with your permissions, as configured in this file. Allow them until the file changes?",
            self.display_file(),
            self.to_text()
        )
    }

    /// Returns the complete path of the file, escaped for display.
    #[must_use]
    pub fn display_file(&self) -> String {
        literal::escape_line(&paths::display_path(&self.file))
    }

    /// Formats the project's complete configuration for the user to review.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |indent: usize, what: &str| {
            text.push_str(&" ".repeat(indent));
            text.push_str(&literal::escape_line(what));
            text.push('\n');
        };
        for (name, settings) in &self.agents {
            let words = settings.command.iter().flatten();
            let mut command: Vec<String> = words.map(|word| quote(word)).collect();
            if let Some(url) = &settings.url {
                command.push(format!("connects to {url}"));
            }
            line(2, &format!("{name}: {}", command.join(" ")));
            if let Some(pin) = &settings.pin {
                line(6, &format!("trusts the certificate {pin}"));
            }
            for (variable, value) in &settings.env {
                line(6, &format!("with {variable}={}", quote(value)));
            }
            if !settings.pass.is_empty() {
                line(6, &format!("receives your {}", settings.pass.join(", ")));
            }
            if let Some(mode) = &settings.mode {
                line(6, &format!("starts in mode {}", quote(mode)));
            }
            for (key, value) in settings.options() {
                line(6, &format!("sets {}", quote(&format!("{key}={value}"))));
            }
            for server in &settings.mcp_servers {
                line(6, &format!("MCP server: {}", server.summary()));
            }
        }
        if let Some(default) = &self.default_agent {
            line(2, &format!("default: {default}"));
        }
        text
    }
}

/// Checks the settings of a remote agent. Returns its URL, with an absolute path, or `None` if the agent has a command.
fn check_remote(settings: &AgentSettings, directory: &Path) -> Result<Option<String>, String> {
    // A project must not be able to send one of the user's secrets to a server of its choice, and its file is no place
    // for a secret of its own.
    let secret = match settings.remote_url(Some(directory))? {
        None => return Ok(None),
        Some(_) if settings.token_env.is_some() => "`token_env`",
        Some(_) if settings.token_file.is_some() => "`token_file`",
        Some(url) if url.token.is_some() => "a token in `url`",
        Some(_) if !settings.paths.is_empty() => {
            return Err("`paths` is not allowed in a project's file; use --map".to_owned());
        }
        Some(url) => {
            let pin = url.pin.as_ref().map(|pin| format!("#{pin}"));
            return Ok(Some(format!("{}{}", url.as_str(), pin.unwrap_or_default())));
        }
    };
    Err(format!(
        "{secret} is not allowed in a project's file; pass the token with --token-file"
    ))
}

/// The configuration files that the user has allowed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AllowedFiles {
    files: Vec<AllowedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct AllowedFile {
    file: String,
    /// The SHA-256 hash of the file's text, in hexadecimal.
    digest: String,
    /// The time when the file was allowed, in seconds since 1970.
    at: u64,
}

fn allowed_files_store() -> Option<StateFile> {
    let file = paths::state_dir()?.join("project-agents.json");
    Some(StateFile::new(file, MAX_FILE_SIZE))
}
