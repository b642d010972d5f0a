//! Arguments for choosing an agent and its environment.

use std::path::Path;

use acp_config::{AgentChoice, AgentEnvironment, AgentSelector, EnvRequest};

use super::candidates;
use super::remote::UrlArgs;
use crate::exit::CommandExit;
use crate::{config, terminal_user};

// The agent. No doc comment: clap would use it as the description of the command.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AgentChoiceArgs {
    /// Agent to use, by name.
    ///
    /// List agents with `acp agents`. The default is the configured `default_agent`, or else the bundled agent.
    #[arg(long, value_name = "NAME", conflicts_with = "agent_command", add = candidates::agent_names())]
    pub(crate) agent: Option<String>,

    /// Command that starts the agent, as an alternative to --agent.
    #[arg(last = true, value_name = "AGENT COMMAND", conflicts_with = "url")]
    pub(crate) agent_command: Vec<String>,

    #[command(flatten)]
    pub(crate) url: UrlArgs,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Latest protocol version to offer: 1 or 2.
    ///
    /// The agent chooses. Version 2 is a draft. The default is what is configured for the agent, or else 1.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: Option<u16>,
}

impl AgentChoiceArgs {
    /// Returns `true` if an agent is given on the command line.
    pub(crate) fn is_given(&self) -> bool {
        self.agent.is_some() || self.url.url.is_some() || !self.agent_command.is_empty()
    }

    /// Returns the chosen agent, to work in `cwd`. Asks the user first if it is a project agent that has not been
    /// allowed yet.
    ///
    /// # Errors
    /// The name is unknown, the configuration is invalid, or the project's agent is not allowed.
    pub(crate) fn choose(&self, cwd: &Path) -> Result<AgentChoice, CommandExit> {
        let request = AgentSelector {
            name: self.agent.clone(),
            command: self.agent_command.clone(),
            url: self.url.url.clone(),
            remote: self.url.options(),
            env: self.env.env.clone(),
            protocol: self.protocol,
        };
        let ask: Option<&dyn Fn(&str) -> bool> = match terminal_user::can_ask() {
            true => Some(&terminal_user::confirm),
            false => None,
        };
        Ok(request.choose(&config::read_user_config()?, cwd, ask)?)
    }
}

// `--env`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct EnvArgs {
    /// Set an environment variable for the agent.
    ///
    /// Without VALUE, the variable has its current value. Can be repeated. Otherwise, API keys in
    /// the environment are not passed on, except by `acp trace` and `acp bridge`.
    ///
    /// Command lines are visible to other users. To pass a secret, set the variable beforehand and give only its name.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<EnvRequest>,
}

impl EnvArgs {
    /// Returns the environment for an agent, as set in the configuration and on the command line.
    pub(crate) fn agent_environment(&self) -> Result<AgentEnvironment, CommandExit> {
        let config = config::read_user_config()?;
        Ok(AgentEnvironment::from_config(
            &config.environment,
            &self.env,
        )?)
    }

    /// Returns the environment of this process, plus the variables given on the command line.
    pub(crate) fn process_environment(&self) -> Result<AgentEnvironment, CommandExit> {
        Ok(AgentEnvironment::inherit_all(&self.env)?)
    }
}
