//! The environment of agents: what the platform needs, what the user's configuration passes on, and what
//! was asked for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use acp_host::{Environment, process_secrets};
use serde::Deserialize;

use crate::agents::settings::AgentSettings;
use crate::error::ConfigError;

/// `[environment]` in `config.toml`: what agents get of the environment.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EnvironmentSettings {
    /// Variables to pass on; `*` at the end of a name stands for any rest.
    #[serde(default)]
    pub pass: Vec<String>,
}

/// A variable that a command line asks for, `NAME` or `NAME=VALUE`. What is wrong with it is said when an agent is given
/// it, without its value.
#[derive(Clone)]
pub struct EnvRequest(String);

impl fmt::Debug for EnvRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split_once('=').map_or(&*self.0, |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for EnvRequest {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// What an agent is given.
#[derive(Debug, Clone, Default)]
pub struct AgentEnvironment {
    environment: Environment,
    /// What is to be typed to give another run the same.
    args: Vec<String>,
}

impl AgentEnvironment {
    /// What the configuration and the command line say.
    ///
    /// # Errors
    /// What is said there names no variable, or one that is not set.
    pub fn of(
        everyone: &EnvironmentSettings,
        requests: &[EnvRequest],
    ) -> Result<Self, ConfigError> {
        Self::add_requests(configured_environment(everyone)?, requests)
    }

    /// The same for an agent with settings of its own; `wrong` says what is wrong with them.
    pub(crate) fn of_agent(
        everyone: &EnvironmentSettings,
        settings: &AgentSettings,
        requests: &[EnvRequest],
        wrong: impl Fn(String) -> ConfigError,
    ) -> Result<Self, ConfigError> {
        let mut environment = configured_environment(everyone)?;
        for name in &settings.pass {
            environment = environment
                .pass_variable(name)
                .map_err(|e| wrong(format!("pass: {e}")))?;
        }
        for (name, value) in &settings.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(wrong(format!(
                    "env: invalid environment variable name {name:?}"
                )));
            }
            environment = environment.set(name, value);
        }
        Self::add_requests(environment, requests)
    }

    /// All that there is here, and what the command line adds.
    ///
    /// # Errors
    /// What that asks for names no variable, or one that is not set.
    pub fn inherit_all(requests: &[EnvRequest]) -> Result<Self, ConfigError> {
        Self::add_requests(Environment::inherit(), requests)
    }

    fn add_requests(
        mut environment: Environment,
        requests: &[EnvRequest],
    ) -> Result<Self, ConfigError> {
        let mut typed = Vec::new();
        for EnvRequest(request) in requests {
            let (name, value) = match request.split_once('=') {
                Some((name, value)) => (name, Some(value.into())),
                None => (request.as_str(), process_secrets::variable(request)),
            };
            if name.is_empty() || name.contains('\0') {
                return Err(ConfigError::usage("--env: expected NAME or NAME=VALUE"));
            }
            let Some(value) = value else {
                let message = format!("--env {name}: variable not set; use --env {name}=VALUE");
                return Err(ConfigError::usage(message));
            };
            environment = environment.set(name, value);
            typed.push(match request == name {
                true => format!("--env {name}"),
                // Not the value: this is shown.
                false => format!("--env {name}=..."),
            });
        }
        Ok(Self {
            environment,
            args: typed,
        })
    }

    /// The variables.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.environment.clone()
    }

    /// What is to be typed to give another run the same, without values.
    #[must_use]
    pub fn to_args(&self) -> &[String] {
        &self.args
    }

    /// What to do about a login if a variable with the key is set here and was not passed on: one that is
    /// named in what the agent says, or, if none is, one that looks like a key of this agent's.
    #[must_use]
    pub fn hint(&self, agent: &[String], said: &str) -> Option<String> {
        let is_missing = |name: &str| {
            process_secrets::variable(name).is_some() && !self.environment.includes(name)
        };
        let words = said.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut names: BTreeSet<String> = words
            .filter(|word| word.contains('_') && *word == word.to_ascii_uppercase())
            .filter(|word| is_missing(word))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            let agent = agent.join(" ").to_ascii_lowercase();
            let ours = process_secrets::variables().filter_map(|(name, _)| name.into_string().ok());
            names = ours
                .filter(|name| looks_like_key(name, &agent) && is_missing(name))
                .collect();
        }
        if names.is_empty() {
            return None;
        }
        let flags: Vec<String> = names.iter().map(|name| format!("--env {name}")).collect();
        let names: Vec<String> = names.into_iter().collect();
        let (is, does) = match names.len() {
            1 => ("is", "to pass it"),
            _ => ("are", "to pass them"),
        };
        Some(format!(
            "{} {is} set, but not passed to the agent; add {} {does}",
            names.join(", "),
            flags.join(" ")
        ))
    }
}

/// What the user passes on to all agents.
fn configured_environment(everyone: &EnvironmentSettings) -> Result<Environment, ConfigError> {
    let mut environment = Environment::new();
    for name in &everyone.pass {
        environment = environment
            .pass_variable(name)
            .map_err(|e| ConfigError::usage(format!("config.toml, environment.pass: {e}")))?;
    }
    Ok(environment)
}

/// Whether a variable is named as a key of the agent with this command.
fn looks_like_key(name: &str, agent: &str) -> bool {
    let is_key = ["_API_KEY", "_TOKEN", "_KEY"]
        .iter()
        .any(|end| name.ends_with(end));
    let of = name
        .split('_')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    is_key && of.len() > 2 && agent.contains(&of)
}
