//! Chooses an agent by name or command, and determines its settings.

use std::path::Path;

use acp::v1::McpServer;
use sha2::{Digest, Sha256};

use super::installed::{InstalledAgent, InstalledAgents, split_version};
use super::project::ProjectAgents;
use super::remote::{RemoteAgent, RemoteOptions, TypedUrl};
use super::remote_url::RemoteUrl;
use super::settings::{self, AgentSettings, check_name};
use super::state_paths::{self, AgentStatePaths};
use super::well_known::{
    BUNDLED_AGENT, KNOWN_AGENTS, find_by_command, find_well_known, package_runner_paths_for_command,
};
use crate::config::UserConfig;
use crate::environment::{AgentEnvironment, EnvRequest};
use crate::error::ConfigError;
use crate::mcp_servers::mcp_definitions;
use crate::quote::quote;

/// The agent requested on the command line, by name, command or URL.
#[derive(Debug, Clone, Default)]
pub struct AgentSelector {
    /// The name of the requested agent, if the user has given one.
    pub name: Option<String>,
    /// The program and arguments of an agent chosen by command. The command takes precedence over the name.
    pub command: Vec<String>,
    /// The URL of a remote agent chosen by URL. The URL takes precedence over the command.
    pub url: Option<TypedUrl>,
    /// The options for connecting to a remote agent.
    pub remote: RemoteOptions,
    /// The environment variables requested for the agent.
    pub env: Vec<EnvRequest>,
    /// The latest protocol version to use.
    pub protocol: Option<u16>,
}

/// A function that asks the user a yes-or-no question and returns the answer, or `None` if there is no user to ask.
pub type ConfirmFn<'a> = Option<&'a dyn Fn(&str) -> bool>;

/// The chosen agent, with the settings for its sessions.
#[derive(Debug, Clone)]
pub struct AgentChoice {
    /// The agent's name, if it was chosen by name.
    pub name: Option<String>,
    /// The agent's program and arguments. Empty if the agent is bundled or remote.
    pub command: Vec<String>,
    /// The URL and connection settings of a remote agent.
    pub remote: Option<RemoteAgent>,
    /// The latest protocol version to use.
    pub protocol: u16,
    /// Whether the command line must repeat the protocol version in order to choose the same agent again.
    pub needs_protocol_arg: bool,
    /// The environment variables to set for the agent.
    pub environment: AgentEnvironment,
    /// The mode in which the agent's sessions start.
    pub mode: Option<String>,
    /// The config options to set when a session starts, as pairs of id and value.
    pub options: Vec<(String, String)>,
    /// MCP servers for the agent's sessions.
    pub mcp_servers: Vec<McpServer>,
    /// The command that installs the agent, if known.
    pub install: Option<&'static str>,
    /// A note for the user about the choice.
    pub note: Option<String>,
}

impl AgentSelector {
    /// Creates a selector for the agent called `name`.
    #[must_use]
    pub fn with_name(name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// Chooses the agent to use in `cwd`.
    ///
    /// Asks the user before choosing a project's agent that is not allowed yet.
    ///
    /// # Errors
    /// Fails if no agent has the requested name, the configuration is invalid, or the project's agents are not allowed.
    pub fn choose(
        &self,
        config: &UserConfig,
        cwd: &Path,
        ask: ConfirmFn<'_>,
    ) -> Result<AgentChoice, ConfigError> {
        let mut chosen = self.choose_any(config, cwd, ask)?;
        match &mut chosen.remote {
            Some(remote) => {
                if !self.env.is_empty() {
                    return Err(ConfigError::usage(
                        "--env does not apply to a remote agent; set variables on its server",
                    ));
                }
                let notes = chosen.note.take().into_iter().chain(remote.notes.drain(..));
                let notes: Vec<String> = notes.collect();
                chosen.note = (!notes.is_empty()).then(|| notes.join("\n"));
            }
            None => {
                let options = [
                    ("--token-file", self.remote.token_file.is_some()),
                    ("--token-header", self.remote.token_header.is_some()),
                    ("--pin", self.remote.pin.is_some()),
                    ("--map", !self.remote.paths.is_empty()),
                ];
                if let Some((option, _)) = options.iter().find(|(_, is_set)| *is_set) {
                    return Err(ConfigError::usage(format!(
                        "{option} requires a remote agent; choose one with --url or --agent"
                    )));
                }
            }
        }
        Ok(chosen)
    }

    fn choose_any(
        &self,
        config: &UserConfig,
        cwd: &Path,
        ask: ConfirmFn<'_>,
    ) -> Result<AgentChoice, ConfigError> {
        if let Some(url) = &self.url {
            let mut chosen =
                self.build_choice(config, AgentSettings::default(), ConfigError::usage)?;
            chosen.remote = Some(RemoteAgent::from_url(url, &self.remote)?);
            return Ok(chosen);
        }
        if !self.command.is_empty() {
            let mut chosen =
                self.build_choice(config, AgentSettings::default(), ConfigError::usage)?;
            chosen.command.clone_from(&self.command);
            return Ok(chosen);
        }
        if let Some(name) = &self.name {
            return self.choose_by_name(config, name, cwd, ask);
        }
        let (name, note) = default_agent(config, cwd)?;
        let mut chosen = match &name {
            Some(name) => self.choose_by_name(config, name, cwd, ask)?,
            None => {
                let bundled = self.choose_by_name(config, BUNDLED_AGENT, cwd, ask)?;
                // There is no name, because no option is needed to choose this agent again.
                AgentChoice {
                    name: None,
                    ..bundled
                }
            }
        };
        chosen.note = note;
        Ok(chosen)
    }

    fn choose_by_name(
        &self,
        config: &UserConfig,
        name: &str,
        cwd: &Path,
        ask: ConfirmFn<'_>,
    ) -> Result<AgentChoice, ConfigError> {
        let (id, version) = split_version(name);
        let installed = match InstalledAgents::open() {
            // The user's own agent takes precedence, so a damaged lock file does not concern it.
            Some(agents)
                if id != BUNDLED_AGENT && (version.is_some() || !is_configured(config, name)) =>
            {
                agents.choose(name)?.map(|agent| (agents, agent))
            }
            _ => None,
        };
        if let Some((agents, agent)) = installed {
            return self.choose_installed(config, id, name, &agents, &agent);
        }
        let known = find_well_known(name);
        let canonical = known.map_or(name, |known| known.name);
        let users = match config.agents.contains_key(name) {
            true => name,
            false => canonical,
        };
        if let Some(settings) = config.agents.get(users).cloned() {
            return self.choose_configured(config, users, settings);
        }
        if let Some(known) = known {
            let mut chosen =
                self.build_choice(config, AgentSettings::default(), ConfigError::usage)?;
            chosen.name = Some(known.name.to_owned());
            chosen.command = to_strings(known.command);
            chosen.install = Some(known.install);
            return Ok(chosen);
        }
        let project = ProjectAgents::load(cwd)?;
        if let Some(mut project) = project {
            if project.agents.contains_key(name) {
                require_allowed(&project, ask)?;
            }
            if let Some(mut settings) = project.agents.remove(name) {
                let config_error = |what: String| {
                    ConfigError::usage(format!(
                        "{}: [agents.{name}]: {what}",
                        project.file.display()
                    ))
                };
                let url = settings.remote_url(Some(&project.directory));
                let remote = self.remote_agent(url, &settings, config_error)?;
                let command = settings.command.take().unwrap_or_default();
                let mut chosen = self.build_choice(config, settings, config_error)?;
                chosen.name = Some(name.to_owned());
                chosen.command = command;
                chosen.remote = remote;
                return Ok(chosen);
            }
            return Err(unknown_agent_error(name, config, Some(&project)));
        }
        Err(unknown_agent_error(name, config, None))
    }

    /// Chooses an agent that is installed from a registry, with the settings that the user has configured for it.
    fn choose_installed(
        &self,
        config: &UserConfig,
        id: &str,
        name: &str,
        agents: &InstalledAgents,
        agent: &InstalledAgent,
    ) -> Result<AgentChoice, ConfigError> {
        let settings = config.agents.get(id).cloned().unwrap_or_default();
        // With a version, exactly the installed program is meant, even if the user has a remote agent of this name.
        let mut settings = match settings.url {
            Some(_) => AgentSettings::default(),
            None => settings,
        };
        settings.command = None;
        let mut env = agent.env.clone();
        env.append(&mut settings.env);
        settings.env = env;
        let config_error = |what: String| {
            let file = UserConfig::display_path();
            ConfigError::usage(format!("{file}: [agents.{id}]: {what}"))
        };
        let mut chosen = self.build_choice(config, settings, config_error)?;
        chosen.name = Some(name.to_owned());
        chosen.command = agents.command(agent);
        Ok(chosen)
    }

    /// Chooses an agent from the user's configuration.
    fn choose_configured(
        &self,
        config: &UserConfig,
        name: &str,
        mut settings: AgentSettings,
    ) -> Result<AgentChoice, ConfigError> {
        let known = find_well_known(name);
        let config_error = |what: String| {
            let file = UserConfig::display_path();
            ConfigError::usage(format!("{file}: [agents.{name}]: {what}"))
        };
        check_name(name).map_err(config_error)?;
        let remote = self.remote_agent(settings.remote_url(None), &settings, config_error)?;
        if let Some(remote) = remote {
            if known.is_some_and(|known| known.name == BUNDLED_AGENT) {
                let what = format!("`{BUNDLED_AGENT}` is bundled and does not accept `url`");
                return Err(config_error(what));
            }
            let mut chosen = self.build_choice(config, settings, config_error)?;
            chosen.name = Some(name.to_owned());
            chosen.remote = Some(remote);
            return Ok(chosen);
        }
        let command = match (settings.command.take(), known) {
            (Some(_), Some(known)) if known.name == BUNDLED_AGENT => {
                let what = format!("`{BUNDLED_AGENT}` is bundled and does not accept `command`");
                return Err(config_error(what));
            }
            (Some(mut command), _) => {
                if let Some(program) = command.first_mut() {
                    *program = settings::resolve_program(program, None).map_err(config_error)?;
                }
                command
            }
            (None, Some(known)) => to_strings(known.command),
            (None, None) => {
                let what =
                    "`command` or `url` is required, except for installed and well-known agents";
                return Err(config_error(what.to_owned()));
            }
        };
        let mut chosen = self.build_choice(config, settings, config_error)?;
        chosen.install = known
            .filter(|known| command == known.command)
            .map(|known| known.install);
        chosen.name = Some(name.to_owned());
        chosen.command = command;
        Ok(chosen)
    }

    /// Returns the remote agent with this URL and these settings.
    fn remote_agent(
        &self,
        url: Result<Option<RemoteUrl>, String>,
        settings: &AgentSettings,
        config_error: impl Fn(String) -> ConfigError + Copy,
    ) -> Result<Option<RemoteAgent>, ConfigError> {
        let url = url.map_err(config_error)?;
        url.map(|url| RemoteAgent::configured(url, settings, &self.remote, config_error))
            .transpose()
    }

    /// Builds the choice from an agent's settings and the command line. The caller sets the name, and the command or the
    /// remote agent.
    fn build_choice(
        &self,
        config: &UserConfig,
        settings: AgentSettings,
        config_error: impl Fn(String) -> ConfigError,
    ) -> Result<AgentChoice, ConfigError> {
        let given =
            AgentEnvironment::for_agent(&config.environment, &settings, &self.env, &config_error)?;
        let protocol = self.protocol.or(settings.protocol).unwrap_or(1);
        Ok(AgentChoice {
            name: None,
            command: Vec::new(),
            remote: None,
            protocol,
            needs_protocol_arg: self.protocol.is_some_and(|typed| {
                // Version 1 is the default.
                typed != settings.protocol.unwrap_or(1)
            }),
            environment: given,
            options: settings.options().collect(),
            mode: settings.mode,
            mcp_servers: mcp_definitions(settings.mcp_servers).map_err(config_error)?,
            install: None,
            note: None,
        })
    }
}

impl AgentChoice {
    /// Returns `true` if this is the bundled agent.
    #[must_use]
    pub fn is_bundled(&self) -> bool {
        self.command.is_empty() && self.remote.is_none()
    }

    /// Returns advice for an authentication failure, if an API key is set in this process but was not passed to the
    /// agent. `words`, such as the agent's command, indicate which keys the agent uses. Returns `None` for a remote
    /// agent, which receives no variables from this process.
    #[must_use]
    pub fn missing_key_hint(&self, words: &[String], said: &str) -> Option<String> {
        match &self.remote {
            Some(_) => None,
            None => self.environment.missing_key_hint(words, said),
        }
    }

    /// Returns the paths where the agent stores its own state, so that they can be made writable. Creates missing
    /// directories.
    #[must_use]
    pub fn state_paths(&self, cwd: &Path) -> AgentStatePaths {
        let named = self.name.as_deref();
        let named = named.and_then(|name| find_well_known(split_version(name).0));
        if self.remote.is_some() {
            return AgentStatePaths::default();
        }
        let known = match self.command.is_empty() {
            true => find_well_known(BUNDLED_AGENT),
            false => find_by_command(&self.command).or(named),
        };
        let places = known.map(|known| known.state_paths).unwrap_or_default();
        let places = places
            .iter()
            .chain(package_runner_paths_for_command(&self.command));
        state_paths::prepare_state_paths(places, &self.environment.environment(), cwd)
    }

    /// Returns the key under which this agent's data is stored.
    ///
    /// For a command, only the program is readable in the key, because the arguments can contain a secret. For
    /// a remote agent, it is the URL without a query.
    #[must_use]
    pub fn storage_key(&self) -> String {
        if let (None, Some(remote)) = (&self.name, &self.remote) {
            return remote.url.key().to_owned();
        }
        match (&self.name, self.command.split_first()) {
            // The sessions of an installed agent stay the same when it is updated.
            (Some(name), _) => split_version(name).0.to_owned(),
            (None, None) => BUNDLED_AGENT.to_owned(),
            (None, Some((program, _))) => {
                let mut digest = Sha256::new();
                for word in &self.command {
                    digest.update(word.len().to_le_bytes());
                    digest.update(word);
                }
                let digest = digest.finalize();
                let digest = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
                format!("{program} {}", digest.collect::<String>())
            }
        }
    }

    /// Returns a noun phrase for the agent, such as `the agent gemini`, to use in a sentence.
    #[must_use]
    pub fn display_name(&self) -> String {
        if let (None, Some(remote)) = (&self.name, &self.remote) {
            return format!("the agent at {}", remote.url.key());
        }
        match (&self.name, self.command.first()) {
            (Some(name), _) => format!("the agent {name}"),
            (None, None) => "the bundled agent".to_owned(),
            (None, Some(program)) => format!("the agent `{program}`"),
        }
    }

    /// Returns the install command to append to a "program not found" error, or an empty string.
    #[must_use]
    pub fn install_hint(&self) -> String {
        match self.install {
            Some(install) if !install.is_empty() => format!("\ninstall it with: {install}"),
            _ => String::new(),
        }
    }
}

/// Returns `true` if the user has configured which agent `name` is. Settings without a command or URL only add to an
/// installed or well-known agent.
fn is_configured(config: &UserConfig, name: &str) -> bool {
    let settings = config.agents.get(name);
    settings.is_some_and(|settings| settings.command.is_some() || settings.url.is_some())
}

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the name of the default agent, if one is configured, and any note for the user.
///
/// The project's default takes precedence over the user's if the user has allowed the project's agents.
fn default_agent(
    config: &UserConfig,
    cwd: &Path,
) -> Result<(Option<String>, Option<String>), ConfigError> {
    let users = config.default_agent.clone();
    let not_used = |why: String| Some(format!("ignoring the project's default agent: {why}"));
    let project = match ProjectAgents::load(cwd) {
        Ok(Some(project)) if project.default_agent.is_some() => project,
        Ok(_) => return Ok((users, None)),
        // The user cannot have allowed an invalid file.
        Err(e) => return Ok((users, not_used(e.to_string()))),
    };
    if project.is_allowed()? {
        return Ok((project.default_agent, None));
    }
    let why = format!(
        "you have not allowed {}; review and allow it with `acp agents allow`",
        project.display_file()
    );
    Ok((users, not_used(why)))
}

/// Checks that the user has allowed the project's agents. If not, asks the user.
fn require_allowed(project: &ProjectAgents, ask: ConfirmFn<'_>) -> Result<(), ConfigError> {
    if project.is_allowed()? {
        return Ok(());
    }
    let file = project.display_file();
    if let Some(ask) = ask {
        if ask(&project.confirmation_question()) {
            return project.allow();
        }
        return Err(ConfigError::usage(
            "you have not allowed the project's agents",
        ));
    }
    Err(ConfigError::usage(format!(
        "the project defines this agent in {file}, which you have not allowed; review and allow it with: acp agents allow{}",
        cwd_flag(&project.directory)
    )))
}

/// If the current directory is outside the project, returns ` --cwd DIR` to include in a suggested command. Otherwise
/// returns an empty string.
fn cwd_flag(directory: &Path) -> String {
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    match here {
        Ok(here) if here.starts_with(directory) => String::new(),
        _ => format!(" --cwd {}", quote(&directory.to_string_lossy())),
    }
}

/// Builds the error for an unknown agent name. Suggests the most similar name, if there is one.
fn unknown_agent_error(
    name: &str,
    config: &UserConfig,
    project: Option<&ProjectAgents>,
) -> ConfigError {
    let aliases = KNOWN_AGENTS
        .iter()
        .flat_map(|known| known.aliases.iter().copied());
    let names = KNOWN_AGENTS.iter().map(|known| known.name).chain(aliases);
    let names = names.chain(config.agents.keys().map(String::as_str));
    let installed = InstalledAgents::open().and_then(|agents| agents.list().ok());
    let installed = installed.unwrap_or_default();
    let names = names.chain(installed.iter().map(|agent| agent.id.as_str()));
    let projects = project
        .into_iter()
        .flat_map(|project| project.agents.keys());
    let nearest = nearest_name(name, names.chain(projects.map(String::as_str)));
    let meant = nearest.map(|nearest| format!("; did you mean `{nearest}`?"));
    ConfigError::usage(format!(
        "agent not found: `{name}`{} run `acp agents` to list agents",
        meant.unwrap_or_else(|| ";".to_owned())
    ))
}

/// Returns the name that is most similar to `name`, if one is similar enough.
fn nearest_name<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// The minimum similarity, from 0 (nothing in common) to 1 (identical).
    const MIN_SIMILARITY: f64 = 0.75;
    let name = name.to_lowercase();
    let rated = names.map(|other| (strsim::jaro_winkler(&name, &other.to_lowercase()), other));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_is_similar() {
        let names = || ["claude", "codex", "gemini", "goose"].into_iter();
        assert_eq!(nearest_name("cluade", names()), Some("claude"));
        assert_eq!(nearest_name("Goose", names()), Some("goose"));
        assert_eq!(nearest_name("gemni", names()), Some("gemini"));
        assert_eq!(nearest_name("xyzzy", names()), None);
        assert_eq!(nearest_name("", names()), None);
    }

    #[test]
    fn storage_key_omits_possible_secrets() {
        let key = |words: &[&str]| {
            let which = AgentSelector::default();
            let chosen = which.build_choice(
                &UserConfig::default(),
                AgentSettings::default(),
                ConfigError::usage,
            );
            let mut chosen = chosen.unwrap();
            chosen.command = to_strings(words);
            chosen.storage_key()
        };
        let one = key(&["agent", "--key=hush"]);
        assert!(one.starts_with("agent ") && !one.contains("hush"), "{one}");
        assert_eq!(one, key(&["agent", "--key=hush"]));
        assert_ne!(one, key(&["agent", "--key", "hush"]));
        assert_ne!(key(&["a", "bc"]), key(&["ab", "c"]));
        assert_eq!(key(&[]), BUNDLED_AGENT);
    }
}
