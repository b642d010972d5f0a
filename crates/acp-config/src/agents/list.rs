//! Lists the agents that are available in a directory.

use std::path::{Path, PathBuf};

use acp_host::AgentCommand;

use super::choice::AgentSelector;
use super::installed::{InstalledAgent, InstalledAgents};
use super::project::ProjectAgents;
use super::well_known::{BUNDLED_AGENT, KNOWN_AGENTS, find_well_known};
use crate::config::UserConfig;
use crate::error::ConfigError;
use crate::quote::quote;

/// Where an agent is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentOrigin {
    /// The agent is in the user's configuration.
    User,
    /// The agent is installed from a registry.
    Installed,
    /// The agent is in the project's configuration.
    Project,
    /// The agent is in the built-in list of well-known agents.
    WellKnown,
}

impl AgentOrigin {
    /// Returns the origin as one word, such as `user`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Installed => "installed",
            Self::Project => "project",
            Self::WellKnown => "known",
        }
    }
}

/// An available agent, with the details that `acp agents` shows.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListedAgent {
    /// The name that the agent is chosen by.
    pub name: String,
    /// Where the agent is configured.
    pub origin: AgentOrigin,
    /// The agent's title, if known.
    pub title: Option<String>,
    /// The record of the installation, if the agent is installed from a registry.
    pub installed: Option<InstalledAgent>,
    /// The agent's program and arguments. Empty if the agent is bundled or remote.
    pub command: Vec<String>,
    /// The URL of a remote agent, without the query.
    pub url: Option<String>,
    /// The path of the agent's program, if it has been found.
    pub program_path: Option<PathBuf>,
    /// The command that installs the agent, if known.
    pub install: Option<&'static str>,
    /// Whether this agent is used by default.
    pub is_default: bool,
    /// The reason why the agent cannot be used, or `None` if it can.
    pub error: Option<String>,
}

impl ListedAgent {
    fn is_bundled(&self) -> bool {
        self.command.is_empty() && self.url.is_none() && self.error.is_none()
    }

    /// Returns `true` if the agent's program has been found on this system, or if it needs none.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        self.is_bundled() || self.url.is_some() || self.program_path.is_some()
    }

    /// Describes the agent's availability in one or two words, such as `not installed`.
    #[must_use]
    pub fn availability(&self) -> &'static str {
        match (self.is_bundled(), &self.program_path, &self.error) {
            (_, _, Some(_)) => "unavailable",
            _ if self.url.is_some() => "remote",
            (true, _, _) => "built in",
            (false, Some(_), _) => "installed",
            (false, None, _) => "not installed",
        }
    }

    /// Returns a one-line summary: the agent's title and command, its URL, how to install it, or why it can't be used.
    #[must_use]
    pub fn summary(&self) -> String {
        if let Some(wrong) = &self.error {
            return wrong.clone();
        }
        if let Some(url) = &self.url {
            return url.clone();
        }
        let words: Vec<String> = self.command.iter().map(|word| quote(word)).collect();
        let command = words.join(" ");
        let what = match (self.title.as_deref(), self.origin) {
            (Some(title), AgentOrigin::Installed) => {
                let installed = self.installed.as_ref();
                let from =
                    installed.map(|agent| format!(" {}, from {}", agent.version, agent.registry));
                format!("{title}{}: {command}", from.unwrap_or_default())
            }
            _ if self.is_bundled() => "the bundled agent".to_owned(),
            (Some(title), AgentOrigin::WellKnown) if self.is_installed() => {
                format!("{title}: {command}")
            }
            (Some(title), AgentOrigin::WellKnown) => title.to_owned(),
            _ => command,
        };
        match self.install {
            Some(install) if !self.is_installed() => format!("{what}; install it with: {install}"),
            _ => what,
        }
    }
}

/// All agents available in a directory, with notes for the user.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentList {
    /// The agents: the user's own first, then the installed, the project's and the well-known ones.
    pub agents: Vec<ListedAgent>,
    /// The agents that the project defines, if any.
    pub project: Option<ProjectAgents>,
    /// Whether the user has allowed the project's agents.
    pub is_allowed: bool,
    /// Notes for the user, such as a problem with the project's file.
    pub notes: Vec<String>,
}

impl AgentList {
    /// Lists the agents. Starts no programs and asks no questions.
    ///
    /// # Errors
    /// Fails if the list of allowed projects cannot be read.
    pub fn discover(config: &UserConfig, cwd: &Path) -> Result<Self, ConfigError> {
        let mut notes = Vec::new();
        let project = ProjectAgents::load(cwd).unwrap_or_else(|e| {
            notes.push(e.to_string());
            None
        });
        let allowed = match &project {
            Some(project) => project.is_allowed()?,
            None => false,
        };
        let projects_default = project
            .as_ref()
            .filter(|_| allowed)
            .and_then(|project| project.default_agent.clone());
        let installed = InstalledAgents::open().map_or(Ok(Vec::new()), |agents| agents.list());
        let installed = installed.unwrap_or_else(|e| {
            notes.push(e.to_string());
            Vec::new()
        });
        let is_installed = |name: &str| installed.iter().any(|agent| agent.id == name);
        let default = projects_default
            .or_else(|| config.default_agent.clone())
            .unwrap_or_else(|| BUNDLED_AGENT.to_owned());
        let default = match config.agents.contains_key(&default) || is_installed(&default) {
            true => default,
            false => find_well_known(&default).map_or(default, |known| known.name.to_owned()),
        };
        let mut agents = Vec::new();
        for name in config.agents.keys() {
            agents.push(resolve_agent(config, name, AgentOrigin::User, cwd));
        }
        for agent in &installed {
            if !config.agents.contains_key(&agent.id) {
                let mut listed = resolve_agent(config, &agent.id, AgentOrigin::Installed, cwd);
                listed.title = Some(agent.title.clone());
                listed.installed = Some(agent.clone());
                agents.push(listed);
            }
        }
        for name in project.iter().flat_map(|project| project.agents.keys()) {
            let mut listed = list_project_agent(name, project.as_ref());
            let hidden = ProjectAgents::shadowing_agent(name, &config.agents, &installed);
            listed.error = hidden.map(|by| format!("shadowed by {by}"));
            agents.push(listed);
        }
        for known in KNOWN_AGENTS {
            if !is_installed(known.name) && !config.agents.contains_key(known.name) {
                agents.push(resolve_agent(
                    config,
                    known.name,
                    AgentOrigin::WellKnown,
                    cwd,
                ));
            }
        }
        for agent in &mut agents {
            agent.is_default = agent.name == default && agent.error.is_none();
        }
        if !agents.iter().any(|agent| agent.is_default) {
            notes.push(format!(
                "default agent not found: `{default}`; change `default_agent` in {}",
                UserConfig::display_path()
            ));
        }
        Ok(Self {
            agents,
            project,
            is_allowed: allowed,
            notes,
        })
    }

    /// Returns the names of the agents that can be started.
    #[must_use]
    pub fn usable_names(self) -> Vec<String> {
        let usable = self.usable_agents().into_iter();
        usable.map(|agent| agent.name).collect()
    }

    /// Returns the usable agents.
    ///
    /// These are the user's own agents, installed agents, the project's agents if they are allowed, and installed well-known agents.
    #[must_use]
    pub fn usable_agents(self) -> Vec<ListedAgent> {
        let usable = |agent: &ListedAgent| {
            agent.error.is_none()
                && match agent.origin {
                    AgentOrigin::User | AgentOrigin::Installed => true,
                    AgentOrigin::Project => self.is_allowed,
                    AgentOrigin::WellKnown => agent.is_installed(),
                }
        };
        self.agents.into_iter().filter(usable).collect()
    }
}

/// Resolves an agent name as if it had been given on the command line.
fn resolve_agent(config: &UserConfig, name: &str, by: AgentOrigin, cwd: &Path) -> ListedAgent {
    let known = find_well_known(name);
    let mut listed = ListedAgent {
        name: name.to_owned(),
        origin: by,
        title: known.map(|known| known.title.to_owned()),
        installed: None,
        command: Vec::new(),
        url: None,
        program_path: None,
        install: known.map(|known| known.install),
        is_default: false,
        error: None,
    };
    match AgentSelector::with_name(name).choose(config, cwd, None) {
        Ok(chosen) => {
            if let Some((program, args)) = chosen.command.split_first() {
                let command = AgentCommand::new(program).args(args);
                let command = command.environment(chosen.environment.environment());
                listed.program_path = command.find_executable().ok();
            }
            listed.install = chosen.install;
            listed.command = chosen.command;
            listed.url = chosen.remote.map(|remote| remote.url.key().to_owned());
        }
        Err(e) => listed.error = Some(e.to_string()),
    }
    listed
}

/// Builds the list entry for a project's agent, whether or not the user has allowed it. Does not start the agent.
fn list_project_agent(name: &str, project: Option<&ProjectAgents>) -> ListedAgent {
    let settings = project.and_then(|project| project.agents.get(name));
    let command = settings.and_then(|settings| settings.command.clone());
    let url = settings.and_then(|settings| settings.url.clone());
    let command = command.unwrap_or_default();
    let found = command.first().map(AgentCommand::new);
    ListedAgent {
        name: name.to_owned(),
        origin: AgentOrigin::Project,
        title: None,
        installed: None,
        program_path: found.and_then(|command| command.find_executable().ok()),
        command,
        url,
        install: None,
        is_default: false,
        error: None,
    }
}
