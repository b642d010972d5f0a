//! The lock file of the agents that are installed from a registry.
//!
//! The file records what exactly is installed, so that an agent starts in the same way until the user updates it. The
//! crate `acp-sdk-registry` installs agents and writes the records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acp_host::StateFile;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::paths;

/// The maximum size of the lock file, in bytes.
const MAX_FILE_SIZE: u64 = 4 * 1024 * 1024;

/// The agents that the user has installed from a registry.
#[derive(Debug, Clone)]
pub struct InstalledAgents {
    directory: PathBuf,
    store: StateFile,
}

/// An installed agent, as recorded in the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledAgent {
    /// The agent's id in the registry, which is its name here.
    pub id: String,
    /// The agent's name for people.
    pub title: String,
    /// The installed version.
    pub version: String,
    /// The URL or file of the registry.
    pub registry: String,
    /// Where the agent's program comes from.
    pub distribution: InstalledDistribution,
    /// The program: a path in the agent's directory, or the name of a package runner.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The environment variables that the registry sets for the agent.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Where the program of an installed agent comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum InstalledDistribution {
    /// A download, which was unpacked to the agent's directory.
    Binary {
        /// The URL of the download.
        url: String,
        /// The SHA-256 hash of the download, in hexadecimal.
        sha256: String,
    },
    /// A package of the npm registry, which `npx` runs.
    Npx {
        /// The package, with its exact version.
        package: String,
    },
    /// A package of PyPI, which `uvx` runs.
    Uvx {
        /// The package, with its exact version.
        package: String,
    },
}

impl InstalledDistribution {
    /// Returns the kind of the distribution as the registry calls it, such as `binary`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Binary { .. } => "binary",
            Self::Npx { .. } => "npx",
            Self::Uvx { .. } => "uvx",
        }
    }

    /// Returns the URL of the download, or the package.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Binary { url, .. } => url,
            Self::Npx { package } | Self::Uvx { package } => package,
        }
    }

    /// Returns the SHA-256 hash of the download. A package has none.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Self::Binary { sha256, .. } => Some(sha256),
            Self::Npx { .. } | Self::Uvx { .. } => None,
        }
    }
}

/// The contents of the lock file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LockFile {
    agents: BTreeMap<String, InstalledAgent>,
}

impl InstalledAgents {
    /// Returns the user's installed agents, which are in `$XDG_DATA_HOME/acp/agents` or `~/.local/share/acp/agents`.
    ///
    /// Returns `None` if the user has no home directory.
    #[must_use]
    pub fn open() -> Option<Self> {
        Some(Self::in_directory(&paths::data_dir()?.join("agents")))
    }

    /// Returns the agents that are installed in this directory.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            store: StateFile::new(directory.join("installed.json"), MAX_FILE_SIZE),
        }
    }

    /// Returns the directory that contains the lock file and the agents.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory of one version of an agent.
    #[must_use]
    pub fn version_directory(&self, id: &str, version: &str) -> PathBuf {
        self.directory.join(id).join(version)
    }

    /// Returns all installed agents, in order of id.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn list(&self) -> Result<Vec<InstalledAgent>, ConfigError> {
        let lock: LockFile = self.store.read()?.unwrap_or_default();
        Ok(lock.agents.into_values().collect())
    }

    /// Returns the installed agent with this id.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn find(&self, id: &str) -> Result<Option<InstalledAgent>, ConfigError> {
        let lock: Option<LockFile> = self.store.read()?;
        Ok(lock.and_then(|mut lock| lock.agents.remove(id)))
    }

    /// Records an agent, in place of the one with the same id.
    ///
    /// # Errors
    /// The lock file cannot be read or written.
    pub fn record(&self, agent: InstalledAgent) -> Result<(), ConfigError> {
        self.store.update(|lock: Option<LockFile>| {
            let mut lock = lock.unwrap_or_default();
            lock.agents.insert(agent.id.clone(), agent);
            Ok::<_, ConfigError>((lock, ()))
        })
    }

    /// Forgets an agent. Returns `true` if it was recorded.
    ///
    /// # Errors
    /// The lock file cannot be read or written.
    pub fn forget(&self, id: &str) -> Result<bool, ConfigError> {
        self.store.update(|lock: Option<LockFile>| {
            let mut lock = lock.unwrap_or_default();
            let forgotten = lock.agents.remove(id).is_some();
            Ok::<_, ConfigError>((lock, forgotten))
        })
    }

    /// Returns the command that starts an agent: its program and arguments.
    #[must_use]
    pub fn command(&self, agent: &InstalledAgent) -> Vec<String> {
        let program = match agent.distribution {
            InstalledDistribution::Binary { .. } => {
                let directory = self.version_directory(&agent.id, &agent.version);
                directory.join(&agent.program).display().to_string()
            }
            InstalledDistribution::Npx { .. } | InstalledDistribution::Uvx { .. } => {
                agent.program.clone()
            }
        };
        let mut command = vec![program];
        command.extend(agent.args.iter().cloned());
        command
    }

    /// Returns `true` if the agent's files are missing, so that it has to be installed again.
    #[must_use]
    pub fn is_missing_files(&self, agent: &InstalledAgent) -> bool {
        let directory = self.version_directory(&agent.id, &agent.version);
        match agent.distribution {
            InstalledDistribution::Binary { .. } => !directory.join(&agent.program).is_file(),
            InstalledDistribution::Npx { .. } | InstalledDistribution::Uvx { .. } => false,
        }
    }

    /// Returns the agent that `name` means, which is an id or `ID@VERSION`. Returns `None` if `name` is an id that is not
    /// installed.
    ///
    /// # Errors
    /// The lock file cannot be read, the agent has another version than the one in `name`, or its files are missing.
    pub(crate) fn choose(&self, name: &str) -> Result<Option<InstalledAgent>, ConfigError> {
        let (id, version) = split_version(name);
        let installed = self.find(id)?;
        let Some(agent) = installed else {
            return match version {
                None => Ok(None),
                Some(_) => Err(not_installed_error(name, "")),
            };
        };
        if version.is_some_and(|version| version != agent.version) {
            let other = format!("; version {} is installed", agent.version);
            return Err(not_installed_error(name, &other));
        }
        if self.is_missing_files(&agent) {
            let path = self.version_directory(&agent.id, &agent.version);
            return Err(ConfigError::usage(format!(
                "the files of the agent {id} are missing in {}; install it again with: acp agents install {id}@{}",
                paths::display_path(&path),
                agent.version
            )));
        }
        Ok(Some(agent))
    }
}

/// Splits `ID@VERSION` into the id and the version.
#[must_use]
pub fn split_version(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((id, version)) => (id, Some(version)),
        None => (name, None),
    }
}

fn not_installed_error(name: &str, other: &str) -> ConfigError {
    ConfigError::usage(format!(
        "agent not installed: `{name}`{other}; install it with: acp agents install {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npx_agent(id: &str, version: &str) -> InstalledAgent {
        let package = format!("{id}@{version}");
        InstalledAgent {
            id: id.to_owned(),
            title: id.to_uppercase(),
            version: version.to_owned(),
            registry: "registry.json".to_owned(),
            program: "npx".to_owned(),
            args: vec!["--yes".to_owned(), package.clone()],
            distribution: InstalledDistribution::Npx { package },
            env: BTreeMap::new(),
        }
    }

    #[test]
    fn version_in_the_name_must_be_the_installed_one() {
        let directory = tempfile::tempdir().unwrap();
        let agents = InstalledAgents::in_directory(directory.path());
        assert_eq!(agents.choose("one").unwrap(), None);
        let agent = npx_agent("one", "1.2.3");
        agents.record(agent.clone()).unwrap();
        assert_eq!(agents.choose("one").unwrap(), Some(agent.clone()));
        assert_eq!(agents.choose("one@1.2.3").unwrap(), Some(agent));
        for (name, message) in [
            ("one@1.2.4", "version 1.2.3 is installed"),
            ("two@1.0.0", "acp agents install two@1.0.0"),
        ] {
            let error = agents.choose(name).unwrap_err();
            assert!(matches!(error, ConfigError::Usage(_)));
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn agent_without_its_files_is_not_started() {
        let directory = tempfile::tempdir().unwrap();
        let agents = InstalledAgents::in_directory(directory.path());
        let mut agent = npx_agent("one", "1.2.3");
        agent.distribution = InstalledDistribution::Binary {
            url: "https://example.org/one.zip".to_owned(),
            sha256: "0".repeat(64),
        };
        agent.program = "bin/one".to_owned();
        agents.record(agent.clone()).unwrap();
        let error = agents.choose("one").unwrap_err();
        assert!(error.to_string().contains("acp agents install one@1.2.3"));
        let program = directory.path().join("one/1.2.3/bin/one");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "").unwrap();
        let agent = agents.choose("one").unwrap().unwrap();
        let command = agents.command(&agent);
        assert_eq!(command.first(), Some(&program.display().to_string()));
    }
}
