//! Which agent is meant, and what it is given of the environment.

use std::path::Path;

use acp_config::{AgentChoice, AgentEnvironment, AgentSelector, EnvRequest};

use crate::exit::CommandExit;
use crate::{config, terminal_user};

// Which agent; not documented, or it would be the text of whatever it is put into.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct AgentChoiceArgs {
    /// Agent to use, by name.
    ///
    /// List agents with `acp agents`. The default is the configured `default_agent`, or else the bundled agent.
    #[arg(long, value_name = "NAME", conflicts_with = "agent_command")]
    pub(crate) agent: Option<String>,

    /// Command that starts the agent, instead of --agent.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent_command: Vec<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Latest protocol version to offer: 1 or 2.
    ///
    /// The agent chooses. Version 2 is a draft. The default is what is configured for the agent, or else 1.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: Option<u16>,
}

impl AgentChoiceArgs {
    /// Whether the command line says which.
    pub(crate) fn is_given(&self) -> bool {
        self.agent.is_some() || !self.agent_command.is_empty()
    }

    /// The agent that is meant, for someone who works in `cwd`. If it is one of a project that they have not yet said yes
    /// to, they are asked.
    ///
    /// # Errors
    /// There is none of that name; what is configured is not understood; the project's is not allowed.
    pub(crate) fn choose(&self, cwd: &Path) -> Result<AgentChoice, CommandExit> {
        let request = AgentSelector {
            name: self.agent.clone(),
            command: self.agent_command.clone(),
            env: self.env.env.clone(),
            protocol: self.protocol,
        };
        let ask: Option<&dyn Fn(&str) -> bool> = match terminal_user::can_ask() {
            true => Some(&terminal_user::confirm),
            false => None,
        };
        Ok(request.choose(&config::read()?, cwd, ask)?)
    }
}

// `--env`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct EnvArgs {
    /// Give the agent an environment variable.
    ///
    /// Without VALUE, the variable has its current value. Can be repeated. API keys in the environment are not
    /// passed on otherwise, except by `acp trace` and `acp bridge`.
    ///
    /// Other users can see the command line: set a secret beforehand and give only its name.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<EnvRequest>,
}

impl EnvArgs {
    /// What an agent is given: what the configuration and the command line say.
    pub(crate) fn environment(&self) -> Result<AgentEnvironment, CommandExit> {
        let config = config::read()?;
        Ok(AgentEnvironment::of(&config.environment, &self.env)?)
    }

    /// All that there is here, and what the command line adds.
    pub(crate) fn all(&self) -> Result<AgentEnvironment, CommandExit> {
        Ok(AgentEnvironment::inherit_all(&self.env)?)
    }
}
